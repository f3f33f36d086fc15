import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'

import { encode, photoBytes } from '../src/body.js'

const text = (members) => new TextDecoder().decode(encode(members))

test('bodies are JSON with photos in base64', () => {
  for (let n = 0; n < 300; n++) {
    const photo = new Uint8Array(randomBytes(n))
    const base64 = Buffer.from(photo).toString('base64')
    assert.equal(text({ face: photo }), JSON.stringify({ face: base64 }))
    assert.equal(text({ a: 'ü"', probes: [photo, photo] }), JSON.stringify({ a: 'ü"', probes: [base64, base64] }))
  }
  assert.equal(text({}), '{}')
  assert.equal(text({ a: undefined, tags: [], b: { c: undefined }, d: 0 }), '{"tags":[],"b":{},"d":0}')
})

test('large photo takes no more than its body', async () => {
  const photo = await photoBytes(new Uint8Array(15 << 20).fill(0xfb))
  const before = process.memoryUsage()
  const body = encode({ face: photo })
  const after = process.memoryUsage()
  const grown = after.heapUsed + after.external - before.heapUsed - before.external
  assert.ok(grown < body.length * 1.2, `${grown} bytes for a body of ${body.length}`)
})
