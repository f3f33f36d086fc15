// Tests with the real cluster and real photos.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

import * as facet from '../src/node.js'
import * as support from './support.js'
import { all, ANOTHER_OBAMA, BIDEN, gallery, OBAMA, photo, ROCKET, tenant, THREE_PEOPLE } from './support.js'

const ids = (list) => list.map((one) => one.id)

/** Returns a client of some of the cluster's nodes. */
async function clientOf(baseUrls, secret, settings) {
  const { dev } = support.cluster
  return new facet.Client({
    baseUrls,
    credentials: await facet.Credentials.fromSecret(dev.access_key, secret ?? dev.secret_key),
    transport: new facet.HttpsTransport({ ca: support.authority() }),
    ...settings,
  })
}

test('person is found on another photo', async (t) => {
  const client = await gallery(t)
  const made = await client.register(photo(OBAMA))
  const { attributes } = made
  assert.ok(made.eventId && attributes.faceQualityScore >= 0.45)
  assert.ok(attributes.rightEyeCenter.x < attributes.leftEyeCenter.x)
  const found = await client.search(photo(ANOTHER_OBAMA))
  assert.deepEqual(ids(found.candidates), [made.id])
  assert.deepEqual(ids(found.candidates[0].events), [made.eventId])
  const { score } = found.candidates[0]
  assert.ok(score >= 7000)
  assert.deepEqual((await client.search(photo(BIDEN))).candidates, [])
  const several = await client.search([photo(ANOTHER_OBAMA), photo(OBAMA)])
  assert.deepEqual(ids(several.candidates), [made.id])
  assert.deepEqual(several.attributes, found.attributes)
  assert.deepEqual(
    several.probes.map((p) => p.attributes.faceArea),
    [found.attributes.faceArea, attributes.faceArea],
  )
  await assert.rejects(client.search([photo(OBAMA), photo(BIDEN)]), { reason: 'ProbesDisagree' })
  assert.deepEqual(ids(await all(client.matches(photo(ANOTHER_OBAMA)))), [made.id])
  const [stranger] = (await client.search(photo(BIDEN), { threshold: 0, limit: 1 })).candidates
  assert.ok(stranger.score < 7000)
  assert.equal(await client.verifySubject(made.id, photo(ANOTHER_OBAMA)), score)
  assert.equal(await client.verifyFaces(photo(OBAMA), photo(ANOTHER_OBAMA)), score)
  const first = await client.compare([photo(OBAMA), photo(ANOTHER_OBAMA), photo(THREE_PEOPLE)])
  assert.deepEqual(first.scores, [score, undefined, undefined])
  assert.equal(first.faces[2].error.errorType, 'MultipleFaces')
  const second = await client.compare([first.faces[1].token, photo(BIDEN), first.faces[0].token])
  assert.equal(second.scores[1], score)
  assert.ok(second.scores[0] < 7000 && first.expires > new Date())
  await assert.rejects(client.compare(['forged', photo(BIDEN)]), { reason: 'UnknownToken' })
  await assert.rejects(client.verifySubject(made.id, photo(BIDEN)), (e) => {
    assert.ok(e instanceof facet.NotVerified)
    assert.equal(e.score, stranger.score)
    return e.requestId.length === 32
  })
  await assert.rejects(client.verifySubject('nobody ü/%25', photo(BIDEN)), facet.NotFound)
})

test('photo is a Blob, an ArrayBuffer or a view', async (t) => {
  const client = await gallery(t)
  const bytes = photo(OBAMA)
  const buffer = new Uint8Array(bytes).buffer
  const padded = new Uint8Array(bytes.length + 7)
  padded.set(bytes, 3)
  const want = await client.extract(bytes)
  for (const image of [new Blob([bytes]), buffer, padded.subarray(3, 3 + bytes.length)]) {
    assert.deepEqual(await client.extract(image), want)
  }
  await assert.rejects(client.extract('a photo'), TypeError)
  await assert.rejects(client.extract(new Blob([new Uint8Array(16 << 20)])), /scale it down/)
})

