import { path } from './caller.js'
import * as models from './models.js'
import { GalleryOperations } from './operations/gallery.js'
import { V1 } from './operations/v1.js'
import { read } from './read.js'
import { applicationSettings, gallerySettings } from './settings.js'
import { escape } from './sign.js'

/** @typedef {import('./caller.js').Options} Options */
/** @typedef {import('./caller.js').WriteOptions} WriteOptions */
/** @typedef {import('./caller.js').ChangeOptions} ChangeOptions */

/** @typedef {import('./settings.js').GalleryChange} GalleryChange */
/** @typedef {import('./settings.js').ApplicationChange} ApplicationChange */

/**
 * A gallery to create. faceMinimumQualityScore is that of its first application, 0.45 by default.
 * @typedef {GalleryChange & {name: string, size: number, faceMinimumQualityScore?: number | undefined}} NewGallery
 */

/**
 * An application to create.
 * @typedef {ApplicationChange & {galleryId: string, name: string}} NewApplication
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
    return read(models.Galleries, await this.manage('GET', ['galleries'], options)).galleries
  }

  /**
   * Returns a gallery with its applications.
   * @param {string} galleryId
   * @param {Options} [options]
   */
  async gallery(galleryId, options) {
    return read(models.Gallery, await this.manage('GET', ['galleries', galleryId], options))
  }

  /**
   * Creates a gallery and an application for it. The answer has its API key.
   * @param {NewGallery & WriteOptions} gallery
   */
  async createGallery(gallery) {
    const body = { faceMinimumQualityScore: gallery.faceMinimumQualityScore ?? QUALITY, ...those(gallerySettings, gallery) }
    return read(models.Gallery, await this.manage('POST', ['galleries'], gallery, body))
  }

  /**
   * Changes a gallery.
   * @param {string} galleryId
   * @param {GalleryChange & ChangeOptions} change
   */
  async updateGallery(galleryId, change) {
    return read(models.Gallery, await this.manage('PATCH', ['galleries', galleryId], change, those(gallerySettings, change)))
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
    return read(models.Applications, await this.manage('GET', ['applications'], options)).applications
  }

  /**
   * Returns an application.
   * @param {string} applicationId
   * @param {Options} [options]
   */
  async application(applicationId, options) {
    return read(models.Application, await this.manage('GET', ['applications', applicationId], options))
  }

  /**
   * Creates an application of a gallery.
   * @param {NewApplication & WriteOptions} application
   */
  async createApplication(application) {
    const { galleryId, faceMinimumQualityScore = QUALITY } = application
    const body = { galleryId, ...those(applicationSettings, { ...application, faceMinimumQualityScore }) }
    return read(models.Application, await this.manage('POST', ['applications'], application, body))
  }

  /**
   * Changes an application.
   * @param {string} applicationId
   * @param {ApplicationChange & ChangeOptions} change
   */
  async updateApplication(applicationId, change) {
    const answer = await this.manage('PATCH', ['applications', applicationId], change, those(applicationSettings, change))
    return read(models.Application, answer)
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
    return read(models.AuditPage, await this.call({ method: 'GET', path: '/api/audit', query, portal: true, options: { signal } }))
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
 * Returns those of the settings that a request gives.
 * @param {Record<string, unknown>} settings
 * @param {Record<string, unknown>} request
 */
function those(settings, request) {
  return Object.fromEntries(Object.keys(settings).map((name) => [name, request[name]]))
}
