// Elements are written with htm, and drawn by preact.

import htm from './vendor/htm.js'
import { h } from './vendor/preact.js'

export const html = htm.bind(h)
