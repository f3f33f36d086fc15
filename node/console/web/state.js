// Who is signed in, and what that person may do.

import { computed, signal } from './vendor/signals.js'
import { Client, Credentials, FetchTransport, Forbidden } from './client/index.js'
import { forget, keep, kept } from './keep.js'
import { readSession } from './session.js'

/** @typedef {import('./session.js').Session} Session */
/** @typedef {import('./client/transport.js').Transport} Transport */
/** @typedef {import('./client/models.js').Application} Application */
/** @typedef {import('./client/models.js').Gallery} Gallery */

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

/** Whether the key may manage the tenant. */
export const manages = signal(false)

/** Whether the key may review doubtful matches. */
export const reviews = signal(false)

/** Whether the key may read the audit log. */
export const audits = signal(false)

/** Whether the key is for work with faces: a reviewer's or an auditor's is not. */
export const works = computed(() => !!client.value && (manages.value || !(reviews.value || audits.value)))

/** Whether the key needs an application key for its work, and there is none. */
export const lacksApplication = computed(() => works.value && !manages.value && applications.value.length === 0)

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
    if (!found.rights.includes('tenant')) return
    // facet console signs anew with the profile's key, whatever signature it gets.
    const credentials = await Credentials.fromSecret(found.accessKey ?? 'console', crypto.randomUUID())
    await use(credentials, found.apiKey ?? '')
    return
  }
  const stored = /** @type {{credentials: Credentials, apiKey: string} | undefined} */ (await kept(KEPT))
  if (!stored) return
  await use(stored.credentials, stored.apiKey).catch(async (e) => {
    if (!(e instanceof Forbidden)) throw e // the service may know the key in a moment
    await signOut()
  })
}

/**
 * Signs in with a key. Throws if the service refuses it.
 * @param {{accessKey: string, secretKey: string, apiKey: string, stay: boolean}} form
 */
export async function signIn(form) {
  const credentials = await Credentials.fromSecret(form.accessKey, form.secretKey, { region: session.value?.region })
  await use(credentials, form.apiKey)
  if (form.stay) await keep(KEPT, { credentials, apiKey: form.apiKey })
}

/** Forgets the key, here and in what the browser keeps. */
export async function signOut() {
  client.value = undefined
  applications.value = []
  manages.value = false
  reviews.value = false
  audits.value = false
  accessKey.value = ''
  await forget(KEPT)
}

/**
 * @param {Credentials} credentials
 * @param {string} apiKey
 */
async function use(credentials, apiKey) {
  const c = new Client({ baseUrls: [`https://${location.host}`], credentials, transport: new Here() })
  await c.health()
  try {
    applications.value = await c.applications()
    manages.value = true
  } catch (e) {
    if (!(e instanceof Forbidden)) throw e
    manages.value = false
    applications.value = apiKey ? [{ id: apiKey, name: '', apiKey }] : []
  }
  // The signals change at once, with the client: a page that they show asks it for something.
  const may = manages.value ? [true, true] : await Promise.all([apiKey !== '' && permitted(c.withApiKey(apiKey).casePage({ length: 1 })), permitted(c.auditFile('key'))])
  const [review = false, audit = false] = may
  reviews.value = review
  audits.value = audit
  accessKey.value = credentials.accessKey
  client.value = c
}

/** Reports whether the key's role permits a call. @param {Promise<unknown>} answer */
async function permitted(answer) {
  try {
    await answer
    return true
  } catch (e) {
    if (!(e instanceof Forbidden)) throw e
    return false
  }
}

/** Reads the applications again, after one was made or removed. */
export async function refresh() {
  if (client.value && manages.value) applications.value = await client.value.applications()
}
