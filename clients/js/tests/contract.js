// The contract: each operation is sent as openapi.json describes it, and its example is read.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

import * as facet from '../src/node.js'
import { clientOf, say, serve } from './script.js'
import { all, ROOT } from './support.js'

const DOCUMENT = JSON.parse(readFileSync(join(ROOT, 'node', 'httpapi', 'openapi', 'openapi.json'), 'utf8'))

/** Follows references within the document. */
function resolved(value) {
  if (!value.$ref) return value
  return resolved(
    value.$ref
      .slice(2)
      .split('/')
      .reduce((found, part) => found[part], DOCUMENT),
  )
}

/** Returns the described operation of a request. */
function find({ method, target }) {
  const got = target.split('?')[0].split('/')
  for (const [pattern, item] of Object.entries(DOCUMENT.paths)) {
    const parts = pattern.split('/')
    const fits = parts.length === got.length && parts.every((p, i) => p === got[i] || p.startsWith('{'))
    if (fits && item[method.toLowerCase()]) return item[method.toLowerCase()]
  }
  throw new assert.AssertionError({ message: `${method} ${target} is not described` })
}

/** Compares a request with its description. */
function check(op, { target, headers, body }) {
  const parameters = (op.parameters ?? []).map(resolved)
  const keyed = parameters.some((p) => p.name === 'Idempotency-Key')
  assert.equal('idempotency-key' in headers, keyed, op.operationId)
  assert.ok(headers['x-cloud-date'] && ('x-api-key' in headers || !('apiKey' in op.security[0])), op.operationId)
  for (const name of new URLSearchParams(target.split('?')[1]).keys()) {
    assert.ok(
      parameters.some((p) => p.in === 'query' && p.name === name),
      `${op.operationId}: ${name}`,
    )
  }
  assert.equal(body !== '', 'requestBody' in op, op.operationId)
  if (!body) return
  assert.equal(headers['content-type'], 'application/json')
  const members = Object.keys(JSON.parse(body))
  const { schema: described } = op.requestBody.content['application/json']
  const schema = resolved(described)
  // Each setting can be sent.
  if (/\/(Gallery|Application)\w+$/.test(described.$ref)) assert.deepEqual(members.sort(), Object.keys(schema.properties).sort())
  const fit = (schema.oneOf ?? [schema]).map(resolved).find((s) => (s.required ?? []).every((m) => members.includes(m)))
  assert.ok(fit && members.every((m) => m in fit.properties), `${op.operationId}: ${members}`)
}

/** Returns the described answer of success. */
function example(op) {
  const status = Object.keys(op.responses).find((s) => s.startsWith('2'))
  const media = op.responses[status].content?.['application/json']
  if (!media) return say(Number(status))
  return say(Number(status), JSON.stringify(media.example ?? resolved(Object.values(media.examples)[0]).value))
}

/** Starts a server that holds requests to the document, and returns a client of it. */
async function contract(t, called) {
  const server = await serve(t, (request) => {
    try {
      const op = find(request)
      check(op, request)
      called.add(op.operationId)
      return example(op)
    } catch (e) {
      return say(400, JSON.stringify({ message: e.message }))
    }
  })
  return clientOf(t, [server])
}

const X = Buffer.from('x')
const Y = Buffer.from('y')
const EVERYTHING = {
  tags: ['t'],
  externalId: 'a',
  userData: { b: 1 },
  expires: new Date('2199-01-31T12:00:00.500Z'),
}

async function subjects(c) {
  await c.health()
  const { role, ends, gallery } = await c.whoami()
  assert.deepEqual([role, ends?.getUTCFullYear(), gallery?.size], ['search-only', 2027, 1000])
  assert.equal((await c.subjects({ start: 1, length: 2, order: 'desc' })).subjects[0].status, 'A')
  assert.equal((await c.subjectsWith('a b')).total, 1204)
  assert.equal((await c.expiring(EVERYTHING.expires, { length: 2, after: 'c' })).total, 1204)
  const made = await c.register(X, EVERYTHING)
  assert.ok(made.eventId)
  assert.deepEqual([made.attributes.faceArea.right, made.attributes.faceRoll], [618, -0.818455])
  for (const other of [c.update('s', X, EVERYTHING), c.registerEvent('s', X, { tags: [] }), c.updateEvent('s', 'e', X)]) {
    assert.deepEqual(await other, made)
  }
  assert.deepEqual(await c.events('s'), [made.eventId])
  await c.unregister('s')
  await c.unregisterEvent('s', 'e')
  await c.merge('s', 'e')
  return made
}

