// Numbers and times as people read them.

const whole = new Intl.NumberFormat('en')
const time = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short' })

/** @param {number} n */
export const count = (n) => whole.format(n)

/** A number with two significant digits. @param {number} n */
export const about = (n) => whole.format(Number(n.toPrecision(2)))

/** @param {Date | undefined} at */
export const when = (at) => (at ? time.format(at) : '')

/** @param {number} share 0 to 1 */
export const percent = (share) => `${Math.round(share * 100)} %`

/**
 * Returns a rate with two significant digits: in percent, or as 1 in N below 1 in 1,000.
 * @param {number} rate
 */
export function rate(rate) {
  if (rate === 0) return '0'
  if (rate < 1e-3) return `1 in ${count(Number((1 / rate).toPrecision(2)))}`
  return `${Number((100 * rate).toPrecision(2))} %`
}

/**
 * Returns the id with its middle left out.
 * @param {string} id
 */
export const short = (id) => (id.length > 13 ? `${id.slice(0, 8)}…` : id)