test('refusals have classes', async (t) => {
  const client = await gallery(t)
  const refused = (image, kind, tags) =>
    assert.rejects(client.register(image, { tags }), (e) => e.constructor === kind && e.status === 400)
  await refused(photo(ROCKET), facet.NoFace)
  await refused(photo(THREE_PEOPLE), facet.MultipleFaces)
  await refused(Buffer.from('no image'), facet.UnreadableImage)
  await refused(new Uint8Array(0), facet.UnreadableImage)
  await refused(photo(OBAMA), facet.UnknownTag, ['no such tag'])
  const small = client.withApiKey((await client.createGallery({ name: 'js full', size: 1 })).apiKey)
  await small.register(photo(OBAMA), { tags: [] })
  await assert.rejects(small.register(photo(BIDEN)), (e) => {
    assert.ok(e instanceof facet.GalleryFull && e instanceof facet.InvalidRequest)
    return e.errorCode === 1001 && e.detail !== '' && e.message.includes(e.detail)
  })
  await assert.rejects(client.withApiKey('').unregister('x'), facet.Forbidden)
  await assert.rejects(client.unregister("../a b?c=d#e+é%2F!'()*"), facet.NotFound) // signed as it is sent
  assert.equal((await client.extract(photo(THREE_PEOPLE), { limit: 2 })).length, 2)
  const [seen] = await client.extractMeasured(photo(THREE_PEOPLE), { limit: 1 })
  assert.ok(seen.attributes.faceArea.right > 0 && seen.measures['sharpness'].component > 50)
  assert.deepEqual(seen.defects, [])
  const { base_urls: urls, secret_key: secret } = support.cluster.dev
  const wrong = await clientOf(urls, secret + 'x')
  await assert.rejects(wrong.health(), /signature/)
  wrong.close()
})

test('list is read by page', async (t) => {
  const client = await gallery(t)
  assert.deepEqual(await client.subjects(), { subjects: [], total: 0 })
  const made = []
  for (const name of [OBAMA, BIDEN, ANOTHER_OBAMA]) made.push((await client.register(photo(name))).id)
  const [a, b, c] = made
  await client.unregister(b)
  await assert.rejects(client.unregister(b), facet.NotFound)
  const listed = await all(client.allSubjects())
  assert.deepEqual(
    listed.map((e) => [e.id, e.status]),
    [
      [a, 'A'],
      [c, 'A'],
      [b, 'D'],
    ],
  )
  const window = await client.subjects({ start: 1, length: 1, order: 'desc' })
  assert.deepEqual([ids(window.subjects), window.total], [[c], 3])
  const last = await client.subjects({ after: window.next })
  assert.deepEqual([ids(last.subjects), last.next], [[a], undefined])
  await assert.rejects(client.subjects({ after: 'A'.repeat(48) }), { reason: 'UnknownCursor' })
  assert.ok(Math.abs(window.subjects[0].lastUpdated - Date.now()) < 3600_000)
})

test('galleries and applications are managed', async (t) => {
  const client = await tenant(t)
  const g = await client.createGallery({ name: t.name, size: 5, description: 'door' })
  await assert.rejects(client.createGallery({ name: t.name, size: 5 }), (e) => {
    return e instanceof facet.Duplicate && e.detail.includes(g.apiKey)
  })
  const made = await client.createApplication({
    galleryId: g.id,
    name: 'door',
    faceMinimumQualityScore: 0.6,
    verifyThreshold: 8000,
    multipleFaces: 'dominant',
  })
  assert.deepEqual(await client.application(made.id), made)
  assert.deepEqual([made.verifyThreshold, made.multipleFaces, made.enrolmentGuard], [8000, 'dominant', false])
  const listed = (await client.applications()).find((a) => a.id === made.id)
  assert.deepEqual(listed, { id: made.id, name: 'door', apiKey: made.apiKey })
  assert.ok(ids(await client.galleries()).includes(g.id))
  const subject = await client.withApiKey(made.apiKey).register(photo(OBAMA))
  const detail = await client.gallery(g.id)
  assert.deepEqual([detail.count, detail.applications.length], [1, 2])
  await client.withApiKey(g.apiKey).unregister(subject.id)
  await assert.rejects(client.gallery('no such'), facet.NotFound)
})

