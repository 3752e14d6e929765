/**
 * The parameters of a request, from query string and body, whatever the body's encoding. The body takes precedence over
 * the query; `name[]` and `name[0]` mean `name`; an empty value means "not given". Values are text; the typed accessors
 * throw the contract's error for a bad one.
 */

import { createHash } from 'node:crypto'
import { unescape as percentDecode } from 'node:querystring'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { BadRequest } from '../../../base/process/errors.ts'
import type { Shape } from '../../../base/shape.ts'
import { shapeFault } from '../../../base/shape-check.ts'
import { isGoZeroTime, parseDate } from '../../../base/time/dates.ts'
import { booleanOf, invalidChoice, invalidFormat, isPlainObject, quotable } from '../../../base/values.ts'
import type { Chunk } from '../../../protocols/message/mime-message.ts'

export interface UploadedFile {
  /** Name of the form field, without `[]`. */
  fieldName: string
  /** Last part of the name as sent, UTF-8; empty if none was sent. */
  filename: string
  /** Content type of the part, as `formatContentType` writes it; null if none was sent that can be read. */
  contentType: string | null
  chunk: Chunk
  /**
   * Makes the bytes outlive the request, if the operation succeeds. Otherwise a spooled file is discarded with the
   * request.
   */
  keep(): Chunk
}

/** More distinct values than any real request has: 1,000 recipients with a handful of fields each. */
export const FIELDS_MAX = 10_000
const WHOLE_NUMBER = /^[+-]?\d{1,15}$/

/** Named text values in order of appearance. A Map, so that names such as `__proto__` are only names. */
export class Fields {
  readonly values = new Map<string, string[]>()
  private count = 0

  /** @throws BadRequest over FIELDS_MAX values. */
  add(name: string, value: string): void {
    this.count += 1
    if (this.count > FIELDS_MAX) throw tooManyParameters()
    const plain = plainName(name)
    const present = this.values.get(plain)
    if (present === undefined) this.values.set(plain, [value])
    else present.push(value)
  }
}

export const tooManyParameters = () =>
  new BadRequest(`unable to parse request: more than ${FIELDS_MAX} parameters`)

/** `to[]` and `to[12]` are `to`; anything else stays as it is. */
export function plainName(name: string): string {
  if (!name.endsWith(']')) return name
  const open = name.lastIndexOf('[')
  return open > 0 && /^\d{0,9}$/.test(name.slice(open + 1, -1)) ? name.slice(0, open) : name
}

/** `a=1&b=%20c+d`: a broken escape is kept as written. Empty pairs count towards FIELDS_MAX. */
export function parseUrlencoded(text: string): Fields {
  const fields = new Fields()
  let pairs = 0
  for (let start = 0; start < text.length; ) {
    if (++pairs > FIELDS_MAX) throw tooManyParameters()
    const ampersand = text.indexOf('&', start)
    const end = ampersand < 0 ? text.length : ampersand
    if (end > start) addPair(fields, text.slice(start, end))
    start = end + 1
  }
  return fields
}

function addPair(fields: Fields, pair: string): void {
  const equals = pair.indexOf('=')
  const name = equals < 0 ? pair : pair.slice(0, equals)
  const value = equals < 0 ? '' : pair.slice(equals + 1)
  fields.add(decodeFormText(name), decodeFormText(value))
}

function decodeFormText(text: string): string {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text
  return spaced.includes('%') ? percentDecode(spaced) : spaced
}

interface ParamsSource {
  query: Fields
  body: Fields
  /** The parsed JSON body, undefined if the body was no JSON. Its members are in `body` as text too. */
  document?: unknown
  files?: readonly UploadedFile[]
  /** SHA-256 of each file in order, if the body was read with `digest`. */
  fileDigests?: readonly string[]
}

