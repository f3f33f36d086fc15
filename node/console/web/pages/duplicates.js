import { html } from '../html.js'
import { useEffect, useState } from '../vendor/hooks.js'
import { NotFound, Refusal } from '../client/index.js'
import { about, count } from '../format.js'
import { strangers, STRANGERS_END } from '../rates.js'
import { Dialog, Empty, Field, Heading, Notice, Problem, Score, csv, save, useAction, useLoaded } from '../parts.js'
import { client } from '../state.js'
import { texts } from '../texts.js'
import { Erased } from './erase.js'

const t = texts.duplicates
const PERIOD = 1000 // ms between two looks at a comparison under way
const FETCH = 1000 // pairs of a request
const PAGE = 50 // pairs on the page

/** @typedef {import('../client/models.js').Duplicates} Report */
/** @typedef {import('../client/models.js').Pair} Pair */
/** @typedef {{id: string, externalId?: string | undefined}} Subject */
/** @typedef {Event & {currentTarget: HTMLInputElement}} Changed */
/** @typedef {{id: string, name: string, photos: number, photoLink: string, inside: import('../client/index.js').Client}} Place the gallery */

/** Finds subjects of a gallery that may be one person. Whoever has looked at both photos decides. */
export function Duplicates() {
  const { value: galleries, busy, error } = useLoaded(async (signal) => client.value?.galleries({ signal }), [])
  const [chosen, setChosen] = useState('')
  const id = chosen || galleries?.[0]?.id
  return html`<${Heading} title=${t.title} intro=${t.intro} />
    ${error !== undefined && html`<${Problem} error=${error} />`}
    ${busy && !galleries && html`<p role="status" class="busy">${t.loading}</p>`}
    ${galleries?.length === 0 && html`<div class="card"><${Empty}><p>${t.noGallery}</p><//></div>`}
    ${id &&
    html`<${Field} label=${t.gallery}>
        <select value=${id} onChange=${(/** @type {Event & {currentTarget: HTMLSelectElement}} */ e) => setChosen(e.currentTarget.value)}>
          ${galleries?.map((g) => html`<option value=${g.id}>${g.name}</option>`)}
        </select>
      <//>
      <${Gallery} key=${id} id=${id} />`}`
}

const THRESHOLD_MIN = 7000 // the service takes no lower one
const pairsOf = (/** @type {number} */ photos) => (photos * (photos - 1)) / 2

/**
 * Returns the threshold at which about one pair of strangers is found for each 100 photos, as far as the table of
 * false match rates goes.
 * @param {number} photos
 */
export function standardThreshold(photos) {
  const score = 1000 * (2 + Math.log10(50 * Math.max(1, photos - 1)))
  return Math.min(STRANGERS_END, Math.max(THRESHOLD_MIN, 50 * Math.ceil(score / 50)))
}

/**
 * The comparison of one gallery: how it begins, how far it is, and what it found.
 * @param {{id: string}} props
 */
function Gallery({ id }) {
  const [set, setThreshold] = useState(/** @type {number | undefined} */ (undefined))
  const { value, error, reload } = useLoaded((signal) => look(id, signal), [id])
  const photos = value?.place?.photos ?? 0
  const standard = standardThreshold(photos)
  const threshold = set ?? standard
  const expected = pairsOf(photos) / strangers(threshold)
  const change = useAction(async (signal, /** @type {'begin' | 'end'} */ what) => {
    if (what === 'begin') await value?.place?.inside.beginDuplicates({ threshold, signal })
    else await value?.place?.inside.endDuplicates({ signal })
    reload()
  })
  const report = value?.report
  const running = report?.status === 'Running'
  useEffect(() => {
    if (!running) return
    const timer = setTimeout(reload, PERIOD)
    return () => clearTimeout(timer)
  }, [value])
  if (value && !value.place) return html`<${Notice} kind="warn"><p>${t.noApplication}</p><//>`
  return html`<form class="card" onSubmit=${(/** @type {Event} */ e) => (e.preventDefault(), void change.run('begin'))}>
      <p class="faint">${t.thresholdHint(count(photos), standard)}</p>
      <${Field} label=${t.threshold(threshold)} hint=${t.expected(threshold, about(strangers(threshold)), texts.erase.chance(expected, about(expected)))}
        ><input type="range" min=${THRESHOLD_MIN} max="9999" step="50" value=${threshold} onInput=${(/** @type {Changed} */ e) => setThreshold(Number(e.currentTarget.value))}
      /><//>
      <div class="row"><button disabled=${!value || change.busy || running}>${report ? t.again : t.begin}</button>${report && html`<span class="faint">${t.againHint}</span>`}</div>
      ${(change.error ?? error) !== undefined && html`<${Problem} error=${change.error ?? error} />`}
    </form>
    ${running &&
    html`<section class="card" aria-label=${t.comparing}>
      <p role="status">${t.progress(count(report.done), count(report.total), count(report.found))}</p>
      <progress max=${report.total} value=${report.done} aria-label=${t.comparing}></progress>
      <div class="row"><button type="button" class="plain" disabled=${change.busy} onClick=${() => change.run('end')}>${t.end}</button></div>
    </section>`}
    ${report && value.place && !running && html`<${Found} key=${report.batchId} report=${report} place=${value.place} />`}`
}

