import { path } from './caller.js'
import * as models from './models.js'
import { GalleryOperations } from './operations/gallery.js'
import { V1 } from './operations/v1.js'
import { read } from './read.js'
import { escape } from './sign.js'

/** @typedef {import('./caller.js').Options} Options */
/** @typedef {import('./caller.js').WriteOptions} WriteOptions */
/** @typedef {import('./caller.js').ChangeOptions} ChangeOptions */

/**
 * A gallery to create.
 * @typedef {object} NewGallery
 * @property {string} name
 * @property {number} size capacity in events
 * @property {number | undefined} [faceMinimumQualityScore] of its first application, 0.45 by default
 * @property {string | undefined} [description]
 * @property {number | undefined} [retentionDays] events expire so long after their last update
 * @property {boolean | undefined} [subjectTemplates] compares subjects also by the mean of their templates
 * @property {string | undefined} [photoLink] where people see the photo of a subject: an https URL with {externalId}
 * @property {string | undefined} [purpose] what the faces are processed for; it and the next two are for the record of processing
 * @property {string | undefined} [legalGround] what permits it
 * @property {string | undefined} [recipients] who else gets results
 */

/**
 * Changes to a gallery. undefined changes nothing. size can only grow. retentionDays and
 * subjectTemplates count for what exists, too; 0 days are for ever. An empty text is none.
 * @typedef {Partial<Omit<NewGallery, 'faceMinimumQualityScore'>>} GalleryChange
 */

/**
 * Changes to an application. undefined changes nothing.
 * @typedef {object} ApplicationChange
 * @property {string | undefined} [name]
 * @property {string | undefined} [description]
 * @property {number | undefined} [faceMinimumQualityScore] 0.45 to 1
 * @property {number | undefined} [verifyThreshold] 7000 by default
 * @property {boolean | undefined} [enrolmentGuard] refuses a person whom the gallery knows
 * @property {number | undefined} [enrolmentGuardThreshold] 7000 by default
 * @property {'refuse' | 'dominant' | undefined} [multipleFaces] "refuse" by default; with "dominant" a photo of
 *   several faces shows the one that is clearly meant
 * @property {number | undefined} [reviewThreshold] the lowest score of the review band; 0, the default, is none
 * @property {1 | 2 | undefined} [reviewVerdicts] how many verdicts close a case, 1 by default
 * @property {number | undefined} [reviewDays] how long a case stays open, 7 by default
 * @property {number | undefined} [searchThresholdMin] the lowest threshold of a search; 0, the default, is no bound
 * @property {number | undefined} [searchLimitMax] the largest limit of a search; 0, the default, is no bound
 */

/**
 * An application to create.
 * @typedef {{galleryId: string, name: string} & ApplicationChange} NewApplication
 */

/**
 * Which records of the audit log a page has. before is the next of the page before.
 * @typedef {object} AuditQuery
 * @property {string | undefined} [operation] a part of it, such as "search"
 * @property {string | undefined} [holder]
 * @property {string | undefined} [key] the access key
 * @property {string | undefined} [kind]
 * @property {number | undefined} [status]
 * @property {Date | undefined} [since]
 * @property {Date | undefined} [until]
 * @property {boolean | undefined} [reads] false leaves out reads of the log
 * @property {boolean | undefined} [content] each record has its bytes
 * @property {number | undefined} [before]
 * @property {number | undefined} [length] 1 to 200, 50 by default
 */

const QUALITY = 0.45 // the lowest one that the service takes

/**
 * Calls a cluster. Images are the bytes of image files. A client may serve any number of calls at
 * once.
 */
export class Client extends GalleryOperations {
  /** Returns the operations of version 1. */
  get v1() {
    return new V1(this)
  }

  /**
   * Returns the tenant's galleries.
   * @param {Options} [options]
   */
  async galleries(options) {
    return read(models.galleries, await this.manage('GET', ['galleries'], options)).galleries
  }

  /**
   * Returns a gallery with its applications.
   * @param {string} galleryId
   * @param {Options} [options]
   */
  async gallery(galleryId, options) {
    return read(models.gallery, await this.manage('GET', ['galleries', galleryId], options))
  }

  /**
   * Creates a gallery and an application for it. The answer has its API key.
   * @param {NewGallery & WriteOptions} gallery
   */
  async createGallery(gallery) {
    const { name, size, faceMinimumQualityScore = QUALITY, description = '' } = gallery
    const { retentionDays, subjectTemplates, photoLink, purpose, legalGround, recipients } = gallery
    const body = { name, size, faceMinimumQualityScore, description, retentionDays, subjectTemplates, photoLink, purpose, legalGround, recipients }
    return read(models.gallery, await this.manage('POST', ['galleries'], gallery, body))
  }

