// One operation: what it takes, what it answers, and a form that tries it.

import { html } from '../console/html.js'
import { TryIt } from './tryit.js'
import { texts as t } from './texts.js'

/** @typedef {import('./document.js').Document} Document */
/** @typedef {import('./document.js').Operation} Operation */
/** @typedef {import('./document.js').Example} Example */
/** @typedef {import('./document.js').Json} Json */

/** Marks what goes beyond the interface. */
export const Badge = () => html`<span class="badge warn" title=${t.extensionMeans}>${t.extension}</span>`

/**
 * A description: paragraphs, lists, and code in back quotes. The rest of markdown is shown as it stands.
 * @param {{text: string}} props
 */
export function Prose({ text }) {
  return text
    .split(/\n{2,}/)
    .filter(Boolean)
    .map((part) => {
      const lines = part.split('\n')
      if (lines.every((line) => /^[-*] /.test(line))) return html`<ul class="plain-list">${lines.map((line) => html`<li><${Words} text=${line.slice(2)} /></li>`)}</ul>`
      return html`<p><${Words} text=${part} /></p>`
    })
}

/** @param {{text: string}} props */
const Words = ({ text }) => text.split(/`([^`]+)`/).map((part, i) => (i % 2 ? html`<code>${part}</code>` : part))

/** @param {{doc: Document, operation: Operation}} props */
export function Shown({ doc, operation: o }) {
  return html`<header class="stack">
      <h1>${o.summary}</h1>
      <p class="address"><strong>${o.method}</strong> ${o.path} ${o.extension && html`<${Badge} />`}</p>
      <p class="faint">${t.needsKey[o.apiKey]}</p>
      <${Prose} text=${o.text} />
    </header>
    ${o.parameters.length > 0 && html`<section class="card" aria-labelledby="parameters"><h2 id="parameters">${t.parameters}</h2><${Parameters} of=${o} /></section>`}
    ${o.schema &&
    html`<section class="card" aria-labelledby="body">
      <h2 id="body">${t.body}</h2>
      <${Schema} doc=${doc} schema=${o.schema} />
      <${Examples} of=${o.examples} />
    </section>`}
    <${TryIt} key=${o.id} doc=${doc} operation=${o} />
    <section class="card" aria-labelledby="answers">
      <h2 id="answers">${t.answers}</h2>
      ${o.answers.map(
        (a) => html`<details>
          <summary><strong>${a.status}</strong> ${a.text}</summary>
          <div class="stack">
            ${a.headers.length > 0 && html`<dl class="facts">${a.headers.map((h) => html`<dt><code>${h.name}</code></dt><dd>${h.text}</dd>`)}</dl>`}
            ${a.schema ? html`<${Schema} doc=${doc} schema=${a.schema} /><${Examples} of=${a.examples} />` : html`<p class="faint">${t.noBody}</p>`}
          </div>
        </details>`,
      )}
    </section>`
}

/** @param {{of: Operation}} props */
const Parameters = ({ of: o }) => html`<div class="scroll" tabindex="0" role="group" aria-label=${t.parameters}>
  <table>
    <thead><tr><th scope="col">${t.name}</th><th scope="col">${t.place}</th><th scope="col">${t.type}</th><th scope="col">${t.meaning}</th></tr></thead>
    <tbody>
      ${o.parameters.map(
        (p) => html`<tr>
          <th scope="row"><code>${p.name}</code>${p.required && html`<br />${t.required}`}</th>
          <td>${p.place}</td>
          <td>${p.type}</td>
          <td>${p.extension && html`<${Badge} /> `}<${Words} text=${p.text} /></td>
        </tr>`,
      )}
    </tbody>
  </table>
</div>`

/**
 * The members of a schema, a table for each of its forms.
 * @param {{doc: Document, schema: Json}} props
 */
function Schema({ doc, schema }) {
  const forms = doc.forms(schema)
  return forms.map((form) => {
    const rows = doc.rows(form.schema)
    const caption = forms.length > 1 ? t.form(form.name) : form.name
    return html`
      <${Prose} text=${form.schema.description ?? ''} />
      ${rows.length > 0 &&
      html`<div class="scroll" tabindex="0" role="group" aria-label=${caption || t.body}>
        <table>
          ${caption && html`<caption>${caption}</caption>`}
          <thead><tr><th scope="col">${t.name}</th><th scope="col">${t.type}</th><th scope="col">${t.meaning}</th></tr></thead>
          <tbody>
            ${rows.map(
              (r) => html`<tr>
                <th scope="row"><div class=${`depth-${r.depth}`}><code>${r.name}</code>${r.required && html`<br />${t.required}`}</div></th>
                <td>${r.type}</td>
                <td>${r.extension && html`<${Badge} /> `}<${Words} text=${r.text} /></td>
              </tr>`,
            )}
          </tbody>
        </table>
      </div>`}
    `
  })
}

/** @param {{of: Example[]}} props */
const Examples = ({ of }) =>
  of.length > 0 &&
  html`<details>
    <summary>${of.length > 1 ? t.examples : t.example}</summary>
    <div class="stack">${of.map((e) => html`<div class="stack">${e.name && html`<h3>${e.name}</h3>`}<pre tabindex="0">${JSON.stringify(e.value, null, 2)}</pre></div>`)}</div>
  </details>`
