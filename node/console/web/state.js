// Who is signed in, and what that person may do.

import { computed, signal } from './vendor/signals.js'
import { Client, Credentials, FetchTransport, Forbidden, NotFound } from './client/index.js'
import { forget, keep, kept } from './keep.js'
import { away, leave, touch } from './presence.js'
import { endSession, readSession } from './session.js'
import { texts } from './texts.js'

/** @typedef {import('./session.js').Session} Session */
/** @typedef {import('./client/transport.js').Transport} Transport */
/** @typedef {import('./client/models.js').Application} Application */
/** @typedef {import('./client/models.js').Gallery} Gallery */
/** @typedef {import('./client/models.js').Whoami} Whoami */

/** @type {import('./vendor/signals.js').Signal<Session | undefined>} */
export const session = signal(undefined)

/** @type {import('./vendor/signals.js').Signal<Client | undefined>} */
export const client = signal(undefined)

/** The access key that signs. */
export const accessKey = signal('')

/**
 * The application keys that this person can use. An administrator has those of all applications; others bring one.
 * @type {import('./vendor/signals.js').Signal<{id: string, name: string, apiKey: string}[]>}
 */
export const applications = signal([])

/** What the key may do, or undefined before the sign-in. @type {import('./vendor/signals.js').Signal<Whoami | undefined>} */
export const key = signal(undefined)

/** Reports whether the key has one of the roles. @param {string[]} roles */
const has = (...roles) => computed(() => roles.includes(key.value?.role ?? ''))

/** Whether the key may manage the tenant. */
export const manages = has('admin')

/** Whether the key may review doubtful matches. */
export const reviews = has('admin', 'reviewer')

/** Whether the key may read the audit log. */
export const audits = has('admin', 'auditor')

/** Whether the key may list subjects, and look at photos and compare them. */
export const reads = has('admin', 'biometric', 'read-only')

/** Whether the key may search. */
export const searches = has('admin', 'biometric', 'read-only', 'search-only')

/** Whether the key may enrol, and change what is enrolled. */
export const enrols = has('admin', 'biometric', 'enrol-only')
export const changes = has('admin', 'biometric')

/** Whether the key needs an application key for its work, and there is none. */
export const lacksApplication = computed(() => !!client.value && key.value?.role !== 'auditor' && !manages.value && applications.value.length === 0)

/** Whether facet console asks the nodes as an operator. */
export const operates = computed(() => session.value?.rights.includes('operator') ?? false)

/** The name of the application that pages use; kept for this tab. */
export const chosen = signal('')

/** The application that pages use. */
export const application = computed(
  () => applications.value.find((a) => a.id === chosen.value) ?? applications.value[0],
)

/** The client with the key of the chosen application. */
export const inGallery = computed(() => {
  const [c, a] = [client.value, application.value]
  return c && a ? c.withApiKey(a.apiKey) : undefined
})

const KEPT = 'credentials'

/**
 * Sends requests to the server of the page, which on loopback has no https. A path may begin with two
 * slashes, which alone would name another host.
 * @implements {Transport}
 */
class Here {
  fetches = new FetchTransport({ credentials: 'same-origin' })

  /** @param {import('./client/transport.js').Request} request */
  send(request) {
    const { pathname, search } = new URL(request.url)
    return this.fetches.send({ ...request, url: location.origin + pathname + search })
  }
}

/** Asks how the page is served, and signs in as far as nobody has to type. */
export async function begin() {
  session.value = await readSession()
  const found = session.value
  if (found.how === 'loopback') {
    if (location.search === '?entered') touch() // the address that facet console printed was opened just now
    if (away()) return endSession()
    history.replaceState(null, '', location.pathname + location.hash)
    if (!found.rights.includes('tenant')) return
    // facet console signs anew with the profile's key, whatever signature it gets.
    const credentials = await Credentials.fromSecret(found.accessKey ?? 'console', crypto.randomUUID())
    await use(credentials, found.apiKey ?? '')
    return
  }
  const stored = /** @type {{credentials: Credentials, apiKey: string} | undefined} */ (await kept(KEPT))
  if (!stored) return
  if (away()) return forget(KEPT)
  await use(stored.credentials, stored.apiKey).catch(async (e) => {
    if (!(e instanceof Forbidden || e instanceof WrongApplication)) throw e // the service may know the key in a moment
    await signOut()
  })
}

/**
 * Signs in with a key. Throws if the service refuses it.
 * @param {{accessKey: string, secretKey: string, apiKey: string, stay: boolean}} form
 */
export async function signIn(form) {
  const credentials = await Credentials.fromSecret(form.accessKey, form.secretKey, { region: session.value?.region })
  touch()
  await use(credentials, form.apiKey)
  if (form.stay) await keep(KEPT, { credentials, apiKey: form.apiKey })
}

/** Whether nobody was here for so long that the console signed out. */
export const wasAway = signal(false)

/** Forgets the key, here, in the other tabs and in what the browser keeps, and who was erased. */
export async function signOut() {
  await Promise.all([lock(), forget('erased'), forget('receipt')])
}

/** Forgets the key alone. */
export async function lock() {
  client.value = undefined
  applications.value = []
  key.value = undefined
  accessKey.value = ''
  leave()
  await forget(KEPT)
}

/** Thrown where the access key is right, and the application key is not. */
class WrongApplication extends Error {
  constructor() {
    super(texts.signIn.refusedApplication)
  }
}

/**
 * @param {Credentials} credentials
 * @param {string} apiKey
 */
async function use(credentials, apiKey) {
  const c = new Client({ baseUrls: [`https://${location.host}`], credentials, transport: new Here() })
  const found = await ask(c, apiKey)
  applications.value = found.role === 'admin' ? await c.applications() : apiKey ? [{ id: apiKey, name: '', apiKey }] : []
  // The signals change at once, with the client: a page that they show asks it for something.
  key.value = found
  accessKey.value = credentials.accessKey
  wasAway.value = false
  client.value = c
}

/**
 * Returns what a key may do.
 * @param {Client} c
 * @param {string} apiKey
 */
async function ask(c, apiKey) {
  try {
    return await (apiKey ? c.withApiKey(apiKey) : c).whoami()
  } catch (e) {
    if (e instanceof NotFound) throw new Error(texts.signIn.olderNode) // facet console is newer
    if (!(e instanceof Forbidden) || !apiKey) throw e
  }
  await c.whoami() // throws if the access key is wrong
  throw new WrongApplication()
}

/** Reads the applications again, after one was made or removed. */
export async function refresh() {
  if (client.value && manages.value) applications.value = await client.value.applications()
}