test('galleries are changed and deleted', async (t) => {
  const client = await tenant(t)
  await assert.rejects(client.updateGallery('no-such-gallery', { size: 20 }), facet.NotFound)
  const g = await client.createGallery({ name: t.name, size: 10 })
  const changed = await client.updateGallery(g.id, { size: 20, description: 'larger', subjectTemplates: true })
  assert.deepEqual([changed.size, changed.description, changed.name], [20, 'larger', g.name])
  assert.equal(changed.subjectTemplates, true)
  await assert.rejects(client.updateGallery(g.id, { size: 19 }), facet.InvalidRequest)
  const a = await client.createApplication({ galleryId: g.id, name: 'door' })
  const seen = await client.updateApplication(a.id, { verifyThreshold: 9000 })
  assert.deepEqual(seen, { ...a, verifyThreshold: 9000, etag: seen.etag })
  const quality = { faceMinimumQualityScore: 0.6 }
  await assert.rejects(client.updateApplication(a.id, { ...quality, ifMatch: a.etag }), facet.OtherSettings)
  assert.equal((await client.updateApplication(a.id, { ...quality, ifMatch: seen.etag })).verifyThreshold, 9000)
  await assert.rejects(client.updateGallery(g.id, { size: 30, ifMatch: g.etag }), facet.OtherSettings)
  assert.equal((await client.updateGallery(g.id, { size: 30, ifMatch: changed.etag })).etag, (await client.gallery(g.id)).etag)
  await client.deleteApplication(a.id)
  await refusedSoon(facet.Forbidden, () => client.withApiKey(a.apiKey).subjects())
  await client.deleteGallery(g.id)
  // On every node, and at once.
  for (let i = 0; i < 6; i++) await assert.rejects(client.withApiKey(g.apiKey).subjects(), facet.Forbidden)
})

/** Waits until all nodes refuse. Each learns of a change on its own. */
async function refusedSoon(kind, call) {
  const late = Date.now() + 5000
  for (let row = 0; row < 6; ) {
    const e = await call().catch((refused) => refused)
    row = e instanceof kind ? row + 1 : 0
    assert.ok(row || Date.now() < late, `no ${kind.name}`)
    await sleep(10)
  }
}

test('version 1', async (t) => {
  const { v1 } = await gallery(t)
  const made = await v1.register(photo(OBAMA))
  const [found] = (await v1.search(photo(ANOTHER_OBAMA))).candidates
  assert.deepEqual([made.eventId, found.id, found.events], [undefined, made.id, []])
  assert.equal(await v1.verify(made.id, photo(ANOTHER_OBAMA)), found.score)
  await assert.rejects(v1.verify(made.id, photo(BIDEN)), facet.NotVerified)
  assert.equal((await v1.update(made.id, photo(BIDEN))).id, made.id)
  await v1.verify(made.id, photo(BIDEN))
  assert.equal((await v1.extract(photo(THREE_PEOPLE))).length, 3)
  await assert.rejects(v1.extract(photo(ROCKET)), facet.NotFound)
  await v1.unregister(made.id)
})

test('updates', async (t) => {
  const client = await gallery(t)
  await assert.rejects(client.update('nobody', photo(OBAMA)), facet.NotFound)
  const made = await client.register(photo(BIDEN))
  const updated = await client.update(made.id, photo(OBAMA))
  assert.deepEqual([updated.id, updated.eventId], [made.id, made.eventId])
  await assert.rejects(client.verifySubject(made.id, photo(BIDEN)), facet.NotVerified)
})

test('events', async (t) => {
  const client = await gallery(t)
  await assert.rejects(client.events('nobody'), facet.NotFound)
  const made = await client.register(photo(OBAMA))
  const at = new Date('2199-01-31T12:00:00.005Z')
  const second = await client.registerEvent(made.id, photo(ANOTHER_OBAMA), { expires: at })
  assert.deepEqual(await client.listEvents(made.id), [{ id: made.eventId }, { id: second.eventId, expires: at }])
  assert.equal((await client.updateEvent(made.id, second.eventId, photo(BIDEN))).eventId, second.eventId)
  await client.unregisterEvent(made.id, second.eventId)
  await assert.rejects(client.unregisterEvent(made.id, second.eventId), facet.NotFound)
  await client.unregisterEvent(made.id, made.eventId) // its last one
  await assert.rejects(client.events(made.id), facet.NotFound)
})

