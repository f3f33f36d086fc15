import { html } from '../html.js'
import { useEffect, useRef, useState } from '../vendor/hooks.js'
import { AuditLog } from '../auditlog.js'
import { NotFound } from '../client/index.js'
import { count, short } from '../format.js'
import { keep, kept } from '../keep.js'
import { base64, Fault, proofText } from '../merkle.js'
import { csv, Dialog, Empty, Field, Heading, Notice, Problem, save, useAction, useLoaded } from '../parts.js'
import { accessKey, client } from '../state.js'
import { texts } from '../texts.js'

const t = texts.audit
const PERIOD = 4000 // ms between two looks at the log
const PAGE = 50 // records
const FETCH = 200 // records of a request
const EXPORT_MAX = 10_000 // records; facet audit export takes more
const KEPT = 'audit'

/** @typedef {import('../auditlog.js').Seen} Seen */
/** @typedef {import('../auditlog.js').Head} Head */
/** @typedef {import('../auditlog.js').Proven} Proven */
/** @typedef {import('../client/client.js').AuditQuery} Query */
/** @typedef {Event & {currentTarget: HTMLInputElement}} Changed */

/**
 * A page of the log. fault says what is wrong with the log itself; head is absent then, and where there is no log.
 * @typedef {{recording: boolean, next: number | undefined, head: Head | undefined, fault: string, records: Proven[]}} Page
 */

/** The records of requests, each proven by the browser. */
export function Audit() {
  const log = useRef(new AuditLog(accessKey.value, (path) => /** @type {import('../client/index.js').Client} */ (client.value).auditFile(path)))
  const [query, setQuery] = useState(/** @type {Query} */ ({ reads: false }))
  const [cursors, setCursors] = useState(/** @type {(number | undefined)[]} */ ([undefined])) // those that led here
  const [follow, setFollow] = useState(false)
  const before = cursors.at(-1)
  const first = cursors.length === 1
  const { value, busy, error, reload } = useLoaded((signal) => look(log.current, { ...query, before, length: PAGE }, signal), [query, before])
  useEffect(() => {
    if (!follow || busy || !first) return
    const timer = setInterval(() => document.hidden || reload(), PERIOD)
    return () => clearInterval(timer)
  }, [follow, busy, first])
  const forget = useAction(async () => {
    await keep(KEPT, [])
    reload()
  })
  return html`<${Heading} title=${t.title} intro=${t.intro} />
    <${Filter} onQuery=${(/** @type {Query} */ q) => (setCursors([undefined]), setQuery(q))} />
    ${error !== undefined && html`<${Problem} error=${error} />`}
    ${busy && !value && html`<p role="status" class="busy">${t.loading}</p>`}
    ${value && html`<${Verdict} page=${value} onForget=${() => forget.run()} />`}
    ${value?.head &&
    html`<section class="card" aria-labelledby="records">
      <h2 id="records">${t.records}</h2>
      <label class="check"><input type="checkbox" checked=${follow} disabled=${!first} onChange=${(/** @type {Changed} */ e) => setFollow(e.currentTarget.checked)} /><span>${t.follow}</span></label>
      <${Records} records=${value.records} log=${log.current} head=${value.head} />
      <div class="row">
        <button type="button" class="plain" disabled=${busy || first} onClick=${() => setCursors(cursors.slice(0, -1))}>${t.newer}</button>
        <button type="button" class="plain" disabled=${busy || value.next === undefined} onClick=${() => setCursors([...cursors, value.next])}>${t.older}</button>
      </div>
      <${Export} log=${log.current} query=${query} />
    </section>`}`
}

/**
 * Reads a page of the log, and proves it.
 * @param {AuditLog} log
 * @param {Query} query
 * @param {AbortSignal} signal
 * @returns {Promise<Page>}
 */
async function look(log, query, signal) {
  const c = /** @type {import('../client/index.js').Client} */ (client.value)
  const seen = /** @type {Seen[]} */ ((await kept(KEPT)) ?? [])
  /** @type {Page} */
  const page = { recording: false, next: undefined, head: undefined, fault: '', records: [] }
  try {
    const got = await c.auditRecords({ ...query, content: true, signal })
    page.recording = got.recording
    page.next = got.next
    const head = await log.head(seen)
    page.records = await Promise.all(got.records.map((r) => log.prove(head, r.number, r.expired ? undefined : (r.content ?? ''))))
    page.head = head
    if (!signal.aborted) await keep(KEPT, log.remember(/** @type {Seen[]} */ ((await kept(KEPT)) ?? []), head))
  } catch (e) {
    if (e instanceof Fault) page.fault = e.message
    else if (!(e instanceof NotFound)) throw e
    else page.fault = log.absent(seen)
  }
  return page
}

