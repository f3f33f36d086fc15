// Tests of retries and of the shape of requests, with scripted servers.

import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { test } from 'node:test'

import * as facet from '../src/node.js'
import { clientOf, play, say, serve } from './script.js'
import { all, gallery, OBAMA, photo } from './support.js'

const FAILED = '{"message":"No leader.","errorCode":5000,"errorType":"ServerError"}'
const OK = say(200, '{"status":"OK"}')
const area = { left: '1', top: '2', right: '3', bottom: '4' }
const eye = { x: '1', y: '2' }
const names = ['faceScore', 'frontalFaceScore', 'faceQualityScore', 'faceRoll', 'facePan', 'faceTilt']
const ATTRIBUTES = {
  ...{ faceArea: area, headArea: area, rightEyeCenter: eye, leftEyeCenter: eye },
  ...Object.fromEntries(names.map((name) => [name, '0.5'])),
}
const MADE = say(201, JSON.stringify({ id: 's', eventId: 'e', attributes: ATTRIBUTES }))
const X = Buffer.from('x')

test('retried write keeps key and body', async (t) => {
  const s = await play(t, null, say(500, FAILED), say(429, '{"message":"Too many requests."}'), MADE)
  const client = await clientOf(t, [s])
  assert.equal((await client.register(X)).id, 's')
  await client.register(X)
  await client.register(X, { idempotencyKey: 'import 7, line 12' })
  const keys = s.seen.map((r) => r.headers['idempotency-key'])
  assert.equal(keys.length, 6)
  assert.equal(new Set(keys.slice(0, 4)).size, 1)
  assert.ok(keys[0].length > 20 && keys[4] !== keys[0])
  assert.equal(keys[5], 'import 7, line 12')
  assert.deepEqual([...new Set(s.seen.map((r) => r.body))], ['{"face":"eA=="}'])
  assert.ok(s.seen.every((r) => r.headers.authorization.includes(';idempotency-key;x-api-key;x-cloud-date')))
})

// The transport loses the answers to the first two tries, which had their effect.
test('lost answer is requested again', async (t) => {
  const client = await gallery(t)
  const tries = []
  const lossy = {
    send: async (request) => {
      const answer = await client.transport.send(request)
      tries.push(answer.status)
      if (tries.length <= 2) throw new Error('lost')
      return answer
    },
  }
  const through = Object.assign(client.withApiKey(client.apiKey), { transport: lossy })
  const made = await through.register(photo(OBAMA))
  const listed = await client.subjects()
  assert.deepEqual([tries, listed.total, listed.subjects[0].id], [[201, 201, 201], 1, made.id])
})

test('refusal is not retried', async (t) => {
  const refused = async (status, body, kind, also = () => true) => {
    const s = await play(t, say(status, body, { 'x-request-id': 'r1', location: '/elsewhere' }))
    await assert.rejects((await clientOf(t, [s])).register(X), (e) => {
      assert.deepEqual([e.constructor, e.name, e.status, e.requestId], [kind, kind.name, status, 'r1'])
      return e.operation === 'POST /v1.1/subjects' && also(e)
    })
    assert.equal(s.seen.length, 1)
  }
  await refused(400, '{"message":"m","errorCode":1001,"errorType":"InvalidRequest"}', facet.InvalidRequest)
  await refused(400, '{"message":"m","errorCode":1002,"errorType":"Duplicate"}', facet.Duplicate)
  await refused(400, '{"message":"m","errorCode":2002,"errorType":"PoorQuality"}', facet.PoorQuality)
  await refused(403, '{"message":"Forbidden"}', facet.Forbidden, (e) => e.detail === 'Forbidden')
  await refused(404, '{"message":"m","reason":"NotVerified","score":12}', facet.NotVerified, (e) => e.score === 12)
  await refused(404, '{"message":"m","reason":"UnknownTag"}', facet.NotFound)
  await refused(413, "<html>a proxy's</html>", facet.Refusal, (e) => e.detail === 'status 413')
  await refused(302, '', facet.Refusal)
})

