// The pages of the interface: a list of its operations, and the one that the address names.

import { html } from '../console/html.js'
import { render } from '../console/vendor/preact.js'
import { useEffect, useRef, useState } from '../console/vendor/hooks.js'
import { signal } from '../console/vendor/signals.js'
import { Problem } from '../console/parts.js'
import { accessKey, begin, client, session, signOut } from '../console/state.js'
import { texts as shared } from '../console/texts.js'
import { Document } from './document.js'
import { Badge, Prose, Shown } from './operation.js'
import { texts as t } from './texts.js'

/** @typedef {import('./document.js').Operation} Operation */

/** The id of the operation that the address names. */
const address = signal(parse())
addEventListener('hashchange', () => (address.value = parse()))

function parse() {
  return decodeURIComponent(location.hash.replace(/^#\/?/, ''))
}

/** @type {import('../console/vendor/signals.js').Signal<Document | undefined>} */
const doc = signal(undefined)

/** What went wrong at the start. @type {import('../console/vendor/signals.js').Signal<unknown>} */
const broken = signal(undefined)

function Frame() {
  const main = useRef(/** @type {HTMLElement | null} */ (null))
  const first = useRef(true)
  const here = doc.value?.operations.find((o) => o.id === address.value)
  useEffect(() => {
    document.title = `${here ? here.summary : t.title} – facet`
    if (!first.current) main.current?.focus()
    first.current = false
  }, [here])
  return html`<a class="skip" href="#main" onClick=${(/** @type {Event} */ e) => (e.preventDefault(), main.current?.focus())}>${t.skip}</a>
    <header class="top">
      <div>
        <a class="name" href="#/">facet</a>
        <nav aria-label=${shared.frame.pages}><ul><li><a href="../console/">${t.console}</a></li><li><a href="#/" aria-current="true">${t.title}</a></li></ul></nav>
        ${client.value && html`<${Who} />`}
      </div>
    </header>
    <div class="frame">
      ${broken.value !== undefined && html`<${Problem} error=${broken.value} />`}
      <div class="split">
        ${doc.value && html`<${List} doc=${doc.value} here=${here} />`}
        <main ref=${main} id="main" tabindex="-1" class="stack">
          ${doc.value ? html`<${Page} key=${address.value} doc=${doc.value} here=${here} />` : html`<p role="status" class="busy">${broken.value === undefined && t.loading}</p>`}
        </main>
      </div>
    </div>`
}

function Who() {
  return html`<div class="who">
    <span>${shared.frame.signedIn} <code>${accessKey.value}</code></span>
    ${session.value?.how === 'node' && html`<button type="button" class="link" onClick=${signOut}>${shared.frame.signOut}</button>`}
  </div>`
}

/** @param {{doc: Document, here: Operation | undefined}} props */
function Page({ doc, here }) {
  if (here) return html`<${Shown} doc=${doc} operation=${here} />`
  if (address.value) return html`<h1>${t.unknown}</h1>`
  return html`<${Overview} doc=${doc} />`
}

/**
 * The operations by their tags, as far as they have the words that a person looks for.
 * @param {{doc: Document, here: Operation | undefined}} props
 */
function List({ doc, here }) {
  const [words, setWords] = useState('')
  const found = doc.operations.filter((o) => has(o, words))
  return html`<nav class="list stack" aria-label=${t.operations}>
    <label><span>${t.search}</span><input type="search" value=${words} onInput=${(/** @type {Event & {currentTarget: HTMLInputElement}} */ e) => setWords(e.currentTarget.value)} /></label>
    <p role="status" class="faint small">${found.length === 0 ? t.none : ''}</p>
    ${doc.tags
      .filter((tag) => found.some((o) => o.tag === tag.name))
      .map(
        (tag) => html`<div>
          <h2>${tag.name}</h2>
          <ul>
            ${found
              .filter((o) => o.tag === tag.name)
              .map((o) => html`<li><a href=${`#/${o.id}`} aria-current=${o === here ? 'page' : undefined}><span class="method">${o.method}</span><span>${o.summary}</span></a></li>`)}
          </ul>
        </div>`,
      )}
  </nav>`
}

/**
 * Reports whether an operation has all words.
 * @param {Operation} o
 * @param {string} words
 */
function has(o, words) {
  const text = [o.method, o.path, o.id, o.tag, o.summary, o.text].join(' ').toLowerCase()
  return words.toLowerCase().split(/\s+/).every((word) => text.includes(word))
}

/** @param {{doc: Document}} props */
function Overview({ doc }) {
  return html`<h1>${doc.title} ${doc.version}</h1>
    <section class="card" aria-label=${t.overview}>
      <${Prose} text=${doc.text} />
      <p><${Badge} /> ${t.extensionMeans}</p>
      <p>${t.document} <a href="/openapi.json">/openapi.json</a></p>
      <dl class="facts">${doc.tags.map((tag) => html`<dt>${tag.name}</dt><dd>${tag.text}</dd>`)}</dl>
    </section>
    <section class="card" aria-labelledby="programs">
      <h2 id="programs">${t.programs}</h2>
      <p>${t.programsText}</p>
      <ul class="plain-list">
        ${['clients/README.md', 'clients/go/README.md', 'clients/python/README.md', 'clients/js/README.md'].map((page) => html`<li><code>${page}</code></li>`)}
      </ul>
      <p>${t.collection} <code>clients/bruno</code></p>
    </section>`
}

async function read() {
  const answer = await fetch('/openapi.json', { cache: 'no-cache' })
  if (!answer.ok) throw new Error(t.noDocument(answer.status))
  doc.value = new Document(await answer.json())
}

const place = document.getElementById('app')
if (place) render(html`<${Frame} />`, place)
for (const start of [begin, read]) {
  try {
    await start()
  } catch (e) {
    broken.value = e
  }
}
