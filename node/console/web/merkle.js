// Checks a tenant's audit log in the browser: hashes and proofs of RFC 6962, tiles, checkpoints and proofs of
// C2SP (docs/formats/audit.md). It believes nothing that a server sends: proofs are put together from
// the server's tiles, and then checked against the root hash that the log's key has signed.

const HEIGHT = 8
const WIDTH = 2 ** HEIGHT // hashes of a full tile
const HASH = 32 // bytes
const CHECKPOINT_MAX = 64 << 10
const NODES_MAX = 1 << 18 // hashes in memory
const EXTRA_MAX = 48_000 // bytes of an entry in a proof

/** Fault is thrown where a log is not what it must be. */
export class Fault extends Error {}

/** @typedef {Uint8Array<ArrayBuffer>} Bytes */
/** @typedef {{origin: string, size: number, root: Bytes}} Checkpoint */

const encoder = new TextEncoder()

/** @param {...Uint8Array} parts */
async function sha256(...parts) {
  const all = new Uint8Array(parts.reduce((n, p) => n + p.length, 0))
  let at = 0
  for (const p of parts) {
    all.set(p, at)
    at += p.length
  }
  return new Uint8Array(await crypto.subtle.digest('SHA-256', all))
}

/** Returns the hash of an entry. @param {Uint8Array} entry */
export const leafHash = (entry) => sha256(new Uint8Array([0]), entry)

/** @param {Uint8Array} left @param {Uint8Array} right */
const nodeHash = (left, right) => sha256(new Uint8Array([1]), left, right)

/** @param {Uint8Array} a @param {Uint8Array} b */
const same = (a, b) => a.length === b.length && a.every((byte, i) => byte === b[i])

/** @param {Uint8Array} bytes */
export const base64 = (bytes) => btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join(''))

/**
 * Returns the bytes of a base64 text in its only form.
 * @param {string} text
 * @returns {Bytes}
 */
export function bytesOf(text) {
  let bytes
  try {
    bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0))
  } catch {
    throw new Fault('A base64 text can’t be read.')
  }
  if (base64(bytes) !== text) throw new Fault('A base64 text has another form than the usual one.')
  return bytes
}

/**
 * Returns the path of the tile with this level and number in a tree of size entries, and its width.
 * @param {number} level
 * @param {number} n
 * @param {number} size
 */
export function tileIn(level, n, size) {
  const hashes = Math.floor(size / WIDTH ** level)
  const width = Math.min(WIDTH, hashes - n * WIDTH)
  const groups = [String(n % 1000).padStart(3, '0')]
  for (let rest = Math.floor(n / 1000); rest > 0; rest = Math.floor(rest / 1000)) groups.unshift(`x${String(rest % 1000).padStart(3, '0')}`)
  return { path: `tile/${level}/${groups.join('/')}${width < WIDTH ? `.p/${width}` : ''}`, width }
}

/** Returns the largest power of two below n, which is 2 or more. @param {number} n */
function split(n) {
  let k = 1
  while (2 * k < n) k *= 2
  return k
}

/** Hashes of a log, from its tiles. None of them is checked: checks are made of what they are put together to. */
export class Tiles {
  /** @param {(path: string) => Promise<Uint8Array>} read returns a file of the log */
  constructor(read) {
    this.read = read
    /** @type {Map<string, Promise<Uint8Array>>} */
    this.known = new Map()
  }

  /**
   * Returns what make returns the first time.
   * @param {string} name
   * @param {() => Promise<Uint8Array>} make
   */
  once(name, make) {
    const before = this.known.get(name)
    if (before) return before
    if (this.known.size >= NODES_MAX) this.known.clear()
    const made = make()
    this.known.set(name, made)
    made.catch(() => this.known.delete(name))
    return made
  }

