// Registers the rows of a list, several at once. What is in stays known in this browser, so that the same list goes on
// after the page was closed. A row's Idempotency-Key has a random part of this browser's list: the same photo, imported
// anew after its subject was erased, is another registration.

import { Duplicate, external } from './client/index.js'
import { forget, keep, kept } from './keep.js'
import { explain } from './parts.js'
import { texts } from './texts.js'

/** @typedef {import('./client/index.js').Client} Client */
/** @typedef {import('./list.js').Row} Row */

/**
 * What became of a row.
 * @typedef {object} Outcome
 * @property {'registered' | 'added' | 'already' | 'skipped' | 'failed'} outcome
 * @property {string} [subjectId]
 * @property {string} [eventId]
 * @property {number} [quality]
 * @property {string} [reason]
 */

/**
 * What an application's imports have brought in.
 * @typedef {object} State
 * @property {string} list a random name
 * @property {Map<string, Outcome>} rows by their keys
 */

const AT_ONCE = 4
const SAVE_AFTER = 2000 // ms

/**
 * Registers rows with the client until all are done or the signal ends. Calls onOutcome for each.
 * @param {Client} client with the key of an application
 * @param {string} applicationId
 * @param {readonly Row[]} rows
 * @param {(row: Row, outcome: Outcome) => void} onOutcome
 * @param {AbortSignal} signal
 */
export async function importRows(client, applicationId, rows, onOutcome, signal) {
  const name = place(applicationId)
  const state = /** @type {State} */ ((await kept(name)) ?? { list: crypto.randomUUID(), rows: new Map() })
  await keep(name, state)
  let saved = Date.now()
  const save = async (/** @type {boolean} */ now) => {
    if (!now && Date.now() - saved < SAVE_AFTER) return
    saved = Date.now()
    await keep(name, state)
  }
  const seen = new Map()
  /** The rows of one person go one after the other: the first makes the subject. @type {Map<string, Promise<void>>} */
  const persons = new Map()
  let next = 0
  const work = async () => {
    for (let row = rows[next++]; row && !signal.aborted; row = rows[next++]) {
      const before = persons.get(row.externalId)
      const done = (async (/** @type {Row} */ r) => {
        if (r.externalId) await before
        const outcome = await one(client, r, state, seen, signal)
        if (!signal.aborted) onOutcome(r, outcome)
      })(row)
      if (row.externalId) persons.set(row.externalId, done)
      await done
      await save(false)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  await save(true)
}

/**
 * Forgets what was brought in: the same rows are then registered anew.
 * @param {string} applicationId
 */
export const forgetImports = (applicationId) => forget(place(applicationId))

const place = (/** @type {string} */ applicationId) => `import/${applicationId}`

/**
 * @param {Client} client
 * @param {Row} row
 * @param {State} state
 * @param {Map<string, number>} seen how often a key came before
 * @param {AbortSignal} signal
 * @returns {Promise<Outcome>}
 */
async function one(client, row, state, seen, signal) {
  if (row.problem || !row.file) return { outcome: 'failed', reason: row.problem ?? texts.list.noFile }
  try {
    const photo = new Uint8Array(await row.file.arrayBuffer())
    const same = await hash(state.list, row.externalId, photo)
    const before = seen.get(same) ?? 0
    seen.set(same, before + 1)
    const key = `${same}-${before}`
    const known = state.rows.get(key)
    if (known) return { ...known, outcome: 'already' }
    const outcome = await register(client, row, photo, key, state, signal)
    if (outcome.outcome !== 'skipped') state.rows.set(key, outcome)
    return outcome
  } catch (e) {
    return { outcome: 'failed', reason: explain(e) }
  }
}

/**
 * @param {Client} client
 * @param {Row} row
 * @param {Uint8Array} photo
 * @param {string} key
 * @param {State} state
 * @param {AbortSignal} signal
 * @returns {Promise<Outcome>}
 */
async function register(client, row, photo, key, state, signal) {
  const fields = { tags: row.tags.length > 0 ? row.tags : undefined, expires: row.expires, idempotencyKey: key, signal }
  const person = `person ${row.externalId}`
  if (row.externalId && state.rows.has(person)) {
    const added = await client.registerEvent(external(row.externalId), photo, fields)
    return { outcome: 'added', subjectId: added.id, eventId: added.eventId, quality: added.attributes.faceQualityScore }
  }
  try {
    const made = await client.register(photo, { ...fields, externalId: row.externalId || undefined, userData: row.userData })
    if (row.externalId) state.rows.set(person, { outcome: 'registered', subjectId: made.id })
    return { outcome: 'registered', subjectId: made.id, eventId: made.eventId, quality: made.attributes.faceQualityScore }
  } catch (e) {
    if (row.externalId && e instanceof Duplicate) return { outcome: 'skipped', reason: explain(e) }
    throw e
  }
}

/**
 * Returns a text for the row's list, external id and photo.
 * @param {string} list
 * @param {string} externalId
 * @param {Uint8Array} photo
 */
async function hash(list, externalId, photo) {
  const head = new TextEncoder().encode(`${list}\n${externalId}\n`)
  const all = new Uint8Array(head.length + photo.length)
  all.set(head)
  all.set(photo, head.length)
  const sum = new Uint8Array(await crypto.subtle.digest('SHA-256', all))
  return Array.from(sum.subarray(0, 20), (b) => b.toString(16).padStart(2, '0')).join('')
}
