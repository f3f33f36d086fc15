// Reads a tenant's audit log, and proves what it reads: the checkpoint is signed, continues the one that this browser
// saw before, and contains each record.

import { bytesOf, consistent, Fault, included, leafHash, openCheckpoint, Tiles } from './merkle.js'
import { readRecord } from './auditrecord.js'
import { texts } from './texts.js'

const t = texts.audit

/**
 * What a browser keeps of a log: whose it is, and the last checkpoint.
 * @typedef {{accessKey: string, origin: string, key: string, size: number, root: Uint8Array}} Seen
 */

/**
 * A checkpoint that was checked. signed is false where the browser can't check signatures.
 * @typedef {{origin: string, key: string, size: number, root: Uint8Array, signed: boolean, note: Uint8Array, older: number}} Head
 */

/**
 * A record, and what is wrong with it. fields is absent where the content is past its retention, or wrong.
 * @typedef {{number: number, content: Uint8Array | undefined, fields: import('./auditrecord.js').Fields | undefined, fault: string}} Proven
 */

/** The log of one tenant, as one access key reads it. */
export class AuditLog {
  /**
   * @param {string} accessKey
   * @param {(path: string) => Promise<Uint8Array>} read returns a file of the log
   */
  constructor(accessKey, read) {
    this.accessKey = accessKey
    this.read = read
    this.tiles = new Tiles(read)
  }

  /**
   * Returns the log's checkpoint. Throws a Fault if it is wrong, or does not continue what was seen of this log, or of
   * any log that this access key has read.
   * @param {readonly Seen[]} seen read before this call: the log grows meanwhile
   * @returns {Promise<Head>}
   */
  async head(seen) {
    const note = await this.read('checkpoint')
    const key = new TextDecoder().decode(await this.read('key')).trim()
    const c = await openCheckpoint(note, key)
    const before = seen.find((s) => s.origin === c.origin) ?? seen.find((s) => s.accessKey === this.accessKey)
    if (before && (before.origin !== c.origin || before.key !== key)) throw new Fault(t.otherKey)
    if (before) {
      if (before.size > c.size) throw new Fault(t.rolledBack(before.size, c.size))
      const proof = before.size > 0 ? await this.tiles.consistency(before.size, c.size) : []
      if (!(await consistent({ older: before, newer: c, proof }))) {
        this.tiles.known.clear()
        throw new Fault(t.forked(before.size))
      }
    }
    return { ...c, key, note, older: before?.size ?? 0 }
  }

  /**
   * Returns what is wrong if the server says that there is no log, or ''.
   * @param {readonly Seen[]} seen
   */
  absent(seen) {
    const before = seen.find((s) => s.accessKey === this.accessKey)
    return before ? t.rolledBack(before.size, 0) : ''
  }

  /**
   * Returns what a browser keeps of this log and of others.
   * @param {readonly Seen[]} seen
   * @param {Head} head
   * @returns {Seen[]}
   */
  remember(seen, { origin, key, size, root }) {
    const before = seen.find((s) => s.origin === origin)
    const now = before && before.size > size ? before : { origin, key, size, root }
    return [...seen.filter((s) => s.origin !== origin), { ...now, accessKey: this.accessKey }]
  }

  /**
   * Checks that the tree of a checkpoint has a record. content is its bytes in base64, or undefined if its retention has passed.
   * @param {Head} head
   * @param {number} number
   * @param {string | undefined} content
   * @returns {Promise<Proven>}
   */
  async prove(head, number, content) {
    /** @type {Proven} */
    const proven = { number, content: undefined, fields: undefined, fault: '' }
    try {
      if (content !== undefined) {
        proven.content = bytesOf(content)
        proven.fields = readRecord(proven.content)
      }
      if (number >= head.size) throw new Fault(t.beyond(head.size))
      const leaf = proven.content ? await leafHash(proven.content) : await this.tiles.leaf(number, head.size)
      const proof = await this.proof(head, number)
      if (!(await included({ leaf, index: number, size: head.size, root: head.root, proof }))) {
        this.tiles.known.clear()
        throw new Fault(t.notIncluded)
      }
    } catch (e) {
      if (!(e instanceof Fault)) throw e
      proven.fault = e.message
    }
    return proven
  }

  /**
   * Returns the inclusion proof of a record.
   * @param {Head} head
   * @param {number} number
   */
  proof(head, number) {
    return this.tiles.inclusion(number, head.size)
  }
}
