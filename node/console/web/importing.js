// Registers the rows of a list, several at once. Nothing is remembered: whether a row is in already, the service says. The same photo
// has the score 9999 and no other one has, so any browser goes on where another one stopped, at any time.

import { Duplicate, Refusal } from './client/index.js'
import { explain } from './parts.js'
import { texts } from './texts.js'

/** @typedef {import('./client/index.js').Client} Client */
/** @typedef {import('./client/models.js').Registered} Registered */
/** @typedef {import('./list.js').Row} Row */

/**
 * What becomes of a person whose external id the gallery knew before, as facet import has it: nothing, its oldest photo is replaced and
 * the others are added, or all are added.
 * @typedef {'skip' | 'replace' | 'add'} Known
 */

/**
 * What became of a row.
 * @typedef {object} Outcome
 * @property {'registered' | 'added' | 'replaced' | 'already' | 'skipped' | 'failed'} outcome
 * @property {string} [subjectId]
 * @property {string} [eventId]
 * @property {number} [quality]
 * @property {string} [reason]
 */

/**
 * An import.
 * @typedef {object} Run
 * @property {Client} client with the key of an application
 * @property {Known} known
 * @property {boolean} reads whether the key may look up who is enrolled; if not, known persons are skipped
 * @property {AbortSignal} signal ends it
 */

/** A person after the earlier rows: the subject, and whether its further photos are added. @typedef {{id: string, ours: boolean}} Person */

const AT_ONCE = 4
const SAME = 9999 // the score of a photo with itself

/**
 * Registers rows until all are done or the signal ends. Calls onOutcome for each.
 * @param {Run} run
 * @param {readonly Row[]} rows
 * @param {(row: Row, outcome: Outcome) => void} onOutcome
 */
export async function importRows(run, rows, onOutcome) {
  /** The rows of one person go one after the other: the first makes the subject. So do those that may be the same photo. @type {Map<string, Promise<Person | undefined>>} */
  const turns = new Map()
  let next = 0
  const work = async () => {
    for (let row = rows[next++]; row && !run.signal.aborted; row = rows[next++]) {
      const line = row.externalId ? `person ${row.externalId}` : `${row.file?.size} bytes`
      const turn = take(run, row, turns.get(line), onOutcome)
      turns.set(line, turn)
      await turn
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
}

/**
 * Registers a row when the row before it in its line is done. Returns the person, none without an external id.
 * @param {Run} run
 * @param {Row} row
 * @param {Promise<Person | undefined> | undefined} before
 * @param {(row: Row, outcome: Outcome) => void} onOutcome
 */
async function take(run, row, before, onOutcome) {
  let person = await before
  /** @type {Outcome} */
  let outcome
  try {
    ;[outcome, person] = await one(run, row, person)
  } catch (e) {
    outcome = { outcome: 'failed', reason: explain(e) }
  }
  if (!run.signal.aborted) onOutcome(row, outcome)
  return person
}

/**
 * @param {Run} run
 * @param {Row} row
 * @param {Person | undefined} person
 * @returns {Promise<[Outcome, Person | undefined]>}
 */
async function one(run, row, person) {
  if (row.problem || !row.file) return [{ outcome: 'failed', reason: row.problem ?? texts.list.noFile }, person]
  const photo = new Uint8Array(await row.file.arrayBuffer())
  if (person) return later(run, row, photo, person)
  if (!row.externalId) {
    const id = run.reads ? (await run.client.search(photo, { threshold: SAME, limit: 1, signal: run.signal })).candidates[0]?.id : undefined
    return id ? [{ outcome: 'already', subjectId: id }, undefined] : [await register(run, row, photo), undefined]
  }
  try {
    const made = await register(run, row, photo)
    return [made, { id: made.subjectId ?? '', ours: true }]
  } catch (e) {
    if (!(e instanceof Duplicate)) throw e
    const id = run.reads ? (await run.client.subjectsWith(row.externalId, { signal: run.signal })).subjects[0]?.id : ''
    if (id === undefined) throw e // the application's guard knows the face
    if (run.known !== 'replace') return later(run, row, photo, { id, ours: run.known === 'add' })
    return [done('replaced', await run.client.update(id, photo, fields(run, row))), { id, ours: true }]
  }
}

/**
 * Does what is told for a photo of a subject that is there. A person of whom this photo is in already came by this list, in an
 * earlier import, so the further ones are added.
 * @param {Run} run
 * @param {Row} row
 * @param {Uint8Array} photo
 * @param {Person} person
 * @returns {Promise<[Outcome, Person]>}
 */
async function later(run, row, photo, person) {
  const { id } = person
  if (run.reads && (await hasPhoto(run, id, photo))) return [{ outcome: 'already', subjectId: id }, { id, ours: true }]
  if (!person.ours) return [{ outcome: 'skipped', subjectId: id, reason: texts.import.knownBefore }, person]
  return [done('added', await run.client.registerEvent(id, photo, fields(run, row))), person]
}

/**
 * Reports whether a subject has this photo. Version 1 compares as 1.1 does, and opens no case for people to review.
 * @param {Run} run
 * @param {string} id
 * @param {Uint8Array} photo
 */
async function hasPhoto(run, id, photo) {
  try {
    return (await run.client.v1.verify(id, photo, { signal: run.signal })) === SAME
  } catch (e) {
    if (e instanceof Refusal && e.status === 404) return false
    throw e
  }
}

/**
 * @param {Run} run
 * @param {Row} row
 * @param {Uint8Array} photo
 */
async function register(run, row, photo) {
  return done('registered', await run.client.register(photo, { ...fields(run, row), externalId: row.externalId || undefined, userData: row.userData }))
}

/**
 * @param {Run} run
 * @param {Row} row
 */
const fields = ({ signal }, { tags, expires }) => ({ tags: tags.length > 0 ? tags : undefined, expires, signal })

/**
 * @param {Outcome['outcome']} outcome
 * @param {Registered} made
 * @returns {Outcome}
 */
const done = (outcome, made) => ({ outcome, subjectId: made.id, eventId: made.eventId, quality: made.attributes.faceQualityScore })
