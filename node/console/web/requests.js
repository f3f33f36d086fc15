// Requests as they are written in programs. The clients' own pages show and test the same calls.

/**
 * A request. path and query are percent-encoded; repeats says that the operation takes an
 * Idempotency-Key.
 * @typedef {{method: string, path: string, query: string, headers: Record<string, string>, body: string, repeats: boolean}} Request
 */

/** @typedef {{name: string, code: string}} Sample */

/**
 * Returns a search of the service in each language.
 * @param {string} apiKey
 * @param {number} threshold
 * @returns {Sample[]}
 */
export function requests(apiKey, threshold) {
  const body = `{"probe":"@photo.jpg","threshold":${threshold}}`
  const search = { method: 'POST', path: '/v1.1/face/search', query: '', headers: { 'x-api-key': apiKey }, body, repeats: false }
  return [
    { name: 'curl', code: curl(search, ['photo.jpg']) },
    {
      name: 'Go',
      code: `c, err := client.FromProfile("profile.json")
if err != nil {
	return err
}
photo, err := os.ReadFile("photo.jpg")
if err != nil {
	return err
}
threshold := ${threshold}
found, err := c.WithAPIKey("${apiKey}").Search(ctx, client.SearchQuery{Probe: photo, Threshold: &threshold})`,
    },
    {
      name: 'Python',
      code: `from facet_client import Client

client = Client.from_profile("profile.json", api_key="${apiKey}")
with open("photo.jpg", "rb") as f:
    found = client.search(f.read(), threshold=${threshold})
for candidate in found.candidates:
    print(candidate.id, candidate.score)`,
    },
    {
      name: 'JavaScript',
      code: `import { readFile } from 'node:fs/promises'
import { fromProfile } from 'facet-client/node'

const client = await fromProfile('profile.json', { apiKey: '${apiKey}' })
const { candidates } = await client.search(await readFile('photo.jpg'), { threshold: ${threshold} })
for (const { id, score } of candidates) console.log(id, score)`,
    },
  ]
}

/**
 * Returns a request in each language, by what signs any request there. Without code where the body
 * is no JSON.
 * @param {Request} request
 * @param {string[]} photos names of files; "@" and a name stands for one in the body
 * @returns {Sample[]}
 */
export function samples(request, photos) {
  return Object.entries({ curl, Go: go, Python: python, JavaScript: javaScript }).map(([name, write]) => {
    try {
      return { name, code: write(request, photos) }
    } catch {
      return { name, code: '' }
    }
  })
}

const origin = () => (location.protocol === 'https:' ? location.origin : `https://${location.hostname}:7420`)

/** @param {Request} r */
const target = (r) => r.path + (r.query && '?') + r.query

/** @param {string} text for a shell */
const quoted = (text) => `'${text.replaceAll("'", String.raw`'\''`)}'`

