// A form that sends an operation's request with the signed-in key, and shows the answer as text.

import { html } from '../console/html.js'
import { useState } from '../console/vendor/hooks.js'
import { Copy, Field, Files, Notice, Problem, save, useAction } from '../console/parts.js'
import { samples } from '../console/requests.js'
import { application, applications, chosen, client, refresh } from '../console/state.js'
import { SignIn } from '../console/pages/signin.js'
import { asText, placed, prepared, send, withPhotos } from './request.js'
import { texts as t } from './texts.js'

/** @typedef {import('./document.js').Document} Document */
/** @typedef {import('./document.js').Operation} Operation */
/** @typedef {import('./document.js').Parameter} Parameter */
/** @typedef {import('./request.js').Got} Got */

const SHOWN_MAX = 200_000 // characters of an answer

/** @param {{doc: Document, operation: Operation}} props */
export function TryIt({ doc, operation: o }) {
  const [values, setValues] = useState(/** @type {Record<string, string>} */ ({}))
  const [text, setText] = useState(() => asText(o.examples[0]?.value))
  const [photos, setPhotos] = useState(/** @type {Map<string, File>} */ (new Map()))
  const [withoutKey, setWithoutKey] = useState(false)
  const [misplaced, setMisplaced] = useState(false)
  const [got, setGot] = useState(/** @type {Got | undefined} */ (undefined))
  const apiKey = o.apiKey === 'none' || withoutKey ? '' : (application.value?.apiKey ?? '')
  const { run, busy, error } = useAction(async (signal) => {
    setGot(undefined)
    if (!client.value) return
    const missing = o.parameters.find((p) => p.required && !values[p.name])
    if (missing) throw new Error(t.empty(missing.name))
    const body = o.schema ? await withPhotos(text, photos) : ''
    const answer = await send(client.value, prepared(o, values, apiKey, body), signal)
    setGot(answer)
    if (o.method !== 'GET' && o.path.startsWith('/api/') && answer.status < 300) await refresh()
  })
  const take = (/** @type {string[]} */ place, /** @type {File[]} */ files) => {
    const found = placed(text, place, files)
    setMisplaced(found === undefined)
    if (found === undefined) return
    setText(found)
    setPhotos(new Map([...photos, ...files.map((f) => /** @type {const} */ ([f.name, f]))]))
  }
  return html`<section class="card" aria-labelledby="try">
    <h2 id="try">${t.tryIt}</h2>
    ${!client.value && html`<details><summary>${t.signInFirst}</summary><div class="stack signin"><${SignIn} /></div></details>`}
    <form class="stack" onSubmit=${(/** @type {Event} */ e) => (e.preventDefault(), void run())}>
      ${o.apiKey !== 'none' && client.value && html`<${Keys} optional=${o.apiKey === 'optional'} without=${withoutKey} onWithout=${setWithoutKey} />`}
      ${o.parameters.map((p) => html`<${Value} of=${p} value=${values[p.name] ?? ''} onValue=${(/** @type {string} */ v) => setValues({ ...values, [p.name]: v })} />`)}
      ${o.schema &&
      html`<${Field} label=${t.body} hint=${t.bodyHint}>
          <textarea spellcheck="false" value=${text} onInput=${(/** @type {Event & {currentTarget: HTMLTextAreaElement}} */ e) => setText(e.currentTarget.value)}></textarea>
        <//>
        <div class="row">${o.examples.map((e) => html`<button type="button" class="plain" onClick=${() => (setText(asText(e.value)), setMisplaced(false))}>${t.useExample} ${e.name}</button>`)}</div>
        ${doc.photos(o.schema).map(
          (place) => html`<${Files}
            label=${t.photo(place.join('.'))}
            hint=${t.photoHint}
            button=${t.choose}
            accept="image/*,.heic"
            several=${place.includes('*')}
            onFiles=${(/** @type {File[]} */ files) => take(place, files)}
          />`,
        )}
        ${misplaced && html`<${Notice} kind="bad"><p>${t.notJson}</p><//>`}`}
      <div class="row"><button class=${o.method === 'DELETE' ? 'danger' : ''} disabled=${busy || !client.value}>${busy ? t.sending : t.send(o.method)}</button></div>
    </form>
    ${error !== undefined && html`<${Problem} error=${error} />`}
    <div aria-live="polite" class="stack">${got && html`<${Answer} got=${got} name=${o.id} />`}</div>
    <${Code} of=${o} values=${values} apiKey=${apiKey} text=${text} photos=${[...photos.keys()]} />
  </section>`
}

