import { html } from '../html.js'
import { useState } from '../vendor/hooks.js'
import { NotVerified } from '../client/index.js'
import { about, count, percent } from '../format.js'
import { Copy, Drop, Empty, Field, Heading, Notice, Photo, Problem, Score, useAction, useLoaded } from '../parts.js'
import { strangers } from '../rates.js'
import { requests } from '../requests.js'
import { application, applications, chosen, client, inGallery, manages, reads } from '../state.js'
import { texts } from '../texts.js'

const t = texts.try

/** @typedef {import('../client/models.js').SeenFace} SeenFace */
/** @typedef {import('../client/models.js').Candidate} Candidate */

/** What a photo shows, whether another one shows the same person, and who it is. */
export function Try() {
  const [photo, setPhoto] = useState(/** @type {Blob | undefined} */ (undefined))
  return html`<${Heading} title=${t.title} intro=${t.intro} />
    ${photo
      ? html`${reads.value
            ? html`<div class="columns"><${Seen} photo=${photo} onOther=${() => setPhoto(undefined)} /><${Compare} photo=${photo} /></div>`
            : html`<div class="card"><${Photo} photo=${photo} alt=${t.yourPhoto} /><div class="row"><button type="button" class="plain" onClick=${() => setPhoto(undefined)}>${t.other}</button></div></div>`}
          <${Search} photo=${photo} />`
      : html`<${Drop} label=${t.choose} onPhoto=${setPhoto} />`}`
}

/** @param {{photo: Blob, onOther: () => void}} props */
function Seen({ photo, onOther }) {
  const [marked, setMarked] = useState(0)
  const { value: faces, busy, error } = useLoaded((signal) => seen(photo, signal), [photo])
  const face = faces?.[marked]
  return html`<section class="card" aria-labelledby="seen">
    <div class="row"><h2 id="seen">${t.seen}</h2><button type="button" class="plain end" onClick=${onOther}>${t.other}</button></div>
    <${Photo} photo=${photo} faces=${faces?.map((f) => f.attributes)} marked=${marked} alt=${t.yourPhoto} />
    ${busy && html`<p role="status" class="busy">${t.looking}</p>`}
    ${error !== undefined && html`<${Problem} error=${error} />`}
    ${faces &&
    faces.length > 1 &&
    html`<div class="row" role="group" aria-label=${t.faces}>
      ${faces.map((_, i) => html`<button type="button" class=${i === marked ? '' : 'plain'} aria-pressed=${i === marked} onClick=${() => setMarked(i)}>${t.face(i + 1)}</button>`)}
    </div>`}
    ${face && html`<${Face} face=${face} />`}
  </section>`
}

/**
 * Returns the faces of a photo, none if there are none.
 * @param {Blob} photo
 * @param {AbortSignal} signal
 */
async function seen(photo, signal) {
  return (await client.value?.extractMeasured(photo, { limit: 20, signal })) ?? []
}