test('merge', async (t) => {
  const client = await gallery(t)
  const kept = await client.register(photo(OBAMA))
  const source = await client.register(photo(ANOTHER_OBAMA))
  await client.merge(kept.id, source.id)
  assert.equal((await client.events(kept.id)).length, 2)
  await assert.rejects(client.unregister(source.id), facet.SubjectMerged)
})

test('expiry', async (t) => {
  const client = await tenant(t)
  const g = await client.createGallery({ name: t.name, size: 10 })
  const c = client.withApiKey(g.apiKey)
  const at = new Date('2199-01-31T12:00:00Z')
  const later = new Date(at.valueOf() + 1)
  const made = await c.register(photo(OBAMA), { expires: at })
  const wouldGo = await c.expiring(later)
  assert.deepEqual([wouldGo.total, wouldGo.subjects[0].id, wouldGo.subjects[0].expires], [1, made.id, at])
  await c.update(made.id, photo(OBAMA), { expires: '' })
  assert.deepEqual((await c.expiring(later)).subjects, [])
  assert.equal((await client.updateGallery(g.id, { retentionDays: 30 })).retentionDays, 30)
  const days = 86_400_000
  const [entry] = (await c.expiring(new Date(Date.now() + 31 * days), { length: 1 })).subjects
  assert.equal(entry.expires - entry.lastUpdated, 30 * days)
  await assert.rejects(c.register(photo(BIDEN), { expires: new Date('2020-01-31') }), facet.InvalidRequest)
})

test('tags', async (t) => {
  const client = await gallery(t)
  const names = ['night shift', 'a/b', '100%25', 'für+alle', '?&=#', "!'()*"]
  for (const name of names) await client.createTag(name)
  await assert.rejects(client.createTag('a/b'), facet.Duplicate)
  assert.deepEqual(await client.tags(), names)
  const made = await client.register(photo(OBAMA), { tags: ['a/b', '100%25'] })
  await client.renameTag('a/b', 'b/a')
  for (const [tag, want] of Object.entries({ 'b/a': [made.id], '100%25': [made.id], '?&=#': [] })) {
    assert.deepEqual(ids((await client.search(photo(OBAMA), { tags: [tag] })).candidates), want)
  }
  await client.deleteTag('b/a')
  await assert.rejects(client.deleteTag('b/a'), facet.NotFound)
  await assert.rejects(client.renameTag('b/a', 'x'), facet.NotFound)
  await assert.rejects(client.search(photo(OBAMA), { tags: ['b/a'] }), facet.UnknownTag)
})

test('external ids', async (t) => {
  const client = await gallery(t)
  const externalId = 'staff/ü 1'
  const made = await client.register(photo(OBAMA), { externalId, userData: { shift: 2 } })
  await assert.rejects(client.register(photo(BIDEN), { externalId }), (e) => {
    return e instanceof facet.Duplicate && e.detail.includes(made.id)
  })
  const [entry] = (await client.subjectsWith(externalId)).subjects
  assert.deepEqual([entry.id, entry.externalId, entry.userData], [made.id, externalId, { shift: 2 }])
  const subject = await client.subject(made.id)
  assert.deepEqual([subject.externalId, subject.userData, subject.events.length], [externalId, { shift: 2 }, 1])
  const name = facet.external(externalId)
  const verified = await client.verify(name, photo(ANOTHER_OBAMA))
  const [found] = (await client.search(photo(ANOTHER_OBAMA))).candidates
  assert.deepEqual([verified.externalId, verified.score], [externalId, found.score])
  await client.update(name, photo(OBAMA), { externalId: '', userData: {} })
  assert.deepEqual((await client.subjectsWith(externalId)).subjects, [])
  await assert.rejects(client.unregister(name), facet.NotFound)
})

