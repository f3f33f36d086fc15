// Runs the JavaScript of the README. Comments contain what it prints.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'

import { CLIENT, cluster } from './support.js'

test('README samples run', async () => {
  const readme = readFileSync(join(CLIENT, 'README.md'), 'utf8')
  const samples = [...readme.matchAll(/```js\n(.*?)```/gs)].map(([, sample]) => sample)
  assert.equal(samples.length, 2)
  mkdirSync(join(cluster.folder, 'node_modules'))
  symlinkSync(CLIENT, join(cluster.folder, 'node_modules', 'facet-client'))
  for (const [i, sample] of samples.entries()) {
    const file = join(cluster.folder, `sample${i}.mjs`)
    writeFileSync(file, sample)
    const { stdout } = await promisify(execFile)(process.execPath, [file], { cwd: cluster.folder })
    const want = [...sample.matchAll(/^\/\/> (.*)$/gm)].map(([, line]) => line + '\n').join('')
    assert.equal(stdout, want)
  }
})
