// Error rates of scores between photos of known persons, after ISO/IEC 19795-1, with intervals by resampling of persons.

/**
 * Scores of photos with each other: those of photo i with the photos before it start at i(i−1)/2. −1 is a pair
 * without a score.
 * @typedef {{persons: Int32Array, scores: Int16Array}} Scores
 */

/**
 * The rates at a threshold. An interval is the middle 95 %.
 * @typedef {object} Rates
 * @property {number} threshold
 * @property {number} falseMatches
 * @property {number} fmr
 * @property {[number, number]} fmrInterval
 * @property {number} misses
 * @property {number} fnmr
 * @property {[number, number]} fnmrInterval
 */

/** Rates that rest on fewer false matches than this are not shown. */
export const EVENTS_MIN = 30
const DRAWS = 500
const BIN = 100
export const BINS = 100

/**
 * Returns the number of mated and non-mated scores in each bin of 100.
 * @param {Scores} s
 */
export function histogram({ persons, scores }) {
  const mated = new Float64Array(BINS)
  const others = new Float64Array(BINS)
  let at = 0
  for (let i = 1; i < persons.length; i++) {
    for (let j = 0; j < i; j++, at++) {
      const score = scores[at] ?? -1
      if (score < 0) continue
      const bins = persons[i] === persons[j] ? mated : others
      const bin = Math.min(BINS - 1, Math.floor(score / BIN))
      bins[bin] = (bins[bin] ?? 0) + 1
    }
  }
  return { mated, others }
}

/**
 * Returns the rates at each threshold.
 * @param {Scores} s
 * @param {readonly number[]} thresholds ascending
 * @returns {Rates[]}
 */
export function rates(s, thresholds) {
  const evidence = collect(s, thresholds)
  const draws = Array.from({ length: DRAWS }, (_, i) => drawn(evidence, random(i + 1)))
  return thresholds.map((threshold, k) => {
    const falseMatches = evidence.falseMatches[k] ?? 0
    const misses = evidence.misses[k] ?? 0
    return {
      threshold,
      falseMatches,
      fmr: falseMatches / Math.max(1, evidence.nonMated),
      fmrInterval: interval(draws.map((d) => d.fmr[k] ?? 0), falseMatches, evidence.nonMated),
      misses,
      fnmr: misses / Math.max(1, evidence.mated),
      fnmrInterval: interval(draws.map((d) => d.fnmr[k] ?? 0), misses, evidence.mated),
    }
  })
}

/**
 * What the rates are made of.
 * @typedef {object} Evidence
 * @property {number} persons
 * @property {Float64Array} photos of each person that have a score
 * @property {number} mated pairs
 * @property {number} nonMated pairs
 * @property {number[]} falseMatches at each threshold
 * @property {number[]} misses at each threshold
 * @property {Float64Array} matedOf each person
 * @property {Float64Array[]} missesOf each person, at each threshold
 * @property {{a: number, b: number, reached: number}[]} alike false matches: the persons, and how many thresholds the score reached
 */

/**
 * @param {Scores} s
 * @param {readonly number[]} thresholds
 * @returns {Evidence}
 */
function collect({ persons, scores }, thresholds) {
  const count = 1 + persons.reduce((most, p) => Math.max(most, p), -1)
  /** @type {Evidence} */
  const e = {
    persons: count,
    photos: new Float64Array(count),
    mated: 0,
    nonMated: 0,
    falseMatches: thresholds.map(() => 0),
    misses: thresholds.map(() => 0),
    matedOf: new Float64Array(count),
    missesOf: thresholds.map(() => new Float64Array(count)),
    alike: [],
  }
  const has = new Uint8Array(persons.length)
  let at = 0
  for (let i = 1; i < persons.length; i++) {
    for (let j = 0; j < i; j++, at++) {
      const score = scores[at] ?? -1
      if (score < 0) continue
      has[i] = has[j] = 1
      const [a, b] = [persons[i] ?? 0, persons[j] ?? 0]
      let reached = 0
      while (reached < thresholds.length && score >= (thresholds[reached] ?? Infinity)) reached++
      if (a !== b) {
        e.nonMated++
        if (reached > 0) e.alike.push({ a, b, reached })
        for (let k = 0; k < reached; k++) e.falseMatches[k] = (e.falseMatches[k] ?? 0) + 1
        continue
      }
      e.mated++
      e.matedOf[a] = (e.matedOf[a] ?? 0) + 1
      for (let k = reached; k < thresholds.length; k++) {
        e.misses[k] = (e.misses[k] ?? 0) + 1
        const of = e.missesOf[k]
        if (of) of[a] = (of[a] ?? 0) + 1
      }
    }
  }
  persons.forEach((p, i) => (e.photos[p] = (e.photos[p] ?? 0) + (has[i] ?? 0)))
  return e
}

