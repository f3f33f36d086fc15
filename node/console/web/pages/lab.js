import { html } from '../html.js'
import { useEffect, useMemo, useRef, useState } from '../vendor/hooks.js'
import uPlot from '../vendor/uplot.js'
import { count, rate } from '../format.js'
import { Field, Files, Heading, Notice, Problem, useAction } from '../parts.js'
import { compareAll, PHOTOS_MAX } from '../comparing.js'
import { rowsOfFolder } from '../list.js'
import { useWork } from '../presence.js'
import { alarms, BINS, EVENTS_MIN, histogram, rates } from '../rates.js'
import { application, applications, client, manages } from '../state.js'
import { texts } from '../texts.js'
import { Applications } from './try.js'

const t = texts.lab
const THRESHOLDS = Array.from({ length: 51 }, (_, i) => 4000 + 100 * i)

/** @typedef {import('../comparing.js').Compared} Compared */
/** @typedef {import('../rates.js').Rates} Rates */
/** @typedef {Event & {currentTarget: HTMLInputElement}} Changed */

/** Measures thresholds on photos of one's own. */
export function Lab() {
  const [files, setFiles] = useState(/** @type {File[]} */ ([]))
  const [done, setDone] = useState(/** @type {[number, number] | undefined} */ (undefined))
  const [compared, setCompared] = useState(/** @type {Compared | undefined} */ (undefined))
  const rows = useMemo(() => rowsOfFolder(files, true).filter((r) => r.externalId), [files])
  const { run, busy, error, stop } = useAction(async (signal) => {
    const c = client.value
    if (!c) return
    setCompared(undefined)
    setCompared(await compareAll(c, rows, (n, of) => setDone([n, of]), signal))
  })
  useWork(busy)
  const persons = new Set(rows.map((r) => r.externalId)).size
  return html`<${Heading} title=${t.title} intro=${t.intro} />
    <form class="card no-print" onSubmit=${(/** @type {Event} */ e) => (e.preventDefault(), void run())}>
      <${Files} folder label=${t.folder} hint=${t.folderHint} button=${t.chooseFolder} onFiles=${setFiles} />
      ${files.length > 0 && html`<p>${t.chosen(count(rows.length), count(persons))}</p>`}
      ${rows.length > PHOTOS_MAX && html`<${Notice} kind="warn"><p>${t.tooMany(count(PHOTOS_MAX))}</p><//>`}
      <div class="row">
        <button disabled=${busy || rows.length < 2 || rows.length > PHOTOS_MAX}>${busy ? t.comparing : t.compare}</button>
        ${busy && html`<button type="button" class="plain" onClick=${stop}>${t.stop}</button>`}
      </div>
      ${busy && done && html`<progress max=${done[1]} value=${done[0]} aria-label=${t.comparing}></progress><p role="status">${t.doneOf(count(done[0]), count(done[1]))}</p>`}
      ${error !== undefined && html`<${Problem} error=${error} />`}
    </form>
    ${compared && html`<${Report} key=${compared} compared=${compared} />`}`
}

/** @param {{compared: Compared}} props */
function Report({ compared }) {
  const [people, setPeople] = useState(1000)
  const [searches, setSearches] = useState(500)
  const { list, bins } = useMemo(() => ({ list: rates(compared.scores, THRESHOLDS), bins: histogram(compared.scores) }), [compared])
  const total = (/** @type {Float64Array} */ of) => of.reduce((a, b) => a + b, 0)
  const [mated, others] = [total(bins.mated), total(bins.others)]
  const number = (/** @type {number} */ value, /** @type {(n: number) => void} */ set, /** @type {number} */ most) =>
    html`<input type="number" min="1" max=${most} value=${value} onInput=${(/** @type {Changed} */ e) => set(Math.max(1, Number(e.currentTarget.value) || 1))} />`
  return html`<section class="card" aria-labelledby="report">
      <div class="row"><h2 id="report">${t.report}</h2><button type="button" class="plain end" onClick=${() => print()}>${t.print}</button></div>
      <p>${t.compared(count(compared.photos), count(compared.persons), count(mated), count(others))}</p>
      ${compared.failed.length > 0 && html`<details><summary>${t.failed(count(compared.failed.length))}</summary><ul>${compared.failed.slice(0, 50).map((f) => html`<li>${f.name}: ${f.reason}</li>`)}</ul></details>`}
      ${(mated === 0 || others === 0) && html`<${Notice} kind="warn"><p>${mated === 0 ? t.noMated : t.noOthers}</p><//>`}
      <figure class="stack"><figcaption><strong>${t.histogram}</strong> <span class="faint">${t.histogramHint}</span></figcaption><${Histogram} mated=${bins.mated} others=${bins.others} /></figure>
      <figure class="stack"><figcaption><strong>${t.det}</strong> <span class="faint">${t.detHint}</span></figcaption><${Det} list=${list} /></figure>
    </section>
    <section class="card" aria-labelledby="thresholds">
      <h2 id="thresholds">${t.thresholds}</h2>
      <div class="columns">
        <${Field} label=${t.people}>${number(people, setPeople, 1e9)}<//>
        <${Field} label=${t.searches}>${number(searches, setSearches, 1e9)}<//>
      </div>
      <${Thresholds} list=${list} people=${people} searches=${searches} />
      <p class="small faint">${t.caveat}</p>
    </section>`
}

/** @param {{list: Rates[], people: number, searches: number}} props */
function Thresholds({ list, people, searches }) {
  const [set, setSet] = useState(/** @type {number | undefined} */ (undefined))
  const { run, busy, error } = useAction(async (signal, /** @type {number} */ threshold) => {
    const a = application.value
    if (!a || !client.value) return
    await client.value.updateApplication(a.id, { verifyThreshold: threshold, signal })
    setSet(threshold)
  })
  const sets = manages.value && applications.value.length > 0
  return html`${sets && html`<div class="no-print"><${Applications} /></div>`}
    ${error !== undefined && html`<${Problem} error=${error} />`}
    ${set !== undefined && html`<${Notice} kind="good"><p>${t.isSet(set, application.value?.name ?? '')}</p><//>`}
    <div class="scroll" tabindex="0" role="group" aria-labelledby="thresholds">
      <table class="cards">
        <thead>
          <tr>
            <th scope="col" class="number">${t.threshold}</th><th scope="col">${t.fmr}</th><th scope="col">${t.fnmr}</th><th scope="col" class="number">${t.alarms}</th>
            ${sets && html`<th scope="col" class="no-print"><span class="hidden-text">${t.use}</span></th>`}
          </tr>
        </thead>
        <tbody>
          ${list
            .filter((r) => r.threshold % 500 === 0)
            .map((r) => {
              const shown = r.falseMatches >= EVENTS_MIN
              return html`<tr key=${r.threshold}>
                <td class="number" data-label=${t.threshold}>${r.threshold}</td>
                <td data-label=${t.fmr}>${shown ? html`${rate(r.fmr)} <span class="faint small">${t.between(rate(r.fmrInterval[0]), rate(r.fmrInterval[1]))}</span>` : html`<span class="faint">${t.notShown(r.falseMatches)}</span>`}</td>
                <td data-label=${t.fnmr}>${rate(r.fnmr)} <span class="faint small">${t.between(rate(r.fnmrInterval[0]), rate(r.fnmrInterval[1]))}</span></td>
                <td class="number" data-label=${t.alarms}>${shown ? Number(alarms(r.fmr, people, searches).toPrecision(2)) : html`<span class="faint">${t.noAlarms}</span>`}</td>
                ${sets && html`<td class="no-print"><button type="button" class="link" disabled=${busy} onClick=${() => run(r.threshold)}>${t.useAs(r.threshold)}</button></td>`}
              </tr>`
            })}
        </tbody>
      </table>
    </div>`
}

/** The colours of the page, for a canvas. */
function colours() {
  const style = getComputedStyle(document.documentElement)
  const of = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim()
  return { ink: of('ink'), line: of('line'), accent: of('accent'), bad: of('bad') }
}

/**
 * Draws a plot as wide as its place.
 * @param {(width: number) => {options: import('../vendor/uplot.js').default.Options, data: import('../vendor/uplot.js').default.AlignedData}} make
 * @param {unknown[]} on
 */
function usePlot(make, on) {
  const place = useRef(/** @type {HTMLDivElement | null} */ (null))
  useEffect(() => {
    if (!place.current) return
    const at = place.current
    /** @type {uPlot | undefined} */
    let plot
    const draw = () => {
      const { options, data } = make(at.clientWidth)
      plot?.destroy()
      plot = new uPlot(options, data, at)
    }
    draw()
    const sizes = new ResizeObserver(() => plot?.setSize({ width: at.clientWidth, height: plot.height }))
    sizes.observe(at)
    // A canvas keeps its colours. Paper has those of the light scheme.
    const media = ['(prefers-color-scheme: dark)', 'print'].map((query) => matchMedia(query))
    for (const m of media) m.addEventListener('change', draw)
    return () => {
      for (const m of media) m.removeEventListener('change', draw)
      sizes.disconnect()
      plot?.destroy()
    }
  }, on)
  return place
}

/** @param {{mated: Float64Array, others: Float64Array}} props */
function Histogram({ mated, others }) {
  const place = usePlot(
    (width) => {
      const c = colours()
      const share = (/** @type {Float64Array} */ bins) => {
        const all = Math.max(1, bins.reduce((a, b) => a + b, 0))
        return Array.from(bins, (n) => (100 * n) / all)
      }
      const axis = { stroke: c.ink, grid: { stroke: c.line, width: 1 } }
      return {
        options: {
          width,
          height: 260,
          legend: { live: false },
          scales: { x: { time: false } },
          axes: [axis, { ...axis, values: (/** @type {unknown} */ _, /** @type {number[]} */ at) => at.map((v) => `${v} %`) }],
          series: [{ label: t.score }, { label: t.others, stroke: c.bad, width: 2 }, { label: t.mated, stroke: c.accent, width: 2, dash: [6, 4] }],
        },
        data: [Array.from({ length: BINS }, (_, i) => 100 * i), share(others), share(mated)],
      }
    },
    [mated, others],
  )
  return html`<div ref=${place} role="img" aria-label=${t.histogramLabel}></div>`
}

/** FNMR over FMR, both on logarithmic axes. @param {{list: Rates[]}} props */
function Det({ list }) {
  const shown = list.filter((r) => r.falseMatches >= EVENTS_MIN && r.misses > 0).reverse()
  const place = usePlot(
    (width) => {
      const c = colours()
      const axis = { stroke: c.ink, grid: { stroke: c.line, width: 1 }, values: (/** @type {unknown} */ _, /** @type {(number | null)[]} */ at) => at.map((v) => (v === null ? '' : rate(v))), space: 60, size: 70 }
      return {
        options: {
          width,
          height: 260,
          legend: { live: false },
          scales: { x: { time: false, distr: 3 }, y: { distr: 3 } },
          axes: [axis, axis],
          series: [{ label: t.fmr }, { label: t.fnmr, stroke: c.accent, width: 2, points: { show: true } }, { label: t.low, stroke: c.line }, { label: t.high, stroke: c.line }],
        },
        data: [shown.map((r) => r.fmr), shown.map((r) => r.fnmr), shown.map((r) => Math.max(1e-6, r.fnmrInterval[0])), shown.map((r) => r.fnmrInterval[1])],
      }
    },
    [list],
  )
  if (shown.length < 2) return html`<p class="faint">${t.noCurve}</p>`
  return html`<div ref=${place} role="img" aria-label=${t.detLabel}></div>`
}
