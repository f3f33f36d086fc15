import { html } from '../html.js'
import { useEffect, useState } from '../vendor/hooks.js'
import { NotFound } from '../client/index.js'
import { about, count } from '../format.js'
import { forget, keep, kept } from '../keep.js'
import { Dialog, Drop, Empty, Field, Heading, Notice, Photo, Problem, Score, csv, save, useAction } from '../parts.js'
import { client, operates } from '../state.js'
import { strangers } from '../rates.js'
import { orderReceipt } from '../receipt.js'
import { texts } from '../texts.js'

const t = texts.erase
const NAMED_MAX = 100 // subjects whose external id is looked up
const NEAREST = 10 // subjects below the threshold that are shown
const THRESHOLD_MIN = 4000 // below it are strangers
const KEPT = 'erased'

/**
 * A subject that may be the person.
 * @typedef {object} Found
 * @property {string} galleryId
 * @property {string} gallery its name
 * @property {string} apiKey
 * @property {string} id
 * @property {string | undefined} [externalId]
 * @property {number} [score]
 * @property {boolean} [near] below the threshold
 * @property {'found' | 'erased'} state
 */

/** What a search found, and how many photos it compared. @typedef {{list: Found[], photos: number, threshold: number}} Search */

/** @typedef {Event & {currentTarget: HTMLInputElement}} Changed */

