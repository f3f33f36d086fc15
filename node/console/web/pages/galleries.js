import { html } from '../html.js'
import { useState } from '../vendor/hooks.js'
import { NotFound } from '../client/index.js'
import { count, percent, when } from '../format.js'
import { Copy, Dialog, Empty, Field, Heading, Notice, Problem, useAction, useLoaded } from '../parts.js'
import { applications, changes, chosen, client, inGallery, manages, refresh } from '../state.js'
import { texts } from '../texts.js'
import { Applications } from './try.js'

const t = texts.galleries
const PAGE = 100

/** @typedef {import('../client/models.js').Gallery} Gallery */
/** @typedef {import('../client/models.js').Application} Application */
/** @typedef {import('../client/models.js').Entry} Entry */

/**
 * The galleries of the tenant, or the subjects of one.
 * @param {{rest: string[]}} props
 */
export function Galleries({ rest }) {
  if (!manages.value) return html`<${Heading} title=${t.subjects} intro=${t.subjectsIntro} /><${Applications} /><${Subjects} key=${chosen.value} />`
  const [id, part] = rest
  if (id && part) return html`<${GallerySubjects} id=${id} applicationId=${part} />`
  return html`<${List} />`
}

function List() {
  const { value, busy, error, reload } = useLoaded(galleriesWithApplications, [])
  const [making, setMaking] = useState(false)
  const made = () => {
    setMaking(false)
    reload()
    void refresh()
  }
  return html`<${Heading} title=${t.title} intro=${t.intro} />
    <div class="row"><button type="button" onClick=${() => setMaking(true)}>${t.make}</button></div>
    ${making && html`<${Make} onDone=${made} onClose=${() => setMaking(false)} />`}
    ${error !== undefined && html`<${Problem} error=${error} />`}
    ${busy && !value && html`<p role="status" class="busy">${t.loading}</p>`}
    ${value?.length === 0 && html`<div class="card"><${Empty}><p>${t.none}</p><//></div>`}
    ${value?.map((g) => html`<${GalleryCard} key=${g.gallery.id} gallery=${g.gallery} applications=${g.applications} onChange=${reload} />`)}`
}

/**
 * Returns the galleries with the settings of their applications.
 * @param {AbortSignal} signal
 */
async function galleriesWithApplications(signal) {
  const c = client.value
  if (!c) return []
  const list = await c.galleries({ signal })
  return Promise.all(
    list.map(async ({ id }) => {
      const gallery = await c.gallery(id, { signal })
      return { gallery, applications: await Promise.all(gallery.applications.map((a) => c.application(a.id, { signal }))) }
    }),
  )
}

/** @param {{gallery: Gallery, applications: Application[], onChange: () => void}} props */
function GalleryCard({ gallery, applications: list, onChange }) {
  const used = gallery.count ?? 0
  const [describing, setDescribing] = useState(false)
  return html`<section class="card" aria-labelledby=${gallery.id}>
    <div class="row">
      <h2 id=${gallery.id}>${gallery.name}</h2>
      ${list[0] && html`<a class="end" href=${`#/galleries/${gallery.id}/${list[0].id}`}>${t.showSubjects}</a>`}
    </div>
    ${gallery.description && html`<p class="faint">${gallery.description}</p>`}
    <div>
      <p>${t.used(count(used), count(gallery.size))} <span class="faint">${percent(used / gallery.size)}</span></p>
      <meter min="0" max=${gallery.size} high=${0.9 * gallery.size} value=${used} aria-label=${t.usedLabel}></meter>
    </div>
    <dl class="facts">
      <dt>${t.retention}</dt>
      <dd>${gallery.retentionDays ? t.days(gallery.retentionDays) : t.forever}</dd>
      <dt>${t.subjectTemplates}</dt>
      <dd>${gallery.subjectTemplates ? t.on : t.off}</dd>
      <dt>${t.purpose}</dt>
      <dd>${gallery.purpose || t.notStated}</dd>
      <dt>${t.legalGround}</dt>
      <dd>${gallery.legalGround || t.notStated}</dd>
      <dt>${t.recipients}</dt>
      <dd>${gallery.recipients || t.notStated}</dd>
    </dl>
    <div class="row"><button type="button" class="link" onClick=${() => setDescribing(true)}>${t.describe}</button></div>
    ${describing && html`<${Describe} gallery=${gallery} onDone=${() => (setDescribing(false), onChange())} onClose=${() => setDescribing(false)} />`}
    <div class="scroll" tabindex="0">
      <table>
        <caption>${t.applications}</caption>
        <thead>
          <tr>
            <th scope="col">${t.name}</th><th scope="col" class="number">${t.verifyThreshold}</th><th scope="col" class="number">${t.minimumQuality}</th>
            <th scope="col">${t.guard}</th><th scope="col">${t.severalFaces}</th><th scope="col">${t.key}</th>
          </tr>
        </thead>
        <tbody>
          ${list.map((a) => html`<${ApplicationRow} key=${a.id} application=${a} onChange=${onChange} />`)}
        </tbody>
      </table>
    </div>
  </section>`
}

/** @param {{application: Application, onChange: () => void}} props */
function ApplicationRow({ application: a, onChange }) {
  const [changing, setChanging] = useState(false)
  return html`<tr>
    <td>${a.name}<br /><button type="button" class="link" onClick=${() => setChanging(true)}>${t.change}</button>
      ${changing && html`<${Change} application=${a} onDone=${() => (setChanging(false), onChange())} onClose=${() => setChanging(false)} />`}</td>
    <td class="number">${a.verifyThreshold}</td>
    <td class="number">${a.faceMinimumQualityScore}</td>
    <td>${a.enrolmentGuard ? t.guardFrom(a.enrolmentGuardThreshold) : t.off}</td>
    <td>${t.several[a.multipleFaces] ?? a.multipleFaces}</td>
    <td><${Copy} text=${a.apiKey} label=${t.copyKey} /></td>
  </tr>`
}

/**
 * Returns the fields of a form that were edited, or undefined. A save sends no other field, because somebody else may have changed it since.
 * @template {object} T
 * @param {T} opened what the form contained when it opened
 * @param {T} form
 */
function edited(opened, form) {
  const fields = Object.entries(form).filter(([name, value]) => value !== opened[/** @type {keyof T} */ (name)])
  return fields.length ? /** @type {Partial<T>} */ (Object.fromEntries(fields)) : undefined
}

/** @param {{application: Application, onDone: () => void, onClose: () => void}} props */
function Change({ application: a, onDone, onClose }) {
  const [opened] = useState(a)
  const [form, setForm] = useState(opened)
  const { run, busy, error } = useAction(async (signal) => {
    const change = /** @type {import('../client/client.js').ApplicationChange | undefined} */ (edited(opened, form))
    if (change) await client.value?.updateApplication(a.id, { ...change, signal })
    onDone()
  })
  /** @typedef {Event & {currentTarget: HTMLInputElement}} Changed */
  const number = (/** @type {'verifyThreshold' | 'faceMinimumQualityScore' | 'enrolmentGuardThreshold'} */ name) => ({
    type: 'number', required: true, value: form[name], onInput: (/** @type {Changed} */ e) => setForm({ ...form, [name]: Number(e.currentTarget.value) }),
  })
  return html`<${Dialog} title=${t.changeTitle(a.name)} onClose=${onClose}>
    <form class="stack" onSubmit=${(/** @type {Event} */ e) => (e.preventDefault(), void run())}>
      <${Field} label=${t.verifyThreshold} hint=${t.thresholdHint}><input min="0" max="9999" ...${number('verifyThreshold')} /><//>
      <${Field} label=${t.minimumQuality} hint=${t.qualityHint}><input min="0.45" max="1" step="0.01" ...${number('faceMinimumQualityScore')} /><//>
      <label class="check"><input type="checkbox" checked=${form.enrolmentGuard} onChange=${(/** @type {Changed} */ e) => setForm({ ...form, enrolmentGuard: e.currentTarget.checked })} /><span>${t.guardOn}</span></label>
      ${form.enrolmentGuard && html`<${Field} label=${t.guardThreshold}><input min="0" max="9999" ...${number('enrolmentGuardThreshold')} /><//>`}
      <${Field} label=${t.severalFaces}>
        <select value=${form.multipleFaces} onChange=${(/** @type {Event & {currentTarget: HTMLSelectElement}} */ e) => setForm({ ...form, multipleFaces: e.currentTarget.value })}>
          ${Object.entries(t.several).map(([value, text]) => html`<option value=${value}>${text}</option>`)}
        </select>
      <//>
      ${error !== undefined && html`<${Problem} error=${error} />`}
      <div class="row"><button disabled=${busy}>${t.save}</button><button type="button" class="plain" onClick=${onClose}>${t.cancel}</button></div>
    </form>
  <//>`
}

/**
 * Edits what the record of processing says of a gallery.
 * @param {{gallery: Gallery, onDone: () => void, onClose: () => void}} props
 */
function Describe({ gallery, onDone, onClose }) {
  const [opened] = useState({ purpose: gallery.purpose, legalGround: gallery.legalGround, recipients: gallery.recipients })
  const [form, setForm] = useState(opened)
  const { run, busy, error } = useAction(async (signal) => {
    const change = edited(opened, form)
    if (change) await client.value?.updateGallery(gallery.id, { ...change, signal })
    onDone()
  })
  const text = (/** @type {'purpose' | 'legalGround' | 'recipients'} */ name) => ({
    maxlength: '256', value: form[name], onInput: (/** @type {Event & {currentTarget: HTMLInputElement}} */ e) => setForm({ ...form, [name]: e.currentTarget.value }),
  })
  return html`<${Dialog} title=${t.describeTitle(gallery.name)} onClose=${onClose}>
    <form class="stack" onSubmit=${(/** @type {Event} */ e) => (e.preventDefault(), void run())}>
      <${Field} label=${t.purpose} hint=${t.purposeHint}><input ...${text('purpose')} /><//>
      <${Field} label=${t.legalGround} hint=${t.groundHint}><input ...${text('legalGround')} /><//>
      <${Field} label=${t.recipients} hint=${t.recipientsHint}><input ...${text('recipients')} /><//>
      ${error !== undefined && html`<${Problem} error=${error} />`}
      <div class="row"><button disabled=${busy}>${t.save}</button><button type="button" class="plain" onClick=${onClose}>${t.cancel}</button></div>
    </form>
  <//>`
}

/** @param {{onDone: () => void, onClose: () => void}} props */
function Make({ onDone, onClose }) {
  const [name, setName] = useState('')
  const [size, setSize] = useState(1000)
  const { run, busy, error } = useAction(async (signal) => {
    await client.value?.createGallery({ name, size, signal })
    onDone()
  })
  /** @typedef {Event & {currentTarget: HTMLInputElement}} Changed */
  return html`<${Dialog} title=${t.make} onClose=${onClose}>
    <form class="stack" onSubmit=${(/** @type {Event} */ e) => (e.preventDefault(), void run())}>
      <${Field} label=${t.name}><input required maxlength="256" value=${name} onInput=${(/** @type {Changed} */ e) => setName(e.currentTarget.value)} /><//>
      <${Field} label=${t.size} hint=${t.sizeHint}><input type="number" required min="1" max="2147483647" value=${size} onInput=${(/** @type {Changed} */ e) => setSize(Number(e.currentTarget.value))} /><//>
      ${error !== undefined && html`<${Problem} error=${error} />`}
      <div class="row"><button disabled=${busy}>${t.make}</button><button type="button" class="plain" onClick=${onClose}>${t.cancel}</button></div>
    </form>
  <//>`
}

/** @param {{id: string, applicationId: string}} props */
function GallerySubjects({ id, applicationId }) {
  const known = applications.value.find((a) => a.id === applicationId)
  if (known && chosen.value !== applicationId) chosen.value = applicationId
  const { value: gallery } = useLoaded(async (signal) => client.value?.gallery(id, { signal }), [id])
  return html`<${Heading} title=${gallery ? t.subjectsOf(gallery.name) : t.subjects} intro=${t.subjectsIntro} />
    <p><a href="#/galleries">${t.back}</a></p>
    ${known ? html`<${Subjects} key=${applicationId} />` : html`<${Notice} kind="warn"><p>${t.gone}</p><//>`}`
}

/** The subject list of the chosen application's gallery, page after page by its cursor. */
function Subjects() {
  const [pages, setPages] = useState(/** @type {(string | undefined)[]} */ ([undefined])) // the cursors that led here
  const [find, setFind] = useState('')
  const [asked, setAsked] = useState('')
  const after = pages.at(-1)
  const { value: loaded, busy, error, reload } = useLoaded(
    async (signal) => ({ ...(await page(asked, after, signal)), first: 1 + PAGE * (pages.length - 1), asked }),
    [asked, after],
  )
  // What another search has found is not shown as what this one finds.
  const value = loaded?.asked === asked ? loaded : undefined
  const [removing, setRemoving] = useState(/** @type {Entry | undefined} */ (undefined))
  const turn = (/** @type {(string | undefined)[]} */ to) => busy || setPages(to)
  const search = (/** @type {Event} */ e) => {
    e.preventDefault()
    setPages([undefined])
    setAsked(find.trim())
  }
  return html`<section class="card" aria-label=${t.subjects}>
    <form class="row" role="search" onSubmit=${search}>
      <${Field} label=${t.externalId}><input value=${find} onInput=${(/** @type {Event & {currentTarget: HTMLInputElement}} */ e) => setFind(e.currentTarget.value)} /><//>
      <button>${t.find}</button>
      ${asked && html`<button type="button" class="plain" onClick=${() => (setFind(''), setAsked(''))}>${t.all}</button>`}
    </form>
    ${error !== undefined && html`<${Problem} error=${error} />`}
    ${busy && !value && html`<p role="status" class="busy">${t.loading}</p>`}
    ${value &&
    (value.subjects.length === 0
      ? html`<${Empty}><p>${value.asked ? t.noSuch : t.empty}</p>${!value.asked && html`<a href="#/import">${t.importSome}</a>`}<//>`
      : html`<div class="scroll" tabindex="0">
          <table>
            <caption>${value.asked ? t.entries(count(value.subjects.length)) : t.range(count(value.first), count(value.first + value.subjects.length - 1), count(value.total))}</caption>
            <thead><tr><th scope="col">${t.subject}</th><th scope="col">${t.updated}</th><th scope="col">${t.expires}</th><th scope="col">${t.state}</th><th scope="col"><span class="hidden-text">${t.actions}</span></th></tr></thead>
            <tbody>
              ${value.subjects.map(
                (s) => html`<tr key=${s.eventId}>
                  <td>${s.externalId && html`<strong>${s.externalId}</strong><br />`}<span class="id">${s.id}</span></td>
                  <td class="short">${when(s.lastUpdated)}</td>
                  <td class="short">${when(s.expires)}</td>
                  <td>${s.status === 'A' ? t.active : t.deleted}</td>
                  <td>${changes.value && s.status === 'A' && html`<button type="button" class="link" onClick=${() => setRemoving(s)}>${t.remove}</button>`}</td>
                </tr>`,
              )}
            </tbody>
          </table>
        </div>`)}
    ${!asked &&
    html`<div class="row">
      <button type="button" class="plain" disabled=${pages.length === 1} onClick=${() => turn(pages.slice(0, -1))}>${t.previous}</button>
      <button type="button" class="plain" disabled=${!value?.next} onClick=${() => turn([...pages, value?.next])}>${t.next}</button>
    </div>`}
    ${removing && html`<${Remove} entry=${removing} onDone=${() => (setRemoving(undefined), reload())} onClose=${() => setRemoving(undefined)} />`}
  </section>`
}

/**
 * Returns a page of the list, or the entries with an external id.
 * @param {string} externalId
 * @param {string | undefined} after
 * @param {AbortSignal} signal
 */
async function page(externalId, after, signal) {
  const c = inGallery.value
  if (!c) return { subjects: [], total: 0, next: undefined }
  try {
    if (externalId) return await c.subjectsWith(externalId, { signal })
    return await c.subjects({ length: PAGE, after, signal })
  } catch (e) {
    if (e instanceof NotFound) return { subjects: [], total: 0, next: undefined }
    throw e
  }
}

/** @param {{entry: Entry, onDone: () => void, onClose: () => void}} props */
function Remove({ entry, onDone, onClose }) {
  const { run, busy, error } = useAction(async (signal) => {
    await inGallery.value?.unregister(entry.id, { signal })
    onDone()
  })
  return html`<${Dialog} title=${t.removeTitle} onClose=${onClose}>
    <p>${t.removeText(entry.externalId || entry.id)}</p>
    ${error !== undefined && html`<${Problem} error=${error} />`}
    <div class="row"><button type="button" class="danger" disabled=${busy} onClick=${() => run()}>${t.remove}</button><button type="button" class="plain" onClick=${onClose}>${t.cancel}</button></div>
  <//>`
}
