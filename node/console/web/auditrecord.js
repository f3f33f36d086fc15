// Reads the records of an audit log from their bytes (docs/formats/audit.md): what a page shows of a record is
// what its leaf hash proves.

import { Fault } from './merkle.js'

/**
 * A record, with the names that GET /api/audit gives its fields. others has those that this page does not know.
 * @typedef {object} Fields
 * @property {string} time
 * @property {string} kind
 * @property {string} [operation]
 * @property {number} [status]
 * @property {string} [reason]
 * @property {string} [holder]
 * @property {string} [key]
 * @property {string} [source]
 * @property {string} [requestId]
 * @property {string} [application]
 * @property {string} [gallery]
 * @property {number} [generation]
 * @property {string} [purpose]
 * @property {number} [threshold]
 * @property {number} [limit]
 * @property {string} [pack]
 * @property {number} [quality]
 * @property {string} [probe]
 * @property {{shard: number, index: number}[]} [searched]
 * @property {{subject: string, score: number}[]} [candidates]
 * @property {string[]} [subjects]
 * @property {string} [case]
 * @property {string} [verdict]
 * @property {number} [count]
 * @property {number} [ms]
 * @property {Record<string, string>} [others]
 */

/** @typedef {number | string | Uint8Array | boolean | null | Item[]} Item */

const KINDS = ['request', 'intent', 'withheld', 'completed', 'act', 'command']
const VERDICTS = ['', 'same', 'different']
const NAME = 16 // bytes of a MAC

const unreadable = () => new Fault('A record can’t be read. It may be newer than this page: reload it.')

/** Reads CBOR of known lengths (RFC 8949, 4.2). */
class Reader {
  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    this.bytes = bytes
    this.at = 0
  }

  /** @param {number} n */
  take(n) {
    if (this.at + n > this.bytes.length) throw unreadable()
    this.at += n
    return this.bytes.subarray(this.at - n, this.at)
  }

  /** Returns the major type, the argument and the low bits of the next head. */
  head() {
    const first = this.take(1)[0] ?? 0
    const low = first & 31
    if (low < 24) return { major: first >> 5, n: low, low }
    if (low > 27) throw unreadable()
    const n = this.take(2 ** (low - 24)).reduce((sum, byte) => sum * 256 + byte, 0)
    if (n > Number.MAX_SAFE_INTEGER && first >> 5 !== 7) throw unreadable()
    return { major: first >> 5, n, low }
  }

  /** @returns {Item} */
  item() {
    const { major, n, low } = this.head()
    if (major === 0) return n
    if (major === 1) return -1 - n
    if (major === 2) return this.take(n)
    if (major === 3) return new TextDecoder('utf-8', { fatal: true }).decode(this.take(n))
    if (major === 4 && n <= this.bytes.length) return Array.from({ length: n }, () => this.item())
    if (major === 7 && low === 20) return false
    if (major === 7 && low === 21) return true
    if (major === 7 && low === 22) return null
    throw unreadable()
  }

  /** @returns {Map<number, Item>} */
  map() {
    const { major, n } = this.head()
    if (major !== 5 || n > this.bytes.length) throw unreadable()
    const out = new Map()
    for (let i = 0; i < n; i++) out.set(this.item(), this.item())
    if (this.at !== this.bytes.length) throw unreadable()
    return out
  }
}

const hex = (/** @type {Uint8Array} */ bytes) => Array.from(bytes, (b) => b.toString(16).padStart(2, '0')).join('')

/** Returns the text of a MAC. @param {Uint8Array} bytes */
const mac = (bytes) => btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')

const uuid = (/** @type {Uint8Array} */ bytes) => hex(bytes).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')

/** Returns the text of an address. The browser shortens one of version 6. @param {Uint8Array} bytes */
const address = (bytes) => (bytes.length === 4 ? bytes.join('.') : new URL(`http://[${hex(bytes).replace(/(.{4})(?=.)/g, '$1:')}]`).hostname.slice(1, -1))

/**
 * Returns the pieces of bytes, each of so many.
 * @param {Uint8Array} bytes
 * @param {number} size
 */
function pieces(bytes, size) {
  if (bytes.length % size) throw unreadable()
  return Array.from({ length: bytes.length / size }, (_, i) => bytes.subarray(i * size, (i + 1) * size))
}

/**
 * Returns the fields of a record.
 * @param {Uint8Array} content
 * @returns {Fields}
 */
export function readRecord(content) {
  if (content[0] !== 1 || content[1] !== 1) throw unreadable()
  const all = new Reader(content.subarray(2)).map()
  const next = (/** @type {number} */ key) => {
    const value = all.get(key)
    all.delete(key)
    return value
  }
  const whole = (/** @type {number} */ key) => ((value) => (typeof value === 'number' ? value : undefined))(next(key))
  const word = (/** @type {number} */ key) => ((value) => (typeof value === 'string' ? value : undefined))(next(key))
  /**
   * @template T
   * @param {number} key
   * @param {(bytes: Uint8Array) => T} read
   */
  const bytes = (key, read) => ((value) => (value instanceof Uint8Array ? read(value) : undefined))(next(key))
  next(1) // random
  const searched = next(12)
  const kind = next(3) ?? 0
  /** @type {Record<string, unknown>} */
  const fields = {
    time: new Date(whole(2) ?? 0).toISOString(),
    kind: KINDS[Number(kind)] ?? `kind ${kind}`,
    operation: word(9),
    status: whole(20),
    reason: word(21),
    holder: word(6),
    key: word(5),
    source: bytes(7, address),
    requestId: bytes(8, hex),
    application: bytes(4, uuid),
    gallery: bytes(10, uuid),
    generation: whole(11),
    purpose: word(19),
    threshold: ((value) => value && value - 1)(whole(13)),
    limit: whole(14),
    pack: word(15),
    quality: ((value) => value && value / 1000)(whole(18)),
    probe: bytes(16, mac),
    searched: Array.isArray(searched) ? pairs(searched) : undefined,
    candidates: bytes(17, (list) => pieces(list, NAME + 2).map((c) => ({ subject: mac(c.subarray(0, NAME)), score: (c[NAME] ?? 0) * 256 + (c[NAME + 1] ?? 0) }))),
    subjects: bytes(23, (list) => pieces(list, NAME).map(mac)),
    case: bytes(25, uuid),
    verdict: ((value) => value && (VERDICTS[value] ?? `verdict ${value}`))(whole(26)),
    count: whole(27),
    ms: ((value) => value && value / 1000)(whole(22)),
  }
  next(24) // by which a shard remembers the write
  if (all.size) fields.others = Object.fromEntries(Array.from(all, ([key, value]) => [key, value instanceof Uint8Array ? hex(value) : String(value)]))
  for (const [name, value] of Object.entries(fields)) if (value === undefined) delete fields[name]
  return /** @type {any} */ (fields)
}

/** Returns the shards and indexes of a list of both in turns. @param {Item[]} list */
const pairs = (list) => Array.from({ length: list.length / 2 }, (_, i) => ({ shard: Number(list[2 * i]), index: Number(list[2 * i + 1]) }))