/** @param {{optional: boolean, without: boolean, onWithout: (without: boolean) => void}} props */
function Keys({ optional, without, onWithout }) {
  if (applications.value.length === 0 && !optional) return html`<${Notice} kind="warn"><p>${t.needsApplication}</p><//>`
  const choose = (/** @type {Event & {currentTarget: HTMLSelectElement}} */ e) => {
    onWithout(e.currentTarget.value === '')
    if (e.currentTarget.value) chosen.value = e.currentTarget.value
  }
  return html`<${Field} label=${t.application}>
    <select value=${without ? '' : application.value?.id} onChange=${choose}>
      ${applications.value.map((a) => html`<option value=${a.id}>${a.name || a.apiKey.slice(0, 8)}</option>`)}
      ${optional && html`<option value="">${t.noApplication}</option>`}
    </select>
  <//>`
}

/** @param {{of: Parameter, value: string, onValue: (value: string) => void}} props */
const Value = ({ of: p, value, onValue }) =>
  html`<${Field} label=${p.name} hint=${`${p.place}${p.required ? `, ${t.required}` : ''}: ${p.type}`}>
    <input
      value=${value}
      placeholder=${p.example}
      autocomplete="off"
      spellcheck="false"
      aria-required=${p.required}
      onInput=${(/** @type {Event & {currentTarget: HTMLInputElement}} */ e) => onValue(e.currentTarget.value)}
    />
  <//>`

/** @param {{got: Got, name: string}} props */
function Answer({ got, name }) {
  const kind = got.status < 300 ? 'good' : got.status < 500 ? 'warn' : 'bad'
  return html`<h3>${t.answer}</h3>
    <${Notice} kind=${kind}>
      <dl class="facts">
        <dt>${t.status}</dt><dd><strong>${got.status}</strong></dd>
        <dt>${t.request}</dt><dd><code>${got.requestId}</code></dd>
        <dt>${t.time}</dt><dd>${t.took(Math.round(got.ms))}</dd>
        ${got.headers.map(([header, value]) => html`<dt><code>${header}</code></dt><dd>${value}</dd>`)}
      </dl>
    <//>
    ${got.text
      ? html`<pre class="answer" tabindex="0" aria-label=${t.answer} role="group">${got.text.slice(0, SHOWN_MAX)}</pre>
          ${got.text.length > SHOWN_MAX && html`<p class="faint">${t.cut(String(got.text.length))}</p>`}
          <div class="row"><button type="button" class="plain" onClick=${() => save(`${name}.json`, 'application/json', got.text)}>${t.save}</button><${Copy} text=${got.text} /></div>`
      : html`<p class="faint">${t.noContent}</p>`}`
}

/** @param {{of: Operation, values: Record<string, string>, apiKey: string, text: string, photos: string[]}} props */
function Code({ of: o, values, apiKey, text, photos }) {
  const [at, setAt] = useState(0)
  const list = samples({ ...prepared(o, values, apiKey, o.schema ? text : ''), repeats: o.parameters.some((p) => p.name === 'Idempotency-Key') }, photos)
  const code = list[at]?.code ?? ''
  return html`<details>
    <summary>${t.asCode}</summary>
    <div class="stack">
      <div class="row" role="group" aria-label=${t.language}>
        ${list.map((r, i) => html`<button type="button" class=${i === at ? '' : 'plain'} aria-pressed=${i === at} onClick=${() => setAt(i)}>${r.name}</button>`)}
        ${code && html`<span class="end"><${Copy} text=${code} /></span>`}
      </div>
      ${code ? html`<pre tabindex="0">${code}</pre>` : html`<p>${t.codeNeedsJson}</p>`}
    </div>
  </details>`
}
