// What only Node has: profiles, and a transport that trusts a certificate authority of yours.

import { readFile, stat } from 'node:fs/promises'
import { Agent, request } from 'node:https'
import { dirname, resolve } from 'node:path'

import { Client } from './client.js'
import { FacetError, ForeignCertificate } from './errors.js'
import { Credentials } from './sign.js'
import { Collected } from './transport.js'

export * from './index.js'

/** @typedef {import('./transport.js').Request} Request */
/** @typedef {import('./transport.js').Answer} Answer */
/** @typedef {import('./transport.js').Transport} Transport */

const CONNECT_TIMEOUT_MS = 5000
const FILE_BYTES_MAX = 1 << 20
const CONNECTIONS_MAX = 64 // to each node

/**
 * Sends requests by node:https, on connections that it keeps.
 * @implements {Transport}
 */
export class HttpsTransport {
  /** @param {{ca?: string | undefined}} [options] ca: authorities in PEM, instead of the system's */
  constructor({ ca } = {}) {
    if (ca !== undefined && !ca.includes('-----BEGIN CERTIFICATE-----')) throw new TypeError('ca has no certificate')
    this.agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS_MAX, ...(ca !== undefined && { ca }) })
  }

  /**
   * @param {Request} message
   * @returns {Promise<Answer>}
   */
  send({ method, url, headers, body, signal }) {
    return new Promise((resolve, reject) => {
      const sent = request(url, { method, headers: { ...headers, 'content-length': body.length }, agent: this.agent })
      const cancel = () => sent.destroy(signal.reason)
      signal.addEventListener('abort', cancel)
      sent.on('close', () => signal.removeEventListener('abort', cancel))
      sent.on('socket', limitConnect)
      sent.on('error', (e) => reject(unforeign(sent, e)))
      sent.on('response', (got) => {
        collect(got).then(resolve, (e) => {
          sent.destroy()
          reject(e)
        })
      })
      if (signal.aborted) cancel()
      else sent.end(body)
    })
  }

  /** Closes the connections. */
  close() {
    this.agent.destroy()
  }
}

/**
 * Ends a connection that takes too long, its TLS handshake included.
 * @param {import('node:https').Socket} socket
 */
function limitConnect(socket) {
  if (!socket.connecting) return // kept from an earlier request
  const late = setTimeout(() => {
    socket.destroy(new FacetError(`no connection in ${CONNECT_TIMEOUT_MS} ms`))
  }, CONNECT_TIMEOUT_MS)
  const settled = () => clearTimeout(late)
  socket.once('secureConnect', settled)
  socket.once('close', settled)
}

/**
 * Returns e, or a ForeignCertificate if the connection failed for the node's certificate.
 * @param {import('node:https').ClientRequest} sent
 * @param {Error} e
 */
function unforeign(sent, e) {
  if (!sent.socket?.authorizationError) return e
  return new ForeignCertificate(`the node's certificate is not valid: ${e.message}`, { cause: e })
}

/**
 * Reads an answer.
 * @param {import('node:https').IncomingMessage} got
 * @returns {Promise<Answer>}
 */
async function collect(got) {
  const collected = new Collected(got.headers['content-length'])
  for await (const part of got) collected.add(part)
  return { status: got.statusCode, header: (name) => got.headers[name] ?? null, body: collected.bytes() }
}

/**
 * Returns a client of the cluster and the tenant that a profile names, as `facet tenant create
 * --save` writes it. A relative ca_file starts at the profile's folder.
 * @param {string} file
 * @param {{apiKey?: string | undefined}} [options]
 * @returns {Promise<Client>}
 */
export async function fromProfile(file, { apiKey } = {}) {
  const profile = parse(file, await text(file))
  for (const name of ['base_urls', 'access_key', 'secret_key']) {
    if (!profile[name]) throw new TypeError(`the profile ${file} has no ${name}`)
  }
  const { region, service } = profile
  const ca = profile['ca_file'] ? await text(resolve(dirname(file), profile['ca_file'])) : profile['ca']
  return new Client({
    baseUrls: profile['base_urls'],
    portalUrls: profile['portal_urls'],
    apiKey: apiKey ?? profile['api_key'],
    credentials: await Credentials.fromSecret(profile['access_key'], profile['secret_key'], { region, service }),
    transport: new HttpsTransport({ ca }),
  })
}

/**
 * Returns a client of the cluster that the dev.json of `facet dev` describes.
 * @param {string} file
 * @param {{apiKey?: string | undefined}} [options]
 */
export function fromDev(file, options) {
  return fromProfile(file, options)
}

/**
 * Returns the text of a small file.
 * @param {string} file
 */
async function text(file) {
  if ((await stat(file)).size > FILE_BYTES_MAX) throw new RangeError(`${file} has more than ${FILE_BYTES_MAX} bytes`)
  return readFile(file, 'utf8')
}

/**
 * @param {string} file
 * @param {string} json
 * @returns {Record<string, any>}
 */
function parse(file, json) {
  try {
    return JSON.parse(json)
  } catch (e) {
    throw new TypeError(`the profile ${file} is not JSON`, { cause: e })
  }
}
