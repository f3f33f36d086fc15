// How requests get to a node. Browsers use fetch; node.js beside this file has a transport for
// programs.

import { FacetError } from './errors.js'

/** The most bytes of an answer. */
export const ANSWER_BYTES_MAX = 64 << 20

/**
 * A signed request.
 * @typedef {object} Request
 * @property {string} method
 * @property {string} url
 * @property {Record<string, string>} headers
 * @property {Uint8Array<ArrayBuffer>} body empty for none
 * @property {AbortSignal} signal ends the request
 */

/**
 * The answer of a node. header returns undefined headers as null.
 * @typedef {object} Answer
 * @property {number} status
 * @property {(name: string) => string | null} header
 * @property {Uint8Array} body
 */

/**
 * Sends one request and returns the answer, without following redirects. It throws when there is
 * no answer: ForeignCertificate when the node's certificate is not valid, any error else.
 * @typedef {object} Transport
 * @property {(request: Request) => Promise<Answer>} send
 * @property {() => void} [close]
 */

/**
 * Sends requests by fetch. A browser decides which certificates are valid, and tells nothing
 * about the others.
 * @implements {Transport}
 */
export class FetchTransport {
  /** @param {{credentials?: RequestCredentials}} [options] whether cookies are sent, by default none */
  constructor({ credentials = 'omit' } = {}) {
    this.credentials = credentials
  }

  /**
   * @param {Request} request
   * @returns {Promise<Answer>}
   */
  async send({ method, url, headers, body, signal }) {
    const got = await fetch(url, {
      method,
      headers,
      body: body.length ? body : null,
      signal,
      // A signature is valid for one host, and is all that the service wants to know.
      redirect: 'manual',
      credentials: this.credentials,
      referrerPolicy: 'no-referrer',
      cache: 'no-store',
    })
    const collected = new Collected(got.headers.get('content-length'))
    if (got.body) for await (const part of chunks(got.body)) collected.add(part)
    return { status: got.status, header: (name) => got.headers.get(name), body: collected.bytes() }
  }
}

/** The parts of an answer, as far as they are not too long. */
export class Collected {
  /** @param {string | null | undefined} length that the answer announces */
  constructor(length) {
    /** @type {Uint8Array[]} */
    this.parts = []
    this.size = 0
    this.check(Number(length ?? 0))
  }

  /** @param {Uint8Array} part */
  add(part) {
    this.check(this.size + part.length)
    this.size += part.length
    this.parts.push(part)
  }

  /** @param {number} size */
  check(size) {
    if (size > ANSWER_BYTES_MAX) throw new FacetError(`the answer has more than ${ANSWER_BYTES_MAX} bytes`)
  }

  bytes() {
    const all = new Uint8Array(this.size)
    let at = 0
    for (const part of this.parts) {
      all.set(part, at)
      at += part.length
    }
    return all
  }
}

/**
 * Iterates over a stream. Safari's streams are not iterable by themselves.
 * @param {ReadableStream<Uint8Array>} stream
 */
async function* chunks(stream) {
  const reader = stream.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    await reader.cancel()
  }
}
