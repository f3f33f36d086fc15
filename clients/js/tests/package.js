// The package that other projects install, and the profiles that they read.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import { fromProfile } from '../src/node.js'
import { cluster, PROGRAM, ROOT } from './support.js'

const CONSUMER = `
import { Client } from 'facet-client'
import { fromDev } from 'facet-client/node'

const client = await fromDev(process.argv[2])
const { apiKey } = await client.createGallery({ name: 'package', size: 10 })
console.log('key', apiKey !== '', client instanceof Client)
client.close()
`

/** Returns a folder that goes with the test t. */
function folder(t) {
  const name = mkdtempSync(join(tmpdir(), 'facet-js-package-'))
  t.after(() => rmSync(name, { recursive: true }))
  return name
}

test('package makes a request', (t) => {
  const app = folder(t)
  const run = (cwd, program, ...args) => execFileSync(program, args, { cwd, encoding: 'utf8' })
  run(ROOT, 'go', 'run', './scripts/clients', '-python=', '-to', app)
  const [archive, more] = readdirSync(app).filter((name) => name.endsWith('.tgz'))
  assert.ok(archive && !more)
  writeFileSync(join(app, 'package.json'), '{"private":true}')
  run(app, 'npm', 'install', '--offline', '--no-audit', '--no-fund', '--ignore-scripts', `./${archive}`)
  const installed = readdirSync(join(app, 'node_modules', 'facet-client')).sort()
  assert.deepEqual(installed, ['LICENSE', 'README.md', 'package.json', 'src'])
  assert.deepEqual(readdirSync(join(app, 'node_modules')).filter((name) => name[0] !== '.'), ['facet-client'])
  writeFileSync(join(app, 'app.mjs'), CONSUMER)
  assert.equal(run(app, process.execPath, 'app.mjs', cluster.file), 'key true true\n')
})

test('saved profile is enough', async (t) => {
  const file = join(folder(t), 'profile.json')
  const create = ['tenant', 'create', 'js-profiles', '--save', file, '--dir', 'dev']
  execFileSync(PROGRAM, create, { cwd: cluster.folder, stdio: 'pipe' })
  const lists = async (options) => {
    const client = await fromProfile(file, options)
    assert.deepEqual(await client.galleries(), [])
    client.close()
    return client.apiKey
  }
  assert.equal(await lists(), undefined)
  const { ca, ...saved } = JSON.parse(readFileSync(file, 'utf8'))
  writeFileSync(join(file, '..', 'ca.pem'), ca)
  writeFileSync(file, JSON.stringify({ ...saved, ca_file: 'ca.pem', api_key: 'k' }))
  assert.deepEqual([await lists(), await lists({ apiKey: 'none' })], ['k', 'none'])
})

test('profile without keys is refused', async (t) => {
  const file = join(folder(t), 'profile.json')
  const refused = (text, why) => {
    writeFileSync(file, text)
    return assert.rejects(fromProfile(file), why)
  }
  await refused('{"base_urls": ["https://localhost:7420"]}', /has no access_key/)
  await refused('{"access_key": "a", "secret_key": "s"}', /has no base_urls/)
  await refused('admin: [n1:7422]', /is not JSON/)
  await refused(' '.repeat((1 << 20) + 1), /more than 1048576 bytes/)
  await assert.rejects(fromProfile(join(file, '..', 'nothing.json')), /nothing.json/)
})