export interface IntegerRule {
  min?: number
  max?: number
  default?: number
  /** A value above `max` is refused (the default) or cut to `max`. */
  above?: 'refuse' | 'cut'
  /** Text for a value above `max`; default `The '<name>' parameter can't be larger than <max>`. */
  tooLarge?: string
  /** Text for a value below `min` or no whole number; default `Invalid format for parameter ...`. */
  invalid?: string
}

export class Params {
  private readonly source: ParamsSource
  private allNames: readonly string[] | undefined

  constructor(source: ParamsSource) {
    this.source = source
  }

  /** Every name given, the body's first. */
  names(): readonly string[] {
    this.allNames ??= this.#allNames()
    return this.allNames
  }

  #allNames(): readonly string[] {
    const [body, query] = [this.source.body.values, this.source.query.values]
    return query.size === 0 ? [...body.keys()] : [...new Set([...body.keys(), ...query.keys()])]
  }

  /** The first value even if empty, for footers and descriptions; undefined only if the name is absent. */
  given(name: string): string | undefined {
    return this.all(name)?.[0]
  }

  /** The first value; undefined if absent or empty. */
  text(name: string): string | undefined {
    const value = this.given(name)
    return value === '' ? undefined : value
  }

  /** The same from the body alone: for values that a link must not be able to set. */
  bodyText(name: string): string | undefined {
    return this.source.body.values.get(name)?.[0] || undefined
  }

  /** @throws BadRequest `Missing mandatory parameter: <name>`, or `missing` if given. */
  required(name: string, missing = `Missing mandatory parameter: ${name}`): string {
    const value = this.text(name)
    if (value === undefined) throw new BadRequest(missing)
    return value
  }

  /** All values of a repeatable parameter in order, empty ones left out. */
  texts(name: string): string[] {
    return (this.all(name) ?? []).filter((value) => value !== '')
  }

  /** @throws BadRequest for a word that is neither yes nor no in any of the contract's spellings. */
  boolean(name: string): boolean | undefined {
    const value = this.text(name)
    if (value === undefined) return undefined
    const flag = booleanOf(value)
    if (flag === undefined) throw invalidFormat(name, value)
    return flag
  }

  /** A boolean that takes further words, such as `htmlonly`. */
  booleanOr<const W extends string>(name: string, words: readonly W[]): boolean | W | undefined {
    const value = this.text(name)
    if (value === undefined) return undefined
    const word = words.find((candidate) => candidate === value.toLowerCase())
    const flag = word ?? booleanOf(value)
    if (flag === undefined) throw invalidChoice(name, value)
    return flag
  }

  /** @throws BadRequest `'<value>' is not a valid value for <name>`. */
  oneOf<const V extends string>(name: string, values: readonly V[]): V | undefined {
    const value = this.text(name)
    if (value === undefined) return undefined
    const found = values.find((candidate) => candidate === value)
    if (found === undefined) throw invalidChoice(name, value)
    return found
  }

  integer(name: string, rule: IntegerRule & { default: number }): number
  integer(name: string, rule?: IntegerRule): number | undefined
  integer(name: string, rule: IntegerRule = {}): number | undefined {
    const text = this.text(name)
    if (text === undefined) return rule.default
    const value = WHOLE_NUMBER.test(text) ? Number(text) : Number.NaN
    if (Number.isNaN(value) || value < (rule.min ?? -Infinity)) {
      throw rule.invalid === undefined ? invalidFormat(name, text) : new BadRequest(rule.invalid)
    }
    if (rule.max === undefined || value <= rule.max) return value
    if (rule.above === 'cut') return rule.max
    throw new BadRequest(rule.tooLarge ?? `The '${name}' parameter can't be larger than ${rule.max}`)
  }

  /** RFC 2822 or Unix seconds, to the millisecond. The Go zero time counts as absent. */
  date(name: string): Date | undefined {
    const text = this.text(name)
    if (text === undefined) return undefined
    const date = parseDate(text)
    if (date === undefined) throw invalidFormat(name, text)
    return isGoZeroTime(date) ? undefined : date
  }

  /** The uploaded files of a field in order. */
  files(name: string): UploadedFile[] {
    return (this.source.files ?? []).filter((file) => file.fieldName === name)
  }

  /** The names of their fields, one for each file. */
  fileNames(): readonly string[] {
    return (this.source.files ?? []).map(({ fieldName }) => fieldName)
  }

  /** The JSON body as a whole, without `__proto__` members; undefined if the body was no JSON. */
  json(): unknown {
    return this.source.document
  }

  /** One value as sent: a member of a JSON body with its type, else the text. */
  value(name: string): unknown {
    const { document } = this.source
    const isMember = isPlainObject(document) && Object.hasOwn(document, name)
    return isMember ? document[name] : this.given(name)
  }

  /** SHA-256 over names, values and file contents, in hex: equal for equal requests whatever their encoding
   *  or multipart boundary. Covers files only if the request was read with `digest`. */
  async digest(): Promise<string> {
    const digest = new YieldingDigest()
    for (const fields of [this.source.query, this.source.body]) {
      for (const [name, values] of fields.values) await digest.addField(name, values)
      await digest.add('\n')
    }
    if (Array.isArray(this.source.document)) await digest.add(JSON.stringify(this.source.document))
    for (const [index, file] of (this.source.files ?? []).entries()) {
      await digest.add(
        JSON.stringify([file.fieldName, file.filename, this.source.fileDigests?.[index] ?? '']),
      )
    }
    return digest.hex()
  }

  private all(name: string): string[] | undefined {
    return this.source.body.values.get(name) ?? this.source.query.values.get(name)
  }
}

