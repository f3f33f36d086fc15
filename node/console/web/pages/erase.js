import { html } from '../html.js'
import { useEffect, useState } from '../vendor/hooks.js'
import { NotFound } from '../client/index.js'
import { count } from '../format.js'
import { Dialog, Drop, Empty, Field, Heading, Notice, Photo, Problem, Score, csv, save, useAction } from '../parts.js'
import { client, operates } from '../state.js'
import { orderReceipt } from '../receipt.js'
import { texts } from '../texts.js'

const t = texts.erase
const NAMED_MAX = 100 // subjects whose external id is looked up

/**
 * A subject that may be the person.
 * @typedef {object} Found
 * @property {string} galleryId
 * @property {string} gallery its name
 * @property {string} apiKey
 * @property {string} id
 * @property {string | undefined} [externalId]
 * @property {number} [score]
 * @property {'found' | 'erased'} state
 */

/** @typedef {Event & {currentTarget: HTMLInputElement}} Changed */

/** Finds a person in all galleries and erases the subjects that are ticked. */
export function Erase() {
  const [photo, setPhoto] = useState(/** @type {Blob | undefined} */ (undefined))
  const [externalId, setExternalId] = useState('')
  const [threshold, setThreshold] = useState(7000)
  const [found, setFound] = useState(/** @type {Found[] | undefined} */ (undefined))
  const { run, busy, error } = useAction(async (signal) => {
    setFound(undefined)
    setFound(await search(photo, externalId.trim(), threshold, signal))
  })
  return html`<${Heading} title=${t.title} intro=${t.intro} />
    <form class="card" onSubmit=${(/** @type {Event} */ e) => (e.preventDefault(), void run())}>
      <div class="columns">
        <div class="stack">
          ${photo
            ? html`<${Photo} photo=${photo} alt=${t.photo} /><div class="row"><button type="button" class="plain" onClick=${() => setPhoto(undefined)}>${t.noPhoto}</button></div>`
            : html`<${Drop} label=${t.choose} onPhoto=${setPhoto} />`}
        </div>
        <div class="stack">
          <${Field} label=${t.externalId} hint=${t.externalIdHint}><input value=${externalId} onInput=${(/** @type {Changed} */ e) => setExternalId(e.currentTarget.value)} /><//>
          ${photo &&
          html`<${Field} label=${t.threshold(threshold)} hint=${t.thresholdHint}
            ><input type="range" min="4000" max="9999" step="50" value=${threshold} onInput=${(/** @type {Changed} */ e) => setThreshold(Number(e.currentTarget.value))}
          /><//>`}
          <div class="row"><button disabled=${busy || (!photo && !externalId.trim())}>${busy ? t.searching : t.find}</button></div>
        </div>
      </div>
      ${error !== undefined && html`<${Problem} error=${error} />`}
    </form>
    ${found && html`<${Review} key=${found} found=${found} />`}`
}

/**
 * Searches all galleries for a photo and an external id.
 * @param {Blob | undefined} photo
 * @param {string} externalId
 * @param {number} threshold
 * @param {AbortSignal} signal
 */
async function search(photo, externalId, threshold, signal) {
  const c = client.value
  if (!c) return []
  /** @type {Map<string, Found>} */
  const found = new Map()
  for (const { id: galleryId } of await c.galleries({ signal })) {
    const { name, applications } = await c.gallery(galleryId, { signal })
    const apiKey = applications[0]?.apiKey
    if (!apiKey) continue
    const inside = c.withApiKey(apiKey)
    if (photo) {
      for await (const m of inside.matches(photo, { threshold, signal })) {
        const { externalId } = found.size < NAMED_MAX ? await inside.subject(m.id, { signal }) : { externalId: undefined }
        found.set(m.id, { galleryId, gallery: name, apiKey, id: m.id, externalId, score: m.score, state: 'found' })
      }
    }
    if (externalId) {
      const subject = await inside.subjectsWith(externalId, { signal }).catch((e) => {
        if (e instanceof NotFound) return undefined
        throw e
      })
      const id = subject?.subjects[0]?.id
      if (id) found.set(id, { ...found.get(id), galleryId, gallery: name, apiKey, id, externalId, state: 'found' })
    }
  }
  return [...found.values()].sort((a, b) => (b.score ?? 0) - (a.score ?? 0))
}

/** @param {{found: Found[]}} props */
function Review({ found }) {
  const [list, setList] = useState(found)
  const [ticked, setTicked] = useState(() => new Set(found.filter((f) => f.score === undefined).map((f) => f.id)))
  const [asking, setAsking] = useState(false)
  const { run, busy, error } = useAction(async (signal) => {
    setAsking(false)
    for (const f of list.filter((f) => ticked.has(f.id) && f.state !== 'erased')) {
      await client.value
        ?.withApiKey(f.apiKey)
        .unregister(f.id, { signal })
        .catch((e) => {
          if (!(e instanceof NotFound)) throw e // somebody else has removed it
        })
      setList((now) => now.map((other) => (other.id === f.id ? { ...other, state: 'erased' } : other)))
    }
  })
  if (found.length === 0) return html`<div class="card"><${Empty}><p>${t.nobody}</p><p>${t.nobodyHint}</p><//></div>`
  const tick = (/** @type {string} */ id, /** @type {boolean} */ on) => {
    const next = new Set(ticked)
    if (on) next.add(id)
    else next.delete(id)
    setTicked(next)
  }
  const open = list.filter((f) => ticked.has(f.id) && f.state !== 'erased').length
  const erased = list.filter((f) => f.state === 'erased')
  return html`<section class="card" aria-labelledby="review">
    <h2 id="review">${t.found(count(found.length))}</h2>
    <div class="scroll" tabindex="0">
      <table>
        <thead><tr><th scope="col"><span class="hidden-text">${t.tick}</span></th><th scope="col">${t.subject}</th><th scope="col">${t.gallery}</th><th scope="col">${t.score}</th><th scope="col">${t.state}</th></tr></thead>
        <tbody>
          ${list.map(
            (f) => html`<tr key=${f.id}>
              <td><input type="checkbox" aria-label=${t.tickOne(f.externalId ?? f.id)} disabled=${busy || f.state === 'erased'} checked=${ticked.has(f.id)} onChange=${(/** @type {Changed} */ e) => tick(f.id, e.currentTarget.checked)} /></td>
              <td>${f.externalId && html`<strong>${f.externalId}</strong><br />`}<span class="id">${f.id}</span></td>
              <td>${f.gallery}</td>
              <td>${f.score !== undefined && html`<${Score} score=${f.score} />`}</td>
              <td>${f.state === 'erased' ? html`<span class="good">${t.erased}</span>` : t.enrolled}</td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
    ${error !== undefined && html`<${Problem} error=${error} />`}
    <div class="row">
      ${open > 0 && html`<button type="button" class="danger" disabled=${busy} onClick=${() => setAsking(true)}>${busy ? t.erasing : t.erase(open)}</button>`}
      ${ticked.size < list.length && html`<button type="button" class="plain" disabled=${busy} onClick=${() => setTicked(new Set(list.map((f) => f.id)))}>${t.tickAll}</button>`}
    </div>
    ${asking &&
    html`<${Dialog} title=${t.sure(open)} onClose=${() => setAsking(false)}>
      <p>${t.sureText}</p>
      <div class="row"><button type="button" class="danger" onClick=${() => run()}>${t.erase(open)}</button><button type="button" class="plain" onClick=${() => setAsking(false)}>${t.cancel}</button></div>
    <//>`}
    ${erased.length > 0 && !busy && html`<${Erased} erased=${erased} />`}
  </section>`
}

/** What the erasure means, and how to prove it. @param {{erased: Found[]}} props */
export function Erased({ erased }) {
  const command = `facet erase --gone ${erased.map((f) => f.id).join(' ')} --wait=disks`
  return html`<${Notice} kind="good">
    <p><strong>${t.done(erased.length)}</strong></p>
    ${operates.value ? html`<${Receipt} erased=${erased} />` : html`<p>${t.disks}</p><pre tabindex="0">${command}</pre>`}
    <div class="row">
      <button type="button" class="plain" onClick=${() => save('erased.csv', 'text/csv', csv([['subject_id', 'external_id', 'gallery'], ...erased.map((f) => [f.id, f.externalId ?? '', f.gallery])]))}>${t.list}</button>
    </div>
  <//>`
}

