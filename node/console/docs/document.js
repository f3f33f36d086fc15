// Reads an OpenAPI document: its operations, and schemas as rows of a table.

/** @typedef {Record<string, any>} Json */

/**
 * A parameter of the path, the query or a header.
 * @typedef {object} Parameter
 * @property {string} name
 * @property {"path" | "query" | "header"} place
 * @property {boolean} required
 * @property {boolean} extension
 * @property {string} text
 * @property {string} type
 * @property {string} example
 */

/**
 * An answer by its status.
 * @typedef {object} Answer
 * @property {string} status
 * @property {string} text
 * @property {Json | undefined} schema
 * @property {Example[]} examples
 * @property {{name: string, text: string}[]} headers
 */

/** @typedef {{name: string, value: unknown}} Example */

/**
 * One operation of the interface.
 * @typedef {object} Operation
 * @property {string} id
 * @property {string} method in capitals
 * @property {string} path with its parameters in braces
 * @property {string} tag
 * @property {string} summary
 * @property {string} text
 * @property {boolean} extension
 * @property {"required" | "optional" | "none"} apiKey
 * @property {Parameter[]} parameters
 * @property {Json | undefined} schema of the body
 * @property {Example[]} examples of the body
 * @property {Answer[]} answers
 */

/**
 * A member of a schema. depth counts the objects around it.
 * @typedef {{name: string, depth: number, type: string, required: boolean, extension: boolean, text: string}} Row
 */

const METHODS = ['get', 'post', 'put', 'patch', 'delete']
const DEPTH_MAX = 4
const IMAGE = '#/components/schemas/Image'

/** The document, with its references followed. */
export class Document {
  /** @param {Json} json */
  constructor(json) {
    this.json = json
    this.title = String(json.info?.title ?? '')
    this.version = String(json.info?.version ?? '')
    this.text = String(json.info?.description ?? '')
    /** @type {{name: string, text: string}[]} */
    this.tags = (json.tags ?? []).map((/** @type {Json} */ t) => ({ name: t.name, text: t.description ?? '' }))
    this.operations = Object.entries(json.paths ?? {}).flatMap(([path, item]) =>
      METHODS.filter((m) => item[m]).map((m) => this.operation(path, m, item[m])),
    )
    for (const { tag } of this.operations) {
      if (!this.tags.some((t) => t.name === tag)) this.tags.push({ name: tag, text: '' })
    }
  }

