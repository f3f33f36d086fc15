import { html } from '../html.js'
import { useState } from '../vendor/hooks.js'
import { count } from '../format.js'
import { Empty, Files, Heading, Notice, Problem, csv, save, useAction } from '../parts.js'
import { applications, inGallery, manages, reads } from '../state.js'
import { importRows } from '../importing.js'
import { rowsOfFolder, rowsOfList } from '../list.js'
import { useWork } from '../presence.js'
import { texts } from '../texts.js'
import { Applications } from './try.js'

const t = texts.import

/** @typedef {import('../list.js').Row} Row */
/** @typedef {import('../importing.js').Outcome} Outcome */
/** @typedef {import('../importing.js').Known} Known */
/** @typedef {Event & {currentTarget: HTMLInputElement}} Changed */

/** Registers a folder or a list of photos. */
export function Import() {
  const [files, setFiles] = useState(/** @type {File[]} */ ([]))
  const [list, setList] = useState(/** @type {File | undefined} */ (undefined))
  const [perPerson, setPerPerson] = useState(true)
  const [known, setKnown] = useState(/** @type {Known} */ ('skip'))
  const [done, setDone] = useState(/** @type {Map<Row, Outcome>} */ (new Map()))
  const [total, setTotal] = useState(0)
  const { run, busy, error, stop } = useAction(async (signal) => {
    const c = inGallery.value
    if (!c) return
    const rows = list ? await rowsOfList(list, files) : rowsOfFolder(files, perPerson)
    setTotal(rows.length)
    const outcomes = new Map()
    setDone(outcomes)
    let drawn = 0
    await importRows({ client: c, known, reads: reads.value, signal }, rows, (row, outcome) => {
      outcomes.set(row, outcome)
      if (Date.now() - drawn < 200) return
      drawn = Date.now()
      setDone(new Map(outcomes))
    })
    setDone(new Map(outcomes))
  })
  useWork(busy)
  if (applications.value.length === 0) {
    return html`<${Heading} title=${t.title} intro=${t.intro} />
      <div class="card"><${Empty}><p>${texts.try.noGallery}</p>${manages.value && html`<a href="#/galleries">${texts.try.makeGallery}</a>`}<//></div>`
  }
  return html`<${Heading} title=${t.title} intro=${t.intro} />
    <form class="card" onSubmit=${(/** @type {Event} */ e) => (e.preventDefault(), void run())}>
      <${Applications} />
      <${Files} folder label=${t.folder} hint=${t.folderHint} button=${t.chooseFolder} onFiles=${setFiles} />
      <${Files} label=${t.list} hint=${t.listHint} button=${t.chooseList} accept=".csv,.tsv,text/csv" onFiles=${(/** @type {File[]} */ list) => setList(list[0])} />
      ${!list &&
      html`<label class="check"><input type="checkbox" checked=${perPerson} onChange=${(/** @type {Changed} */ e) => setPerPerson(e.currentTarget.checked)} /><span>${t.perPerson}</span></label>`}
      ${reads.value &&
      html`<fieldset class="stack">
        <legend>${t.known}</legend>
        ${Object.entries(t.knowns).map(([value, text]) => html`<label class="check"><input type="radio" name="known" checked=${known === value} disabled=${busy} onChange=${() => setKnown(/** @type {Known} */ (value))} /><span>${text}</span></label>`)}
      </fieldset>`}
      <div class="row">
        <button disabled=${busy || files.length === 0}>${busy ? t.importing : t.import}</button>
        ${busy && html`<button type="button" class="plain" onClick=${stop}>${t.stop}</button>`}
      </div>
      ${error !== undefined && html`<${Problem} error=${error} />`}
    </form>
    ${total > 0 && html`<${Progress} done=${done} total=${total} busy=${busy} />`}`
}

/** @param {{done: Map<Row, Outcome>, total: number, busy: boolean}} props */
function Progress({ done, total, busy }) {
  /** @type {Map<string, number>} */
  const reasons = new Map()
  /** @type {Record<string, number>} */
  const counts = {}
  for (const { outcome, reason } of done.values()) {
    counts[outcome] = (counts[outcome] ?? 0) + 1
    if (outcome === 'failed') reasons.set(reason ?? '', (reasons.get(reason ?? '') ?? 0) + 1)
  }
  const { skipped = 0, failed = 0 } = counts
  const out = skipped + failed
  return html`<section class="card" aria-labelledby="progress">
    <h2 id="progress">${t.progress}</h2>
    <progress max=${total} value=${done.size} aria-label=${t.progress}></progress>
    <p role="status">${t.doneOf(count(done.size), count(total))}</p>
    <dl class="facts">
      ${Object.entries(counts).map(([outcome, n]) => html`<dt>${t.outcomes[outcome] ?? outcome}</dt><dd>${count(n)}</dd>`)}
    </dl>
    ${!busy && done.size === total && html`<${Notice} kind=${out > 0 ? 'warn' : 'good'}><p>${out > 0 ? t.partIn(count(total - out), count(total)) : t.allIn}</p>${skipped > 0 && html`<p>${t.skippedMeans}</p>`}<//>`}
    ${!busy && done.size < total && html`<${Notice} kind="warn"><p>${t.stopped}</p><//>`}
    ${reasons.size > 0 &&
    html`<div class="scroll" tabindex="0">
      <table>
        <caption>${t.failures}</caption>
        <thead><tr><th scope="col">${t.reason}</th><th scope="col" class="number">${t.rows}</th></tr></thead>
        <tbody>
          ${[...reasons].sort((a, b) => b[1] - a[1]).slice(0, 20).map(([reason, n]) => html`<tr><td>${reason}</td><td class="number">${count(n)}</td></tr>`)}
        </tbody>
      </table>
    </div>`}
    ${!busy && done.size > 0 && html`<div class="row"><button type="button" class="plain" onClick=${() => save('import.report.csv', 'text/csv', report(done))}>${t.report}</button></div>`}
  </section>`
}

/**
 * Returns the report as facet import writes it.
 * @param {Map<Row, Outcome>} done
 */
function report(done) {
  const rows = [...done].sort((a, b) => a[0].row - b[0].row)
  return csv([
    ['row', 'file', 'external_id', 'subject_id', 'event_id', 'quality', 'outcome', 'reason'],
    ...rows.map(([r, o]) => [r.row, r.name, r.externalId, o.subjectId ?? '', o.eventId ?? '', o.quality?.toFixed(2) ?? '', o.outcome, o.reason ?? '']),
  ])
}