/** Finds a person in all galleries and erases the subjects that are ticked. */
export function Erase() {
  const [photo, setPhoto] = useState(/** @type {Blob | undefined} */ (undefined))
  const [externalId, setExternalId] = useState('')
  const [threshold, setThreshold] = useState(7000)
  const [found, setFound] = useState(/** @type {Search | undefined} */ (undefined))
  const [erased, setErased] = useState(/** @type {Found[]} */ ([]))
  useEffect(() => void kept(KEPT).then((list) => list && setErased(list)), [])
  const onErased = (/** @type {Found} */ f) =>
    setErased((now) => {
      const list = [...now.filter((other) => other.id !== f.id), { ...f, apiKey: '', state: /** @type {const} */ ('erased') }]
      void keep(KEPT, list)
      return list
    })
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
            ><input type="range" min=${THRESHOLD_MIN} max="9999" step="50" value=${threshold} onInput=${(/** @type {Changed} */ e) => setThreshold(Number(e.currentTarget.value))}
          /><//>`}
          <div class="row"><button disabled=${busy || (!photo && !externalId.trim())}>${busy ? t.searching : t.find}</button></div>
        </div>
      </div>
      ${error !== undefined && html`<${Problem} error=${error} />`}
    </form>
    ${found && html`<${Review} key=${found} found=${found} onErased=${onErased} />`}
    ${erased.length > 0 &&
    html`<${Erased} key=${erased.length} erased=${erased} onDone=${() => {
      setErased([])
      void forget(KEPT)
      void forget(RECEIPT)
    }} />`}`
}

/**
 * Searches all galleries for a photo and an external id. With a photo the nearest subjects below the threshold come last.
 * @param {Blob | undefined} photo
 * @param {string} externalId
 * @param {number} threshold
 * @param {AbortSignal} signal
 * @returns {Promise<Search>}
 */
async function search(photo, externalId, threshold, signal) {
  const c = client.value
  /** @type {Map<string, Found>} */
  const found = new Map()
  /** @type {Found[]} */
  const near = []
  let photos = 0
  for (const { id: galleryId } of (await c?.galleries({ signal })) ?? []) {
    const { name, count, applications } = /** @type {import('../client/models.js').Gallery} */ (await c?.gallery(galleryId, { signal }))
    const apiKey = applications[0]?.apiKey
    if (!c || !apiKey) continue
    const inside = c.withApiKey(apiKey)
    const at = { galleryId, gallery: name, apiKey, state: /** @type {const} */ ('found') }
    photos += count ?? 0
    if (photo) {
      for await (const m of inside.matches(photo, { threshold, signal })) {
        const { externalId } = found.size < NAMED_MAX ? await inside.subject(m.id, { signal }) : { externalId: undefined }
        found.set(m.id, { ...at, id: m.id, externalId, score: m.score })
      }
      const { candidates } = await inside.search(photo, { threshold: THRESHOLD_MIN, limit: 50, signal })
      near.push(...candidates.filter((m) => m.score < threshold).map((m) => ({ ...at, id: m.id, externalId: m.externalId, score: m.score, near: true })))
    }
    if (externalId) {
      const id = (await inside.subjectsWith(externalId, { signal })).subjects[0]?.id
      if (id) found.set(id, { ...found.get(id), ...at, id, externalId })
    }
  }
  const best = (/** @type {Found[]} */ list) => list.sort((a, b) => (b.score ?? 0) - (a.score ?? 0))
  return { list: [...best([...found.values()]), ...best(near.filter((f) => !found.has(f.id))).slice(0, NEAREST)], photos, threshold }
}

/** @param {{found: Search, onErased: (f: Found) => void}} props */
function Review({ found, onErased }) {
  const [list, setList] = useState(found.list)
  const [ticked, setTicked] = useState(() => new Set(list.filter((f) => f.score === undefined).map((f) => f.id)))
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
      onErased(f)
    }
  })
  const near = list.filter((f) => f.near)
  const reached = list.length - near.length
  if (list.length === 0) return html`<div class="card"><${Empty}><p>${t.nobody}</p><p>${t.nobodyHint}</p><//></div>`
  const tick = (/** @type {string} */ id, /** @type {boolean} */ on) => {
    const next = new Set(ticked)
    if (on) next.add(id)
    else next.delete(id)
    setTicked(next)
  }
  const open = list.filter((f) => ticked.has(f.id) && f.state !== 'erased').length
  const best = near[0]?.score ?? 0
  const chance = found.photos / strangers(best)
  return html`<section class="card" aria-labelledby="review">
    <h2 id="review">${reached > 0 ? t.found(count(reached)) : t.nobodyReaches(found.threshold)}</h2>
    ${near.length > 0 &&
    html`<${Notice} kind="warn"><p>${t.near(found.threshold, near.length)}</p><p>${t.nearMeans(best, about(strangers(best)), count(found.photos), t.chance(chance, about(chance)))}</p><//>`}
    <div class="scroll" tabindex="0">
      <table class="cards">
        <thead><tr><th scope="col"><span class="hidden-text">${t.tick}</span></th><th scope="col">${t.subject}</th><th scope="col">${t.gallery}</th><th scope="col">${t.score}</th><th scope="col">${t.state}</th></tr></thead>
        <tbody>
          ${list.map(
            (f) => html`<tr key=${f.id}>
              <td data-label=${t.tick}><input type="checkbox" aria-label=${t.tickOne(f.externalId ?? f.id)} disabled=${busy || f.state === 'erased'} checked=${ticked.has(f.id)} onChange=${(/** @type {Changed} */ e) => tick(f.id, e.currentTarget.checked)} /></td>
              <td data-label=${t.subject}>${f.externalId && html`<strong>${f.externalId}</strong><br />`}<span class="id">${f.id}</span></td>
              <td data-label=${t.gallery}>${f.gallery}</td>
              <td data-label=${t.score}>${f.score !== undefined && html`<${Score} score=${f.score} />`}${f.near && html`<span class="faint small">${t.below(found.threshold)}</span>`}</td>
              <td data-label=${t.state}>${f.state === 'erased' ? html`<span class="good">${t.erased}</span>` : t.enrolled}</td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
    ${error !== undefined && html`<${Problem} error=${error} />`}
    <div class="row">
      ${open > 0 && html`<button type="button" class="danger" disabled=${busy} onClick=${() => setAsking(true)}>${busy ? t.erasing : t.erase(open)}</button>`}
      ${list.some((f) => !f.near && !ticked.has(f.id)) && html`<button type="button" class="plain" disabled=${busy} onClick=${() => setTicked(new Set([...ticked, ...list.filter((f) => !f.near).map((f) => f.id)]))}>${t.tickAll}</button>`}
    </div>
    ${asking &&
    html`<${Dialog} title=${t.sure(open)} onClose=${() => setAsking(false)}>
      <p>${t.sureText}</p>
      <div class="row"><button type="button" class="danger" onClick=${() => run()}>${t.erase(open)}</button><button type="button" class="plain" onClick=${() => setAsking(false)}>${t.cancel}</button></div>
    <//>`}
  </section>`
}

/** What the erasure means, and how to prove it. @param {{erased: Found[], onDone?: () => void}} props onDone if the list is kept until then */
export function Erased({ erased, onDone }) {
  const command = `facet erase --gone ${erased.map((f) => f.id).join(' ')} --wait=disks`
  return html`<${Notice} kind="good">
    <p><strong>${t.done(erased.length)}</strong></p>
    ${operates.value ? html`<${Receipt} erased=${erased} keeps=${!!onDone} />` : html`<p>${t.disks}</p><pre tabindex="0">${command}</pre>`}
    <div class="row">
      <button type="button" class="plain" onClick=${() => save('erased.csv', 'text/csv', csv([['subject_id', 'external_id', 'gallery'], ...erased.map((f) => [f.id, f.externalId ?? '', f.gallery])]))}>${t.list}</button>
      ${onDone && html`<button type="button" class="plain" onClick=${onDone}>${t.forget}</button>`}
    </div>
    ${onDone && html`<p class="small faint">${t.isKept}</p>`}
  <//>`
}

const PERIOD = 5000 // ms
const RECEIPT = 'receipt'

/** @typedef {import('../receipt.js').Receipt} Proof */

/** The cluster's receipt, brought up to date until no disk has anything. @param {{erased: Found[], keeps: boolean}} props */
function Receipt({ erased, keeps }) {
  const [proof, setProof] = useState(/** @type {Proof | undefined} */ (undefined))
  const [now, setNow] = useState(false)
  const { run, error } = useAction(async (signal, /** @type {Pick<Proof, 'signed'> | undefined} */ before, /** @type {boolean} */ hurry) => {
    const got = await orderReceipt(erased, before, hurry, signal)
    setProof(got)
    if (keeps) await keep(RECEIPT, { subjects: erased.length, signed: got.signed })
  })
  useEffect(() => {
    void kept(RECEIPT).then((before) => run(keeps && before?.subjects === erased.length ? before : undefined, false))
  }, [])
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