/**
 * Returns a gallery that has an application, and how far its comparison is, if there is one.
 * @param {string} id
 * @param {AbortSignal} signal
 * @returns {Promise<{place?: Place, report?: Report}>}
 */
async function look(id, signal) {
  const c = client.value
  const gallery = await c?.gallery(id, { signal })
  const apiKey = gallery?.applications[0]?.apiKey
  if (!c || !gallery || !apiKey) return {}
  const inside = c.withApiKey(apiKey)
  const place = { id, name: gallery.name, photos: gallery.count ?? 0, photoLink: gallery.photoLink, inside }
  try {
    return { place, report: await inside.duplicates({ length: 1, signal }) }
  } catch (e) {
    if (e instanceof NotFound) return { place }
    throw e
  }
}

/**
 * The pairs of a comparison that has ended, a page at a time.
 * @param {{report: Report, place: Place}} props
 */
function Found({ report: first, place }) {
  const [cursors, setCursors] = useState(/** @type {(string | undefined)[]} */ ([undefined])) // those that led here
  const [screen, setScreen] = useState(0)
  const [restarted, setRestarted] = useState(false)
  const after = cursors.at(-1)
  const { value: loaded, busy, error } = useLoaded(
    async (signal) => {
      try {
        return { after, page: await place.inside.duplicates({ after, length: FETCH, signal }) }
      } catch (e) {
        if (!after || !(e instanceof Refusal) || e.reason !== 'UnknownCursor') throw e
        setRestarted(true) // pairs went: their places are others now
        setScreen(0)
        setCursors([undefined])
        return undefined
      }
    },
    [after],
  )
  const value = loaded?.after === after ? loaded?.page : undefined // what was loaded for the former cursor has other pairs
  const report = value ?? first
  const screens = Math.max(1, Math.ceil((value?.pairs.length ?? 0) / PAGE))
  const turn = (/** @type {1 | -1} */ by) => {
    setRestarted(false)
    if (by > 0 && screen === screens - 1) return setCursors([...cursors, value?.next]), setScreen(0)
    if (by < 0 && screen === 0) return setCursors(cursors.slice(0, -1)), setScreen(Math.ceil(FETCH / PAGE) - 1)
    setScreen(screen + by)
  }
  const at = Math.min(screen, screens - 1)
  const shown = value?.pairs.slice(at * PAGE, (at + 1) * PAGE) ?? []
  return html`<section class="card" aria-labelledby="found">
    <h2 id="found">${t.found(report.found, report.groups)}</h2>
    <p class="faint">${t.caution(report.threshold)}${report.different && ` ${t.leftOut(report.different)}`}</p>
    ${report.incomplete && html`<${Notice} kind="warn"><p>${report.reason || t.incomplete}</p><//>`}
    ${!place.photoLink && html`<${Notice}><p>${t.noLink}</p><pre tabindex="0">${t.setLink(place.name)}</pre><//>`}
    ${restarted && html`<${Notice} kind="warn"><p>${t.restarted}</p><//>`}
    ${error !== undefined && html`<${Problem} error=${error} />`}
    ${busy && !value && html`<p role="status" class="busy">${t.loading}</p>`}
    ${value && report.found === 0 && html`<${Empty}><p>${t.none}</p><//>`}
    ${report.found > 0 && html`<${Export} place=${place} />`}
    ${value && html`<${Pairs} key=${`${after} ${at}`} pairs=${shown} place=${place} />`}
    ${report.found > 0 &&
    html`<div class="row">
      <button type="button" class="plain" disabled=${busy || (at === 0 && cursors.length === 1)} onClick=${() => turn(-1)}>${t.previous}</button>
      <button type="button" class="plain" disabled=${busy || (at === screens - 1 && !value?.next)} onClick=${() => turn(1)}>${t.next}</button>
    </div>`}
  </section>`
}

/** Saves all pairs. @param {{place: Place}} props */
function Export({ place }) {
  const { run, busy, error } = useAction(async (signal) => {
    /** @type {(string | number)[][]} */
    const rows = [['group', 'score', 'subject_id', 'external_id', 'other_subject_id', 'other_external_id']]
    for await (const { group, score, subjects: [a, b] } of place.inside.pairs({ signal })) {
      rows.push([group, score, a?.id ?? '', a?.externalId ?? '', b?.id ?? '', b?.externalId ?? ''])
    }
    save('duplicates.csv', 'text/csv', csv(rows))
  })
  return html`<div class="row"><button type="button" class="plain" disabled=${busy} onClick=${() => run()}>${busy ? t.exporting : t.export}</button></div>
    ${error !== undefined && html`<${Problem} error=${error} />`}`
}

/**
 * The pairs of a page, and what was decided on them.
 * @param {{pairs: Pair[], place: Place}} props
 */
function Pairs({ pairs, place }) {
  const [gone, setGone] = useState(/** @type {ReadonlyMap<string, string>} */ (new Map())) // by subject, in words
  const [erased, setErased] = useState(/** @type {Subject[]} */ ([]))
  const went = (/** @type {Subject[]} */ subjects, /** @type {string} */ how) => setGone((now) => new Map([...now, ...subjects.map((s) => /** @type {const} */ ([s.id, how]))]))
  const onErased = (/** @type {Subject[]} */ subjects) => {
    went(subjects, t.erased)
    setErased((now) => [...now, ...subjects])
  }
  if (pairs.length === 0) return html``
  return html`<div class="scroll" tabindex="0">
      <table class="cards">
        <thead><tr><th scope="col" class="number">${t.group}</th><th scope="col">${t.first}</th><th scope="col">${t.second}</th><th scope="col">${t.verdict}</th><th scope="col">${t.score}</th></tr></thead>
        <tbody>
          ${pairs.map((p) => html`<${Row} key=${p.subjects.map((s) => s.id).join()} pair=${p} place=${place} gone=${gone} onMerged=${(/** @type {Subject} */ s) => went([s], t.merged)} onErased=${onErased} />`)}
        </tbody>
      </table>
    </div>
    ${erased.length > 0 && html`<${Erased} key=${erased.length} erased=${erased.map((s) => ({ ...s, galleryId: place.id, gallery: place.name, apiKey: '', state: 'erased' }))} />`}`
}

/**
 * Returns where people see the photo with an external id, or ''. The service has checked the link; a page opens no other kind of address all the same.
 * @param {string} link
 * @param {{externalId?: string | undefined}} subject
 */
export function photoAddress(link, { externalId }) {
  if (!link || !externalId) return ''
  const address = link.replaceAll('{externalId}', encodeURIComponent(externalId))
  return URL.canParse(address) && /^https?:$/.test(new URL(address).protocol) ? address : ''
}

const nameOf = (/** @type {Subject} */ s) => s.externalId || s.id

/** @param {{pair: Pair, place: Place, gone: ReadonlyMap<string, string>, onMerged: (s: Subject) => void, onErased: (s: Subject[]) => void}} props */
function Row({ pair, place, gone, onMerged, onErased }) {
  const [opened, setOpened] = useState(/** @type {ReadonlySet<string>} */ (new Set()))
  const [different, setDifferent] = useState(false)
  const [asking, setAsking] = useState(/** @type {'merge' | 'erase' | ''} */ (''))
  const [a, b] = pair.subjects
  const { run, busy, error } = useAction(async (signal, /** @type {boolean} */ to) => {
    if (!a || !b) return
    if (to) await place.inside.setDifferent(a.id, b.id, { signal })
    else await place.inside.unsetDifferent(a.id, b.id, { signal })
    setDifferent(to)
  })
  if (!a || !b) return html``
  const addresses = [a, b].map((s) => photoAddress(place.photoLink, s))
  const subject = (/** @type {Subject} */ s, /** @type {string | undefined} */ address, /** @type {string} */ label) => html`<td data-label=${label}>
    ${s.externalId && html`<strong>${s.externalId}</strong><br />`}<span class="id">${s.id}</span>
    ${address && !gone.has(s.id) && html`<br /><${PhotoLink} address=${address} name=${nameOf(s)} onOpen=${() => setOpened((now) => new Set([...now, s.id]))} />`}
  </td>`
  const over = [a, b].find((s) => gone.has(s.id))
  const asks = !over && !different && !addresses.includes('')
  const close = () => setAsking('')
  return html`<tr>
    <td class="number" data-label=${t.group}>${pair.group}</td>
    ${subject(a, addresses[0], t.first)}${subject(b, addresses[1], t.second)}
    <td data-label=${t.verdict}>
      <div class="stack">
        ${over
          ? html`<span role="status">${t.isGone(nameOf(over), gone.get(over.id) ?? '')}</span>`
          : different
            ? html`<span role="status">${t.areDifferent}</span><button type="button" class="link" disabled=${busy} onClick=${() => run(false)}>${t.takeBack}</button>`
            : !place.photoLink
              ? ''
              : addresses.includes('')
                ? html`<span class="faint">${t.noPhoto}</span>`
                : opened.size < 2
                  ? html`<span class="faint">${t.openBoth}</span>`
                  : html`<span class="faint small">${t.unseen}</span><div class="row" role="group" aria-label=${t.decide(nameOf(a), nameOf(b))}>
                      <button type="button" class="plain" disabled=${busy} onClick=${() => setAsking('merge')}>${t.same}</button>
                      <button type="button" class="plain" disabled=${busy} onClick=${() => run(true)}>${t.different}</button>
                      <button type="button" class="plain" disabled=${busy} onClick=${() => setAsking('erase')}>${t.erase}</button>
                    </div>`}
        ${error !== undefined && html`<${Problem} error=${error} />`}
      </div>
      ${asking === 'merge' && html`<${Merge} subjects=${[a, b]} place=${place} onDone=${(/** @type {Subject} */ s) => (close(), onMerged(s))} onClose=${close} />`}
      ${asking === 'erase' && html`<${Erase} subjects=${[a, b]} place=${place} onDone=${(/** @type {Subject[]} */ list) => (close(), onErased(list))} onClose=${close} />`}
    </td>
    <td data-label=${t.score}>${asks ? html`<span class="faint small">${texts.review.scoreAfter}</span>` : html`<${Score} score=${pair.score} />`}</td>
  </tr>`
}

/**
 * A link to a photo, which opens in a new tab that learns nothing of this one.
 * @param {{address: string, name: string, onOpen: () => void}} props
 */
export const PhotoLink = ({ address, name, onOpen }) =>
  html`<a href=${address} target="_blank" rel="noopener noreferrer" onClick=${onOpen} onAuxClick=${(/** @type {MouseEvent} */ e) => e.button === 1 && onOpen()}
    >${t.photo}<span class="hidden-text"> ${t.photoOf(name)}</span></a
  >`

/** Asks which of two subjects stays, and merges the other one into it. @param {{subjects: [Subject, Subject], place: Place, onDone: (s: Subject) => void, onClose: () => void}} props */
function Merge({ subjects, place, onDone, onClose }) {
  const [kept, setKept] = useState(0)
  const [target, source] = kept === 0 ? subjects : [subjects[1], subjects[0]]
  const { run, busy, error } = useAction(async (signal) => {
    await place.inside.merge(target.id, source.id, { signal })
    onDone(source)
  })
  return html`<${Dialog} title=${t.mergeTitle(nameOf(subjects[0]), nameOf(subjects[1]))} onClose=${onClose}>
    <fieldset class="stack">
      <legend>${t.keep}</legend>
      ${subjects.map((s, i) => html`<label class="check"><input type="radio" name="kept" checked=${kept === i} disabled=${busy} onChange=${() => setKept(i)} /><span>${s.externalId ?? ''} <span class="id">${s.id}</span></span></label>`)}
    </fieldset>
    <p>${t.mergeText(nameOf(target), nameOf(source))}</p>
    ${error !== undefined && html`<${Problem} error=${error} />`}
    <div class="row"><button type="button" disabled=${busy} onClick=${() => run()}>${busy ? t.merging : t.merge(nameOf(source), nameOf(target))}</button><button type="button" class="plain" onClick=${onClose}>${t.cancel}</button></div>
  <//>`
}

