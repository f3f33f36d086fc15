import { path } from '../caller.js'
import * as models from '../models.js'
import { read } from '../read.js'
import { FaceOperations } from './faces.js'
import { enrolmentFields } from './subjects.js'

/** @typedef {import('../caller.js').Options} Options */
/** @typedef {import('../caller.js').WriteOptions} WriteOptions */

/**
 * One photo of a bulk registration. filename is its name in the object store.
 * @typedef {{filename: string} & import('./subjects.js').EventFields & import('./subjects.js').SubjectFields} BulkItem
 */

/** Tags of a gallery, and jobs that register photos of the object store. */
export class GalleryOperations extends FaceOperations {
  /**
   * Returns the gallery's tags in order of creation.
   * @param {Options} [options]
   */
  async tags(options) {
    return read(models.tags, await this.call({ method: 'GET', path: '/v1.1/tags', options }))
  }

  /**
   * Creates a tag. When the answer to a try is lost, and a tag has the name at the next try, that
   * counts as success.
   * @param {string} name
   * @param {Options} [options]
   */
  async createTag(name, options) {
    await this.call({ method: 'POST', path: path('v1.1', 'tags', name), repeat: 'there', options })
  }

  /**
   * Renames a tag. Events keep it. When the answer to a try is lost, the next try may throw NotFound
   * although the tag was renamed.
   * @param {string} name
   * @param {string} newName
   * @param {Options} [options]
   */
  async renameTag(name, newName, options) {
    await this.call({ method: 'PUT', path: path('v1.1', 'tags', name), body: { newName }, options })
  }

  /**
   * Deletes a tag. Subjects and events stay.
   * @param {string} name
   * @param {Options} [options]
   */
  async deleteTag(name, options) {
    await this.call({ method: 'DELETE', path: path('v1.1', 'tags', name), repeat: 'gone', options })
  }

  /**
   * Starts a job that registers photos of the object store. Returns its batch id.
   * @param {readonly BulkItem[]} items
   * @param {WriteOptions} [options]
   */
  async bulkRegister(items, options) {
    const registrations = items.map((item) => ({ filename: item.filename, ...enrolmentFields(item) }))
    const at = '/v1.1/jobs/bulkregister'
    const answer = await this.call({ method: 'POST', path: at, body: { registrations }, repeat: 'keyed', options })
    return read(models.batch, answer).batchId
  }

  /**
   * Begins to look for pairs of subjects with at least this score, by default 9000, and returns the job's
   * id. The report of the gallery's former comparison goes. Needs the role admin.
   * @param {{threshold?: number | undefined} & WriteOptions} [options]
   */
  async beginDuplicates({ threshold, ...options } = {}) {
    const at = '/v1.1/jobs/duplicates'
    return read(models.batch, await this.call({ method: 'POST', path: at, body: { threshold }, repeat: 'keyed', options })).batchId
  }

  /**
   * Returns how far the comparison is and, after its end, a page of the pairs. after is the next of the
   * page before.
   * @param {{after?: string | undefined, length?: number | undefined} & Options} [options]
   */
  async duplicates({ after, length, ...options } = {}) {
    const query = [after && `after=${encodeURIComponent(after)}`, length && `length=${length}`].filter(Boolean).join('&')
    return read(models.duplicates, await this.call({ method: 'GET', path: '/v1.1/jobs/duplicates', query, options }))
  }

  /**
   * Iterates over all pairs of a comparison that has ended, group by group.
   * @param {Options} [options]
   */
  async *pairs(options) {
    let page = await this.duplicates(options)
    yield* page.pairs
    while (page.next !== undefined) {
      page = await this.duplicates({ ...options, after: page.next })
      yield* page.pairs
    }
  }

  /**
   * Drops the report, and ends a comparison under way.
   * @param {Options} [options]
   */
  async endDuplicates(options) {
    await this.call({ method: 'DELETE', path: '/v1.1/jobs/duplicates', repeat: 'gone', options })
  }

  /**
   * Returns the gallery's newest jobs, at most 1000, the one that changed last first.
   * @param {Options} [options]
   */
  async jobs(options) {
    return read(models.jobs, await this.call({ method: 'GET', path: '/v1.1/jobs/bulkregister', options })).jobs
  }

  /**
   * Returns a page of a job's records: the first one, or the one that pagingId names.
   * @param {string} batchId
   * @param {{pagingId?: string | undefined} & Options} [options]
   */
  async bulkProgress(batchId, { pagingId, ...options } = {}) {
    const at = path('v1.1', 'jobs', 'bulkregister', batchId, ...(pagingId ? [pagingId] : []))
    return read(models.bulkPage, await this.call({ method: 'GET', path: at, options }))
  }

  /**
   * Iterates over all records of a job.
   * @param {string} batchId
   * @param {Options} [options]
   */
  async *bulkRecords(batchId, options) {
    let pagingId = ''
    do {
      const page = await this.bulkProgress(batchId, { ...options, pagingId })
      yield* page.processed
      pagingId = page.lastEvaluatedKey
    } while (pagingId)
  }
}

/**
 * Returns the attributes of the face of a job's record, or undefined without a face.
 * @param {import('../models.js').BulkRecord} record
 */
export function recordAttributes({ attributesJson }) {
  return attributesJson ? read(models.attributes, JSON.parse(attributesJson)) : undefined
}
