import { html } from '../html.js'
import { useState } from '../vendor/hooks.js'
import { when } from '../format.js'
import { Empty, Field, Heading, Notice, Problem, Score, useAction, useLoaded } from '../parts.js'
import { application, applications, inGallery } from '../state.js'
import { texts } from '../texts.js'
import { PhotoLink, photoAddress } from './duplicates.js'
import { Applications } from './try.js'

const t = texts.review
const PAGE = 50 // cases on the page

/** @typedef {import('../client/models.js').Case} Case */
/** @typedef {'open' | 'closed'} State */

/** Lists doubtful verifications. Whoever has looked at both photos says whether they show one person. */
export function Review() {
  const [state, setState] = useState(/** @type {State} */ ('open'))
  if (applications.value.length === 0) {
    return html`<${Heading} title=${t.title} intro=${t.intro} /><div class="card"><${Empty}><p>${texts.try.noGallery}</p><//></div>`
  }
  return html`<${Heading} title=${t.title} intro=${t.intro} />
    <div class="row">
      <${Applications} />
      <${Field} label=${t.show}>
        <select value=${state} onChange=${(/** @type {Event & {currentTarget: HTMLSelectElement}} */ e) => setState(/** @type {State} */ (e.currentTarget.value))}>
          <option value="open">${t.open}</option>
          <option value="closed">${t.closed}</option>
        </select>
      <//>
    </div>
    <${Cases} key=${`${application.value?.id} ${state}`} state=${state} />`
}

/**
 * The cases of a state, a page at a time.
 * @param {{state: State}} props
 */
function Cases({ state }) {
  const [cursors, setCursors] = useState(/** @type {(string | undefined)[]} */ ([undefined])) // those that led here
  const after = cursors.at(-1)
  const { value, busy, error } = useLoaded(async (signal) => inGallery.value?.casePage({ state, after, length: PAGE, signal }), [after])
  return html`<section class="card" aria-labelledby="cases">
    <h2 id="cases">${value ? t.found(value.total, state) : t.loading}</h2>
    <p class="faint">${state === 'open' ? t.caution : t.kept}</p>
    ${value && !value.photoLink && html`<${Notice}><p>${t.noLink}</p><pre tabindex="0">${texts.duplicates.setLink('staff')}</pre><//>`}
    ${error !== undefined && html`<${Problem} error=${error} />`}
    ${busy && !value && html`<p role="status" class="busy">${t.loading}</p>`}
    ${value?.cases.length === 0 && html`<${Empty}><p>${t.none}</p><//>`}
    ${value &&
    value.cases.length > 0 &&
    html`<div class="scroll" tabindex="0">
      <table class="cards">
        <thead><tr><th scope="col">${t.subject}</th><th scope="col">${t.reference}</th><th scope="col">${t.times}</th><th scope="col">${t.verdict}</th><th scope="col">${t.score}</th></tr></thead>
        <tbody>${value.cases.map((c) => html`<${Row} key=${c.id} first=${c} link=${value.photoLink ?? ''} />`)}</tbody>
      </table>
    </div>`}
    <div class="row">
      <button type="button" class="plain" disabled=${busy || cursors.length === 1} onClick=${() => setCursors(cursors.slice(0, -1))}>${t.previous}</button>
      <button type="button" class="plain" disabled=${busy || !value?.next} onClick=${() => setCursors([...cursors, value?.next])}>${t.next}</button>
    </div>
  </section>`
}

/** @param {{first: Case, link: string}} props first is the case as the list had it */
function Row({ first, link }) {
  const [c, setCase] = useState(first)
  const [opened, setOpened] = useState(/** @type {ReadonlySet<string>} */ (new Set()))
  const { run, busy, error } = useAction(async (signal, /** @type {'same' | 'different'} */ verdict) => {
    const decided = await inGallery.value?.decide(c.id, verdict, { signal })
    if (decided) setCase(decided)
  })
  const photo = (/** @type {'subject' | 'probe'} */ of, /** @type {string | undefined} */ name) => {
    const address = photoAddress(link, { externalId: name })
    return address && name && html`<br /><${PhotoLink} address=${address} name=${name} onOpen=${() => setOpened((now) => new Set([...now, of]))} />`
  }
  const [subject, probe] = [photo('subject', c.externalId), photo('probe', c.reference)]
  const open = c.state === 'open'
  const can = !!subject && !!probe
  const asks = open && c.verdicts.length === 0
  return html`<tr>
    <td data-label=${t.subject}>${c.externalId && html`<strong>${c.externalId}</strong><br />`}<span class="id">${c.subjectId ?? t.gone}</span>${subject}</td>
    <td data-label=${t.reference}>${c.reference ?? html`<span class="faint">${t.noReference}</span>`}${probe}</td>
    <td data-label=${t.times}>${t.opened(when(c.created))}<br />${open ? t.expires(when(c.expires)) : t.ended(when(c.closed))}</td>
    <td data-label=${t.verdict}>
      <div class="stack">
        ${!open && html`<strong role="status">${t.states[c.state] ?? c.state}</strong>`}
        ${c.verdicts.map((v) => html`<span>${t.by(v.verdict === 'same', v.holder ?? t.nobody, when(v.time))}</span>`)}
        ${open && c.verdicts.length > 0 && html`<span role="status">${t.waits}</span>`}
        ${asks && html`<${Decide} asked=${c} can=${can} looked=${opened.size === 2} busy=${busy} onVerdict=${run} />`}
        ${error !== undefined && html`<${Problem} error=${error} />`}
      </div>
    </td>
    <td data-label=${t.score}>
      ${asks && can
        ? html`<span class="faint small">${t.scoreAfter}</span>`
        : c.score !== undefined && html`<${Score} score=${c.score} /><span class="faint small">${t.below(c.threshold)}</span>`}
    </td>
  </tr>`
}

/**
 * The buttons of a verdict, or why there are none.
 * @param {{asked: Case, can: boolean, looked: boolean, busy: boolean, onVerdict: (verdict: 'same' | 'different') => void}} props
 */
function Decide({ asked, can, looked, busy, onVerdict }) {
  const needed = asked.verdictsNeeded ?? 1
  return html`${needed > 1 && html`<span class="faint">${t.needed(needed, asked.verdictsGiven)}</span>`}
    ${!can
      ? html`<span class="faint">${t.noPhoto}</span>`
      : !looked
        ? html`<span class="faint">${texts.duplicates.openBoth}</span>`
        : html`<span class="faint small">${texts.duplicates.unseen}</span><div class="row" role="group" aria-label=${t.decide(asked.externalId ?? '', asked.reference ?? '')}>
            <button type="button" class="plain" disabled=${busy} onClick=${() => onVerdict('same')}>${t.same}</button>
            <button type="button" class="plain" disabled=${busy} onClick=${() => onVerdict('different')}>${t.different}</button>
          </div>`}`
}
