import { photoBytes } from '../body.js'
import { path } from '../caller.js'
import * as models from '../models.js'
import { read } from '../read.js'

/** @typedef {import('../body.js').Photo} Photo */
/** @typedef {import('../caller.js').Options} Options */
/** @typedef {import('../caller.js').WriteOptions} WriteOptions */

/** Version 1 of the interface, which has no events and no tags. New code should not use it. */
export class V1 {
  /** @param {import('../caller.js').Caller} caller */
  constructor(caller) {
    this.caller = caller
  }

  /**
   * Creates a subject. The answer has no event id.
   * @param {Photo} image
   * @param {WriteOptions} [options]
   */
  register(image, options) {
    return this.enrol('POST', '/v1/subjects', image, options)
  }

  /**
   * Replaces the subject's oldest event.
   * @param {string} subjectId
   * @param {Photo} image
   * @param {WriteOptions} [options]
   */
  update(subjectId, image, options) {
    return this.enrol('PUT', path('v1', 'subjects', subjectId), image, options)
  }

  /**
   * Removes a subject.
   * @param {string} subjectId
   * @param {Options} [options]
   */
  async unregister(subjectId, options) {
    await this.caller.call({ method: 'DELETE', path: path('v1', 'subjects', subjectId), repeat: 'gone', options })
  }

  /**
   * Returns the faces of a photo, at most 10. Throws NotFound when there is none.
   * @param {Photo} image
   * @param {Options} [options]
   */
  async extract(image, options) {
    const body = { faces: await photoBytes(image) }
    const answer = await this.caller.call({ method: 'POST', path: '/v1/face/extract', body, options })
    return read(models.Faces, answer).faces.map((face) => face.attributes)
  }

  /**
   * Returns the subjects that a photo may show, at most limit.
   * @param {Photo} probe
   * @param {{threshold?: number | undefined, limit?: number | undefined} & Options} [options]
   */
  async search(probe, { threshold, limit, ...options } = {}) {
    const body = { probe: await photoBytes(probe), threshold, limit }
    const answer = await this.caller.call({ method: 'POST', path: '/v1/face/search', body, empty: 'candidates', options })
    return read(models.SearchResult, answer)
  }

  /**
   * Returns the score of a probe against a subject. Throws NotVerified below the threshold.
   * @param {string} subjectId
   * @param {Photo} probe
   * @param {Options} [options]
   */
  async verify(subjectId, probe, options) {
    const body = { id: subjectId, probe: await photoBytes(probe) }
    const answer = await this.caller.call({ method: 'POST', path: '/v1/face/verify', body, options })
    return read(models.Verified, answer).score
  }

  /**
   * @param {'POST' | 'PUT'} method
   * @param {string} at
   * @param {Photo} image
   * @param {WriteOptions | undefined} options
   */
  async enrol(method, at, image, options) {
    const body = { face: await photoBytes(image) }
    return read(models.Registered, await this.caller.call({ method, path: at, body, repeat: 'keyed', options }))
  }
}
