// Compares photos of persons with each other. The service extracts each photo once and answers a token of it; the
// tokens are then compared. Photos go to the service alone, and nothing of them stays.

/** @typedef {import('./client/index.js').Client} Client */
/** @typedef {import('./list.js').Row} Row */

/**
 * @typedef {object} Compared
 * @property {number} photos with a face
 * @property {number} persons
 * @property {import('./rates.js').Scores} scores
 * @property {{name: string, reason: string}[]} failed
 */

/** The most photos of one comparison. */
export const PHOTOS_MAX = 3000
const BATCH = 4 // photos of a request: the node works on one after the other
const AT_ONCE = 4
const BLOCK = 500 // two blocks fill a request
const TRIES = 5 // of a photo that the node had no time for
const NOT_DONE = 'NotDone'

/**
 * Compares all photos. A row's external id is its person.
 * @param {Client} client
 * @param {readonly Row[]} rows
 * @param {(done: number, of: number) => void} onProgress
 * @param {AbortSignal} signal
 * @returns {Promise<Compared>}
 */
export async function compareAll(client, rows, onProgress, signal) {
  const { tokens, failed } = await extractAll(client, rows, onProgress, signal)
  const names = [...new Set(tokens.map(({ row }) => row.externalId))]
  const place = new Map(names.map((name, i) => [name, i]))
  const persons = Int32Array.from(tokens, ({ row }) => place.get(row.externalId) ?? 0)
  const scores = new Int16Array((tokens.length * (tokens.length - 1)) / 2).fill(-1)
  const blocks = Math.ceil(tokens.length / BLOCK)
  for (let a = 0; a < blocks; a++) {
    for (let b = 0; b <= a; b++) {
      if (b === a && a > 0) continue // compared with the block before
      const places = [...new Set([...placesOf(b, tokens.length), ...placesOf(a, tokens.length)])]
      const answer = await client.compare(places.map((i) => tokens[i]?.token ?? ''), { signal })
      let at = 0
      for (let i = 1; i < places.length; i++) {
        for (let j = 0; j < i; j++, at++) {
          const [low, high] = [places[j] ?? 0, places[i] ?? 0]
          scores[(high * (high - 1)) / 2 + low] = answer.scores?.[at] ?? -1
        }
      }
    }
  }
  return { photos: tokens.length, persons: names.length, scores: { persons, scores }, failed }
}

/**
 * The places of a block.
 * @param {number} block
 * @param {number} length
 */
const placesOf = (block, length) => Array.from({ length: Math.min(BLOCK, length - block * BLOCK) }, (_, i) => block * BLOCK + i)

/**
 * @param {Client} client
 * @param {readonly Row[]} rows
 * @param {(done: number, of: number) => void} onProgress
 * @param {AbortSignal} signal
 */
async function extractAll(client, rows, onProgress, signal) {
  /** @type {{row: Row, token: string}[]} */
  const tokens = []
  /** @type {{name: string, reason: string}[]} */
  const failed = []
  const waiting = rows.map((row) => ({ row, tries: 0 }))
  const work = async () => {
    for (let batch = waiting.splice(0, BATCH); batch.length > 0 && !signal.aborted; batch = waiting.splice(0, BATCH)) {
      const { faces } = await client.compare(batch.map(({ row }) => /** @type {File} */ (row.file)), { signal })
      batch.forEach(({ row, tries }, i) => {
        const face = faces[i]
        if (face?.token) tokens.push({ row, token: face.token })
        else if (face?.error?.reason === NOT_DONE && tries < TRIES) waiting.push({ row, tries: tries + 1 })
        else failed.push({ name: row.name, reason: face?.error?.message ?? '' })
      })
      onProgress(tokens.length + failed.length, rows.length)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  signal.throwIfAborted()
  tokens.sort((a, b) => a.row.row - b.row.row)
  return { tokens, failed }
}
