// The cluster of three processes and the photos that the tests use.

import { spawn } from 'node:child_process'
import { existsSync, openSync, readFileSync, symlinkSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { fromDev } from '../src/node.js'

export const CLIENT = resolve(import.meta.dirname, '..')
export const ROOT = resolve(CLIENT, '..', '..')
const PHOTOS = join(ROOT, 'assets', 'photos')
export const PROGRAM = process.env['FACET'] ?? join(ROOT, 'bin', 'facet')
const START_MS = 90_000

export const OBAMA = 'face_recognition/obama.jpg'
export const ANOTHER_OBAMA = 'face_recognition/obama2.jpg'
export const BIDEN = 'face_recognition/biden.jpg'
export const ROCKET = 'scikit-image/rocket.jpg'
export const THREE_PEOPLE = 'face-api/sample1.jpg'

/** Returns the bytes of a photo. */
export const photo = (name) => readFileSync(join(PHOTOS, name))

/** The running cluster: its folder, which also has assets/photos, and its dev.json. */
export const cluster = { folder: '', file: '', dev: {} }

/** Returns the authority of the cluster's certificates, in PEM. */
export const authority = () => readFileSync(resolve(cluster.folder, 'dev', cluster.dev.ca_file), 'utf8')

let facet

/** Starts a cluster of the built facet. */
export async function startCluster() {
  for (const needed of [PROGRAM, PHOTOS]) {
    if (!existsSync(needed)) throw new Error(`${needed} is missing: run "make setup build" first`)
  }
  cluster.folder = await mkdtemp(join(tmpdir(), 'facet-js-'))
  cluster.file = join(cluster.folder, 'dev', 'dev.json')
  symlinkSync(join(ROOT, 'assets'), join(cluster.folder, 'assets'))
  const log = openSync(join(cluster.folder, 'dev.log'), 'w')
  const command = [...dieWithUs(), PROGRAM, 'dev', '--dir', 'dev', '--nodes', '3', '--shards', '2']
  facet = spawn(command[0], command.slice(1), { cwd: cluster.folder, stdio: ['ignore', log, log], detached: true })
  const late = Date.now() + START_MS
  while (!existsSync(cluster.file)) {
    if (facet.exitCode !== null || Date.now() > late) throw new Error(`facet dev did not start:\n${logged()}`)
    await sleep(50)
  }
  cluster.dev = JSON.parse(readFileSync(cluster.file, 'utf8'))
}

/** Stops the cluster. */
export async function stopCluster() {
  if (!facet || facet.exitCode !== null) return
  const ended = new Promise((done) => facet.once('exit', done))
  facet.kill('SIGINT')
  if ((await ended) !== 0) throw new Error(`facet dev failed:\n${logged()}`)
  await rm(cluster.folder, { recursive: true })
}

const logged = () => readFileSync(join(cluster.folder, 'dev.log'), 'utf8')

/** Returns what makes the kernel end a command when the tests die in any way (Linux). */
export function dieWithUs() {
  return existsSync('/usr/bin/setpriv') ? ['/usr/bin/setpriv', '--pdeathsig', 'TERM'] : []
}

/** Returns a client without a gallery. The test t closes it. */
export async function tenant(t) {
  const client = await fromDev(cluster.file)
  t.after(() => client.close())
  return client
}

/** Returns a client with a gallery for ten, named after the test. */
export async function gallery(t, size = 10) {
  const client = await tenant(t)
  return client.withApiKey((await client.createGallery({ name: t.name, size })).apiKey)
}

/** Returns what an iterator yields. */
export const all = (iterator) => Array.fromAsync?.(iterator) ?? collect(iterator)

async function collect(iterator) {
  const list = []
  for await (const one of iterator) list.push(one)
  return list
}