const PERIOD = 5000 // ms

/** @typedef {import('../receipt.js').Receipt} Proof */

/** The cluster's receipt, brought up to date until no disk has anything. @param {{erased: Found[]}} props */
function Receipt({ erased }) {
  const [proof, setProof] = useState(/** @type {Proof | undefined} */ (undefined))
  const [now, setNow] = useState(false)
  const { run, error } = useAction(async (signal, /** @type {Proof | undefined} */ before, /** @type {boolean} */ hurry) => {
    setProof(await orderReceipt(erased, before, hurry, signal))
  })
  useEffect(() => void run(undefined, false), [])
  useEffect(() => {
    if (!proof || proof.receipt.disks_clean) return
    const timer = setTimeout(() => run(proof, now), PERIOD)
    return () => clearTimeout(timer)
  }, [proof, now])
  if (error !== undefined) return html`<${Problem} error=${error} />`
  if (!proof) return html`<p role="status" class="busy">${t.askingReceipt}</p>`
  const { replicas, missing, disks_clean: clean } = proof.receipt
  return html`<p role="status">${clean ? t.disksClean : t.disksWait}</p>
    <ul>${(replicas ?? []).map((r) => html`<li>${r.name}: ${r.erased_to_index >= r.needed_index ? t.diskClean : t.diskWaits}</li>`)}</ul>
    ${!clean && missing && html`<details><summary>${t.missing(missing.length)}</summary><ul>${missing.map((m) => html`<li>${m}</li>`)}</ul></details>`}
    <div class="row">
      <button type="button" class="plain" onClick=${() => save('erasure.receipt', 'text/plain', atob(proof.signed))}>${t.saveReceipt}</button>
      ${!clean && !now && html`<button type="button" class="plain" onClick=${() => setNow(true)}>${t.hurry}</button>`}
    </div>`
}
