// Whether somebody is here: without a touch of any tab for ten minutes all tabs sign out, and so they do when one of them does.
// The time of the last touch is in localStorage, which all tabs share and are told about.

import { useEffect } from './vendor/hooks.js'
import { signal } from './vendor/signals.js'

const NAME = 'facet-console-touched'
const IDLE = 10 * 60_000 // ms
const LOOK = 5000 // ms between two looks
const TOUCHES = ['pointerdown', 'pointermove', 'keydown', 'wheel', 'touchstart']

/** Whether work is under way that leaving the page would stop. It counts as a touch. */
export const working = signal(false)

/** Notes that a page is at work while busy. @param {boolean} busy */
export function useWork(busy) {
  useEffect(() => {
    working.value = busy
    return () => void (working.value = false)
  }, [busy])
}

/** When this tab was touched last, for browsers that keep nothing. */
let own = 0

const last = () => {
  try {
    return Number(localStorage.getItem(NAME))
  } catch {
    return own
  }
}

/** Notes that somebody is here. */
export function touch() {
  if (Date.now() - own < 1000) return
  own = Date.now()
  try {
    localStorage.setItem(NAME, String(own))
  } catch {
    // this tab alone
  }
}

/** Has all tabs sign out. */
export function leave() {
  own = 0
  try {
    localStorage.removeItem(NAME)
  } catch {
    // this tab alone
  }
}

/** Reports whether nobody was here for ten minutes, or somebody has signed out. */
export const away = () => Date.now() - last() > IDLE

/**
 * Calls onAway once nobody is here.
 * @param {() => void} onAway
 */
export function watchPresence(onAway) {
  const look = () => {
    if (working.value) touch()
    if (away()) onAway()
  }
  for (const kind of TOUCHES) addEventListener(kind, () => (away() ? onAway() : touch()), { capture: true, passive: true })
  addEventListener('storage', (e) => (e.key === NAME || e.key === null) && e.newValue === null && onAway()) // also during work
  setInterval(look, LOOK)
}
