// The core as a browser runs it: by fetch, with the globals of a page, without eval.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { play, say } from './script.js'
import { CLIENT, cluster, OBAMA, ROOT } from './support.js'

/** Runs page.js in a process that trusts the cluster's authority, as only a new process can. */
async function page(...args) {
  const options = { env: { ...process.env, NODE_EXTRA_CA_CERTS: cluster.dev.ca_file, NODE_NO_WARNINGS: '1' } }
  const command = ['--experimental-vm-modules', join(CLIENT, 'tests', 'page.js'), ...args]
  const { stdout } = await promisify(execFile)(process.execPath, command, { ...options, cwd: cluster.folder })
  return JSON.parse(stdout)
}

test('page calls the cluster', async () => {
  const { base_urls: urls, access_key: access, secret_key: secret } = cluster.dev
  const got = await page('story', JSON.stringify({ urls, access, secret, photo: join(ROOT, 'assets/photos', OBAMA) }))
  assert.deepEqual(got, { found: true, score: 9999, refused: 'NotFound', left: 0 })
})

test('page follows no redirect and bounds answers', async (t) => {
  const urls = (server) => JSON.stringify({ urls: [server.url], access: 'AK', secret: 'SK' })
  const elsewhere = await play(t, say(200, '{"status":"OK"}'))
  const moved = await play(t, say(302, '', { location: elsewhere.url + '/v1.1/health' }))
  const refused = await page('health', urls(moved))
  assert.deepEqual([refused.name, elsewhere.seen.length, moved.seen.length], ['Refusal', 0, 1])
  const long = await play(t, say(200, 'x'.repeat((64 << 20) + 1), { 'transfer-encoding': 'chunked' }))
  assert.match((await page('health', urls(long))).message, /more than 67108864 bytes/)
})