test('checks of lists', async (t) => {
  const client = await gallery(t)
  const known = await client.register(photo(OBAMA), { externalId: 'o' })
  const check = await client.beginCheck()
  const first = await client.checkRow(check.id, 1, photo(BIDEN))
  assert.deepEqual([first.row, first.rows, first.candidates, first.known], [1, [], [], undefined])
  const second = await client.checkRow(check.id, 2, photo(ANOTHER_OBAMA), { externalId: 'o' })
  assert.deepEqual([second.rows, ids(second.candidates), second.known], [[], [known.id], known.id])
  const third = await client.checkRow(check.id, 3, photo(ANOTHER_OBAMA))
  assert.deepEqual(
    third.rows.map((r) => r.row),
    [2],
  )
  await client.endCheck(check.id)
  await assert.rejects(client.checkRow(check.id, 4, photo(BIDEN)), { reason: 'UnknownCheck' })
})

test('bulk registration', async (t) => {
  const client = await gallery(t)
  await assert.rejects(client.bulkProgress('no such batch'), facet.NotFound)
  for (const name of [OBAMA, ROCKET]) {
    writeFileSync(join(support.cluster.dev.bucket_dir, basename(name)), photo(name))
  }
  const names = ['obama.jpg', 'rocket.jpg', 'missing.jpg']
  const batch = await client.bulkRegister(names.map((filename) => ({ filename })))
  const late = Date.now() + 60_000
  let records
  do {
    assert.ok(Date.now() < late, JSON.stringify(records))
    await sleep(200)
    records = await all(client.bulkRecords(batch))
  } while (records.length < 3 || records.some((r) => r.status !== 'Processed'))
  const by = new Map(records.map((r) => [r.filename, r]))
  assert.deepEqual(
    names.map((n) => by.get(n).registerStatus),
    ['Success', 'Failed', 'Failed'],
  )
  assert.ok(facet.recordAttributes(by.get('obama.jpg')).faceArea.right > 0)
  assert.equal(facet.recordAttributes(by.get('missing.jpg')), undefined)
  assert.deepEqual(ids(await all(client.allSubjects())), [by.get('obama.jpg').subjectId])
  const [job] = await client.jobs()
  assert.deepEqual([job.batchId, job.total, job.done], [batch, 3, 3])
})

test('writes continue after a node is killed', async (t) => {
  const client = await gallery(t, 100)
  const victim = support.cluster.dev.nodes[1]
  const made = new Set()
  for (let i = 0; i < 12; i++) {
    if (i === 3) process.kill(victim.pid, 'SIGKILL')
    made.add((await client.register(photo(OBAMA))).id)
  }
  const [program, ...rest] = [...support.dieWithUs(), ...victim.cmd]
  spawn(program, rest, { stdio: 'ignore', detached: true }).unref() // facet dev ends it
  assert.deepEqual(new Set(ids(await all(client.allSubjects()))), made)
  assert.equal(made.size, 12)
  const one = await clientOf([victim.url], undefined, { tries: 100 })
  await one.health() // it serves again
  one.close()
})

test('purpose is recorded', async (t) => {
  const [general, special] = ['js: entry of  staff', `js ~case 4711, ${'x'.repeat(241)}`]
  const client = await clientOf(support.cluster.dev.base_urls, undefined, { purpose: general })
  t.after(() => client.close())
  await client.galleries()
  await client.withApiKey('k').withPurpose(special).galleries()
  await client.withPurpose(undefined).galleries()
  let recorded = []
  for (const late = Date.now() + 10_000; recorded.length < 2 && Date.now() < late; ) {
    const { records } = await client.auditRecords({ operation: 'GET /api/galleries', kind: 'request', length: 200 })
    recorded = records.map((r) => r.purpose).filter((purpose) => purpose?.startsWith('js')).sort()
  }
  assert.deepEqual(recorded, [special, general])
})

test('purpose of no header is refused', async (t) => {
  const client = await tenant(t)
  for (const [purpose, want] of [['x'.repeat(257), /257 bytes/], ['a\nb', /"\\n"/], ['a\tb', /"\\t"/], ['\x7f', /\x7f/], ['Prüfung', /"ü"/]]) {
    assert.throws(() => client.withPurpose(purpose), want)
    await assert.rejects(clientOf(['https://n1'], undefined, { purpose }), want)
  }
})