async function faces(c, made) {
  assert.deepEqual(await c.extract(X, { limit: 5 }), [made.attributes])
  // The example has no measures.
  assert.deepEqual(await c.extractMeasured(X, { limit: 5 }), [{ attributes: made.attributes, measures: {}, defects: [] }])
  for (const score of [c.verifySubject('s', X), c.verifySubject('s', [X, Y]), c.verifyFaces(X, X), c.verifyFaces(X, [X, Y])]) {
    assert.equal(await score, 8731)
  }
  const found = await c.search(X, { threshold: 0, limit: 3, tags: ['t'] })
  assert.equal(found.candidates[0].events[0].id, made.eventId)
  assert.deepEqual(found.attributes, made.attributes)
  assert.deepEqual((await c.search([X, Y])).candidates, found.candidates)
  const [match] = await all(c.matches(X, { threshold: 0 }))
  assert.deepEqual((await c.matchPage(X, { length: 3, after: 'AQ' })).candidates, [match])
  assert.equal(match.eventCount, 1)
  const compared = await c.compare([X, Y, 'AVyu'])
  assert.deepEqual(compared.scores, [undefined, 8731, undefined])
  assert.deepEqual([compared.faces[0].attributes, compared.faces[1].error.errorType], [made.attributes, 'NoFace'])
  const begun = await c.beginCheck()
  assert.equal(begun.rowsMax, 100_000)
  const checked = await c.checkRow(begun.id, 17, X, EVERYTHING)
  assert.deepEqual([checked.rows, checked.candidates[0].externalId], [[{ row: 3, score: 9037 }], 'staff/4711'])
  assert.ok(checked.known)
  await c.endCheck(begun.id)
}

async function tagsAndJobs(c, made) {
  assert.deepEqual(await c.tags(), ['night shift', 'visitors'])
  await c.createTag('a/b ü%')
  await c.renameTag('a/b ü%', 'c')
  await c.deleteTag('c')
  assert.deepEqual([(await c.jobs()).length, (await c.jobs())[0].done], [1, 64])
  const begun = await c.beginDuplicates({ threshold: 9000 })
  const [pair] = await all(c.pairs())
  assert.deepEqual([(await c.duplicates({ after: 'AQ', length: 7 })).batchId, pair.group], [begun, 1])
  assert.deepEqual([pair.score, pair.subjects[0].externalId], [9731, 'staff/4711'])
  await c.endDuplicates()
  await c.setDifferent('s', 'externalId:staff/4711')
  assert.equal((await all(c.different()))[0].subjects[0].externalId, 'staff/4711')
  await c.unsetDifferent('s', 'b')
  const [open] = await all(c.cases({ state: 'open' }))
  assert.deepEqual([open.reference, open.verdictsNeeded, open.verdicts], ['visits/12', 2, []])
  assert.deepEqual((await c.casePage({ state: 'open', length: 7, after: 'AQ' })).cases, [open])
  assert.ok((await c.case('k')).photoLink)
  assert.equal((await c.decide('k', 'same')).verdicts[0].holder, 'anna')
  const batch = await c.bulkRegister([{ filename: 'f', ...EVERYTHING }, { filename: 'g' }])
  const [record] = await all(c.bulkRecords(batch))
  assert.deepEqual([facet.recordAttributes(record), record.attempts], [made.attributes, 1])
  assert.deepEqual((await c.bulkProgress(batch, { pagingId: 'AAAD6A' })).processed, [record])
}

async function version1({ v1 }, made) {
  assert.deepEqual(await v1.extract(X), [made.attributes])
  assert.equal(await v1.verify('s', X), 8731)
  assert.deepEqual((await v1.search(X, { threshold: 1, limit: 2 })).candidates[0].events, [])
  assert.equal((await v1.register(X)).eventId, undefined)
  assert.equal((await v1.update('s', X)).id, made.id)
  await v1.unregister('s')
}

/** Returns the examples of a schema's properties. */
function examples(schema) {
  const { properties } = DOCUMENT.components.schemas[schema]
  const given = Object.entries(properties).filter(([, { examples }]) => examples)
  return Object.fromEntries(given.map(([name, { examples }]) => [name, examples[0]]))
}

async function management(c) {
  const [listed] = await c.galleries()
  assert.equal(listed.count, 12)
  assert.deepEqual((await c.gallery('g')).applications, await c.applications())
  const gallery = examples('GalleryCreate')
  assert.ok((await c.createGallery(gallery)).apiKey)
  assert.equal((await c.updateGallery('g', gallery)).size, 2000)
  await c.deleteGallery('g')
  const application = { ...examples('ApplicationCreate'), galleryId: 'g' }
  assert.deepEqual(await c.application('a'), await c.createApplication(application))
  assert.equal((await c.updateApplication('a', application)).verifyThreshold, 7500)
  await c.deleteApplication('a')
}

async function audit(c) {
  const query = { operation: 'search', holder: 'door 3', status: 200, since: EVERYTHING.expires, reads: false, content: true, before: 4711 }
  const page = await c.auditRecords(query)
  assert.deepEqual([page.size, page.recording, page.next], [4711, true, 4710])
  assert.deepEqual([page.records[0].requestId.length, page.records[0].candidates[0].score, page.records[0].expired], [32, 9731, false])
  for (const file of ['key', 'checkpoint', 'tile/0']) assert.ok((await c.auditFile(file)) instanceof Uint8Array)
}

test('operations match the document', async (t) => {
  const called = new Set()
  const c = await contract(t, called)
  const made = await subjects(c)
  await faces(c, made)
  await tagsAndJobs(c, made)
  await version1(c, made)
  await management(c)
  await audit(c)
  const described = Object.values(DOCUMENT.paths).flatMap((item) => Object.values(item).map((op) => op.operationId))
  assert.deepEqual([...called].sort(), described.sort())
})
