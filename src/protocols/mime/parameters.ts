/** Parameters of Content-Type and Content-Disposition: RFC 2045 §5.1, RFC 2231. */
import { decodeCharset } from './charset.ts'
import { blankControls } from './quoted/text-safety.ts'

export type Parameter = readonly [name: string, value: string]

/** `type` is "type/subtype" in lower case; `parameters` are those worth keeping, see parseContentType. */
export type ContentType = { type: string; parameters: Parameter[] }

/** One parameter with its semicolon and the blank before it stays on one line of 78. */
const PARAMETER_MAX = 74
/** Longer values are cut: no file system takes a name of this length. */
const VALUE_MAX = 1_024
/** Parameters kept of a content type that a user gave; real ones have one or two. */
const KEPT_MAX = 8
const KEPT_VALUE_MAX = 100
const CONTENT_TYPE_TEXT_MAX = 1_000
/** Names in RFC 6838 §4.2 have at most 127 characters. */
const MEDIA_NAME = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$/
const TOKEN = /^[!#$%&'*+.0-9A-Z^_`a-z{|}~-]+$/
const PRINTABLE = /^[\x20-\x7e]*$/
/** Characters that need no escape in an extended value: attribute-char of RFC 2231 §7. */
const ATTRIBUTE_CHARACTER = /^[!#$&+.0-9A-Z^_`a-z{|}~-]$/

/**
 * One parameter as pieces that may be on lines of their own, without semicolons: `filename=a.pdf`,
 * `filename="a b.pdf"`, `filename*=utf-8''%C3%A4.pdf`, or numbered sections when it is long. Only ASCII
 * gets the plain form that every reader knows: encoded words are not allowed here (RFC 2047 §5 (3)).
 */
export function formatParameter([name, given]: Parameter): string[] {
  const value = blankControls(given).slice(0, VALUE_MAX).toWellFormed()
  if (!PRINTABLE.test(value)) return extendedSections(name, value)
  const plain = `${name}=${TOKEN.test(value) ? value : quoteValue(value)}`
  return plain.length <= PARAMETER_MAX ? [plain] : quotedSections(name, value)
}

function extendedSections(name: string, value: string): string[] {
  const characters = [...value].map(escapeCharacter)
  const whole = `${name}*=utf-8''${characters.join('')}`
  if (whole.length <= PARAMETER_MAX) return [whole]
  characters.unshift("utf-8''")
  return sections(characters, (held, index) => `${name}*${index}*=${held}`)
}

function quotedSections(name: string, value: string): string[] {
  const characters = [...value].map((character) => (/["\\]/.test(character) ? `\\${character}` : character))
  return sections(characters, (held, index) => `${name}*${index}="${held}"`)
}

/** Packs escaped characters into numbered sections (RFC 2231 §3), none split between two. */
function sections(characters: readonly string[], format: (held: string, index: number) => string): string[] {
  const pieces: string[] = []
  let held = ''
  for (const character of characters) {
    if (held !== '' && format(held + character, pieces.length).length > PARAMETER_MAX) {
      pieces.push(format(held, pieces.length))
      held = ''
    }
    held += character
  }
  pieces.push(format(held, pieces.length))
  return pieces
}

function escapeCharacter(character: string): string {
  if (ATTRIBUTE_CHARACTER.test(character)) return character
  let escaped = ''
  for (const byte of Buffer.from(character)) escaped += `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  return escaped
}

function quoteValue(value: string): string {
  return `"${value.replace(/["\\]/g, '\\$&')}"`
}

/**
 * Reads a content type that a user gave for a file. Kept are short ASCII parameters (charset, method ...),
 * but neither `name`, which is rewritten, nor `boundary`, nor anything extended or malformed.
 * @returns null unless it begins with `type/subtype` in tokens.
 */
export function parseContentType(text: string): ContentType | null {
  if (text.length > CONTENT_TYPE_TEXT_MAX) return null
  const [media = '', ...rest] = splitAtSemicolons(text)
  const type = media.trim().toLowerCase()
  const names = type.split('/')
  if (names.length !== 2 || !names.every((name) => MEDIA_NAME.test(name))) return null
  const parameters = rest.map(readParameter).filter((parameter) => parameter !== null)
  return { type, parameters: parameters.slice(0, KEPT_MAX) }
}

/** The text that parseContentType reads again. */
export const formatContentType = ({ type, parameters }: ContentType): string =>
  [
    type,
    ...parameters.map(([name, value]) => `${name}=${TOKEN.test(value) ? value : quoteValue(value)}`),
  ].join('; ')

/** What a content type as formatContentType writes it has before its parameters. */
export const mediaType = (contentType: string): string => contentType.split(';', 1)[0] as string

function readParameter(text: string): Parameter | null {
  const equals = text.indexOf('=')
  const name = text.slice(0, equals).trim().toLowerCase()
  const raw = text.slice(equals + 1).trim()
  const value = /^".*"$/.test(raw) ? raw.slice(1, -1).replace(/\\(.)/g, '$1') : raw
  if (equals < 1 || !TOKEN.test(name) || /[*'%]/.test(name) || name === 'name' || name === 'boundary')
    return null
  if (value === '' || value.length > KEPT_VALUE_MAX || !PRINTABLE.test(value)) return null
  return raw === value && !TOKEN.test(value) ? null : [name, value]
}

/** Splits at semicolons outside of quoted strings. */
function splitAtSemicolons(text: string): string[] {
  const parts: string[] = []
  let quoted = false
  let start = 0
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (character === '\\' && quoted) at++
    else if (character === '"') quoted = !quoted
    else if (character === ';' && !quoted) {
      parts.push(text.slice(start, at))
      start = at + 1
    }
  }
  return [...parts, text.slice(start)]
}

/** A structured field as found in a message: its value in lower case, its parameters decoded. */
export type StructuredValue = { value: string; parameters: ReadonlyMap<string, string> }

/** Parameters read of one field; more are noise. */
const READ_MAX = 100
/** Sections of one long value, RFC 2231 §3. */
const SECTIONS_MAX = 1_000

/**
 * Reads `value; name=value; ...` as leniently as mail needs: unquoted values with blanks, RFC 2231 sections
 * and character sets. Of two parameters of one name the first counts. Never throws.
 */
export function readStructured(text: string): StructuredValue {
  const [value = '', ...rest] = splitAtSemicolons(text)
  const parameters = new Map<string, string>()
  const sectioned = new Map<string, Section[]>()
  for (const part of rest.slice(0, SECTIONS_MAX)) {
    const equals = part.indexOf('=')
    if (equals < 1) continue
    const given = part.slice(0, equals).trim().toLowerCase()
    const [, name = '', number, star] = /^([^*]+)(?:\*(\d{1,4}))?(\*)?$/.exec(given) ?? []
    const content = unquote(part.slice(equals + 1).trim())
    if (name === '') continue
    if (number === undefined && star === undefined) setFirst(parameters, name, content)
    else {
      const sections = sectioned.get(name) ?? []
      sections.push({ index: Number(number ?? 0), extended: star !== undefined, text: content })
      sectioned.set(name, sections)
    }
  }
  // An extended value is exact where the plain one next to it approximates (RFC 6266 §4.3 has the same rule).
  for (const [name, sections] of sectioned) parameters.set(name, joinSections(sections))
  return { value: withoutComment(value).trim().toLowerCase(), parameters }
}

type Section = { index: number; extended: boolean; text: string }

function setFirst(parameters: Map<string, string>, name: string, value: string): void {
  if (!parameters.has(name) && parameters.size < READ_MAX) parameters.set(name, value)
}

function unquote(raw: string): string {
  if (!raw.startsWith('"')) return withoutComment(raw).trim()
  let content = ''
  for (let at = 1; at < raw.length && raw[at] !== '"'; at++) {
    if (raw[at] === '\\') at++
    content += raw[at] ?? ''
  }
  return content
}

/** Cuts a comment at the end: `us-ascii (plain)`. One without a blank before it belongs to a file name. */
function withoutComment(text: string): string {
  const open = text.indexOf(' (')
  return open >= 0 && text.trimEnd().endsWith(')') && !text.includes('.') ? text.slice(0, open) : text
}

/** Adjacent extended sections decode together: a character may be split between them. */
function joinSections(sections: Section[]): string {
  const ordered = sections.sort((a, b) => a.index - b.index)
  let charset = 'utf-8'
  let joined = ''
  let pending: number[] = []
  const flush = () => {
    joined += decodeCharset(Buffer.from(pending), charset)
    pending = []
  }
  for (const { index, extended, text } of ordered) {
    const [, label, rest] = (index === 0 && extended ? /^([^']*)'[^']*'(.*)$/s.exec(text) : null) ?? []
    if (label) charset = label
    if (extended) for (const byte of percentDecoded(rest ?? text)) pending.push(byte)
    else {
      flush()
      joined += text
    }
  }
  flush()
  return joined
}

function percentDecoded(text: string): Buffer {
  const bytes = Buffer.from(text)
  let size = 0
  for (let at = 0; at < bytes.length; at++) {
    const hex = bytes[at] === 0x25 ? /^[0-9a-f]{2}$/i.exec(bytes.toString('latin1', at + 1, at + 3)) : null
    bytes[size++] = hex ? Number.parseInt(hex[0], 16) : (bytes[at] as number)
    if (hex) at += 2
  }
  return bytes.subarray(0, size)
}