test('retry-after is obeyed', async (t) => {
  const s = await play(t, say(429, '{}', { 'retry-after': '1' }), OK)
  await (await clientOf(t, [s])).health()
  const [first, second] = s.seen
  assert.ok(second.at - first.at >= 990)
  assert.notEqual(first.headers.authorization, second.headers.authorization)
})

// Time makes no room soon, or none at all.
test('long wait is final', async (t) => {
  const quota = '{"message":"m","reason":"Quota","quota":"writes"}'
  for (const [after, want] of [
    [undefined, 0],
    ['61', 61],
    ['86400', 86400],
    ['9223372036854775807', 2 ** 63],
  ]) {
    const s = await play(t, say(429, quota, after && { 'retry-after': after }))
    await assert.rejects((await clientOf(t, [s])).health(), (e) => e instanceof facet.Busy && e.retryAfter === want)
    assert.equal(s.seen.length, 1)
  }
})

test('tries end', async (t) => {
  const failing = await play(t, say(500, FAILED))
  await assert.rejects((await clientOf(t, [failing], { tries: 3 })).health(), (e) => {
    return e instanceof facet.ServerFault && e.errorCode === 5000
  })
  assert.equal(failing.seen.length, 3)
  const silent = await play(t, null)
  await assert.rejects((await clientOf(t, [silent], { tries: 3 })).health(), facet.NoAnswer)
  assert.equal(silent.seen.length, 3)
})

test('signal ends a pause and a try', async (t) => {
  // A caller that leaves once its request has arrived.
  const left = async (answer) => {
    const caller = new AbortController()
    const s = await serve(t, () => {
      setTimeout(() => caller.abort(new Error('the caller left')), 100)
      return answer
    })
    const client = await clientOf(t, [s])
    const begin = performance.now()
    await assert.rejects(client.health({ signal: caller.signal }), /the caller left/)
    assert.ok(performance.now() - begin < 10_000)
    await assert.rejects(client.health({ signal: caller.signal }), /the caller left/)
    assert.equal(s.seen.length, 1)
    assert.deepEqual(client.base.rests, [0]) // the caller's end says nothing about the node
  }
  await left(say(500, FAILED, { 'retry-after': '20' }))
  await left(say(200, '', { 'content-length': 5 })) // its body never comes
})

test('repeated deletion succeeds', async (t) => {
  const gone = say(404, '{"message":"Subject not found.","reason":"SubjectNotFound"}')
  const clientThat = async (...answers) => clientOf(t, [await play(t, ...answers)])
  await (await clientThat(null, gone)).unregister('s')
  await assert.rejects((await clientThat(gone)).unregister('s'), facet.NotFound)
  const merged = say(404, '{"message":"It was merged: 5","reason":"SubjectMerged"}')
  await assert.rejects((await clientThat(null, merged)).unregister('s'), facet.SubjectMerged)
  await assert.rejects((await clientThat(null, say(403, '{}'))).unregister('s'), facet.Forbidden)
  const there = say(400, '{"message":"m","errorCode":1002,"errorType":"Duplicate"}')
  await (await clientThat(null, there)).createTag('t')
  await assert.rejects((await clientThat(there)).createTag('t'), facet.Duplicate)
})

/** Returns the address of a server that takes connections and says nothing, and its connections. */
async function silentServer(t) {
  const open = new Set()
  const server = createServer((socket) => open.add(socket.on('error', () => {})))
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening))
  t.after(() => {
    server.close()
    for (const socket of open) socket.destroy()
  })
  return { url: `https://127.0.0.1:${server.address().port}`, open }
}

test('silent node is passed over', async (t) => {
  const [s, silent] = [await play(t, OK), await silentServer(t)]
  const begin = performance.now()
  // Nobody listens on port 1.
  const client = await clientOf(t, ['https://127.0.0.1:1', silent, s], { timeout: 500 })
  for (let i = 0; i < 10; i++) await client.health()
  assert.ok(silent.open.size <= 1 + (performance.now() - begin) / 5000, `${silent.open.size} tries at the silent node`)
})

