/** Parameters of Content-Type and Content-Disposition: RFC 2045 §5.1, RFC 2231. */
import { blankControls } from './text-safety.ts'

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
 * One parameter as pieces that may stand on lines of their own, without semicolons: `filename=a.pdf`,
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
 * but neither `name`, which is written anew, nor `boundary`, nor anything extended or malformed.
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