  /**
   * Changes a gallery.
   * @param {string} galleryId
   * @param {GalleryChange & ChangeOptions} change
   */
  async updateGallery(galleryId, change) {
    const { name, description, size, retentionDays, subjectTemplates, photoLink, purpose, legalGround, recipients } = change
    const body = { name, description, size, retentionDays, subjectTemplates, photoLink, purpose, legalGround, recipients }
    return read(models.gallery, await this.manage('PATCH', ['galleries', galleryId], change, body))
  }

  /**
   * Deletes a gallery with its subjects and applications.
   * @param {string} galleryId
   * @param {Options} [options]
   */
  async deleteGallery(galleryId, options) {
    await this.manage('DELETE', ['galleries', galleryId], options)
  }

  /**
   * Returns the tenant's applications.
   * @param {Options} [options]
   */
  async applications(options) {
    return read(models.applications, await this.manage('GET', ['applications'], options)).applications
  }

  /**
   * Returns an application.
   * @param {string} applicationId
   * @param {Options} [options]
   */
  async application(applicationId, options) {
    return read(models.application, await this.manage('GET', ['applications', applicationId], options))
  }

  /**
   * Creates an application of a gallery.
   * @param {NewApplication & WriteOptions} application
   */
  async createApplication(application) {
    const { galleryId, faceMinimumQualityScore = QUALITY, description = '' } = application
    const body = { galleryId, ...settings({ ...application, faceMinimumQualityScore, description }) }
    return read(models.application, await this.manage('POST', ['applications'], application, body))
  }

  /**
   * Changes an application.
   * @param {string} applicationId
   * @param {ApplicationChange & ChangeOptions} change
   */
  async updateApplication(applicationId, change) {
    const answer = await this.manage('PATCH', ['applications', applicationId], change, settings(change))
    return read(models.application, answer)
  }

  /**
   * Deletes an application. The service then refuses its API key.
   * @param {string} applicationId
   * @param {Options} [options]
   */
  async deleteApplication(applicationId, options) {
    await this.manage('DELETE', ['applications', applicationId], options)
  }

  /**
   * Returns a page of the tenant's audit log, the newest record first. Needs the role auditor or admin.
   * @param {AuditQuery & Options} [query]
   */
  async auditRecords({ signal, ...asked } = {}) {
    const query = Object.entries(asked)
      .flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${escape(value instanceof Date ? value.toISOString() : String(value))}`]))
      .sort()
      .join('&')
    return read(models.auditPage, await this.call({ method: 'GET', path: '/api/audit', query, portal: true, options: { signal } }))
  }

  /**
   * Returns a file of the audit log by its path in C2SP's tlog-tiles: "checkpoint", a tile, or a bundle
   * of entries. "key" is the log's verifier key. Needs the role auditor or admin.
   * @param {string} file
   * @param {Options} [options]
   */
  async auditFile(file, options) {
    const at = path('api', 'audit', ...file.split('/'))
    return /** @type {Uint8Array} */ (await this.call({ method: 'GET', path: at, portal: true, raw: true, options }))
  }

  /**
   * Calls tenant management.
   * @protected
   * @param {'GET' | 'POST' | 'PATCH' | 'DELETE'} method
   * @param {string[]} segments
   * @param {ChangeOptions | undefined} options
   * @param {Record<string, unknown>} [body]
   */
  manage(method, segments, options, body) {
    const repeat = /** @type {const} */ ({ GET: 'freely', DELETE: 'gone', POST: 'keyed', PATCH: 'keyed' })[method]
    const op = { method, path: path('api', ...segments), portal: true, repeat, options }
    return this.call(body ? { ...op, body } : op)
  }
}

/**
 * Returns the settings of an application that a request may have.
 * @param {ApplicationChange} given
 */
function settings(given) {
  const { name, description, faceMinimumQualityScore, verifyThreshold } = given
  const { enrolmentGuard, enrolmentGuardThreshold, multipleFaces } = given
  const { reviewThreshold, reviewVerdicts, reviewDays, searchThresholdMin, searchLimitMax } = given
  return {
    name,
    description,
    faceMinimumQualityScore,
    verifyThreshold,
    enrolmentGuard,
    enrolmentGuardThreshold,
    multipleFaces,
    reviewThreshold,
    reviewVerdicts,
    reviewDays,
    searchThresholdMin,
    searchLimitMax,
  }
}
