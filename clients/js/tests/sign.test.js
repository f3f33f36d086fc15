// Signatures, compared with those of botocore, an outside signer.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

import { Client } from '../src/index.js'
import { Credentials, escape, Signer } from '../src/sign.js'
import { ROOT } from './support.js'

const ACCESS = 'AKIDEXAMPLE'
const SECRET = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY'
const PYTHON = join(ROOT, 'assets', 'venv', 'bin', 'python')

/** Returns the headers that botocore sends for jobs. */
function botocore(jobs) {
  if (!existsSync(PYTHON)) throw new Error('botocore signs for this test, and is not set up: run "make venv"')
  const input = jobs.map((job) => ({ signer: 'cloud', access: ACCESS, secret: SECRET, ...job }))
  const script = join(ROOT, 'node', 'sigv4', 'testdata', 'sign.py')
  const output = execFileSync(PYTHON, [script], { input: JSON.stringify(input), encoding: 'utf8' })
  return JSON.parse(output).map(({ headers }) => new Map(headers.map(([name, value]) => [name.toLowerCase(), value])))
}

test('signature is that of botocore', async () => {
  const json = [['content-type', 'application/json']]
  const everything = [...json, ['accept', 'application/json'], ['idempotency-key', 'line 1,  b'], ['x-api-key', 'k']]
  const jobs = [
    ['GET', 'https://facet.test/v1.1/health', [], '', '20261126T235959Z'],
    ['GET', 'https://facet.test:8443/v1.1/subjects?after=A_-&dir=desc&length=5&start=0', [], '', '20261127T000000Z'],
    ['GET', 'https://facet.test/v1.1/subjects?externalId=a%2Fb%20%C3%BC&length=1', [], '', '20261127T000000Z'],
    ['POST', 'https://[::1]:8443/v1.1/subjects', everything, '{"face":"ü"}', '20261126T120000Z'],
    ...['a%20b%2Fc%25d%2Be', '%C3%A9%E4%BA%BA', '%21%27%28%29%2A-._~', 'externalId%3Aa%40%24%2C'].map((name) => {
      return ['PUT', `https://facet.test/v1.1/tags/${name}`, json, '{"newName":"b"}', '20260101T000000Z']
    }),
  ].map(([method, url, headers, body, time]) => ({ method, url, headers, body, time }))
  const signer = new Signer(await Credentials.fromSecret(ACCESS, SECRET))
  const want = botocore(jobs)
  for (const [i, { method, url, headers, body, time }] of jobs.entries()) {
    const { host, pathname, search } = new URL(url)
    const now = new Date(time.replace(/(....)(..)(..)T(..)(..)(..)/, '$1-$2-$3T$4:$5:$6'))
    const signed = await signer.sign(
      {
        method,
        host,
        path: pathname,
        query: search.slice(1),
        headers: Object.fromEntries(headers),
        body: new TextEncoder().encode(body),
      },
      now,
    )
    assert.equal(signed['x-cloud-date'], time)
    assert.equal(signed['authorization'], want[i].get('authorization'), url)
    assert.deepEqual(Object.keys(signed).sort(), [...headers.map(([n]) => n), 'authorization', 'x-cloud-date'].sort())
  }
})

// AWS, "Examples of how to derive a signing key": the HMAC of this key and of that one agree.
test('key of a day is the documented one', async () => {
  const credentials = await Credentials.fromSecret('AK', SECRET, { region: 'us-east-1', service: 'iam' })
  const signer = new Signer(credentials)
  const scope = ['20120215', 'us-east-1', 'iam', 'aws4_request']
  const key = await signer.keyOf(scope)
  const got = Buffer.from(await crypto.subtle.sign('HMAC', key, Buffer.from('x'))).toString('hex')
  const documented = Buffer.from('f4780e2d9f65fa895f9c67b32ce1baf0b0d8a43505a000a1a9e090d414db404d', 'hex')
  assert.equal(got, createHmac('sha256', documented).update('x').digest('hex'))
  assert.equal(key.extractable, false)
  assert.equal(await signer.keyOf(scope), key) // kept
  assert.notEqual(await signer.keyOf(['20120216', ...scope.slice(1)]), key)
})

test('key can be stored and not exported', async () => {
  const made = await Credentials.fromSecret('AK', 'SK')
  const stored = structuredClone(made) // as IndexedDB does
  for (const { key, accessKey } of [made, stored]) {
    assert.equal(accessKey, 'AK')
    for (const format of ['raw', 'jwk', 'pkcs8']) await assert.rejects(crypto.subtle.exportKey(format, key))
  }
  assert.ok(!JSON.stringify(made).includes('SK'))
  const message = { method: 'GET', host: 'h', path: '/', query: '', headers: {}, body: new Uint8Array(0) }
  const now = new Date()
  const client = new Client({ baseUrls: ['https://h'], credentials: stored })
  assert.deepEqual(await client.signer.sign(message, now), await new Signer(made).sign(message, now))
})

test('escape leaves what RFC 3986 leaves', () => {
  const plain = String.fromCharCode(...Array.from({ length: 95 }, (_, i) => 32 + i))
  assert.match(escape(plain), /^(%[0-9A-F]{2}|[A-Za-z0-9._~-])+$/)
  assert.equal(decodeURIComponent(escape(plain)), plain)
  assert.equal(escape("é!'()*"), '%C3%A9%21%27%28%29%2A')
})
