// The errors of this package.

const RETRY_AFTER_MAX = 60 // seconds; a refusal with a longer Retry-After is final

/** Base of all errors of this package. */
export class FacetError extends Error {
  /**
   * @param {string} message
   * @param {ErrorOptions} [options]
   */
  constructor(message, options) {
    super(message, options)
    this.name = new.target.name
  }
}

/** No node gave an answer. A write may or may not have had its effect. */
export class NoAnswer extends FacetError {}

/** Thrown by a transport when a node's certificate is not valid for it. */
export class ForeignCertificate extends FacetError {}

/** An answer that reports a refusal or a failure. */
export class Refusal extends FacetError {
  /**
   * @param {string} operation
   * @param {number} status
   * @param {Record<string, unknown>} body
   * @param {(name: string) => string | null} header
   */
  constructor(operation, status, body, header) {
    const detail = String(body['message'] || `status ${status}`)
    const errorType = typeof body['errorType'] === 'string' ? body['errorType'] : ''
    const reason = typeof body['reason'] === 'string' ? body['reason'] : ''
    const requestId = header('x-request-id') ?? ''
    const kind = errorType && ` ${errorType}`
    const why = reason && ` (${reason})`
    super(`${operation}: ${status}${kind}${why}: ${detail} [request ${requestId}]`)
    /** Method and path. */
    this.operation = operation
    /** Of HTTP. It is 0 for a redirect in a browser, which is never followed. */
    this.status = status
    /** What the service says to people, without the rest of `message`. */
    this.detail = detail
    /** The interface's errorCode, or 0. */
    this.errorCode = Number(body['errorCode'] ?? 0)
    this.errorType = errorType
    /** Finer detail, or ''. */
    this.reason = reason
    /**
     * The score of a verification below its threshold, else undefined.
     * @type {number | undefined}
     */
    this.score = typeof body['score'] === 'number' ? body['score'] : undefined
    /**
     * The case that a verification in the review band has opened (reason Doubtful), else undefined.
     * @type {string | undefined}
     */
    this.caseId = typeof body['caseId'] === 'string' ? body['caseId'] : undefined
    /** The wait in seconds that the service asks for, or 0. */
    this.retryAfter = seconds(header('retry-after'))
    /** Identifies the request in the service's logs. */
    this.requestId = requestId
  }

  /** Reports whether another try may succeed soon. */
  get again() {
    if (this.retryAfter > RETRY_AFTER_MAX || (this.reason === 'Quota' && !this.retryAfter)) return false
    return this.status >= 500 || this.status === 408 || this.status === 429
  }
}

/** 400, errorCode 1001. */
export class InvalidRequest extends Refusal {}

/** No free slot, and no deleted entry to recycle. */
export class GalleryFull extends InvalidRequest {}

/** The gallery has no such tag. */
export class UnknownTag extends InvalidRequest {}

/** The file is not an image, or its format is not supported. */
export class UnreadableImage extends InvalidRequest {}

/** 400, errorCode 1002. */
export class Duplicate extends Refusal {}

/** 500, errorCode 1003: the service ran out of time at every try. */
export class ServiceTimeout extends Refusal {}

/** 400, errorCode 2001. */
export class NoFace extends Refusal {}

/** 400, errorCode 2002. `reason` names a defect of the photo. */
export class PoorQuality extends Refusal {}

/** 400, errorCode 2003. */
export class MultipleFaces extends Refusal {}

/** 5xx at every try. */
export class ServerFault extends Refusal {}

/** 403: the signature, the role of the access key, or the API key. */
export class Forbidden extends Refusal {}

/** 404, except NotVerified and SubjectMerged. */
export class NotFound extends Refusal {}

/** 404 of a removal: another subject, which the message names, has the faces. */
export class SubjectMerged extends Refusal {}

/** 404 of a verification below its threshold. `score` is set, and `caseId` if people review it. */
export class NotVerified extends Refusal {}

/** 412: the settings were changed since the ETag in `ifMatch` was read. Nothing is changed. */
export class OtherSettings extends Refusal {}

/** 429. */
export class Busy extends Refusal {}

/** @typedef {typeof Refusal} Kind */

/** @type {Map<string, Kind>} */
const BY_REASON = new Map([
  ['400 GalleryFull', GalleryFull],
  ['400 UnknownTag', UnknownTag],
  ['400 UnreadableImage', UnreadableImage],
  ['404 NotVerified', NotVerified],
  ['404 Doubtful', NotVerified],
  ['404 SubjectMerged', SubjectMerged],
])

/** @type {Map<string, Kind>} */
const BY_TYPE = new Map([
  ['InvalidRequest', InvalidRequest],
  ['Duplicate', Duplicate],
  ['Timeout', ServiceTimeout],
  ['NoFace', NoFace],
  ['PoorQuality', PoorQuality],
  ['MultipleFaces', MultipleFaces],
])

/** @type {Map<number, Kind>} */
const BY_STATUS = new Map([
  [403, Forbidden],
  [404, NotFound],
  [412, OtherSettings],
  [429, Busy],
])

/**
 * Returns the error in an answer. Ignores a body that is not a JSON object, which a proxy may send.
 * @param {string} operation
 * @param {import('./transport.js').Answer} answer
 * @returns {Refusal}
 */
export function refusal(operation, answer) {
  const body = jsonObject(answer.body)
  const Kind =
    BY_REASON.get(`${answer.status} ${body['reason']}`) ??
    BY_TYPE.get(String(body['errorType'])) ??
    BY_STATUS.get(answer.status) ??
    (answer.status >= 500 ? ServerFault : Refusal)
  return new Kind(operation, answer.status, body, answer.header)
}

/**
 * Returns the JSON object in bytes, or an empty one.
 * @param {Uint8Array} bytes
 * @returns {Record<string, unknown>}
 */
export function jsonObject(bytes) {
  try {
    const value = JSON.parse(new TextDecoder().decode(bytes))
    return value !== null && typeof value === 'object' && !Array.isArray(value) ? value : {}
  } catch {
    return {}
  }
}

/** @param {string | null} header */
function seconds(header) {
  return header !== null && /^\d+$/.test(header) ? Number(header) : 0
}
