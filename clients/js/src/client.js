import { path } from './caller.js'
import * as models from './models.js'
import { GalleryOperations } from './operations/gallery.js'
import { V1 } from './operations/v1.js'
import { read } from './read.js'

/** @typedef {import('./caller.js').Options} Options */
/** @typedef {import('./caller.js').WriteOptions} WriteOptions */

/**
 * A gallery to create.
 * @typedef {object} NewGallery
 * @property {string} name
 * @property {number} size capacity in events
 * @property {number | undefined} [faceMinimumQualityScore] of its first application, 0.45 by default
 * @property {string | undefined} [description]
 * @property {number | undefined} [retentionDays] events expire so long after their last update
 * @property {boolean | undefined} [subjectTemplates] compares subjects also by the mean of their templates
 */

/**
 * Changes to a gallery. undefined changes nothing. size can only grow. retentionDays and
 * subjectTemplates count for what exists, too; 0 days are for ever.
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
 */

/**
 * An application to create.
 * @typedef {{galleryId: string, name: string} & ApplicationChange} NewApplication
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
    const { name, size, faceMinimumQualityScore = QUALITY, description = '', retentionDays, subjectTemplates } = gallery
    const body = { name, size, faceMinimumQualityScore, description, retentionDays, subjectTemplates }
    return read(models.gallery, await this.manage('POST', ['galleries'], gallery, body))
  }

  /**
   * Changes a gallery.
   * @param {string} galleryId
   * @param {GalleryChange & WriteOptions} change
   */
  async updateGallery(galleryId, change) {
    const { name, description, size, retentionDays, subjectTemplates } = change
    const body = { name, description, size, retentionDays, subjectTemplates }
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
   * @param {ApplicationChange & WriteOptions} change
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
   * Calls tenant management.
   * @protected
   * @param {'GET' | 'POST' | 'PATCH' | 'DELETE'} method
   * @param {string[]} segments
   * @param {WriteOptions | undefined} options
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
  return {
    name,
    description,
    faceMinimumQualityScore,
    verifyThreshold,
    enrolmentGuard,
    enrolmentGuardThreshold,
    multipleFaces,
  }
}
