import { photoBytes } from '../body.js'
import { Caller, path } from '../caller.js'
import { FacetError } from '../errors.js'
import * as models from '../models.js'
import { read } from '../read.js'
import { escape } from '../sign.js'

/** @typedef {import('../body.js').Photo} Photo */
/** @typedef {import('../caller.js').Options} Options */
/** @typedef {import('../caller.js').WriteOptions} WriteOptions */
/** @typedef {import('../models.js').Registered} Registered */
/** @typedef {import('../models.js').SubjectList} SubjectList */

/**
 * What an enrolment may have beside its photo. In an update of an event undefined keeps its tags
 * and its time, [] and '' remove them.
 * @typedef {object} EventFields
 * @property {readonly string[] | undefined} [tags]
 * @property {Date | '' | undefined} [expires] when the event is removed
 */

/**
 * What a subject may have, too. In an update undefined keeps both, '' and {} remove them.
 * @typedef {object} SubjectFields
 * @property {string | undefined} [externalId] your own id of the subject, unique in the gallery
 * @property {Record<string, unknown> | undefined} [userData] any JSON object of at most 1,024 bytes
 */

/** @typedef {'asc' | 'desc'} Order */

/**
 * A part of the subject list.
 * @typedef {object} Page
 * @property {number | undefined} [start]
 * @property {number | undefined} [length] 1 to 1000, by default 1000
 * @property {Order | undefined} [order]
 * @property {string | undefined} [after] the next of an earlier page; it has the order, and excludes start
 */

const PAGE = 1000 // the longest page of the subject list

/** Health, the access key, subjects and events. */
export class SubjectOperations extends Caller {
  /**
   * Throws unless the service answers that it is healthy.
   * @param {Options} [options]
   */
  async health(options) {
    const { status } = read(models.Health, await this.call({ method: 'GET', path: '/v1.1/health', options }))
    if (status !== 'OK') throw new FacetError(`health: ${status}`)
  }

  /**
   * Returns what the client's access key may do. Throws Forbidden if it can't use the client's API key.
   * @param {Options} [options]
   */
  async whoami(options) {
    return read(models.Whoami, await this.call({ method: 'GET', path: '/v1.1/whoami', options }))
  }

  /**
   * Creates a subject with one event.
   * @param {Photo} image
   * @param {EventFields & SubjectFields & WriteOptions} [options]
   */
  register(image, options) {
    return this.enrol('POST', '/v1.1/subjects', image, options)
  }

  /**
   * Replaces the subject's oldest event.
   * @param {string} subjectId
   * @param {Photo} image
   * @param {EventFields & SubjectFields & WriteOptions} [options]
   */
  update(subjectId, image, options) {
    return this.enrol('PUT', path('v1.1', 'subjects', subjectId), image, options)
  }

  /**
   * Removes a subject with its events.
   * @param {string} subjectId
   * @param {Options} [options]
   */
  async unregister(subjectId, options) {
    await this.call({ method: 'DELETE', path: path('v1.1', 'subjects', subjectId), repeat: 'gone', options })
  }

  /**
   * Returns the ids of a subject's events.
   * @param {string} subjectId
   * @param {Options} [options]
   */
  async events(subjectId, options) {
    return (await this.listEvents(subjectId, options)).map((event) => event.id)
  }

  /**
   * Returns a subject's events.
   * @param {string} subjectId
   * @param {Options} [options]
   */
  async listEvents(subjectId, options) {
    return (await this.subject(subjectId, options)).events
  }

  /**
   * Returns a subject.
   * @param {string} subjectId
   * @param {Options} [options]
   */
  async subject(subjectId, options) {
    const answer = await this.call({ method: 'GET', path: path('v1.1', 'subjects', subjectId, 'events'), options })
    return read(models.Subject, answer)
  }

  /**
   * Adds an event to a subject.
   * @param {string} subjectId
   * @param {Photo} image
   * @param {EventFields & WriteOptions} [options]
   */
  registerEvent(subjectId, image, options) {
    return this.enrol('POST', path('v1.1', 'subjects', subjectId, 'events'), image, options)
  }

