// The service's answers. Members have the interface's names; a member that is absent there is
// absent here, unless it has a default.

import { anyObject, boolean, date, integer, list, named, number, object, optional, or, string } from './read.js'
import { applicationSettings, gallerySettings } from './settings.js'

/** @template R @typedef {import('./read.js').Read<R>} Read */

/** @template T @returns {T[]} */
const none = () => []

/**
 * A place in an image, in pixels.
 * @typedef {Read<typeof point>} Point
 */
const point = object({ x: integer, y: integer })

/**
 * A part of an image, in pixels.
 * @typedef {Read<typeof rectangle>} Rectangle
 */
const rectangle = object({ left: integer, top: integer, right: integer, bottom: integer })

/**
 * A face. Right and left are the person's own, angles are in degrees.
 * @typedef {Read<typeof attributes>} Attributes
 */
export const attributes = object({
  faceArea: rectangle,
  headArea: rectangle,
  rightEyeCenter: point,
  leftEyeCenter: point,
  faceScore: number,
  frontalFaceScore: number,
  faceQualityScore: number,
  faceRoll: number,
  facePan: number,
  faceTilt: number,
})

/**
 * A native measure, and the quality component made of it, 0 (bad) to 100.
 * @typedef {Read<typeof measure>} Measure
 */
const measure = object({ native: number, component: number })

/** The faces of a photo, as extract returns them. */
export const faces = object({ faces: list(object({ attributes })) })

/**
 * A face of a photo with what extractMeasured asks for.
 * @typedef {Read<typeof seenFace>} SeenFace
 */
const seenFace = object({
  attributes,
  /** How the face was photographed, by the components of ISO/IEC 29794-5, for example "sharpness". */
  measures: named(measure),
  /** Reasons for which an enrolment would refuse the face, for example "FaceCut". */
  defects: list(string),
})
export const seenFaces = object({ faces: list(seenFace) })

/**
 * A face on a photo beside the one that was taken. Only an application with multipleFaces
 * "dominant" ignores some.
 * @typedef {Read<typeof ignoredFace>} IgnoredFace
 */
const ignoredFace = object({ faceArea: rectangle, faceQualityScore: number })
const ignoredFaces = or(list(ignoredFace), none)

/**
 * The answer to a registration or an update. Version 1 has no eventId.
 * @typedef {Read<typeof registered>} Registered
 */
export const registered = object({ id: string, eventId: or(string, () => ''), attributes, ignoredFaces })

/** What a client has stored with a subject. */
const own = {
  /** The client's own id of the subject. */
  externalId: optional(string),
  userData: optional(anyObject),
}

/**
 * One line of the subject list. It is one event.
 * @typedef {Read<typeof entry>} Entry
 */
const entry = object({
  id: string,
  eventId: string,
  /** "A" (active) or "D" (deleted). */
  status: string,
  lastUpdated: date,
  ...own,
  /** When it expires, of itself or by its gallery's retention. */
  expires: optional(date),
})

/**
 * An event of a subject.
 * @typedef {Read<typeof event>} Event
 */
const event = object({ id: string, expires: optional(date) })

/**
 * A subject with its active events, in order of registration.
 * @typedef {Read<typeof subject>} Subject
 */
export const subject = object({ id: string, events: list(event), ...own })

/**
 * A part of the subject list.
 * @typedef {Read<typeof subjectList>} SubjectList
 */
export const subjectList = object({
  subjects: list(entry),
  /** Entries of the whole list. */
  total: integer,
  /** The cursor of the page that follows, if one does. Every node of the service takes it. */
  next: optional(string),
})

/**
 * An event and its similarity to the probe.
 * @typedef {Read<typeof scored>} Scored
 */
const scored = object({ id: string, score: integer })

/**
 * A subject that a probe may show. Version 1 has no events.
 * @typedef {Read<typeof candidate>} Candidate
 */
const candidate = object({
  id: string,
  /** The larger of subjectScore and the score of the best event. */
  score: integer,
  events: or(list(scored), none),
  ...own,
  /** The score of the subject's own template, if the search used one. */
  subjectScore: optional(integer),
})

/**
 * A photo of several probes.
 * @typedef {Read<typeof probed>} Probed
 */
const probed = object({ attributes, ignoredFaces })
const probes = or(list(probed), none)

/**
 * A subject that a probe shows.
 * @typedef {Read<typeof verified>} Verified
 */
export const verified = object({ id: string, score: integer, ...own, ignoredFaces, probes })