/** @param {string} text for a shell's here-document */
const inHere = (text) => text.replace(/[\\$`]/g, '\\$&')

/**
 * Returns the body's JSON in one line, as far as it has one.
 * @param {Request} r
 */
const compact = (r) => (r.body ? JSON.stringify(JSON.parse(r.body)) : '')

/**
 * Returns text with what write makes of each photo's stand-in, in its quotes.
 * @param {string} text
 * @param {string[]} photos
 * @param {(name: string) => string} write
 */
const replaced = (text, photos, write) => photos.reduce((now, name) => now.replaceAll(JSON.stringify(`@${name}`), () => write(name)), text)

/**
 * @param {Request} r
 * @param {string[]} photos
 */
function curl(r, photos) {
  const lines = [`curl --cacert ca.pem --aws-sigv4 aws:amz:ap-southeast-2:execute-api --user "$ACCESS_KEY:$SECRET_KEY"`]
  if (r.method !== 'GET' && !(r.method === 'POST' && r.body)) lines.push(`-X ${r.method}`)
  for (const [name, value] of Object.entries(r.headers)) if (name !== 'content-type') lines.push(`-H ${quoted(`${name}: ${value}`)}`)
  if (r.body) lines.push('--json @-')
  const command = [...lines, quoted(origin() + target(r))].join(' \\\n  ')
  if (!r.body) return command
  let text = inHere(compact(r))
  for (const name of photos) text = text.replaceAll(inHere(JSON.stringify(`@${name}`)), () => `"$(base64 < ${quoted(name)} | tr -d '\\n')"`)
  return `${command} << END\n${text}\nEND`
}

/**
 * @param {Request} r
 * @param {string[]} photos
 */
function go(r, photos) {
  const used = photos.filter((name) => r.body.includes(JSON.stringify(`@${name}`)))
  const fields = [`Method: ${JSON.stringify(r.method)}`, 'URL: target']
  if (r.headers['x-api-key']) fields.push(`APIKey: ${JSON.stringify(r.headers['x-api-key'])}`)
  if (r.headers['idempotency-key']) fields.push(`IdempotencyKey: ${JSON.stringify(r.headers['idempotency-key'])}`)
  if (r.body) fields.push('ContentType: "application/json"', 'Body: []byte(body)')
  const failed = 'if err != nil {\n\treturn err\n}\n'
  return `c, err := client.FromProfile("profile.json")
${failed}target, err := url.Parse(${JSON.stringify(target(r))})
${failed}${r.body && `body := ${JSON.stringify(compact(r))}\n`}${used
    .map((name, i) => {
      const at = JSON.stringify(JSON.stringify(`@${name}`))
      return `photo${i + 1}, err := os.ReadFile(${JSON.stringify(name)})\n${failed}body = strings.ReplaceAll(body, ${at}, strconv.Quote(base64.StdEncoding.EncodeToString(photo${i + 1})))\n`
    })
    .join('')}reply, err := c.Forward(ctx, client.Forwarded{
${fields.map((f) => `\t${f},\n`).join('')}})
${failed}fmt.Println(reply.Status, string(reply.Body))`
}

/**
 * @param {Request} r
 * @param {string[]} photos
 */
function python(r, photos) {
  const used = photos.filter((name) => r.body.includes(JSON.stringify(`@${name}`)))
  const headers = Object.entries(r.headers).filter(([name]) => name !== 'content-type')
  return `import ${used.length > 0 ? 'base64\nimport ' : ''}os

import requests
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

${used.length > 0 ? 'def photo(name):\n    with open(name, "rb") as f:\n        return base64.b64encode(f.read()).decode()\n\n' : ''}${r.body && `body = ${replaced(pythonOf(JSON.parse(r.body)), used, (name) => `photo(${JSON.stringify(name)})`)}\n`}request = requests.Request(
    ${JSON.stringify(r.method)},
    ${JSON.stringify(origin() + target(r))},
    headers={${headers.map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`).join(', ')}},${r.body && '\n    json=body,'}
).prepare()
signed = AWSRequest(request.method, request.url, data=request.body, headers={k: v for k, v in request.headers.items() if k != "Content-Length"})
keys = Credentials(os.environ["ACCESS_KEY"], os.environ["SECRET_KEY"])
SigV4Auth(keys, "execute-api", "ap-southeast-2").add_auth(signed)
request.headers.update(dict(signed.headers))
answer = requests.Session().send(request, verify="ca.pem")
print(answer.status_code, answer.text)`
}

/**
 * Returns a value of JSON as Python writes it.
 * @param {unknown} value
 * @returns {string}
 */
function pythonOf(value) {
  if (value === null) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (Array.isArray(value)) return `[${value.map(pythonOf).join(', ')}]`
  if (typeof value === 'object') return `{${Object.entries(value).map(([k, v]) => `${JSON.stringify(k)}: ${pythonOf(v)}`).join(', ')}}`
  return JSON.stringify(value)
}

/**
 * @param {Request} r
 * @param {string[]} photos
 */
function javaScript(r, photos) {
  const apiKey = r.headers['x-api-key']
  const fields = [`method: ${JSON.stringify(r.method)}`, `path: ${JSON.stringify(r.path)}`]
  if (r.query) fields.push(`query: ${JSON.stringify(r.query)}`)
  if (r.path.startsWith('/api/')) fields.push('portal: true')
  if (r.repeats) fields.push("repeat: 'keyed'")
  if (r.headers['idempotency-key']) fields.push(`options: { idempotencyKey: ${JSON.stringify(r.headers['idempotency-key'])} }`)
  if (r.body) fields.push(`body: ${replaced(compact(r), photos, (name) => `await readFile(${JSON.stringify(name)})`)}`)
  return `import { readFile } from 'node:fs/promises'
import { fromProfile } from 'facet-client/node'

const client = await fromProfile('profile.json'${apiKey ? `, { apiKey: ${JSON.stringify(apiKey)} }` : ''})
console.log(await client.call({
${fields.map((f) => `  ${f},\n`).join('')}}))`
}