/** What the proofs have shown. @param {{page: Page, onForget: () => void}} props */
function Verdict({ page, onForget }) {
  const { head, fault, records, recording } = page
  const wrong = records.filter((r) => r.fault)
  return html`
    ${fault &&
    html`<${Notice} kind="bad">
      <p><strong>${t.distrust}</strong></p>
      <p>${fault}</p>
      <p>${t.whatNow}</p>
      <div class="row"><button type="button" class="link" onClick=${onForget}>${t.forget}</button></div>
    <//>`}
    ${wrong.length > 0 &&
    html`<${Notice} kind="bad">
      <p><strong>${t.wrong(wrong.length)}</strong> ${wrong.map((r) => r.number).join(', ')}</p>
      <p>${t.whatNow}</p>
    <//>`}
    ${head && !head.signed && html`<${Notice} kind="warn"><p>${t.unsigned}</p><//>`}
    ${head?.signed && records.length > 0 && wrong.length === 0 && html`<${Notice} kind="good"><p>${t.proven(records.length)} ${head.older > 0 && t.continues}</p><//>`}
    ${!head && !fault && html`<div class="card"><${Empty}><p>${t.none}</p><p><code>${t.switchOn}</code></p><//></div>`}
    ${head && !recording && html`<${Notice} kind="warn"><p>${t.off}</p><p><code>${t.switchOn}</code></p><//>`}
    ${head &&
    html`<dl class="facts">
      <dt>${t.size}</dt><dd>${count(head.size)}</dd>
      <dt>${t.before}</dt><dd>${head.older ? count(head.older) : t.nothingBefore}</dd>
      <dt>${t.key}</dt><dd class="id">${head.key} <span class="faint">${t.compareKey}</span></dd>
    </dl>`}`
}

/** Asks which records are shown. @param {{onQuery: (q: Query) => void}} props */
function Filter({ onQuery }) {
  const submit = (/** @type {Event & {currentTarget: HTMLFormElement}} */ e) => {
    e.preventDefault()
    const form = new FormData(e.currentTarget)
    const text = (/** @type {string} */ name) => String(form.get(name) ?? '').trim() || undefined
    const time = (/** @type {string} */ name) => (text(name) ? new Date(String(text(name))) : undefined)
    onQuery({
      operation: text('operation'), holder: text('holder'), key: text('key'), kind: text('kind'),
      status: text('status') ? Number(text('status')) : undefined, since: time('since'), until: time('until'),
      reads: form.get('reads') === 'on',
    })
  }
  return html`<form class="card" onSubmit=${submit}>
    <div class="fields">
      <${Field} label=${t.operation}><input name="operation" placeholder="search" spellcheck="false" /><//>
      <${Field} label=${t.status}><input name="status" type="number" min="100" max="599" /><//>
      <${Field} label=${t.holder}><input name="holder" /><//>
      <${Field} label=${t.accessKey}><input name="key" spellcheck="false" autocomplete="off" /><//>
      <${Field} label=${t.kind}
        ><select name="kind"><option value="">${t.anyKind}</option>${Object.entries(t.kinds).map(([name, words]) => html`<option value=${name}>${words}</option>`)}</select
      ><//>
      <${Field} label=${t.since}><input name="since" type="datetime-local" step="1" /><//>
      <${Field} label=${t.until}><input name="until" type="datetime-local" step="1" /><//>
    </div>
    <label class="check"><input type="checkbox" name="reads" /><span>${t.reads}</span></label>
    <div class="row"><button>${t.show}</button></div>
  </form>`
}

/** The table of records. @param {{records: Proven[], log: AuditLog, head: Head}} props */
function Records({ records, log, head }) {
  const [open, setOpen] = useState(/** @type {{record: Proven, head: Head} | undefined} */ (undefined)) // of the checkpoint that it was shown with
  if (records.length === 0) return html`<${Empty}><p>${t.noRecords}</p><//>`
  return html`<div class="scroll" tabindex="0" role="group" aria-labelledby="records">
      <table class="wide">
        <thead>
          <tr>
            <th scope="col" class="number">${t.number}</th><th scope="col">${t.time}</th><th scope="col">${t.who}</th><th scope="col">${t.what}</th><th scope="col">${t.status}</th>
            <th scope="col">${t.gallery}</th><th scope="col" class="number">${t.candidates}</th><th scope="col">${t.request}</th><th scope="col">${t.proof}</th>
          </tr>
        </thead>
        <tbody>${records.map((r) => html`<${Row} key=${r.number} record=${r} onOpen=${() => setOpen({ record: r, head })} />`)}</tbody>
      </table>
    </div>
    ${open && html`<${Details} record=${open.record} head=${open.head} log=${log} onClose=${() => setOpen(undefined)} />`}`
}

const moment = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium' })

