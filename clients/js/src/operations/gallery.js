import { path } from '../caller.js'
import * as models from '../models.js'
import { list, read, string } from '../read.js'
import { FaceOperations } from './faces.js'
import { enrolmentFields } from './subjects.js'

/** @typedef {import('../caller.js').Options} Options */
/** @typedef {import('../caller.js').WriteOptions} WriteOptions */

/**
 * One photo of a bulk registration. filename is its name in the object store.
 * @typedef {{filename: string} & import('./subjects.js').EventFields & import('./subjects.js').SubjectFields} BulkItem
 */

const DIFFERENT = '/v1.1/jobs/duplicates/different'

/** Tags of a gallery, and jobs that register photos of the object store. */
export class GalleryOperations extends FaceOperations {
  /**
   * Returns the gallery's tags in order of creation.
   * @param {Options} [options]
   */
  async tags(options) {
    return read(list(string), await this.call({ method: 'GET', path: '/v1.1/tags', options }))
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
    return read(models.Batch, answer).batchId
  }

  /**
   * Begins to look for pairs of subjects with at least this score, by default 9000, and returns the job's
   * id. The report of the gallery's former comparison goes. Needs the role admin.
   * @param {{threshold?: number | undefined} & WriteOptions} [options]
   */
  async beginDuplicates({ threshold, ...options } = {}) {
    const at = '/v1.1/jobs/duplicates'
    return read(models.Batch, await this.call({ method: 'POST', path: at, body: { threshold }, repeat: 'keyed', options })).batchId
  }

  /**
   * Returns how far the comparison is and, after its end, a page of the pairs. after is the next of the
   * page before.
   * @param {{after?: string | undefined, length?: number | undefined} & Options} [options]
   */
  async duplicates({ after, length, ...options } = {}) {
    const query = [after && `after=${encodeURIComponent(after)}`, length && `length=${length}`].filter(Boolean).join('&')
    return read(models.Duplicates, await this.call({ method: 'GET', path: '/v1.1/jobs/duplicates', query, options }))
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
   * Says that two subjects are different people, so that reports leave their pair out. Needs the role admin.
   * @param {string} subjectId
   * @param {string} otherId
   * @param {Options} [options]
   */
  async setDifferent(subjectId, otherId, options) {
    await this.call({ method: 'PUT', path: path('v1.1', 'jobs', 'duplicates', 'different', subjectId, otherId), repeat: 'freely', options })
  }

  /**
   * Takes back that two subjects are different people.
   * @param {string} subjectId
   * @param {string} otherId
   * @param {Options} [options]
   */
  async unsetDifferent(subjectId, otherId, options) {
    await this.call({ method: 'DELETE', path: path('v1.1', 'jobs', 'duplicates', 'different', subjectId, otherId), repeat: 'gone', options })
  }

  /**
   * Iterates over the pairs of different subjects.
   * @param {Options} [options]
   */
  async *different(options) {
    let page = read(models.DifferentPairs, await this.call({ method: 'GET', path: DIFFERENT, options }))
    yield* page.pairs
    while (page.next !== undefined) {
      const query = `after=${encodeURIComponent(page.next)}`
      page = read(models.DifferentPairs, await this.call({ method: 'GET', path: DIFFERENT, query, options }))
      yield* page.pairs
    }
  }

  /**
   * Returns a page of the cases of the gallery, the oldest first: "open" or "closed" ones, or all. after
   * is the next of the page before. Needs the role admin or reviewer, as the other calls on cases do.
   * @param {Options & {state?: 'open' | 'closed' | undefined, after?: string | undefined, length?: number | undefined}} [options]
   */
  async casePage(options = {}) {
    const { state, after, length } = options
    const parts = Object.entries({ after, length, state }).filter(([, value]) => value !== undefined)
    const query = parts.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join('&')
    return read(models.CasePage, await this.call({ method: 'GET', path: '/v1.1/cases', query, options }))
  }

  /**
   * Iterates over the cases of a state, the oldest first.
   * @param {Options & {state?: 'open' | 'closed' | undefined}} [options]
   */
  async *cases(options = {}) {
    let page = await this.casePage(options)
    yield* page.cases
    while (page.next !== undefined) {
      page = await this.casePage({ ...options, after: page.next })
      yield* page.cases
    }
  }

  /**
   * Returns one case.
   * @param {string} caseId
   * @param {Options} [options]
   */
  async case(caseId, options) {
    return read(models.Case, await this.call({ method: 'GET', path: path('v1.1', 'cases', caseId), options }))
  }

  /**
   * Says whether both photos of a case show one person, and returns the case.
   * @param {string} caseId
   * @param {'same' | 'different'} verdict
   * @param {Options} [options]
   */
  async decide(caseId, verdict, options) {
    const body = { verdict }
    const answer = await this.call({ method: 'PUT', path: path('v1.1', 'cases', caseId, 'verdict'), body, repeat: 'freely', options })
    return read(models.Case, answer)
  }

  /**
   * Returns the gallery's newest jobs, at most 1000, the one that changed last first.
   * @param {Options} [options]
   */
  async jobs(options) {
    return read(models.Jobs, await this.call({ method: 'GET', path: '/v1.1/jobs/bulkregister', options })).jobs
  }

  /**
   * Returns a page of a job's records: the first one, or the one that pagingId names.
   * @param {string} batchId
   * @param {{pagingId?: string | undefined} & Options} [options]
   */
  async bulkProgress(batchId, { pagingId, ...options } = {}) {
    const at = path('v1.1', 'jobs', 'bulkregister', batchId, ...(pagingId ? [pagingId] : []))
    return read(models.BulkPage, await this.call({ method: 'GET', path: at, options }))
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
  return attributesJson ? read(models.Attributes, JSON.parse(attributesJson)) : undefined
}
