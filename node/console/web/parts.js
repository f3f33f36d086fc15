// The parts of which pages are made.

import { html } from './html.js'
import { useEffect, useId, useRef, useState } from './vendor/hooks.js'
import { Forbidden, NoAnswer, Refusal } from './client/index.js'
import { texts } from './texts.js'

const t = texts.parts

/** @typedef {import('./vendor/preact.js').ComponentChildren} Children */
/** @typedef {import('./client/models.js').Attributes} Attributes */
/** @typedef {import('./client/models.js').Rectangle} Rectangle */

/**
 * A page's title and what it is for.
 * @param {{title: string, intro: string}} props
 */
export const Heading = ({ title, intro }) => html`<header><h1>${title}</h1><p class="faint">${intro}</p></header>`

/**
 * @param {{kind?: 'good' | 'warn' | 'bad', children: Children}} props
 */
export const Notice = ({ kind, children }) =>
  html`<div class=${`notice ${kind ?? ''}`} role=${kind === 'bad' ? 'alert' : 'status'}>${children}</div>`

/**
 * An error in words, with the request's id for those who run the service.
 * @param {{error: unknown, forbidden?: string}} props forbidden is said of a refused key
 */
export function Problem({ error, forbidden }) {
  const id = error instanceof Refusal ? error.requestId : ''
  return html`<${Notice} kind="bad">
    <p>${forbidden && error instanceof Forbidden ? forbidden : explain(error)}</p>
    ${id && html`<p class="small faint">${t.request} <code>${id}</code></p>`}
  <//>`
}

/**
 * Returns what went wrong, and what the person can do.
 * @param {unknown} error
 */
export function explain(error) {
  if (error instanceof NoAnswer) return t.noAnswer
  if (error instanceof Refusal) {
    if (error.status === 403) return t.forbidden
    if (error.status === 429) return t.busy(error.detail)
    if (error.status >= 500) return t.failed(error.detail)
    return error.detail
  }
  return error instanceof Error ? error.message : String(error)
}

/**
 * Says that there is nothing, and what to do.
 * @param {{children: Children}} props
 */
export const Empty = ({ children }) => html`<div class="empty">${children}</div>`

/**
 * A label with its field.
 * @param {{label: string, hint?: string, children: Children}} props
 */
export const Field = ({ label, hint, children }) =>
  html`<label><span>${label}</span>${hint && html`<small>${hint}</small>`}${children}</label>`

/**
 * A button that copies a text.
 * @param {{text: string, label?: string}} props
 */
export function Copy({ text, label = t.copy }) {
  const [done, setDone] = useState(false)
  const copy = async () => {
    await navigator.clipboard.writeText(text)
    setDone(true)
    setTimeout(() => setDone(false), 2000)
  }
  return html`<button type="button" class="plain" onClick=${copy}>${done ? t.copied : label}</button>`
}

/**
 * Runs an action, and says whether it runs and what went wrong.
 * @template {unknown[]} A
 * @param {(signal: AbortSignal, ...args: A) => Promise<void>} action
 * @returns {{run: (...args: A) => Promise<void>, busy: boolean, error: unknown, clear: () => void, stop: () => void}}
 */
export function useAction(action) {
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState(/** @type {unknown} */ (undefined))
  const running = useRef(/** @type {AbortController | undefined} */ (undefined))
  useEffect(() => () => running.current?.abort(), [])
  const run = async (/** @type {A} */ ...args) => {
    running.current?.abort()
    const mine = new AbortController()
    running.current = mine
    setBusy(true)
    setError(undefined)
    try {
      await action(mine.signal, ...args)
    } catch (e) {
      if (!mine.signal.aborted) setError(e)
    } finally {
      if (running.current === mine) setBusy(false)
    }
  }
  return { run, busy, error, clear: () => setError(undefined), stop: () => running.current?.abort() }
}

/**
 * Runs load when a value of on changes, and again at each call of reload.
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {unknown[]} on
 */
export function useLoaded(load, on) {
  const [value, setValue] = useState(/** @type {T | undefined} */ (undefined))
  const [at, setAt] = useState(0)
  const { run, busy, error } = useAction(async (signal) => {
    const got = await load(signal)
    if (!signal.aborted) setValue(() => got)
  })
  useEffect(() => void run(), [...on, at])
  return { value, busy, error, reload: () => setAt((n) => n + 1) }
}