/**
 * Returns the rates of persons drawn with replacement.
 * @param {Evidence} e
 * @param {() => number} next
 */
function drawn(e, next) {
  const weight = new Float64Array(e.persons)
  for (let i = 0; i < e.persons; i++) {
    const p = Math.floor(next() * e.persons)
    weight[p] = (weight[p] ?? 0) + 1
  }
  let sum = 0
  let squares = 0
  let mated = 0
  for (let p = 0; p < e.persons; p++) {
    const n = (weight[p] ?? 0) * (e.photos[p] ?? 0)
    sum += n
    squares += n * n
    mated += (weight[p] ?? 0) * (e.matedOf[p] ?? 0)
  }
  const nonMated = Math.max(1, (sum * sum - squares) / 2)
  const hits = new Float64Array(e.falseMatches.length + 1)
  for (const { a, b, reached } of e.alike) hits[reached] = (hits[reached] ?? 0) + (weight[a] ?? 0) * (weight[b] ?? 0)
  const fmr = new Float64Array(e.falseMatches.length)
  for (let k = fmr.length - 1, above = 0; k >= 0; k--) {
    above += hits[k + 1] ?? 0
    fmr[k] = above / nonMated
  }
  const fnmr = e.missesOf.map((of) => of.reduce((total, n, p) => total + n * (weight[p] ?? 0), 0) / Math.max(1, mated))
  return { fmr, fnmr }
}

/**
 * Returns the middle 95 % of the draws, and never less than Wilson's interval.
 * @param {number[]} draws
 * @param {number} events
 * @param {number} trials
 * @returns {[number, number]}
 */
function interval(draws, events, trials) {
  const sorted = Float64Array.from(draws).sort()
  const [low, high] = wilson(events, trials)
  const at = (/** @type {number} */ share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0
  return [Math.min(at(0.025), low), Math.max(at(0.975), high)]
}

/**
 * @param {number} events
 * @param {number} trials
 * @returns {[number, number]}
 */
export function wilson(events, trials) {
  if (trials === 0) return [0, 1]
  const z = 1.959964
  const p = events / trials
  const middle = (p + (z * z) / (2 * trials)) / (1 + (z * z) / trials)
  const half = (z / (1 + (z * z) / trials)) * Math.sqrt((p * (1 - p)) / trials + (z * z) / (4 * trials * trials))
  return [Math.max(0, middle - half), Math.min(1, middle + half)]
}

/**
 * Returns false alarms a day: of searches for strangers, those with a candidate.
 * @param {number} fmr
 * @param {number} people enrolled
 * @param {number} searches a day
 */
export const alarms = (fmr, people, searches) => searches * -Math.expm1(people * Math.log1p(-Math.min(fmr, 1 - 1e-12)))

/** The highest score with a false match rate in the packs' tables (docs/accuracy.md): 4000 is 1 in 100, and 1,000 more a tenth. */
export const STRANGERS_END = 8000

/**
 * Returns how many comparisons of strangers there are for each that reaches a score of 4000 or more, by the packs' tables. Above
 * their end there are more.
 * @param {number} score
 */
export const strangers = (score) => 10 ** (Math.min(score, STRANGERS_END) / 1000 - 2)

/**
 * Returns a generator of numbers from 0 to below 1 with a fixed seed, so that the same photos have the same intervals (mulberry32).
 * @param {number} seed
 */
function random(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let x = Math.imul(state ^ (state >>> 15), state | 1)
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61)
    return ((x ^ (x >>> 14)) >>> 0) / 4294967296
  }
}
