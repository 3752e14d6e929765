/** Checks of untrusted values, and the contract's 400 for one of the wrong form. */
import { BadRequest } from './process/errors.ts'

/** A caller's value is repeated in an error text up to this many characters. */
const QUOTED_VALUE_MAX = 256
const TRUE_WORDS = new Set(['yes', 'true', '1', 'on'])
const FALSE_WORDS = new Set(['no', 'false', '0', 'off'])

export function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The object that a JSON text holds; null: it is anything else. */
export function jsonObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text)
    return isPlainObject(value) ? value : null
  } catch {
    return null
  }
}

/** Undefined for a word that is neither yes nor no in any of the contract's spellings. */
export function booleanOf(text: string): boolean | undefined {
  const word = text.toLowerCase()
  if (TRUE_WORDS.has(word)) return true
  return FALSE_WORDS.has(word) ? false : undefined
}

/** A JSON value as text. Objects and lists are written as JSON: `String` calls a `toString` that they may define. */
export const jsonText = (value: unknown): string =>
  typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value)

/** A caller's value for an error text, cut to a sensible length. */
export function quotable(value: string): string {
  return value.length <= QUOTED_VALUE_MAX ? value : `${value.slice(0, QUOTED_VALUE_MAX)}...`
}

/** The contract's 400 for a value of the wrong form. */
export function invalidFormat(name: string, value: string): BadRequest {
  return new BadRequest(`Invalid format for parameter ${name}: ${quotable(value)}`)
}

/** The contract's 400 for a value outside a list. */
export function invalidChoice(name: string, value: string): BadRequest {
  return new BadRequest(`'${quotable(value)}' is not a valid value for ${name}`)
}