  /**
   * Replaces the photo of an event.
   * @param {string} subjectId
   * @param {string} eventId
   * @param {Photo} image
   * @param {EventFields & WriteOptions} [options]
   */
  updateEvent(subjectId, eventId, image, options) {
    return this.enrol('PUT', path('v1.1', 'subjects', subjectId, 'events', eventId), image, options)
  }

  /**
   * Removes an event. Removing the last one removes the subject.
   * @param {string} subjectId
   * @param {string} eventId
   * @param {Options} [options]
   */
  async unregisterEvent(subjectId, eventId, options) {
    const at = path('v1.1', 'subjects', subjectId, 'events', eventId)
    await this.call({ method: 'DELETE', path: at, repeat: 'gone', options })
  }

  /**
   * Moves the events of the subject source, with new ids, to another subject of the gallery, and
   * removes source. It takes about five seconds.
   * @param {string} subjectId
   * @param {string} source
   * @param {WriteOptions} [options]
   */
  async merge(subjectId, source, options) {
    const at = path('v1.1', 'subjects', subjectId, 'merge')
    await this.call({ method: 'POST', path: at, body: { source }, repeat: 'keyed', options })
  }

  /**
   * Returns a part of the subject list, in order of the last update. It may be empty.
   * @param {Page & Options} [page]
   */
  subjects({ start, length = PAGE, order, after, ...options } = {}) {
    return this.list({ after, dir: order, length, start: after === undefined ? (start ?? 0) : start }, options)
  }

  /**
   * Returns the active events of the subject that has an external id. The list may be empty.
   * @param {string} externalId
   * @param {Options} [options]
   */
  subjectsWith(externalId, options) {
    return this.list({ externalId }, options)
  }

  /**
   * Returns a part of the list of what expires before a time, soonest first. total counts all of
   * it. Changes nothing.
   * @param {Date} before
   * @param {Pick<Page, 'length' | 'after'> & Options} [page]
   */
  expiring(before, { length = PAGE, after, ...options } = {}) {
    return this.list({ after, expiresBefore: before.toISOString(), length }, options)
  }

  /**
   * Iterates over the whole subject list. An entry that stays as it is meanwhile occurs exactly
   * once. A changed subject has another entry at the end of the list, so it may occur twice in
   * ascending order, and be missing in descending order.
   * @param {{order?: Order | undefined} & Options} [options]
   */
  async *allSubjects({ order = 'asc', ...options } = {}) {
    let page = await this.subjects({ ...options, order })
    if (page.next === undefined && page.subjects.length < page.total) {
      throw new FacetError('the service gives no cursors: upgrade all of its nodes')
    }
    yield* page.subjects
    while (page.next !== undefined) {
      page = await this.subjects({ ...options, after: page.next })
      yield* page.subjects
    }
  }

  /**
   * @protected
   * @param {Record<string, string | number | undefined>} parameters in order of their names
   * @param {Options | undefined} options
   * @returns {Promise<SubjectList>}
   */
  async list(parameters, options) {
    const query = Object.entries(parameters)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => `${name}=${escape(String(value))}`)
      .join('&')
    const answer = await this.call({ method: 'GET', path: '/v1.1/subjects', query, empty: 'subjects', options })
    return read(models.SubjectList, answer)
  }

  /**
   * Sends the photo of an enrolment.
   * @protected
   * @param {'POST' | 'PUT'} method
   * @param {string} at
   * @param {Photo} image
   * @param {EventFields & SubjectFields & WriteOptions} [options]
   * @returns {Promise<Registered>}
   */
  async enrol(method, at, image, options = {}) {
    const body = { face: await photoBytes(image), ...enrolmentFields(options) }
    return read(models.Registered, await this.call({ method, path: at, body, repeat: 'keyed', options }))
  }
}

/**
 * Returns the members of an enrolment's body beside the photo.
 * @param {EventFields & SubjectFields} fields
 */
export function enrolmentFields({ tags, externalId, userData, expires }) {
  return { tags, externalId, userData, expires: expires && expires.toISOString() }
}

/**
 * Returns what stands for the id of the subject with an external id, as a subjectId.
 * @param {string} externalId
 */
export function external(externalId) {
  return `externalId:${externalId}`
}
