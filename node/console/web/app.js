// The frame of the console: who is signed in, the pages, and the page that the address names.

import { html } from './html.js'
import { render } from './vendor/preact.js'
import { useEffect, useRef } from './vendor/hooks.js'
import { signal } from './vendor/signals.js'
import { Heading, Notice, Problem } from './parts.js'
import { endSession, SignedOut } from './session.js'
import { watchPresence, working } from './presence.js'
import { accessKey, audits, begin, client, enrols, key, lacksApplication, lock, manages, operates, reads, reviews, searches, session, signOut, wasAway } from './state.js'
import { texts } from './texts.js'
import { SignIn } from './pages/signin.js'
import { Try } from './pages/try.js'
import { Galleries } from './pages/galleries.js'
import { Cluster } from './pages/cluster.js'
import { Import } from './pages/import.js'
import { Duplicates } from './pages/duplicates.js'
import { Review } from './pages/review.js'
import { Erase } from './pages/erase.js'
import { Lab } from './pages/lab.js'
import { Audit } from './pages/audit.js'

const t = texts.frame

/**
 * The pages. A person sees those that the key can use.
 * @type {{path: string, name: string, page: import('./vendor/preact.js').ComponentType<{rest: string[]}>, shown: () => boolean}[]}
 */
const pages = [
  { path: 'try', name: t.try, page: Try, shown: () => reads.value || (searches.value && !lacksApplication.value) },
  { path: 'galleries', name: t.galleries, page: Galleries, shown: () => reads.value && !lacksApplication.value },
  { path: 'cluster', name: t.cluster, page: Cluster, shown: () => operates.value },
  { path: 'import', name: t.import, page: Import, shown: () => enrols.value && !lacksApplication.value },
  { path: 'duplicates', name: t.duplicates, page: Duplicates, shown: () => manages.value },
  { path: 'review', name: t.review, page: Review, shown: () => reviews.value && !lacksApplication.value },
  { path: 'erase', name: t.erase, page: Erase, shown: () => manages.value },
  { path: 'lab', name: t.lab, page: Lab, shown: () => reads.value },
  { path: 'audit', name: t.audit, page: Audit, shown: () => audits.value },
]

/** The parts of the address after #/. */
const address = signal(parse())
addEventListener('hashchange', (e) => {
  const to = parse()
  if (to[0] !== address.value[0] && !mayLeave()) return history.replaceState(null, '', e.oldURL)
  address.value = to
})

addEventListener('beforeunload', (e) => working.value && e.preventDefault())

/** Asks before work that is under way is stopped. */
const mayLeave = () => !working.value || confirm(t.leave)

function parse() {
  try {
    return location.hash.replace(/^#\/?/, '').split('/').filter(Boolean).map(decodeURIComponent)
  } catch {
    return [] // somebody's typing: the first page
  }
}

/** What went wrong at the start. @type {import('./vendor/signals.js').Signal<unknown>} */
const broken = signal(undefined)

/** Whether the start is over. */
const ready = signal(false)

/** Whether the node that serves the page answered the last time. */
const alive = signal(true)

function Frame() {
  const shown = pages.filter((p) => p.shown())
  const [path, ...rest] = address.value
  const here = shown.find((p) => p.path === path) ?? shown[0]
  const main = useRef(/** @type {HTMLElement | null} */ (null))
  const first = useRef(true)
  useEffect(() => {
    document.title = here ? `${here.name} – facet` : 'facet'
    if (!first.current) main.current?.focus()
    first.current = false
  }, [here?.path])
  return html`<a class="skip" href="#main" onClick=${(/** @type {Event} */ e) => (e.preventDefault(), main.current?.focus())}>${t.skip}</a>
    <header class="top">
      <div>
        <a class="name" href="#/">facet</a>
        ${shown.length > 0 &&
        html`<nav aria-label=${t.pages}>
          <ul>
            ${shown.map((p) => html`<li><a href=${`#/${p.path}`} aria-current=${p === here ? 'page' : undefined}>${p.name}</a></li>`)}
          </ul>
        </nav>`}
        <${Who} />
      </div>
    </header>
    <main ref=${main} id="main" tabindex="-1">
      ${!alive.value && html`<${Notice} kind="bad"><p>${session.value?.how === 'loopback' ? t.goneLoopback : t.goneNode}</p><//>`}
      ${lacksApplication.value && html`<${Notice} kind="warn"><p>${t.lacksApplication} ${session.value?.how === 'loopback' ? t.startWithApplication : t.signInWithApplication}</p><//>`}
      <${Body} here=${here} rest=${rest} />
    </main>`
}

/** @param {{here: typeof pages[number] | undefined, rest: string[]}} props */
function Body({ here, rest }) {
  if (broken.value) {
    if (broken.value instanceof SignedOut) return html`<${Notice} kind="warn"><p>${t.signedOut}</p><//>`
    return html`<${Problem} error=${broken.value} />`
  }
  if (!ready.value) return html`<p role="status" class="busy">${t.loading}</p>`
  if (here) return html`<${here.page} key=${here.path} rest=${rest} />`
  return client.value ? html`<${Heading} title=${t.noPage} intro="" />` : html`<${SignIn} />`
}

function Who() {
  const s = session.value
  if (!client.value) return html`<p class="who"><span>${s ? t.version(s.version) : ''}</span> <a href="../docs/">${t.interface}</a></p>`
  return html`<div class="who">
    <a href="../docs/">${t.interface}</a>
    <span>${t.signedIn} <code>${accessKey.value}</code> ${key.value?.role} ${key.value?.holder}</span>
    ${s?.how === 'node' && html`<button type="button" class="link" onClick=${() => mayLeave() && signOut()}>${t.signOut}</button>`}
  </div>`
}

/** Says when the server of the page is gone, and when it is back. */
async function watch() {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 3000))
    if (document.hidden) continue
    try {
      const answer = await fetch('session', { cache: 'no-store', signal: AbortSignal.timeout(5000) })
      alive.value = answer.status < 500
    } catch {
      alive.value = false
    }
  }
}

const place = document.getElementById('app')
if (place) render(html`<${Frame} />`, place)
try {
  await begin()
} catch (e) {
  broken.value = e
}
ready.value = true
void watch()
if (session.value) {
  watchPresence(() => {
    if (session.value?.how === 'loopback') return void endSession()
    if (!client.value) return
    wasAway.value = true
    void lock()
  })
}