/** The address of a file's content while a part shows it. @param {Blob | undefined} blob */
export function useAddress(blob) {
  const [address, setAddress] = useState('')
  useEffect(() => {
    if (!blob) return setAddress('')
    const made = URL.createObjectURL(blob)
    setAddress(made)
    return () => URL.revokeObjectURL(made)
  }, [blob])
  return address
}

/**
 * Takes a photo from a file, the clipboard, a drop, or the camera.
 * @param {{label: string, onPhoto: (photo: Blob) => void}} props
 */
export function Drop({ label, onPhoto }) {
  const [over, setOver] = useState(false)
  const [filming, setFilming] = useState(false)
  const take = (/** @type {FileList | null | undefined} */ files) => {
    const file = files?.[0]
    if (file) onPhoto(file)
  }
  return html`<div
    class=${`drop ${over ? 'over' : ''}`}
    onDragOver=${(/** @type {DragEvent} */ e) => (e.preventDefault(), setOver(true))}
    onDragLeave=${() => setOver(false)}
    onDrop=${(/** @type {DragEvent} */ e) => (e.preventDefault(), setOver(false), take(e.dataTransfer?.files))}
    onPaste=${(/** @type {ClipboardEvent} */ e) => take(e.clipboardData?.files)}
  >
    ${filming
      ? html`<${Camera} onPhoto=${(/** @type {Blob} */ photo) => (setFilming(false), onPhoto(photo))} onEnd=${() => setFilming(false)} />`
      : html`<label class="file"><span>${label}</span>
          <input
            type="file"
            accept="image/jpeg,image/png,image/webp,image/gif,image/bmp,image/tiff,image/heic,.heic"
            onChange=${(/** @type {Event & {currentTarget: HTMLInputElement}} */ e) => (take(e.currentTarget.files), (e.currentTarget.value = ''))}
          /></label>
          <p class="small faint">${t.dropHint}</p>
          <button type="button" class="plain" onClick=${() => setFilming(true)}>${t.camera}</button>`}
  </div>`
}

/**
 * Takes files, or the files of a folder.
 * @param {{label: string, hint?: string, button: string, folder?: boolean, several?: boolean, accept?: string, onFiles: (files: File[]) => void}} props
 */
export function Files({ label, hint, button, folder = false, several = folder, accept, onFiles }) {
  const [chosen, setChosen] = useState('')
  const id = useId()
  const take = (/** @type {Event & {currentTarget: HTMLInputElement}} */ e) => {
    const files = [...(e.currentTarget.files ?? [])]
    setChosen(files.length === 1 ? (files[0]?.name ?? '') : t.files(files.length))
    onFiles(files)
  }
  return html`<div class="label">
    <span id=${id}>${label}</span>${hint && html`<small>${hint}</small>`}
    <div class="row">
      <label class="file"><span>${button}</span><input type="file" aria-describedby=${id} accept=${accept} webkitdirectory=${folder} multiple=${several} onChange=${take} /></label>
      <span class="faint">${chosen}</span>
    </div>
  </div>`
}

/**
 * Shows what the camera sees until a photo is taken. The camera is off before and after.
 * @param {{onPhoto: (photo: Blob) => void, onEnd: () => void}} props
 */
function Camera({ onPhoto, onEnd }) {
  const video = useRef(/** @type {HTMLVideoElement | null} */ (null))
  const [error, setError] = useState('')
  const [ready, setReady] = useState(false)
  useEffect(() => {
    /** @type {MediaStream | undefined} */
    let stream
    let ended = false
    const begin = async () => {
      try {
        stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: 'user', width: { ideal: 1280 } }, audio: false })
        if (ended || !video.current) return stream.getTracks().forEach((track) => track.stop())
        video.current.srcObject = stream
        await video.current.play()
        setReady(true)
      } catch {
        setError(t.noCamera)
      }
    }
    void begin()
    return () => {
      ended = true
      stream?.getTracks().forEach((track) => track.stop())
    }
  }, [])
  const take = () => {
    const from = video.current
    if (!from) return
    const canvas = document.createElement('canvas')
    canvas.width = from.videoWidth
    canvas.height = from.videoHeight
    canvas.getContext('2d')?.drawImage(from, 0, 0)
    canvas.toBlob((photo) => photo && onPhoto(photo), 'image/jpeg', 0.95)
  }
  return html`<div class="photo"><video ref=${video} muted playsinline aria-label=${t.cameraShows}></video></div>
    ${error && html`<p class="bad" role="alert">${error}</p>`}
    <div class="row">
      <button type="button" disabled=${!ready} onClick=${take}>${t.takePhoto}</button>
      <button type="button" class="plain" onClick=${onEnd}>${t.cancel}</button>
    </div>`
}

