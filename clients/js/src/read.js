// Reads the service's answers: checks that members are there and have their types, turns numbers
// in strings into numbers and times into Dates, and drops what it does not know.

import { FacetError } from './errors.js'

/**
 * Returns what a JSON value contains, or throws a Mismatch.
 * @template T
 * @typedef {(value: unknown) => T} Reader
 */

/**
 * What a reader returns.
 * @template R
 * @typedef {R extends Reader<infer T> ? T : never} Read
 */

/** Why a value can't be read. */
class Mismatch extends Error {}

/**
 * Reads an answer. Throws a FacetError when it has another form.
 * @template T
 * @param {Reader<T>} reader
 * @param {unknown} value
 * @returns {T}
 */
export function read(reader, value) {
  try {
    return reader(value)
  } catch (e) {
    if (e instanceof Mismatch) throw new FacetError(`the answer can't be read: ${e.message}`)
    throw e
  }
}

/** @type {Reader<string>} */
export const string = (value) => {
  if (typeof value !== 'string') throw new Mismatch('not a string')
  return value
}

/** @type {Reader<boolean>} */
export const boolean = (value) => {
  if (typeof value !== 'boolean') throw new Mismatch('not a boolean')
  return value
}

/**
 * A number, or a string with one: attributes are strings.
 * @type {Reader<number>}
 */
export const number = (value) => {
  const n = typeof value === 'string' && /^-?\d/.test(value) ? Number(value) : value
  if (typeof n !== 'number' || !Number.isFinite(n)) throw new Mismatch('not a number')
  return n
}

/** @type {Reader<number>} */
export const integer = (value) => {
  const n = number(value)
  if (!Number.isSafeInteger(n)) throw new Mismatch('not a whole number')
  return n
}

/** @type {Reader<Date>} */
export const date = (value) => {
  const at = new Date(string(value))
  if (Number.isNaN(at.valueOf())) throw new Mismatch('not a time')
  return at
}

/**
 * Any JSON object.
 * @type {Reader<Record<string, unknown>>}
 */
export const anyObject = (value) => {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) throw new Mismatch('not an object')
  return /** @type {Record<string, unknown>} */ (value)
}

/**
 * @template T
 * @param {Reader<T>} each
 * @returns {Reader<T[]>}
 */
export const list = (each) => (value) => {
  if (!Array.isArray(value)) throw new Mismatch('not an array')
  return value.map((one) => each(one))
}

/**
 * An object with any names.
 * @template T
 * @param {Reader<T>} each
 * @returns {Reader<Record<string, T>>}
 */
export const named = (each) => (value) =>
  Object.fromEntries(Object.entries(anyObject(value)).map(([name, one]) => [name, each(one)]))

/**
 * @template T
 * @param {Reader<T>} reader
 * @returns {Reader<T | undefined>}
 */
export const optional = (reader) => (value) => (value === undefined || value === null ? undefined : reader(value))

/**
 * @template T
 * @param {Reader<T>} reader
 * @param {() => NoInfer<T>} otherwise
 * @returns {Reader<T>}
 */
export const or = (reader, otherwise) => (value) => (value === undefined || value === null ? otherwise() : reader(value))

/**
 * An object with these members. One that is optional, and absent, is absent in what it returns.
 * @template {Record<string, Reader<any>>} S
 * @param {S} shape
 * @returns {Reader<{[K in keyof S]: Read<S[K]>}>}
 */
export const object = (shape) => (value) => {
  const given = anyObject(value)
  /** @type {Record<string, unknown>} */
  const out = {}
  for (const [name, reader] of Object.entries(shape)) {
    try {
      const one = reader(Object.hasOwn(given, name) ? given[name] : undefined)
      if (one !== undefined) out[name] = one
    } catch (e) {
      throw e instanceof Mismatch ? new Mismatch(`${name}: ${e.message}`) : e
    }
  }
  return /** @type {any} */ (out)
}
