// What a browser needs of the modules.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

import { CLIENT } from './support.js'

const SOURCE = join(CLIENT, 'src')
const read = (file) => readFileSync(join(SOURCE, file), 'utf8')
const modules = readdirSync(SOURCE, { recursive: true }).filter((file) => file.endsWith('.js'))

test('core loads in a browser', () => {
  assert.ok(modules.length > 8 && modules.includes('node.js'))
  for (const file of modules.filter((name) => name !== 'node.js')) {
    const code = read(file).replace(/\/\*\*[\s\S]*?\*\/|\/\/.*/g, '')
    for (const [, from] of code.matchAll(/\bfrom\s+'([^']+)'/g)) {
      assert.match(from, /^\.\.?\/.*\.js$/, `${file} imports ${from}`)
      assert.ok(!from.endsWith('/node.js'), `${file} imports what only Node has`)
    }
    assert.doesNotMatch(code, /\b(eval|Function|require|process|Buffer|import)\s*[.(]/, file)
    assert.doesNotMatch(code, /\b(innerHTML|document|window|localStorage)\b/, file)
  }
})

test('modules export one list', async () => {
  const [browser, node] = [await import('../src/index.js'), await import('../src/node.js')]
  const own = ['HttpsTransport', 'fromDev', 'fromProfile']
  assert.deepEqual(Object.keys(node).sort(), [...Object.keys(browser), ...own].sort())
})