  /**
   * Returns what a reference names, with the members beside it.
   * @param {any} value
   * @returns {Json}
   */
  follow(value) {
    const { $ref, ...beside } = value ?? {}
    if (typeof $ref !== 'string') return beside
    const found = $ref.replace(/^#\//, '').split('/').reduce((/** @type {any} */ at, part) => at?.[part.replaceAll('~1', '/').replaceAll('~0', '~')], this.json)
    return { ...this.follow(found), ...beside }
  }

  /**
   * @param {string} path
   * @param {string} method
   * @param {Json} o
   * @returns {Operation}
   */
  operation(path, method, o) {
    const content = this.follow(o.requestBody).content?.['application/json']
    /** @type {Json[]} */
    const security = o.security ?? []
    const keyed = security.filter((s) => 'apiKey' in s).length
    return {
      id: o.operationId ?? `${method} ${path}`,
      method: method.toUpperCase(),
      path,
      tag: o.tags?.[0] ?? '',
      summary: o.summary ?? '',
      text: o.description ?? '',
      extension: !!o['x-facet-extension'],
      apiKey: keyed === 0 ? 'none' : keyed === security.length ? 'required' : 'optional',
      parameters: (o.parameters ?? []).map((/** @type {Json} */ p) => this.parameter(p)),
      schema: content?.schema,
      examples: this.examples(content),
      answers: Object.entries(o.responses ?? {}).map(([status, r]) => this.answer(status, r)),
    }
  }

  /**
   * @param {Json} reference
   * @returns {Parameter}
   */
  parameter(reference) {
    const p = this.follow(reference)
    return {
      name: p.name,
      place: p.in,
      required: !!p.required,
      extension: !!p['x-facet-extension'],
      text: [p.description, p['x-external-id']?.description].filter(Boolean).join(' '),
      type: this.type(p.schema),
      example: String(p.example ?? ''),
    }
  }

  /**
   * @param {string} status
   * @param {Json} reference
   * @returns {Answer}
   */
  answer(status, reference) {
    const r = this.follow(reference)
    const content = r.content?.['application/json']
    const headers = Object.entries(r.headers ?? {}).map(([name, h]) => ({ name, text: this.follow(h).description ?? '' }))
    return { status, text: r.description ?? '', schema: content?.schema, examples: this.examples(content), headers }
  }

  /**
   * @param {Json | undefined} content
   * @returns {Example[]}
   */
  examples(content) {
    if (content?.example !== undefined) return [{ name: '', value: content.example }]
    return Object.entries(content?.examples ?? {}).map(([name, e]) => ({ name, value: this.follow(e).value }))
  }

  /**
   * Returns the forms that a schema permits, each with a name.
   * @param {Json | undefined} schema
   * @returns {{name: string, schema: Json}[]}
   */
  forms(schema) {
    const s = this.follow(schema)
    if (s.oneOf) return s.oneOf.flatMap((/** @type {Json} */ one) => this.forms(one))
    return [{ name: nameOf(schema), schema: s }]
  }

  /**
   * Returns a row for each member of a schema, and for the members of those.
   * @param {Json | undefined} schema
   * @param {number} [depth]
   * @returns {Row[]}
   */
  rows(schema, depth = 0) {
    const s = this.follow(schema)
    if (s.items) return this.forms(s.items).flatMap((form) => this.rows(form.schema, depth))
    if (depth >= DEPTH_MAX) return []
    return Object.entries(s.properties ?? {}).flatMap(([name, member]) => {
      const m = this.follow(member)
      if (m.type === 'null') return [] // must be absent in this form
      /** @type {Row} */
      const row = {
        name,
        depth,
        type: this.type(member),
        required: (s.required ?? []).includes(name),
        extension: !!m['x-facet-extension'],
        text: m.description ?? '',
      }
      return [row, ...this.forms(member).flatMap((form) => this.rows(form.schema, depth + 1))]
    })
  }

  /**
   * Returns the type of a schema with its bounds, in words.
   * @param {Json | undefined} schema
   * @returns {string}
   */
  type(schema) {
    const s = this.follow(schema)
    if (s.const !== undefined) return JSON.stringify(s.const)
    if (s.enum) return s.enum.map((/** @type {unknown} */ e) => JSON.stringify(e)).join(' | ')
    if (s.oneOf) return s.oneOf.map((/** @type {Json} */ one) => nameOf(one) || this.type(one)).join(' | ')
    let type = [s.type ?? 'any'].flat().filter((t) => t !== 'null').join(' | ') || 'null'
    if (s.items) type = `array of ${this.type(s.items)}`
    const [low, high] = [s.minimum ?? s.minLength ?? s.minItems, s.maximum ?? s.maxLength ?? s.maxItems]
    const unit = s.type?.includes('string') ? ' characters' : s.items ? ' items' : ''
    if (high !== undefined) type += `, ${low ?? 0} to ${high}${unit}`
    else if (low !== undefined && low > (unit ? 1 : -Infinity)) type += `, from ${low}${unit}`
    return s.default === undefined ? type : `${type}, default ${JSON.stringify(s.default)}`
  }

  /**
   * Returns the places of photos in a body. '*' stands for each entry of an array.
   * @param {Json | undefined} schema
   * @param {string[]} [at]
   * @returns {string[][]}
   */
  photos(schema, at = []) {
    if (schema?.$ref === IMAGE) return [at]
    const s = this.follow(schema)
    if (at.length > DEPTH_MAX) return []
    const found = [
      ...(s.oneOf ?? []).flatMap((/** @type {Json} */ one) => this.photos(one, at)),
      ...(s.items ? this.photos(s.items, [...at, '*']) : []),
      ...Object.entries(s.properties ?? {}).flatMap(([name, member]) => this.photos(/** @type {Json} */ (member), [...at, name])),
    ]
    return found.filter((place, i) => found.findIndex((other) => other.join('/') === place.join('/')) === i)
  }
}

/**
 * Returns the last part of a reference, or a schema's title.
 * @param {any} schema
 */
const nameOf = (schema) => String(schema?.$ref?.split('/').at(-1) ?? schema?.title ?? '')