/** Asks which of two subjects are erased. @param {{subjects: [Subject, Subject], place: Place, onDone: (list: Subject[]) => void, onClose: () => void}} props */
function Erase({ subjects, place, onDone, onClose }) {
  const [ticked, setTicked] = useState(/** @type {ReadonlySet<string>} */ (new Set()))
  const { run, busy, error } = useAction(async (signal) => {
    const list = subjects.filter((s) => ticked.has(s.id))
    for (const s of list) {
      await place.inside.unregister(s.id, { signal }).catch((e) => {
        if (!(e instanceof NotFound)) throw e // somebody else has removed it
      })
    }
    onDone(list)
  })
  const tick = (/** @type {string} */ id, /** @type {boolean} */ on) => setTicked(new Set(on ? [...ticked, id] : [...ticked].filter((other) => other !== id)))
  return html`<${Dialog} title=${t.eraseTitle} onClose=${onClose}>
    <div class="stack">
      ${subjects.map((s) => html`<label class="check"><input type="checkbox" checked=${ticked.has(s.id)} disabled=${busy} onChange=${(/** @type {Changed} */ e) => tick(s.id, e.currentTarget.checked)} /><span>${s.externalId ?? ''} <span class="id">${s.id}</span></span></label>`)}
    </div>
    <p>${texts.erase.sureText}</p>
    ${error !== undefined && html`<${Problem} error=${error} />`}
    <div class="row"><button type="button" class="danger" disabled=${busy || ticked.size === 0} onClick=${() => run()}>${busy ? texts.erase.erasing : texts.erase.erase(ticked.size)}</button><button type="button" class="plain" onClick=${onClose}>${t.cancel}</button></div>
  <//>`
}