/** The score of a verification. */
export const verification = object({ score: integer })

/**
 * The candidates, best first, and the attributes of the probe. With several photos, probes has
 * those of each, and attributes are those of the first. doubtful are candidates whose scores are in
 * the application's review band, below the threshold.
 * @typedef {Read<typeof searchResult>} SearchResult
 */
export const searchResult = object({
  candidates: list(candidate),
  attributes,
  ignoredFaces,
  probes,
  doubtful: or(list(candidate), none),
})

/**
 * What the holder of an access key has said of a case: "same" or "different".
 * @typedef {Read<typeof verdict>} Verdict
 */
const verdict = object({ verdict: string, holder: optional(string), time: date })

/**
 * A verification with a score in the review band of its application. state is "open", "same",
 * "different", "disputed", "expired" or "erased". An open case has the caller's own verdict only.
 * @typedef {Read<typeof reviewCase>} Case
 */
export const reviewCase = object({
  id: string,
  state: string,
  applicationId: string,
  subjectId: optional(string),
  externalId: optional(string),
  score: optional(integer),
  threshold: optional(integer),
  /** The client's name of the probe. */
  reference: optional(string),
  created: date,
  /** Of an open case. */
  expires: optional(date),
  closed: optional(date),
  verdictsNeeded: optional(integer),
  verdictsGiven: integer,
  verdicts: list(verdict),
  /** That of the gallery. Not in a list. */
  photoLink: optional(string),
})

/**
 * A page of cases, the oldest first. total counts all that the wanted state selects.
 * @typedef {Read<typeof casePage>} CasePage
 */
export const casePage = object({ total: integer, cases: list(reviewCase), photoLink: optional(string), next: optional(string) })

/**
 * A face of a comparison. A photo has attributes and a token, or an error; a token has none.
 * @typedef {Read<typeof comparedFace>} ComparedFace
 */
const comparedFace = object({
  attributes: optional(attributes),
  /** Stands for the photo in later comparisons, to any node, until expires. */
  token: optional(string),
  /** What a verification with this photo would answer. */
  error: optional(object({ message: string, errorCode: or(integer, () => 0), errorType: or(string, () => ''), reason: or(string, () => '') })),
})

/**
 * Faces in the order of the request, and the score of each with each one before it: (1,0), (2,0),
 * (2,1), (3,0) … A pair without a score is -1. Without scores the node had no time for them: send
 * the tokens.
 * @typedef {Read<typeof comparison>} Comparison
 */
export const comparison = object({
  faces: list(comparedFace),
  scores: optional(list(or(integer, () => -1))),
  expires: optional(date),
})

/**
 * A subject with its best 50 events at or above the threshold.
 * @typedef {Read<typeof match>} Match
 */
const match = object({
  id: string,
  score: integer,
  /** If subjectScore alone reaches the threshold, the best event. */
  events: list(scored),
  /** How many events are at or above the threshold. */
  eventCount: integer,
  subjectScore: optional(integer),
})

/**
 * A page of matches in the order of ids. The last page has no next.
 * @typedef {Read<typeof matchPage>} MatchPage
 */
export const matchPage = object({ candidates: list(match), next: optional(string), ignoredFaces })

/**
 * A check of a list. rowsMax is the most rows with a face.
 * @typedef {Read<typeof check>} Check
 */
export const check = object({ id: string, rowsMax: integer })

/**
 * A row of a check and its similarity to another one.
 * @typedef {Read<typeof scoredRow>} ScoredRow
 */
const scoredRow = object({ row: integer, score: integer })

/**
 * What the registration of a row would do.
 * @typedef {Read<typeof checkedRow>} CheckedRow
 */
export const checkedRow = object({
  row: integer,
  /** Other rows so far that show the same person. */
  rows: list(scoredRow),
  /** Enrolled subjects that do. */
  candidates: list(candidate),
  attributes,
  /** The subject that has the external id. */
  known: optional(string),
  ignoredFaces,
})

/** The tags of a gallery. */
export const tags = list(string)

/** The id of a job. */
export const batch = object({ batchId: string })

/**
 * The state of one photo of a job.
 * @typedef {Read<typeof bulkRecord>} BulkRecord
 */
const bulkRecord = object({
  id: string,
  filename: string,
  /** "New" or "Processed". */
  status: string,
  attempts: integer,
  /** Of a processed photo: "Success", then the ids are set, or "Failed", then reason is. */
  registerStatus: or(string, () => ''),
  reason: or(string, () => ''),
  subjectId: or(string, () => ''),
  eventId: or(string, () => ''),
  /** The face's attributes; recordAttributes reads them. */
  attributesJson: or(string, () => ''),
  ...own,
  ignoredFaces,
})

