import { photoBytes } from '../body.js'
import { path } from '../caller.js'
import * as models from '../models.js'
import { read } from '../read.js'
import { enrolmentFields, SubjectOperations } from './subjects.js'

/** @typedef {import('../body.js').Photo} Photo */
/** @typedef {import('../caller.js').Options} Options */
/** @typedef {import('./subjects.js').EventFields} EventFields */
/** @typedef {import('./subjects.js').SubjectFields} SubjectFields */

/**
 * One photo, or 2 to 10 photos of one person, each of which counts as a request.
 * @typedef {Photo | readonly Photo[]} Probe
 */

/**
 * @typedef {object} SearchOptions
 * @property {number | undefined} [threshold] the lowest score of a candidate, by default 7000
 * @property {number | undefined} [limit] the most events in the answer, by default 10
 * @property {readonly string[] | undefined} [tags] searches among events with at least one of them only
 */

/** Extraction, verification, search, all matches and checks of lists. */
export class FaceOperations extends SubjectOperations {
  /**
   * Returns the faces of a photo, largest first, and at most limit of them: by default 10, never
   * above 20.
   * @param {Photo} image
   * @param {{limit?: number | undefined} & Options} [options]
   */
  async extract(image, { limit, ...options } = {}) {
    const body = { faces: await photoBytes(image), limit }
    const answer = await this.call({ method: 'POST', path: '/v1.1/face/extract', body, options })
    return read(models.Faces, answer).faces.map((face) => face.attributes)
  }

  /**
   * Does what extract does, with measures and defects of each face.
   * @param {Photo} image
   * @param {{limit?: number | undefined} & Options} [options]
   */
  async extractMeasured(image, { limit, ...options } = {}) {
    const body = { faces: await photoBytes(image), limit, measures: true }
    return read(models.Faces, await this.call({ method: 'POST', path: '/v1.1/face/extract', body, options })).faces
  }

  /**
   * Returns the best score of a probe against the subject's events. Throws NotVerified below the
   * application's threshold.
   * @param {string} subjectId
   * @param {Probe} probe
   * @param {Options} [options]
   */
  async verifySubject(subjectId, probe, options) {
    return (await this.verify(subjectId, probe, options)).score
  }

  /**
   * Does what verifySubject does, and returns the subject, too. reference names the probe, in at most
   * 256 bytes, for people who review a doubtful score.
   * @param {string} subjectId
   * @param {Probe} probe
   * @param {Options & {reference?: string | undefined}} [options]
   */
  async verify(subjectId, probe, options) {
    const body = { id: subjectId, ...(await probeMember(probe)), reference: options?.reference }
    return read(models.Verified, await this.call({ method: 'POST', path: '/v1.1/face/verify', body, options }))
  }

  /**
   * Returns the score of two photos with one face each. Throws NotVerified below 7000. Needs no API
   * key.
   * @param {Photo} face
   * @param {Probe} probe
   * @param {Options} [options]
   */
  async verifyFaces(face, probe, options) {
    const body = { face: await photoBytes(face), ...(await probeMember(probe)) }
    const answer = await this.call({ method: 'POST', path: '/v1.1/face/verify', body, options })
    return read(models.Verified, answer).score
  }

  /**
   * Compares up to 200 photos, and with tokens of earlier ones up to 1,000 faces, with each other.
   * A text is a token. The service keeps nothing of them. Each photo counts as a request. Needs no
   * API key.
   * @param {readonly (Photo | string)[]} faces
   * @param {Options} [options]
   */
  async compare(faces, options) {
    const each = async (/** @type {Photo | string} */ face) =>
      typeof face === 'string' ? { token: face } : { face: await photoBytes(face) }
    const body = { faces: await Promise.all(faces.map(each)) }
    const answer = await this.call({ method: 'POST', path: '/v1.1/face/compare', body, options })
    return read(models.Comparison, answer)
  }

  /**
   * Returns the subjects that a probe may show. Nobody is an empty list.
   * @param {Probe} probe
   * @param {SearchOptions & Options} [options]
   */
  async search(probe, { threshold, limit, tags, ...options } = {}) {
    const body = { ...(await probeMember(probe)), threshold, limit, tags }
    const answer = await this.call({ method: 'POST', path: '/v1.1/face/search', body, empty: 'candidates', options })
    return read(models.SearchResult, answer)
  }

  /**
   * Returns a page of the gallery's subjects whose best score with a photo is at least threshold
   * (by default 7000). after is the next of the page before. Needs the role admin.
   * @param {Photo} probe
   * @param {{threshold?: number | undefined, length?: number | undefined, after?: string | undefined} & Options} [options]
   */
  async matchPage(probe, { threshold, length, after, ...options } = {}) {
    const body = { probe: await photoBytes(probe), threshold, length, after }
    return read(models.MatchPage, await this.call({ method: 'POST', path: '/v1.1/face/matches', body, options }))
  }

  /**
   * Iterates over all subjects at or above the threshold. One that stays at or above it meanwhile
   * occurs exactly once.
   * @param {Photo} probe
   * @param {{threshold?: number | undefined} & Options} [options]
   */
  async *matches(probe, options) {
    let page = await this.matchPage(probe, options)
    yield* page.candidates
    while (page.next !== undefined) {
      page = await this.matchPage(probe, { ...options, after: page.next })
      yield* page.candidates
    }
  }

  /**
   * Begins a check of a list: it tells what registrations would do, and enrols nothing. One node
   * keeps it in memory, until endCheck, until ten minutes without a row, or until the node stops.
   * @param {Options} [options]
   */
  async beginCheck(options) {
    return read(models.Check, await this.call({ method: 'POST', path: '/v1.1/face/checks', options }))
  }

  /**
   * Tells what register would do, and throws what it would. row is your number of the photo; the
   * same one again replaces itself. Throws NotFound with the reason UnknownCheck when the check is
   * lost.
   * @param {string} checkId
   * @param {number} row
   * @param {Photo} image
   * @param {EventFields & SubjectFields & Options} [options]
   */
  async checkRow(checkId, row, image, options = {}) {
    const body = { row, face: await photoBytes(image), ...enrolmentFields(options) }
    const answer = await this.call({ method: 'POST', path: path('v1.1', 'face', 'checks', checkId), body, options })
    return read(models.CheckedRow, answer)
  }

  /**
   * Ends a check: the service forgets its faces.
   * @param {string} checkId
   * @param {Options} [options]
   */
  async endCheck(checkId, options) {
    await this.call({ method: 'DELETE', path: path('v1.1', 'face', 'checks', checkId), repeat: 'gone', options })
  }
}

/**
 * Returns the member that has one photo, or that has several.
 * @param {Probe} probe
 */
async function probeMember(probe) {
  if (!Array.isArray(probe)) return { probe: await photoBytes(/** @type {Photo} */ (probe)) }
  return { probes: await Promise.all(probe.map(photoBytes)) }
}