/** A JSON body of this shape. @throws BadRequest naming the first member that is missing or of the wrong form */
export function readDocument<T>(shape: Shape<T>, value: unknown): T {
  const fault = shapeFault(shape, value)
  if (fault === null) return value as T
  if (fault.path === '') throw new BadRequest('unable to parse request: a JSON object is expected')
  const text = fault.kind === 'missing' ? 'Missing mandatory parameter' : 'Invalid parameter'
  throw new BadRequest(`${text}: ${quotable(fault.path)}`)
}

const PIECE_LENGTH = 64 * 1024
/** Hashed between two turns of the event loop: some 10 ms where every character is an escape. */
const TURN_LENGTH = 256 * 1024
const ENDS_IN_HALF_A_PAIR = /[\ud800-\udbff]$/

/**
 * SHA-256 over texts of any size, yielding to the event loop: a form holds up to 50 MB, and as JSON a text can be six times
 * as long.
 */
export class YieldingDigest {
  readonly #hash = createHash('sha256')
  #sinceTurn = 0

  async add(text: string): Promise<void> {
    this.#hash.update(text)
    this.#sinceTurn += text.length
    if (this.#sinceTurn < TURN_LENGTH) return
    this.#sinceTurn = 0
    await nextTurn()
  }

  /** `[name, values]` as `JSON.stringify` writes it. */
  async addField(name: string, values: readonly string[]): Promise<void> {
    const length = values.reduce((sum, value) => sum + value.length, name.length)
    if (length <= PIECE_LENGTH) return this.add(JSON.stringify([name, values]))
    await this.add('[')
    await this.#addText(name)
    await this.add(',[')
    for (const [index, value] of values.entries()) {
      if (index > 0) await this.add(',')
      await this.#addText(value)
    }
    await this.add(']]')
  }

  hex(): string {
    return this.#hash.digest('hex')
  }

  async #addText(text: string): Promise<void> {
    await this.add('"')
    for (let start = 0; start < text.length; ) {
      let piece = text.slice(start, start + PIECE_LENGTH)
      // Each half of a split surrogate pair would be written as an escape.
      if (ENDS_IN_HALF_A_PAIR.test(piece) && start + piece.length < text.length) piece = piece.slice(0, -1)
      await this.add(JSON.stringify(piece).slice(1, -1))
      start += piece.length
    }
    await this.add('"')
  }
}