/** @param {{face: SeenFace}} props */
function Face({ face }) {
  const a = face.attributes
  const measures = Object.entries(face.measures)
  return html`
    ${face.defects.length > 0
      ? html`<${Notice} kind="warn"><p><strong>${t.refused}</strong></p><ul>${face.defects.map((d) => html`<li>${t.defects[d] ?? d}</li>`)}</ul><//>`
      : html`<${Notice} kind="good"><p>${t.usable}</p><//>`}
    <dl class="facts">
      <dt>${t.quality}</dt>
      <dd>${a.faceQualityScore.toFixed(2)} <span class="faint">${t.qualityMeans(percent(a.faceQualityScore))}</span></dd>
      <dt>${t.pose}</dt>
      <dd>${pose(a)}</dd>
      <dt>${t.size}</dt>
      <dd>${t.pixels(Math.round(Math.hypot(a.leftEyeCenter.x - a.rightEyeCenter.x, a.leftEyeCenter.y - a.rightEyeCenter.y)))}</dd>
    </dl>
    ${measures.length > 0 &&
    html`<details>
      <summary>${t.measures}</summary>
      <div class="scroll" tabindex="0">
        <table>
          <caption class="hidden-text">${t.measures}</caption>
          <thead><tr><th scope="col">${t.measure}</th><th scope="col" class="number">${t.component}</th><th scope="col" class="number">${t.native}</th></tr></thead>
          <tbody>
            ${measures.map(([name, m]) => html`<tr><th scope="row">${t.measureNames[name] ?? name}</th><td class="number">${m.component}</td><td class="number">${Number(m.native.toPrecision(3))}</td></tr>`)}
          </tbody>
        </table>
      </div>
    </details>`}
  `
}

/**
 * Returns the pose in words.
 * @param {import('../client/models.js').Attributes} a
 */
function pose({ facePan, faceTilt, faceRoll }) {
  const least = 8 // degrees
  const parts = []
  if (Math.abs(facePan) >= least) parts.push(facePan > 0 ? t.right(Math.round(facePan)) : t.left(Math.round(-facePan)))
  if (Math.abs(faceTilt) >= least) parts.push(faceTilt > 0 ? t.up(Math.round(faceTilt)) : t.down(Math.round(-faceTilt)))
  if (Math.abs(faceRoll) >= least) parts.push(t.rolled(Math.round(Math.abs(faceRoll))))
  return parts.length > 0 ? parts.join(', ') : t.ahead
}

/** @param {{photo: Blob}} props */
function Compare({ photo }) {
  const [second, setSecond] = useState(/** @type {Blob | undefined} */ (undefined))
  const { value: score, busy, error } = useLoaded(async (signal) => (second ? compared(photo, second, signal) : undefined), [photo, second])
  return html`<section class="card" aria-labelledby="compare">
    <div class="row">
      <h2 id="compare">${t.compare}</h2>
      ${second && html`<button type="button" class="plain end" onClick=${() => setSecond(undefined)}>${t.other}</button>`}
    </div>
    ${second ? html`<${Photo} photo=${second} alt=${t.secondPhoto} />` : html`<${Drop} label=${t.chooseSecond} onPhoto=${setSecond} />`}
    ${busy && second && html`<p role="status" class="busy">${t.comparing}</p>`}
    ${error !== undefined && html`<${Problem} error=${error} />`}
    ${score !== undefined &&
    html`<${Notice} kind=${score >= t.usual ? 'good' : 'warn'}>
      <p><strong>${score >= t.usual ? t.same : t.different}</strong></p>
      <p><strong class="score">${score}</strong> ${t.scoreMeans}</p>
    <//>`}
  </section>`
}

/**
 * Returns the score of two photos, also where it is below the service's threshold.
 * @param {Blob} a
 * @param {Blob} b
 * @param {AbortSignal} signal
 */
async function compared(a, b, signal) {
  try {
    return await client.value?.verifyFaces(a, b, { signal })
  } catch (e) {
    if (e instanceof NotVerified && e.score !== undefined) return e.score
    throw e
  }
}

/** @param {{photo: Blob}} props */
function Search({ photo }) {
  const [threshold, setThreshold] = useState(7000)
  const [asked, setAsked] = useState(false)
  const { run, busy, error } = useAction(async (signal, /** @type {number} */ at) => {
    const c = inGallery.value
    if (!c) return
    const began = performance.now()
    const result = await c.search(photo, { threshold: at, limit: 50, signal })
    setFound({ candidates: result.candidates, took: performance.now() - began })
  })
  const [found, setFound] = useState(/** @type {{candidates: Candidate[], took: number} | undefined} */ (undefined))
  if (applications.value.length === 0) {
    return html`<section class="card" aria-labelledby="search">
      <h2 id="search">${t.search}</h2>
      <${Empty}><p>${manages.value ? t.noGallery : t.noApiKey}</p>${manages.value && html`<a href="#/galleries">${t.makeGallery}</a>`}<//>
    </section>`
  }
  const ask = (/** @type {number} */ at) => {
    setAsked(true)
    void run(at)
  }
  return html`<section class="card" aria-labelledby="search">
    <h2 id="search">${t.search}</h2>
    <div class="columns">
      <div class="stack">
        <${Applications} />
        <${Field} label=${t.threshold(threshold)} hint=${t.thresholdMeans(threshold, about(strangers(threshold)))}>
          <input
            type="range"
            min="4000"
            max="9999"
            step="50"
            value=${threshold}
            onInput=${(/** @type {Event & {currentTarget: HTMLInputElement}} */ e) => setThreshold(Number(e.currentTarget.value))}
            onChange=${(/** @type {Event & {currentTarget: HTMLInputElement}} */ e) => asked && ask(Number(e.currentTarget.value))}
          />
        <//>
        <div class="row"><button type="button" disabled=${busy} onClick=${() => ask(threshold)}>${busy ? t.searching : t.search}</button></div>
        ${error !== undefined && html`<${Problem} error=${error} />`}
      </div>
      <div class="stack" aria-live="polite">
        ${found && html`<${Candidates} candidates=${found.candidates} threshold=${threshold} took=${found.took} />`}
      </div>
    </div>
    <${Requests} threshold=${threshold} />
  </section>`
}

/** Chooses the application whose gallery is used. */
export function Applications() {
  if (applications.value.length < 2) return html`<p><span class="faint">${t.application}</span> ${application.value?.name || application.value?.apiKey.slice(0, 8)}</p>`
  return html`<${Field} label=${t.application}>
    <select value=${application.value?.id} onChange=${(/** @type {Event & {currentTarget: HTMLSelectElement}} */ e) => (chosen.value = e.currentTarget.value)}>
      ${applications.value.map((a) => html`<option value=${a.id}>${a.name}</option>`)}
    </select>
  <//>`
}

/** @param {{candidates: Candidate[], threshold: number, took: number}} props */
function Candidates({ candidates, threshold, took }) {
  if (candidates.length === 0) return html`<${Empty}><p>${t.nobody(threshold)}</p><p>${t.nobodyHint}</p><//>`
  return html`<div class="scroll" tabindex="0">
    <table>
      <caption>${t.found(count(candidates.length), Math.round(took))}</caption>
      <thead><tr><th scope="col">${t.subject}</th><th scope="col">${t.score}</th><th scope="col" class="number">${t.matching}</th></tr></thead>
      <tbody>
        ${candidates.map(
          (c) => html`<tr>
            <td>${c.externalId && html`<strong>${c.externalId}</strong><br />`}<span class="id">${c.id}</span></td>
            <td><${Score} score=${c.score} /></td>
            <td class="number">${c.events.length}</td>
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`
}

/** The search as a request of one's own program. @param {{threshold: number}} props */
function Requests({ threshold }) {
  const list = requests(application.value?.apiKey ?? '', threshold)
  const [at, setAt] = useState(0)
  const code = list[at]?.code ?? ''
  return html`<details>
    <summary>${t.asCode}</summary>
    <div class="stack">
      <div class="row" role="group" aria-label=${t.language}>
        ${list.map((r, i) => html`<button type="button" class=${i === at ? '' : 'plain'} aria-pressed=${i === at} onClick=${() => setAt(i)}>${r.name}</button>`)}
        <span class="end"><${Copy} text=${code} /></span>
      </div>
      <pre tabindex="0">${code}</pre>
    </div>
  </details>`
}
