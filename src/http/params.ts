/**
 * One view over everything a request carries: query string and body, whatever the body's encoding. The body
 * wins over the query; `name[]` and `name[0]` mean `name`; an empty value means "not given". Values stay
 * text until an accessor asks for a type, and each accessor answers a bad value with the contract's text.
 */
import { unescape as percentDecode } from 'node:querystring'
import { BadRequest } from '../base/errors.ts'
import type { Chunk } from '../base/mime-message.ts'
import { isGoZeroTime, parseDate } from './dates.ts'
import { PatientDigest } from './patient-digest.ts'

export interface UploadedFile {
  /** Name of the form field, without `[]`. */
  fieldName: string
  /** Last part of the name as sent, UTF-8; empty if none was sent. */
  filename: string
  /** Media type of the part in lower case, without parameters; null if none was sent. */
  contentType: string | null
  chunk: Chunk
  /**
   * Takes the bytes over: they outlive the request if the operation succeeds. Without it a spooled file is
   * discarded with the request; if the operation fails it is discarded in any case.
   */
  keep(): Chunk
}

/** More distinct values than any real request has: 1,000 recipients with a handful of fields each. */
export const FIELDS_MAX = 10_000
/** A caller's value is repeated in an error text up to this many characters. */
const QUOTED_VALUE_MAX = 256
const TRUE_WORDS = new Set(['yes', 'true', '1', 'on'])
const FALSE_WORDS = new Set(['no', 'false', '0', 'off'])
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

/** `a=1&b=%20c+d`: a broken escape stays as it is written. Empty pairs count towards FIELDS_MAX. */
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

export interface ParamsSource {
  query: Fields
  body: Fields
  /** The parsed JSON body, undefined if the body was no JSON. Its members are in `body` as text too. */
  document?: unknown
  files?: readonly UploadedFile[]
  /** SHA-256 of each file in order, if the reader was told to digest. */
  fileDigests?: readonly string[]
}

export interface IntegerRule {
  min?: number
  max?: number
  default?: number
  /** A value above `max`: refused (the default) or cut to `max`. */
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

  /** The first value even if it is empty, undefined only if the name is absent: footers and descriptions. */
  given(name: string): string | undefined {
    return this.all(name)?.[0]
  }

  /** The first value; undefined if absent or empty. */
  text(name: string): string | undefined {
    const value = this.given(name)
    return value === '' ? undefined : value
  }

  /** The same, without a look at the query string: for what a link must not be able to say. */
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

  /** The JSON body as a whole, without any `__proto__` member; undefined if the body was no JSON. */
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
    const digest = new PatientDigest()
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

export function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function booleanOf(text: string): boolean | undefined {
  const word = text.toLowerCase()
  if (TRUE_WORDS.has(word)) return true
  return FALSE_WORDS.has(word) ? false : undefined
}

/** A caller's value for an error text, cut to a sensible length. */
export function quotable(value: string): string {
  return value.length <= QUOTED_VALUE_MAX ? value : `${value.slice(0, QUOTED_VALUE_MAX)}...`
}

/** What stands in JSON where a word should; of an object or list no text can be made by itself (`{"toString": 1}`). */
export const wordOf = (value: unknown): string =>
  typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value)

/** The contract's 400 for a value of the wrong form, for parameters that a resource checks itself. */
export function invalidFormat(name: string, value: string): BadRequest {
  return new BadRequest(`Invalid format for parameter ${name}: ${quotable(value)}`)
}

/** The contract's 400 for a value outside a list. */
export function invalidChoice(name: string, value: string): BadRequest {
  return new BadRequest(`'${quotable(value)}' is not a valid value for ${name}`)
}