  /**
   * Returns the hash of the 2 to the power of k entries from i times as many on.
   * @param {number} k
   * @param {number} i
   * @param {number} size
   * @returns {Promise<Uint8Array>}
   */
  node(k, i, size) {
    return this.once(`${k} ${i}`, async () => {
      if (k % HEIGHT) return nodeHash(await this.node(k - 1, 2 * i, size), await this.node(k - 1, 2 * i + 1, size))
      const { path, width } = tileIn(k / HEIGHT, Math.floor(i / WIDTH), size)
      const tile = await this.once(path, () => this.read(path))
      if (tile.length !== width * HASH) throw new Fault(`${path} has ${tile.length} bytes, not ${width * HASH}.`)
      return tile.subarray((i % WIDTH) * HASH, ((i % WIDTH) + 1) * HASH)
    })
  }

  /**
   * Returns the root of the entries from low up to high, as RFC 6962 defines it.
   * @param {number} low
   * @param {number} high
   * @param {number} size
   * @returns {Promise<Uint8Array>}
   */
  async range(low, high, size) {
    const n = high - low
    const k = Math.log2(n)
    if (Number.isInteger(k)) return this.node(k, low / n, size)
    const half = low + split(n)
    return nodeHash(await this.range(low, half, size), await this.range(half, high, size))
  }

  /**
   * Returns the hash of an entry as the tiles have it.
   * @param {number} index
   * @param {number} size
   */
  leaf(index, size) {
    return this.node(0, index, size)
  }

  /**
   * Returns the inclusion proof of an entry.
   * @param {number} index
   * @param {number} size
   */
  async inclusion(index, size) {
    const proof = []
    for (let low = 0, high = size; high - low > 1; ) {
      const half = low + split(high - low)
      proof.unshift(index < half ? this.range(half, high, size) : this.range(low, half, size))
      if (index < half) high = half
      else low = half
    }
    return Promise.all(proof)
  }

  /**
   * Returns the proof that the tree of size entries contains that of its first ones.
   * @param {number} older 1 or more
   * @param {number} size
   */
  async consistency(older, size) {
    const proof = []
    let [low, high, whole] = [0, size, true]
    while (older < high) {
      const half = low + split(high - low)
      proof.unshift(older <= half ? this.range(half, high, size) : this.range(low, half, size))
      if (older <= half) high = half
      else [low, whole] = [half, false]
    }
    if (!whole) proof.unshift(this.range(low, high, size))
    return Promise.all(proof)
  }
}

/**
 * Walks from a leaf to the root. step is told each hash of the proof, and whether it lies to the left.
 * It returns whether the proof has as many hashes as it must.
 * @param {number} at
 * @param {number} last
 * @param {readonly Uint8Array[]} proof
 * @param {(hash: Uint8Array, left: boolean) => Promise<void>} step
 */
async function climb(at, last, proof, step) {
  const up = () => ((at = Math.floor(at / 2)), (last = Math.floor(last / 2)))
  for (const hash of proof) {
    if (last === 0) return false
    const left = at % 2 === 1 || at === last
    await step(hash, left)
    if (left) while (at % 2 === 0 && at > 0) up()
    up()
  }
  return last === 0
}

/**
 * Reports whether a tree with the root has a leaf at index (RFC 9162, 2.1.3.2).
 * @param {{leaf: Uint8Array, index: number, size: number, root: Uint8Array, proof: readonly Uint8Array[]}} claim
 */
export async function included({ leaf, index, size, root, proof }) {
  if (!(index >= 0 && index < size)) return false
  let hash = leaf
  const whole = await climb(index, size - 1, proof, async (other, left) => {
    hash = left ? await nodeHash(other, hash) : await nodeHash(hash, other)
  })
  return whole && same(hash, root)
}

/**
 * Reports whether the second tree contains the first one (RFC 9162, 2.1.4.2).
 * @param {{older: {size: number, root: Uint8Array}, newer: {size: number, root: Uint8Array}, proof: readonly Uint8Array[]}} claim
 */
export async function consistent({ older, newer, proof }) {
  if (older.size > newer.size) return false
  if (older.size === newer.size) return proof.length === 0 && same(older.root, newer.root)
  if (older.size === 0) return proof.length === 0
  const whole = Number.isInteger(Math.log2(older.size))
  const [first, ...rest] = whole ? [older.root, ...proof] : proof
  if (!first) return false
  let [at, last] = [older.size - 1, newer.size - 1]
  while (at % 2 === 1) [at, last] = [Math.floor(at / 2), Math.floor(last / 2)]
  let [before, now] = [first, first]
  const long = await climb(at, last, rest, async (other, left) => {
    if (left) before = await nodeHash(other, before)
    now = left ? await nodeHash(other, now) : await nodeHash(now, other)
  })
  return long && same(before, older.root) && same(now, newer.root)
}

