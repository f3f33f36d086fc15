// Makes requests of what people typed, sends them once, and reads the answers.

import { escape } from '../console/client/sign.js'

/** @typedef {import('./document.js').Operation} Operation */
/** @typedef {import('../console/client/index.js').Client} Client */

/**
 * A request. path and query are percent-encoded.
 * @typedef {{method: string, path: string, query: string, headers: Record<string, string>, body: string}} Prepared
 */

/**
 * An answer, its JSON indented.
 * @typedef {{status: number, requestId: string, ms: number, headers: [string, string][], text: string}} Got
 */

/** Headers of an answer that are shown. */
const HEADERS = ['retry-after', 'allow', 'facet-commit']

/**
 * Returns the text of a body.
 * @param {unknown} value
 */
export const asText = (value) => (value === undefined ? '{}' : JSON.stringify(value, null, 2))

/**
 * Returns the name that stands for a photo in a body. No base64 begins like it.
 * @param {string} name
 */
const standIn = (name) => `@${name}`

/**
 * Returns a body with the stand-ins of photos at a place, or undefined if it is no JSON.
 * @param {string} text
 * @param {string[]} place '*' stands for each entry of an array
 * @param {File[]} files
 */
export function placed(text, place, files) {
  try {
    const body = JSON.parse(text || '{}')
    return asText(put(body, place, files.map((f) => standIn(f.name))))
  } catch {
    return undefined
  }
}

/**
 * @param {any} at
 * @param {string[]} place
 * @param {string[]} photos
 * @returns {unknown}
 */
function put(at, [name, ...rest], photos) {
  if (name === undefined) return photos[0]
  if (name === '*') return photos.map((photo) => put(undefined, rest, [photo]))
  return { ...at, [name]: put(at?.[name], rest, photos) }
}

/**
 * Returns a body with photos in base64 in the place of their names.
 * @param {string} text
 * @param {Map<string, Blob>} photos by their names
 */
export async function withPhotos(text, photos) {
  for (const [name, photo] of photos) {
    const wanted = JSON.stringify(standIn(name))
    if (!text.includes(wanted)) continue
    const base64 = await inBase64(photo)
    text = text.replaceAll(wanted, () => `"${base64}"`)
  }
  return text
}

/**
 * @param {Blob} photo
 * @returns {Promise<string>}
 */
function inBase64(photo) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ''))
    reader.onerror = () => reject(reader.error)
    reader.readAsDataURL(photo)
  })
}

/**
 * Returns the request of an operation. An empty value is left out.
 * @param {Operation} o
 * @param {Record<string, string>} values of the parameters
 * @param {string} apiKey
 * @param {string} body
 * @returns {Prepared}
 */
export function prepared(o, values, apiKey, body) {
  const given = o.parameters.filter((p) => values[p.name])
  const value = (/** @type {string} */ name) => escape(values[name] ?? '')
  const query = given.filter((p) => p.place === 'query').map((p) => `${escape(p.name)}=${value(p.name)}`)
  /** @type {Record<string, string>} */
  const headers = {}
  if (apiKey) headers['x-api-key'] = apiKey
  for (const p of given) if (p.place === 'header') headers[p.name.toLowerCase()] = values[p.name] ?? ''
  if (body) headers['content-type'] = 'application/json'
  return {
    method: o.method,
    path: o.path.replace(/\{(\w+)\}/g, (whole, name) => (values[name] ? value(name) : whole)),
    query: query.sort().join('&'),
    headers,
    body,
  }
}

/**
 * Signs a request and sends it once, to the server of the page.
 * @param {Client} client
 * @param {Prepared} request
 * @param {AbortSignal} signal
 * @returns {Promise<Got>}
 */
export async function send(client, { method, path, query, headers, body }, signal) {
  const began = performance.now()
  const bytes = new TextEncoder().encode(body)
  const answer = await client.send({ method, path, query, options: { signal } }, location.host, { accept: 'application/json', ...headers }, bytes)
  return {
    status: answer.status,
    requestId: answer.header('x-request-id') ?? '',
    ms: performance.now() - began,
    headers: HEADERS.flatMap((name) => {
      const value = answer.header(name)
      return value === null ? [] : [/** @type {[string, string]} */ ([name, value])]
    }),
    text: readable(new TextDecoder().decode(answer.body)),
  }
}

/**
 * Returns JSON with line breaks, any other text as it is.
 * @param {string} text
 */
function readable(text) {
  try {
    return asText(JSON.parse(text))
  } catch {
    return text
  }
}