/** @param {{record: Proven, onOpen: () => void}} props */
function Row({ record: { number, fields: f, fault }, onOpen }) {
  return html`<tr>
    <td class="number"><button type="button" class="link text" onClick=${onOpen}><span class="hidden-text">${t.record} </span>${number}</button></td>
    <td class="short">${f ? html`<time datetime=${f.time}>${moment.format(new Date(f.time))}</time>` : html`<span class="faint">${fault ? '' : t.expired}</span>`}</td>
    <td>${f?.holder || f?.key}</td>
    <td>${f?.operation} ${f && f.kind !== 'request' && html`<span class="badge">${t.kinds[f.kind] ?? f.kind}</span>`}</td>
    <td>${f?.status && html`<span class=${f.status < 400 ? '' : 'bad'}>${f.status}</span>`} ${f?.reason}</td>
    <td class="id short">${short(f?.gallery ?? '')}</td>
    <td class="number">${f?.candidates?.length}</td>
    <td class="id short">${short(f?.requestId ?? '')}</td>
    <td class="short">${fault ? html`<strong class="bad">${t.notProven}</strong>` : html`<span class="good">${f ? t.isProven : t.hashProven}</span>`}</td>
  </tr>`
}

/** The fields of a record, and its proof. @param {{record: Proven, log: AuditLog, head: Head, onClose: () => void}} props */
function Details({ record, log, head, onClose }) {
  const { run, busy, error } = useAction(async () => {
    const proof = await log.proof(head, record.number)
    save(`${record.number}.tlog-proof`, 'text/plain', proofText({ index: record.number, content: record.content, proof, note: head.note }))
  })
  const { others, ...fields } = record.fields ?? {}
  return html`<${Dialog} title=${`${t.record} ${record.number}`} onClose=${onClose}>
    ${record.fault && html`<${Notice} kind="bad"><p>${record.fault}</p><//>`}
    <dl class="facts">
      ${Object.entries(fields).map(([name, value]) => html`<dt>${t.fields[name] ?? name}</dt><dd>${shown(value)}</dd>`)}
      ${Object.entries(others ?? {}).map(([name, value]) => html`<dt>${t.otherField(name)}</dt><dd class="id">${value}</dd>`)}
    </dl>
    ${!record.fault && html`<p class="small faint">${t.proofHint} <code>facet audit verify ${record.number}.tlog-proof --key …</code></p>`}
    ${error !== undefined && html`<${Problem} error=${error} />`}
    <div class="row">
      ${!record.fault && html`<button type="button" disabled=${busy} onClick=${() => run()}>${t.saveProof}</button>`}
      <button type="button" class="plain" onClick=${onClose}>${t.close}</button>
    </div>
  <//>`
}

/** Returns the text of a field's value. @param {unknown} value @returns {string} */
const shown = (value) =>
  Array.isArray(value) ? value.map(shown).join(', ') : value && typeof value === 'object' ? Object.values(value).join(': ') : String(value)

const COLUMNS = /** @type {const} */ (['time', 'kind', 'operation', 'status', 'reason', 'holder', 'key', 'source', 'requestId', 'application', 'gallery', 'purpose', 'threshold', 'limit', 'ms'])

/** Saves all records of the filter, each proven. @param {{log: AuditLog, query: Query}} props */
function Export({ log, query }) {
  const [done, setDone] = useState(0)
  const { run, busy, error } = useAction(async (signal, /** @type {'jsonl' | 'csv'} */ form) => {
    const records = await all(log, query, signal, setDone)
    if (form === 'jsonl') {
      const line = (/** @type {Proven} */ { number, fields, content }) => JSON.stringify(content ? { number, ...fields, content: base64(content) } : { number, expired: true })
      save('audit.jsonl', 'application/x-ndjson', records.map((r) => `${line(r)}\n`).join(''))
    } else {
      const rows = records.map(({ number, fields: f }) => [number, ...COLUMNS.map((name) => f?.[name] ?? ''), f?.candidates?.length ?? ''])
      save('audit.csv', 'text/csv', csv([['number', ...COLUMNS, 'candidates'], ...rows]))
    }
  })
  return html`<div class="row">
      <button type="button" class="plain" disabled=${busy} onClick=${() => run('jsonl')}>${t.saveLines}</button>
      <button type="button" class="plain" disabled=${busy} onClick=${() => run('csv')}>${t.saveTable}</button>
      <span role="status" class="faint">${busy ? t.exporting(count(done)) : ''}</span>
    </div>
    ${error !== undefined && html`<${Problem} error=${error} />`}
    <p class="small faint">${t.exportHint} <code>facet audit export --to audit --profile auditor.json</code></p>`
}

/**
 * Returns all records of a filter, the newest first. Throws a Fault if one is not proven.
 * @param {AuditLog} log
 * @param {Query} query
 * @param {AbortSignal} signal
 * @param {(n: number) => void} progress
 */
async function all(log, query, signal, progress) {
  /** @type {Proven[]} */
  const records = []
  /** @type {number | undefined} */
  let before
  do {
    const page = await look(log, { ...query, before, length: FETCH }, signal)
    const wrong = page.records.find((r) => r.fault)
    if (page.fault || wrong) throw new Fault(wrong ? t.nothingSaved(wrong.number, wrong.fault) : page.fault)
    records.push(...page.records)
    if (records.length > EXPORT_MAX) throw new Fault(t.tooMany(count(EXPORT_MAX)))
    progress(records.length)
    before = page.next
  } while (before !== undefined)
  return records
}