/**
 * Returns the name, the hash and the bytes of a log's verifier key.
 * @param {string} text
 */
async function readKey(text) {
  const [, name, hash, encoded] = /^([^+\s]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)$/.exec(text) ?? []
  const key = bytesOf(encoded ?? '')
  if (!name || key.length !== 1 + HASH || key[0] !== 1) throw new Fault('The log’s key can’t be read.')
  const sum = (await sha256(encoder.encode(`${name}\n`), key)).subarray(0, 4)
  if (Array.from(sum, (b) => b.toString(16).padStart(2, '0')).join('') !== hash) throw new Fault('The log’s key does not fit its name.')
  return { name, hash: sum, key: key.slice(1) }
}

/**
 * Returns whether a browser can check the signature of a text, and throws a Fault if it is wrong.
 * @param {Bytes} key
 * @param {Bytes} signature
 * @param {string} text
 */
async function checkSignature(key, signature, text) {
  let imported
  try {
    imported = await crypto.subtle.importKey('raw', key, 'Ed25519', false, ['verify'])
  } catch {
    return false // the browser has no Ed25519
  }
  if (!(await crypto.subtle.verify('Ed25519', imported, signature, encoder.encode(text)))) {
    throw new Fault('The signature under the log’s checkpoint is wrong.')
  }
  return true
}

/**
 * Returns the checkpoint that the owner of a key has signed. signed is false where the browser can't check
 * signatures. Throws a Fault for any other checkpoint.
 * @param {Uint8Array} note
 * @param {string} keyText
 * @returns {Promise<Checkpoint & {signed: boolean}>}
 */
export async function openCheckpoint(note, keyText) {
  if (note.length > CHECKPOINT_MAX) throw new Fault('The log’s checkpoint is too long.')
  const key = await readKey(keyText)
  const all = new TextDecoder('utf-8', { fatal: true }).decode(note)
  const [text, signatures] = [all.slice(0, all.indexOf('\n\n') + 1), all.slice(all.indexOf('\n\n') + 2)]
  const lines = text.split('\n')
  const [origin, size, root] = lines
  if (lines.length !== 4 || !origin || !/^(0|[1-9]\d{0,15})$/.test(size ?? '') || !signatures.endsWith('\n')) {
    throw new Fault('The log’s checkpoint can’t be read.')
  }
  const c = { origin, size: Number(size), root: bytesOf(root ?? '') }
  if (c.root.length !== HASH) throw new Fault('The log’s checkpoint can’t be read.')
  if (c.origin !== key.name) throw new Fault('The checkpoint and the key are those of different logs.')
  const signed = signatures.slice(0, -1).split('\n').map((line) => {
    const [, name, encoded] = /^\u2014 ([^ ]+) ([^ ]+)$/.exec(line) ?? []
    if (!name || !encoded) throw new Fault('The log’s checkpoint can’t be read.')
    return { name, signature: bytesOf(encoded) }
  })
  const own = signed.find(({ name, signature }) => name === key.name && same(signature.subarray(0, 4), key.hash)) // others are witnesses'
  if (!own) throw new Fault('The log’s key has not signed the checkpoint.')
  return { ...c, signed: await checkSignature(key.key, own.signature.slice(4), text) }
}

/**
 * Returns a proof in the form that "facet audit verify" takes (C2SP's tlog-proof).
 * @param {{index: number, content: Uint8Array | undefined, proof: readonly Uint8Array[], note: Uint8Array}} proven
 */
export function proofText({ index, content, proof, note }) {
  const lines = ['c2sp.org/tlog-proof@v1']
  if (content && content.length <= EXTRA_MAX) lines.push(`extra ${base64(content)}`)
  lines.push(`index ${index}`, ...proof.map(base64), '')
  return `${lines.join('\n')}\n${new TextDecoder().decode(note)}`
}
