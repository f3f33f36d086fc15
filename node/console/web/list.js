// Reads the list of an import: a CSV file as facet import takes it, or a folder.

import { count } from './format.js'
import { texts } from './texts.js'

const t = texts.list

/**
 * A row of a list. file is absent if the folder lacks it.
 * @typedef {object} Row
 * @property {number} row the line in the list, or the count of the photo
 * @property {string} name of the file
 * @property {string} externalId "" for none
 * @property {File | undefined} file
 * @property {string[]} tags
 * @property {Record<string, unknown> | undefined} userData
 * @property {Date | undefined} expires
 * @property {string} [problem] why the row can't be used
 */

const LIST_BYTES_MAX = 256 << 20
const ROWS_MAX = 1_000_000
const PHOTO = /\.(jpe?g|png|gif|bmp|webp|tiff?|hei[cf])$/i

/**
 * Returns a row for each photo of a folder. With perPerson, the folder of a photo within the
 * chosen one is its person's external id.
 * @param {readonly File[]} files
 * @param {boolean} perPerson
 * @returns {Row[]}
 */
export function rowsOfFolder(files, perPerson) {
  const photos = files.filter((f) => PHOTO.test(f.name)).sort((a, b) => (pathOf(a) < pathOf(b) ? -1 : 1))
  return photos.map((file, i) => {
    const parts = pathOf(file).split('/')
    const externalId = perPerson && parts.length > 2 ? (parts.at(-2) ?? '') : ''
    return { row: i + 1, name: parts.slice(1).join('/') || file.name, externalId, file, tags: [], userData: undefined, expires: undefined }
  })
}

/**
 * Returns a row for each line of a CSV list. Its files are looked up in the folder by their path from the list on.
 * Throws an error that names what is wrong with the list as a whole.
 * @param {File} list
 * @param {readonly File[]} files
 * @returns {Promise<Row[]>}
 */
export async function rowsOfList(list, files) {
  if (list.size > LIST_BYTES_MAX) throw new Error(t.tooLarge(LIST_BYTES_MAX >> 20))
  const lines = (await list.text()).replace(/^\uFEFF/, '').split(/\r?\n/)
  const header = lines[0] ?? ''
  const comma = [',', ';', '\t'].reduce((best, c) => (header.split(c).length > header.split(best).length ? c : best), ',')
  const columns = fields(header, comma).map((name) => name.trim().toLowerCase())
  const at = (/** @type {string} */ name) => columns.indexOf(name)
  if (at('file') < 0) throw new Error(t.noFileColumn)
  if (lines.length > ROWS_MAX) throw new Error(t.tooLong(count(ROWS_MAX)))
  const known = byPath(files)
  /** @type {Row[]} */
  const rows = []
  lines.slice(1).forEach((line, i) => {
    if (!line.trim()) return
    const values = fields(line, comma)
    const value = (/** @type {string} */ name) => (at(name) < 0 ? '' : (values[at(name)] ?? '').trim())
    rows.push(rowOf(i + 2, value, known))
  })
  return rows
}

/**
 * @param {number} row
 * @param {(name: string) => string} value
 * @param {Map<string, File>} known
 * @returns {Row}
 */
function rowOf(row, value, known) {
  const name = formC(value('file')).replaceAll('\\', '/').replace(/^\.\//, '')
  const file = known.get(name)
  /** @type {Row} */
  const out = { row, name, externalId: formC(value('external_id')), file, tags: formC(value('tags')).split(';').map((tag) => tag.trim()).filter(Boolean), userData: undefined, expires: undefined }
  if (!file) out.problem = t.noFile
  if (value('user_data')) {
    try {
      out.userData = JSON.parse(value('user_data'))
    } catch {
      out.problem = t.noJSON
    }
  }
  if (value('expires')) {
    out.expires = new Date(value('expires'))
    if (Number.isNaN(out.expires.getTime())) out.problem = t.noTime
  }
  return out
}

/**
 * Returns the files by their paths within the chosen folder.
 * @param {readonly File[]} files
 */
function byPath(files) {
  /** @type {Map<string, File>} */
  const known = new Map()
  for (const file of files) {
    known.set(pathOf(file).split('/').slice(1).join('/') || file.name, file)
  }
  return known
}

/** @param {File} file */
const pathOf = (file) => formC(file.webkitRelativePath || file.name)

/** Returns a name in Unicode's form C, which the service asks for. Folders of a Mac have form D. @param {string} name */
const formC = (name) => name.normalize('NFC')

/**
 * Splits a line of CSV.
 * @param {string} line
 * @param {string} comma
 */
function fields(line, comma) {
  const out = []
  let field = ''
  let quoted = false
  for (let i = 0; i < line.length; i++) {
    const c = line.charAt(i)
    if (quoted) {
      if (c !== '"') field += c
      else if (line.charAt(i + 1) === '"') (field += c), i++
      else quoted = false
    } else if (c === '"' && field === '') quoted = true
    else if (c === comma) out.push(field), (field = '')
    else field += c
  }
  out.push(field)
  return out
}