test('nodes are used in turn', async (t) => {
  const servers = [await play(t, OK), await play(t, OK), await play(t, OK)]
  const client = await clientOf(t, servers)
  await Promise.all(Array.from({ length: 9 }, () => client.health()))
  assert.deepEqual(
    servers.map((s) => s.seen.length),
    [3, 3, 3],
  )
})

test('foreign certificate is not retried', async (t) => {
  const s = await play(t, OK)
  const begin = performance.now()
  const client = await clientOf(t, [s, s], { transport: new facet.HttpsTransport() })
  await assert.rejects(client.health(), (e) => {
    return e instanceof facet.NoAnswer && e.cause instanceof facet.ForeignCertificate
  })
  assert.ok(performance.now() - begin < 3000)
  assert.equal(s.seen.length, 0)
})

test('answer that is too long is refused', async (t) => {
  const announced = await play(t, say(200, '', { 'content-length': (64 << 20) + 1 }))
  await assert.rejects((await clientOf(t, [announced], { tries: 1 })).health(), /more than 67108864 bytes/)
  const endless = await serve(t, () => say(200, 'x'.repeat((64 << 20) + 1), { 'transfer-encoding': 'chunked' }))
  await assert.rejects((await clientOf(t, [endless], { tries: 1 })).health(), /more than 67108864 bytes/)
})

test('id of another path is not sent', async (t) => {
  const s = await play(t, say(200))
  const client = await clientOf(t, [s])
  for (const name of ['', '.', '..']) {
    for (const call of [client.unregister, client.deleteTag, client.bulkProgress]) {
      await assert.rejects(call.call(client, name), /is empty/)
    }
  }
  assert.equal(s.seen.length, 0)
})

test('unreadable answer is an error', async (t) => {
  for (const body of ['<html>', '[]', '{"id":"s"}', '{"id":1,"attributes":{}}', 'null', '"\xff"', '']) {
    const client = await clientOf(t, [await play(t, say(201, Buffer.from(body, 'latin1')))])
    await assert.rejects(client.register(X), (e) => e.constructor === facet.FacetError)
  }
})

test('all subjects follow cursors', async (t) => {
  const page = (id, rest) => {
    const entry = { id, eventId: 'e', status: 'A', lastUpdated: '2026-01-02T03:04:06.678+00:00' }
    return say(200, JSON.stringify({ subjects: [entry], total: 3, ...rest }))
  }
  const s = await play(t, page('a', { next: 'n1' }), page('b', { next: 'n_-2' }), page('c'))
  const listed = await all((await clientOf(t, [s])).allSubjects({ order: 'desc' }))
  assert.deepEqual(
    listed.map((e) => e.id),
    ['a', 'b', 'c'],
  )
  assert.deepEqual(
    s.seen.map((r) => r.target.split('?')[1]),
    ['dir=desc&length=1000&start=0', 'after=n1&length=1000', 'after=n_-2&length=1000'],
  )
  const old = await clientOf(t, [await play(t, page('a'))])
  await assert.rejects(all(old.allSubjects()), /cursors/)
})

test('bad configuration is refused', async () => {
  const credentials = await facet.Credentials.fromSecret('AK', 'SK')
  const bad = [[], ['http://n1'], ['https://n1/path'], ['n1:7420'], ['https://u:p@n1'], ['https://n1?a=b']]
  for (const baseUrls of [...bad, Array(65).fill('https://n1')]) {
    assert.throws(() => new facet.Client({ baseUrls, credentials }), TypeError)
  }
  assert.throws(() => new facet.Client({ baseUrls: ['https://n1'] }), /no access key/)
  assert.throws(() => new facet.Client({ baseUrls: ['https://n1'], credentials: { accessKey: 'AK' } }), /fromSecret/)
  await assert.rejects(facet.Credentials.fromSecret('AK', ''), /no secret key/)
  assert.throws(() => new facet.HttpsTransport({ ca: 'none' }), /no certificate/)
})