/**
 * A page of a job's records. lastEvaluatedKey is the next paging id, "" on the last page.
 * @typedef {Read<typeof bulkPage>} BulkPage
 */
export const bulkPage = object({ batchId: string, processed: list(bulkRecord), lastEvaluatedKey: or(string, () => '') })

/**
 * How far a job is: done of total photos were registered or have failed.
 * @typedef {Read<typeof job>} Job
 */
const job = object({ batchId: string, total: integer, done: integer, lastUpdated: date })
export const jobs = object({ jobs: list(job) })

const twoSubjects = list(object({ id: string, externalId: optional(string), userData: optional(anyObject) }))

/**
 * Two subjects that may show one person. Everybody who is in a pair with somebody is in one group.
 * @typedef {Read<typeof pair>} Pair
 */
const pair = object({
  group: integer,
  score: integer,
  subjects: twoSubjects,
})

export const differentPairs = object({
  total: integer,
  pairs: list(object({ subjects: twoSubjects })),
  next: optional(string),
})

/**
 * How far the comparison of a gallery with itself is: done of total parts were compared. After the end
 * it has a page of the pairs.
 * @typedef {Read<typeof duplicates>} Duplicates
 */
export const duplicates = object({
  batchId: string,
  /** "Running" or "Done". */
  status: string,
  threshold: integer,
  total: integer,
  done: integer,
  lastUpdated: date,
  found: integer,
  /** Pairs are missing: there are too many, or reason says why. */
  incomplete: boolean,
  reason: optional(string),
  /** Pairs that are left out because of setDifferent. */
  different: or(integer, () => 0),
  groups: integer,
  pairs: list(pair),
  next: optional(string),
})

/**
 * An application in a list.
 * @typedef {Read<typeof applicationEntry>} ApplicationEntry
 */
const applicationEntry = object({ id: string, name: string, apiKey: string })
export const applications = object({ applications: list(applicationEntry) })

/**
 * A gallery.
 * @typedef {Read<typeof gallery>} Gallery
 */
export const gallery = object({
  id: string,
  ...gallerySettings,
  /** Active events, in lists and details. */
  count: optional(integer),
  /** In details. */
  applications: or(list(applicationEntry), none),
  /** Of the first application, in the answer of createGallery. */
  apiKey: optional(string),
  /** Of the settings, for the ifMatch of a change. Lists don't have it. */
  etag: optional(string),
})
export const galleries = object({ galleries: list(gallery) })

/**
 * An API key for a gallery, with the settings of its use.
 * @typedef {Read<typeof application>} Application
 */
export const application = object({
  id: string,
  apiKey: string,
  ...applicationSettings,
  /** Of the settings, for the ifMatch of a change. */
  etag: optional(string),
})

/**
 * A record of the audit log. Subjects and probes are MACs. An expired one has its number only.
 * @typedef {Read<typeof auditRecord>} AuditRecord
 */
const auditRecord = object({
  number: integer,
  time: date,
  kind: string,
  operation: or(string, () => ''),
  status: optional(integer),
  reason: optional(string),
  holder: optional(string),
  key: optional(string),
  source: optional(string),
  requestId: optional(string),
  purpose: optional(string),
  candidates: or(list(object({ subject: string, score: integer })), none),
  expired: or(boolean, () => false),
  /** The bytes of the record in base64, if they were asked for. */
  content: optional(string),
})

/**
 * A page of the audit log.
 * @typedef {Read<typeof auditPage>} AuditPage
 */
export const auditPage = object({
  /** The number of records in the log. */
  size: integer,
  /** Whether requests have records now. */
  recording: boolean,
  records: list(auditRecord),
  next: optional(integer),
})

/** Whether the service is healthy. */
export const health = object({ status: string })

/**
 * What an access key may do.
 * @typedef {Read<typeof whoami>} Whoami
 */
export const whoami = object({
  role: string,
  holder: or(string, () => ''),
  /** The only galleries that the key may use. None means all of the tenant. */
  galleries: or(list(string), none),
  /** undefined means never. */
  ends: optional(date),
  /** How full the gallery of the client's API key is; undefined without one. */
  gallery: optional(object({ id: string, name: string, size: integer, count: integer })),
})
