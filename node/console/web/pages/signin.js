import { html } from '../html.js'
import { useRef, useState } from '../vendor/hooks.js'
import { Field, Files, Heading, Notice, Problem, useAction } from '../parts.js'
import { session, signIn, wasAway } from '../state.js'
import { texts } from '../texts.js'

const t = texts.signIn

/** Asks for an access key. The secret becomes a key that signs and can't be read. */
export function SignIn() {
  const [form, setForm] = useState({ accessKey: '', apiKey: '', stay: false })
  // Only the field holds the secret, until it is signed in with: what is drawn before stays in memory.
  const secret = useRef(/** @type {HTMLInputElement | null} */ (null))
  const { run, busy, error } = useAction(async () => {
    const field = secret.current
    if (!field) return
    await signIn({ ...form, secretKey: field.value.trim() })
    field.value = ''
  })
  if (session.value?.how === 'loopback') {
    return html`<${Heading} title=${t.title} intro="" /><${Notice} kind="warn"><p>${t.noTenant}</p><//>`
  }
  /** @param {keyof typeof form} name */
  const bound = (name) => ({
    value: form[name],
    onInput: (/** @type {Event & {currentTarget: HTMLInputElement}} */ e) => setForm({ ...form, [name]: e.currentTarget.value.trim() }),
  })
  const readProfile = async (/** @type {File[]} */ [file]) => {
    if (!file) return
    const { secretKey, ...others } = fromProfile(await file.slice(0, 65536).text())
    if (secret.current && secretKey) secret.current.value = secretKey
    setForm({ ...form, ...others })
  }
  const submit = (/** @type {Event} */ e) => {
    e.preventDefault()
    void run()
  }
  return html`<${Heading} title=${t.title} intro=${t.intro} />
    ${wasAway.value && html`<${Notice} kind="warn"><p>${t.wasAway}</p><//>`}
    <form class="card" onSubmit=${submit}>
      <${Files} label=${t.profile} hint=${t.profileHint} button=${t.chooseProfile} accept=".json,.yaml,.yml" onFiles=${readProfile} />
      <${Field} label=${t.accessKey}><input required autocomplete="username" spellcheck="false" ...${bound('accessKey')} /><//>
      <${Field} label=${t.secretKey} hint=${t.secretHint}><input required type="password" autocomplete="off" ref=${secret} /><//>
      <${Field} label=${t.apiKey} hint=${t.apiKeyHint}><input autocomplete="off" spellcheck="false" ...${bound('apiKey')} /><//>
      <label class="check"
        ><input
          type="checkbox"
          checked=${form.stay}
          onChange=${(/** @type {Event & {currentTarget: HTMLInputElement}} */ e) => setForm({ ...form, stay: e.currentTarget.checked })}
        /><span>${t.stay}</span></label
      >
      ${error !== undefined && html`<${Problem} error=${error} forbidden=${t.refused} />`}
      <div class="row"><button disabled=${busy}>${busy ? t.signingIn : t.signIn}</button></div>
    </form>`
}

/**
 * Returns the keys of a profile, which facet tenant create --save writes, or of facet dev's dev.json.
 * @param {string} text
 */
function fromProfile(text) {
  /** @type {{accessKey?: string, secretKey?: string, apiKey?: string}} */
  const found = {}
  const names = /** @type {const} */ ({ access: 'accessKey', secret: 'secretKey', api: 'apiKey' })
  for (const line of text.split('\n')) {
    const m = /^\s*"?(access|secret|api)[-_]?key"?\s*:\s*"?([A-Za-z0-9/+=]+)"?,?\s*$/i.exec(line)
    if (m?.[1] && m[2]) found[names[/** @type {keyof typeof names} */ (m[1].toLowerCase())]] = m[2]
  }
  return found
}
