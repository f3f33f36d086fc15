// Bodies of requests: JSON with photos in base64, written straight into the bytes that are sent.
// A photo of 15 MB takes 20 MB more, and no strings of that size.

/**
 * The bytes of an image file.
 * @typedef {Uint8Array | ArrayBuffer | Blob} Photo
 */

// The service takes bodies of at most 20 MiB, and base64 makes 4 bytes of 3.
const PHOTO_BYTES_MAX = ((20 << 20) / 4) * 3
const ALPHABET = new TextEncoder().encode('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/')
const PADDING = '='.charCodeAt(0)

/**
 * Returns the bytes of a photo. Looks at the size of a file before it reads it.
 * @param {Photo} photo
 * @returns {Promise<Uint8Array>}
 */
export async function photoBytes(photo) {
  const size = photo instanceof Blob ? photo.size : photo?.byteLength
  if (typeof size !== 'number') throw new TypeError('a photo is a Uint8Array, an ArrayBuffer or a Blob')
  if (size > PHOTO_BYTES_MAX) {
    throw new RangeError(`the photo has ${size} bytes, the service takes at most ${PHOTO_BYTES_MAX}: scale it down`)
  }
  if (photo instanceof Blob) return new Uint8Array(await photo.arrayBuffer())
  return ArrayBuffer.isView(photo) ? new Uint8Array(photo.buffer, photo.byteOffset, size) : new Uint8Array(photo)
}

/**
 * Returns members as JSON in UTF-8. Leaves out those that are undefined. A Uint8Array, wherever it
 * lies, is written as base64.
 * @param {Record<string, unknown>} members
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function encode(members) {
  /** @type {(string | Uint8Array)[]} */
  const parts = []
  write(members, parts)
  return join(parts)
}

/**
 * @param {unknown} value
 * @param {(string | Uint8Array)[]} parts
 */
function write(value, parts) {
  if (value instanceof Uint8Array) {
    parts.push('"', value, '"')
  } else if (Array.isArray(value)) {
    value.forEach((one, i) => (parts.push(i ? ',' : '['), write(one ?? null, parts)))
    parts.push(value.length ? ']' : '[]')
  } else if (value && typeof value === 'object' && !('toJSON' in value)) {
    let separator = '{'
    for (const [name, member] of Object.entries(value)) {
      if (member === undefined) continue
      parts.push(`${separator}${JSON.stringify(name)}:`)
      separator = ','
      write(member, parts)
    }
    parts.push(separator === '{' ? '{}' : '}')
  } else {
    parts.push(JSON.stringify(value))
  }
}

/**
 * Returns the text of parts. Bytes become base64.
 * @param {(string | Uint8Array)[]} parts
 */
function join(parts) {
  const text = new TextEncoder()
  const written = parts.map((part) => (typeof part === 'string' ? text.encode(part) : part))
  const isPhoto = parts.map((part) => typeof part !== 'string')
  const size = written.reduce((n, part, i) => n + (isPhoto[i] ? base64Length(part.length) : part.length), 0)
  const out = new Uint8Array(size)
  let at = 0
  written.forEach((part, i) => {
    if (isPhoto[i]) {
      writeBase64(part, out, at)
      at += base64Length(part.length)
    } else {
      out.set(part, at)
      at += part.length
    }
  })
  return out
}

/** @param {number} bytes */
function base64Length(bytes) {
  return Math.ceil(bytes / 3) * 4
}

/**
 * Writes bytes as base64 with padding into out, from `at` on.
 * @param {Uint8Array} bytes
 * @param {Uint8Array} out
 * @param {number} at
 */
function writeBase64(bytes, out, at) {
  for (let i = 0; i < bytes.length; i += 3) {
    // Bytes beyond the end are undefined, which counts as 0 here.
    const three = (/** @type {number} */ (bytes[i]) << 16) | (Number(bytes[i + 1] ?? 0) << 8) | Number(bytes[i + 2] ?? 0)
    for (let shift = 18; shift >= 0; shift -= 6) out[at++] = /** @type {number} */ (ALPHABET[(three >> shift) & 63])
  }
  const rest = bytes.length % 3
  if (rest) out.fill(PADDING, at - 3 + rest, at)
}
