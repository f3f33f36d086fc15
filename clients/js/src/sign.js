// Signature Version 4 (AWS, "Create a signed AWS API request") with WebCrypto. This client
// writes one form of it. The service reads others too.

const ALGORITHM = 'AWS4-HMAC-SHA256'
const TERMINATOR = 'aws4_request'
const HMAC = { name: 'HMAC', hash: 'SHA-256' }
const REGION = 'ap-southeast-2'
const SERVICE = 'execute-api'

const text = new TextEncoder()

/**
 * The access key of a tenant and the key that signs with its secret.
 *
 * The secret can't be read out of `key`. A structured clone keeps it, so IndexedDB can store
 * credentials; what comes back is a plain object, which a Client takes, too.
 */
export class Credentials {
  /**
   * @param {string} accessKey
   * @param {CryptoKey} key as fromSecret makes it
   * @param {{region?: string | undefined, service?: string | undefined}} [scope] of signatures
   */
  constructor(accessKey, key, { region = REGION, service = SERVICE } = {}) {
    if (!accessKey) throw new TypeError('no access key')
    if (key?.type !== 'secret' || !key.usages.includes('sign')) {
      throw new TypeError('the key of credentials is not one that signs: use Credentials.fromSecret')
    }
    this.accessKey = accessKey
    this.key = key
    this.region = region
    this.service = service
  }

  /**
   * Returns credentials with the secret as a key that can't be exported.
   * @param {string} accessKey
   * @param {string} secret
   * @param {{region?: string | undefined, service?: string | undefined}} [scope] of signatures
   * @returns {Promise<Credentials>}
   */
  static async fromSecret(accessKey, secret, scope) {
    if (!accessKey || !secret) throw new TypeError('no access key or no secret key')
    if (!globalThis.crypto?.subtle) {
      throw new Error('signing needs WebCrypto, which browsers have on pages from https only')
    }
    return new Credentials(accessKey, await signingKey(text.encode('AWS4' + secret)), scope)
  }
}

/**
 * The part of a request that a signature covers.
 * @typedef {object} Message
 * @property {string} method
 * @property {string} host with its port, unless that is 443
 * @property {string} path percent-encoded
 * @property {string} query percent-encoded, sorted by name
 * @property {Record<string, string>} headers with names in lower case
 * @property {Uint8Array<ArrayBuffer>} body
 */

/** Signs requests. It keeps the key of a day, so that a request takes one HMAC. */
export class Signer {
  /** @param {Credentials} credentials */
  constructor(credentials) {
    this.credentials = credentials
    this.day = ''
    /** @type {Promise<CryptoKey> | undefined} */
    this.dayKey = undefined
  }

  /**
   * Returns the headers to send: those of the message, the date header and authorization. The
   * signature covers all headers, with blanks folded, and the host.
   * @param {Message} message
   * @param {Date} now
   * @returns {Promise<Record<string, string>>}
   */
  async sign(message, now) {
    const { accessKey, region, service } = this.credentials
    const date = now.toISOString().replace(/[-:]|\.\d+/g, '')
    const scope = [date.slice(0, 8), region, service, TERMINATOR]
    const sent = { ...message.headers, 'x-cloud-date': date }
    /** @type {Record<string, string>} */
    const signed = { ...sent, host: message.host }
    const names = Object.keys(signed).sort()
    const canonical = [
      message.method,
      // The path is percent-encoded already, and the signature encodes it again.
      message.path.split('/').map(escape).join('/'),
      message.query,
      names.map((name) => `${name}:${folded(signed[name] ?? '')}\n`).join(''),
      names.join(';'),
      await hexHash(message.body),
    ].join('\n')
    const toSign = [ALGORITHM, date, scope.join('/'), await hexHash(text.encode(canonical))].join('\n')
    const signature = hex(await mac(await this.keyOf(scope), toSign))
    const credential = [accessKey, ...scope].join('/')
    return {
      ...sent,
      authorization: `${ALGORITHM} Credential=${credential}, SignedHeaders=${names.join(';')}, Signature=${signature}`,
    }
  }

  /**
   * Returns the key of a scope. All requests of a day wait for one derivation.
   * @param {string[]} scope
   * @returns {Promise<CryptoKey>}
   */
  keyOf(scope) {
    const day = scope.join('/')
    if (!this.dayKey || this.day !== day) {
      this.day = day
      this.dayKey = derive(this.credentials.key, scope)
    }
    return this.dayKey
  }
}

/**
 * Percent-encodes every byte except letters, digits and -._~ .
 * @param {string} plain
 */
export function escape(plain) {
  return encodeURIComponent(plain).replace(
    /[!'()*]/g,
    (c) => '%' + c.charCodeAt(0).toString(16).toUpperCase(),
  )
}

/**
 * Returns the value of a header as signatures have it.
 * @param {string} value
 */
const folded = (value) => value.trim().replace(/[ \t]+/g, ' ')

/**
 * @param {CryptoKey} key
 * @param {string[]} scope
 */
async function derive(key, scope) {
  for (const part of scope) key = await signingKey(await mac(key, part))
  return key
}

/**
 * Imports the bytes of a key so that nothing can export them, and overwrites them.
 * @param {Uint8Array<ArrayBuffer>} bytes
 */
async function signingKey(bytes) {
  const key = await crypto.subtle.importKey('raw', bytes, HMAC, false, ['sign'])
  bytes.fill(0)
  return key
}

/**
 * @param {CryptoKey} key
 * @param {string} message
 */
async function mac(key, message) {
  return new Uint8Array(await crypto.subtle.sign('HMAC', key, text.encode(message)))
}

/** @param {Uint8Array<ArrayBuffer>} bytes */
async function hexHash(bytes) {
  return hex(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)))
}

/** @param {Uint8Array} bytes */
function hex(bytes) {
  return Array.from(bytes, (b) => b.toString(16).padStart(2, '0')).join('')
}