/**
 * A photo with the areas of its faces, the eyes of the marked one, and their numbers.
 * @param {{photo: Blob, faces?: Attributes[], marked?: number, alt: string}} props
 */
export function Photo({ photo, faces = [], marked = 0, alt }) {
  const address = useAddress(photo)
  const [size, setSize] = useState(/** @type {[number, number] | undefined} */ (undefined))
  const [broken, setBroken] = useState(false)
  if (broken) return html`<p class="faint">${t.noPreview}</p>`
  return html`<div class="photo">
    ${address &&
    html`<img
      src=${address}
      alt=${alt}
      onLoad=${(/** @type {Event & {currentTarget: HTMLImageElement}} */ e) =>
        setSize([e.currentTarget.naturalWidth, e.currentTarget.naturalHeight])}
      onError=${() => setBroken(true)}
    />`}
    ${size &&
    faces.length > 0 &&
    html`<svg viewBox=${`0 0 ${size[0]} ${size[1]}`} aria-hidden="true">
      ${faces.map((face, i) => html`<${Box} area=${face.faceArea} chosen=${i === marked} label=${faces.length > 1 ? String(i + 1) : ''} width=${size[0]} />`)}
      ${[faces[marked]?.rightEyeCenter, faces[marked]?.leftEyeCenter].map(
        (eye) => eye && html`<circle cx=${eye.x} cy=${eye.y} r=${Math.max(2, size[0] / 160)} />`,
      )}
    </svg>`}
  </div>`
}

/** @param {{area: Rectangle, chosen: boolean, label: string, width: number}} props */
function Box({ area, chosen, label, width }) {
  const at = { x: area.left, y: area.top, width: area.right - area.left, height: area.bottom - area.top, rx: 2 }
  return html`<rect class="under" ...${at} /><rect class=${chosen ? 'chosen' : ''} ...${at} />
    ${label && html`<text x=${area.left} y=${area.top - width / 160} font-size=${Math.max(12, width / 30)}>${label}</text>`}`
}

/**
 * A score beside a bar, and whether it reaches the threshold.
 * @param {{score: number, threshold?: number}} props
 */
export const Score = ({ score, threshold }) => html`<span class="row">
  <strong class=${threshold === undefined ? '' : score >= threshold ? 'good' : 'bad'}>${score}</strong>
  <span class="bar" aria-hidden="true"><svg viewBox="0 0 9999 1" preserveAspectRatio="none"><rect width=${score} height="1" /></svg></span>
</span>`

/**
 * A dialog that is open while it is there.
 * @param {{title: string, onClose: () => void, children: Children}} props
 */
export function Dialog({ title, onClose, children }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null))
  const id = useId()
  useEffect(() => {
    const before = document.activeElement
    dialog.current?.showModal()
    return () => {
      if (before instanceof HTMLElement) before.focus() // the browser forgets it: the dialog is gone
    }
  }, [])
  return html`<dialog ref=${dialog} aria-labelledby=${id} onClose=${onClose}>
    <div class="stack"><h2 id=${id}>${title}</h2>${children}</div>
  </dialog>`
}

/**
 * Saves a text as a file.
 * @param {string} name
 * @param {string} type
 * @param {string} text
 */
export function save(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }))
  const link = document.createElement('a')
  link.href = address
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(address), 60_000)
}

/**
 * Returns rows as CSV. A field that a table program would take for a formula gets an apostrophe before it.
 * @param {(string | number)[][]} rows
 */
export function csv(rows) {
  const field = (/** @type {string | number} */ value) => {
    let text = String(value)
    if (/^[=+\-@\t\r]/.test(text) && typeof value !== 'number') text = `'${text}`
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
  }
  return rows.map((row) => row.map(field).join(',') + '\r\n').join('')
}
