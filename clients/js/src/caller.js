// Sends signed requests to one node after the other until an answer is final.

import { encode } from './body.js'
import { Duplicate, FacetError, ForeignCertificate, jsonObject, NoAnswer, NotFound, refusal } from './errors.js'
import { Nodes } from './nodes.js'
import { Credentials, escape, Signer } from './sign.js'
import { FetchTransport } from './transport.js'

const TRIES = 8
const TIMEOUT_MS = 45_000 // for one try; the service's own limit is 30 s
const BACKOFF_MIN_MS = 100
const BACKOFF_MAX_MS = 3000
const PURPOSE_BYTES_MAX = 256 // as many as a record of the audit log has

/**
 * What a repetition of a request means when the outcome of an earlier try is unknown.
 * @typedef {'freely' | 'keyed' | 'gone' | 'there'} Repeat
 *   freely: a read. keyed: the Idempotency-Key makes it one write. gone: a deletion, now "not
 *   found" is success. there: a creation, now "duplicate" is success.
 */

/**
 * What every operation takes.
 * @typedef {object} Options
 * @property {AbortSignal | undefined} [signal] ends the operation with its reason
 */

/**
 * What a write takes. Pass a key, 1 to 128 printable ASCII characters, if another process may have
 * to repeat the write. By default each call makes a random one.
 * @typedef {Options & {idempotencyKey?: string | undefined}} WriteOptions
 */

/**
 * What a change of settings takes: the ETag that they must have. With another one OtherSettings is thrown.
 * @typedef {WriteOptions & {ifMatch?: string | undefined}} ChangeOptions
 */

/**
 * One call of an operation. path and query are percent-encoded, the query is sorted by name.
 * @typedef {object} Operation
 * @property {string} method
 * @property {string} path
 * @property {string} [query]
 * @property {Record<string, unknown>} [body]
 * @property {boolean} [portal]
 * @property {Repeat} [repeat]
 * @property {string} [empty] the member that a 404 contains when the answer is an empty list
 * @property {boolean} [raw] the answer is bytes
 * @property {ChangeOptions | undefined} [options]
 */

/**
 * @typedef {object} Settings
 * @property {readonly string[]} baseUrls the nodes, each https://host:port
 * @property {Credentials | {accessKey: string, key: CryptoKey, region?: string, service?: string}} credentials
 * @property {string | undefined} [apiKey] selects the application and its gallery; see withApiKey
 * @property {string | undefined} [purpose] the caller's ground, such as "case 4711"; see withPurpose
 * @property {readonly string[] | undefined} [portalUrls] the nodes for tenant management, by default the same
 * @property {number | undefined} [tries] the most times that a request is sent, 8 by default
 * @property {number | undefined} [timeout] of one try, 45,000 ms by default
 * @property {import('./transport.js').Transport | undefined} [transport] by default fetch
 */

/** Signs requests, sends them and repeats them. Client has the operations. */
export class Caller {
  /** @param {Settings} settings */
  constructor({ baseUrls, credentials, apiKey, purpose, portalUrls, tries = TRIES, timeout = TIMEOUT_MS, transport }) {
    this.base = new Nodes(baseUrls)
    this.portal = portalUrls?.length ? new Nodes(portalUrls) : this.base
    // Credentials of IndexedDB are a plain object.
    this.signer = new Signer(new Credentials(credentials?.accessKey, credentials?.key, credentials))
    this.apiKey = apiKey
    this.purpose = checked(purpose)
    this.tries = Math.max(1, tries)
    this.timeout = timeout
    /** @type {import('./transport.js').Transport} */
    this.transport = transport ?? new FetchTransport()
  }

  /**
   * Returns a client for another application, with the same connections.
   * @param {string} apiKey
   * @returns {this}
   */
  withApiKey(apiKey) {
    return Object.assign(Object.create(Object.getPrototypeOf(this)), this, { apiKey })
  }

  /**
   * Returns a client whose requests state the caller's ground in the signed header x-purpose. The
   * audit log keeps it: at most 256 printable ASCII characters. undefined states none.
   * @param {string | undefined} purpose
   * @returns {this}
   */
  withPurpose(purpose) {
    return Object.assign(Object.create(Object.getPrototypeOf(this)), this, { purpose: checked(purpose) })
  }

  /** Closes idle connections. */
  close() {
    this.transport.close?.()
  }

  /**
   * Returns the answer's JSON, or undefined without a body. Returns the bytes of a raw one.
   * @param {Operation} op
   * @returns {Promise<unknown>}
   */
  async call(op) {
    const name = `${op.method} ${op.path}`
    const signal = op.options?.signal
    const { headers, body } = this.prepare(op)
    const nodes = op.portal ? this.portal : this.base
    let doubt = false // an earlier try may have had its effect
    for (let attempt = 1; ; attempt++) {
      signal?.throwIfAborted()
      const node = nodes.pick()
      /** @type {FacetError} */
      let error
      let wait = 0
      try {
        const answer = await this.send(op, /** @type {string} */ (nodes.hosts[node]), headers, body)
        nodes.wake(node)
        if (stands(answer, op)) return op.raw ? answer.body : json(name, answer)
        const refused = refusal(name, answer)
        if (doubt && doneBefore(op, refused)) return undefined
        if (!refused.again) throw refused
        doubt ||= refused.status >= 500
        error = refused
        wait = refused.retryAfter * 1000 || backoff(attempt)
      } catch (e) {
        signal?.throwIfAborted() // the caller's end says nothing about the node
        if (!(e instanceof Unanswered)) throw e
        nodes.rest(node)
        doubt = true
        error = new NoAnswer(`${name}: ${e.message}`, { cause: e.cause })
        // Calling a foreign node again is useless.
        if (e.cause instanceof ForeignCertificate && attempt >= nodes.hosts.length) throw error
        wait = attempt < nodes.hosts.length ? 0 : backoff(attempt)
      }
      if (attempt >= this.tries) throw error
      await pause(wait, signal)
    }
  }

