// Servers in this process that give the answers of a test. They use the certificate of the
// cluster's first node.

import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { join } from 'node:path'

import { Client, Credentials, HttpsTransport } from '../src/node.js'
import { authority, cluster } from './support.js'

/** Returns an answer. */
export const say = (status, body = '', headers = {}) => ({ status, body, headers })

/** Serves answer(request, its number) until the test t ends. An answer that is null hangs up. */
export async function serve(t, answer) {
  const folder = join(cluster.folder, 'dev', 'certificates', 'n1')
  const key = readFileSync(join(folder, 'server.key'))
  const seen = []
  const server = createServer({ key, cert: readFileSync(join(folder, 'server.pem')) }, async (request, response) => {
    const parts = []
    for await (const part of request) parts.push(part)
    const { method, url: target, headers } = request
    seen.push({ method, target, headers, body: Buffer.concat(parts).toString(), at: performance.now() })
    const said = answer(seen.at(-1), seen.length - 1)
    if (said === null) return request.socket.destroy()
    response.writeHead(said.status, said.headers).end(said.body)
  })
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return { url: `https://127.0.0.1:${server.address().port}`, seen }
}

/** Serves the answers in order, and the last one again and again. */
export const play = (t, ...answers) => serve(t, (_, n) => answers[Math.min(n, answers.length - 1)])

/** Returns a client of such servers. */
export async function clientOf(t, servers, settings) {
  const client = new Client({
    baseUrls: servers.map((s) => s.url ?? s),
    credentials: await Credentials.fromSecret('AK', 'SK'),
    apiKey: 'key',
    transport: new HttpsTransport({ ca: authority() }),
    ...settings,
  })
  t.after(() => client.close())
  return client
}
