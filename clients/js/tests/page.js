// Loads the client into a context that has the globals of a page only and no eval, and runs what
// its first argument names.

import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { join, resolve } from 'node:path'
import vm from 'node:vm'

const globals = [
  ...['fetch', 'crypto', 'URL', 'TextEncoder', 'TextDecoder', 'Blob', 'AbortController', 'AbortSignal', 'performance'],
  ...['setTimeout', 'clearTimeout', 'Headers', 'Request', 'Response'],
  ...['Uint8Array', 'ArrayBuffer', 'Error', 'TypeError', 'RangeError'], // of one realm, as in a page
]
const context = vm.createContext(Object.fromEntries(globals.map((name) => [name, globalThis[name]])), {
  codeGeneration: { strings: false, wasm: false },
})
context.globalThis = context

const loaded = new Map()

/** Returns the module of a URL, as a browser finds it: by the URL of what imports it. */
function load(url) {
  if (!loaded.has(url)) {
    loaded.set(url, new vm.SourceTextModule(readFileSync(new URL(url), 'utf8'), { context, identifier: url }))
  }
  return loaded.get(url)
}

const main = load(pathToFileURL(join(resolve(import.meta.dirname, '..'), 'src', 'index.js')).href)
await main.link((specifier, from) => load(new URL(specifier, from.identifier).href))
await main.evaluate()
const { Client, Credentials, NotFound } = main.namespace

const [what, given] = process.argv.slice(2)
const { urls, access, secret, photo } = JSON.parse(given)
const client = new Client({ baseUrls: urls, credentials: await Credentials.fromSecret(access, secret), tries: 1 })

async function story() {
  const gallery = await client.createGallery({ name: 'page', size: 10 })
  const page = client.withApiKey(gallery.apiKey)
  const image = new Blob([readFileSync(photo)])
  const { id } = await page.register(image)
  const { candidates } = await page.search(image)
  await page.unregister(id)
  const refused = await page.unregister(id).catch((e) => e)
  const { subjects } = await page.subjects()
  return {
    found: candidates.length === 1 && candidates[0].id === id,
    score: candidates[0].score,
    refused: refused instanceof NotFound && refused.name,
    left: subjects.filter((entry) => entry.status === 'A').length,
  }
}

const health = () => client.health().catch(({ name, message }) => ({ name, message }))

console.log(JSON.stringify(await { story, health }[what]()))