  /**
   * Returns the headers and the body that all tries share.
   * @param {Operation} op
   */
  prepare(op) {
    /** @type {Record<string, string>} */
    const headers = { accept: op.raw ? '*/*' : 'application/json' }
    if (this.apiKey && !op.portal) headers['x-api-key'] = this.apiKey
    if (this.purpose) headers['x-purpose'] = this.purpose
    if (op.repeat === 'keyed') headers['idempotency-key'] = op.options?.idempotencyKey ?? crypto.randomUUID()
    if (op.options?.ifMatch) headers['if-match'] = op.options.ifMatch
    if (!op.body) return { headers, body: new Uint8Array(0) }
    headers['content-type'] = 'application/json'
    return { headers, body: encode(op.body) }
  }

  /**
   * Sends a request once. Signs each try, because host and date differ.
   * @param {Operation} op
   * @param {string} host
   * @param {Record<string, string>} headers
   * @param {Uint8Array<ArrayBuffer>} body
   */
  async send({ method, path, query = '', options }, host, headers, body) {
    const url = `https://${host}${path}${query && '?'}${query}`
    const sent = new URL(url).href
    if (sent !== url) throw new FacetError(`${url} would be sent as ${sent}, which is not what is signed`)
    const signed = await this.signer.sign({ method, host, path, query, headers, body }, new Date())
    options?.signal?.throwIfAborted()
    const end = new AbortController()
    const late = setTimeout(() => end.abort(new FacetError(`no answer in ${this.timeout} ms`)), this.timeout)
    const cancel = () => end.abort(options?.signal?.reason)
    options?.signal?.addEventListener('abort', cancel)
    try {
      return await this.transport.send({ method, url, headers: signed, body, signal: end.signal })
    } catch (e) {
      throw new Unanswered(e)
    } finally {
      clearTimeout(late)
      options?.signal?.removeEventListener('abort', cancel)
    }
  }
}

/**
 * Returns a purpose. Throws unless a header may have it.
 * @param {string | undefined} purpose
 */
function checked(purpose) {
  const wrong = purpose?.match(/[^ -~]/u)
  if (wrong) throw new TypeError(`the purpose has the character ${JSON.stringify(wrong[0])}: a header may have printable ASCII characters only`)
  if (purpose && purpose.length > PURPOSE_BYTES_MAX) {
    throw new TypeError(`the purpose has ${purpose.length} bytes: shorten it to ${PURPOSE_BYTES_MAX}`)
  }
  return purpose
}

/** Why one try got no answer. */
class Unanswered extends Error {
  /** @param {unknown} cause */
  constructor(cause) {
    // fetch hides what happened in a cause of its own.
    const within = cause instanceof Error && cause.cause instanceof Error ? `: ${cause.cause.message}` : ''
    super((cause instanceof Error ? cause.message : String(cause)) + within, { cause })
  }
}

/**
 * Returns the path of plain segments, percent-encoded.
 * @param {...string} segments
 */
export function path(...segments) {
  if (segments.some((s) => ['', '.', '..'].includes(s))) {
    throw new TypeError('an id or a name is empty or a dot segment') // the path would be another one
  }
  return segments.map((s) => '/' + escape(s)).join('')
}

/**
 * @param {string} name
 * @param {import('./transport.js').Answer} answer
 */
function json(name, answer) {
  if (!answer.body.length) return undefined
  try {
    const value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(answer.body))
    const etag = answer.header('etag')
    return etag && !Array.isArray(value) ? { ...value, etag } : value
  } catch (e) {
    throw new FacetError(`${name}: the answer is not JSON`, { cause: e })
  }
}

/**
 * @param {import('./transport.js').Answer} answer
 * @param {Operation} op
 */
function stands(answer, op) {
  if (answer.status >= 200 && answer.status < 300) return true
  return answer.status === 404 && op.empty !== undefined && op.empty in jsonObject(answer.body)
}

/**
 * @param {Operation} op
 * @param {FacetError} refused
 */
function doneBefore(op, refused) {
  return (op.repeat === 'gone' && refused instanceof NotFound) || (op.repeat === 'there' && refused instanceof Duplicate)
}

/**
 * Returns a pause in ms that doubles with each try, random so that clients do not all return at once.
 * @param {number} attempt
 */
function backoff(attempt) {
  const most = Math.min(BACKOFF_MIN_MS * 2 ** attempt, BACKOFF_MAX_MS)
  return most / 2 + (Math.random() * most) / 2
}

/**
 * Waits, or throws the signal's reason when that ends first.
 * @param {number} ms
 * @param {AbortSignal | undefined} signal
 * @returns {Promise<void>}
 */
function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted()
    const cancel = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', cancel)
      resolve()
    }, ms)
    signal?.addEventListener('abort', cancel, { once: true })
  })
}
