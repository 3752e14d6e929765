/** Members that requests for metrics and logs have in common (metrics-logs.md section 1). All throw BadRequest. */

import { BadRequest } from '../../base/process/errors.ts'
import { isGoZeroTime, parseDate } from '../../base/time/dates.ts'
import { booleanOf, invalidFormat, isPlainObject, jsonText, quotable } from '../../base/values.ts'

const CONDITIONS_MAX = 20
const VALUES_MAX = 100
const VALUE_LENGTH_MAX = 500

export const textOf = (value: unknown) => (typeof value === 'string' ? value.trim() : '')

/** Rule 16. */
export function oneOf<const V extends string>(what: string, value: string, known: readonly V[]): V {
  const found = known.find((candidate) => candidate === value)
  if (found === undefined) throw new BadRequest(`invalid ${what}: ${quotable(value)}`)
  return found
}

/** Distinct. */
export function namesOf<const V extends string>(what: string, value: unknown, known: readonly V[]): V[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) throw new BadRequest(`${what}s must be a list`)
  return [...new Set(value.slice(0, 2 * known.length).map((name) => oneOf(what, jsonText(name), known)))]
}

/** Unix milliseconds; undefined for the texts of rule 1. */
export function dateOf(name: string, value: unknown): number | undefined {
  const text = typeof value === 'number' ? String(value) : textOf(value)
  if (text === '') return undefined
  const date = parseDate(text)
  if (!date) throw invalidFormat(name, text)
  return isGoZeroTime(date) ? undefined : date.getTime()
}

export function numberOf(name: string, value: unknown, otherwise: number): number {
  if (value === undefined || value === null) return otherwise
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw invalidFormat(name, jsonText(value))
  return value as number
}

/** `maximum` is named by the error; 0 and nothing mean the default. */
export function pageLimitOf(value: unknown, otherwise: number, maximum: number): number {
  const limit = numberOf('limit', value, 0) || otherwise
  if (limit > maximum) throw new BadRequest(`limit must not exceed ${maximum}`)
  return limit
}

/** In any of the contract's spellings; nothing is false. */
export function flagOf(name: string, value: unknown): boolean {
  if (value === undefined || value === null || value === '') return false
  const flag = booleanOf(jsonText(value))
  if (flag === undefined) throw invalidFormat(name, jsonText(value))
  return flag
}

export const isTrue = (value: unknown) => value === true || value === 'true'

/** `<column>:<asc|desc>` (rule 12). */
export function directionOf(asked: string): { name: string; descending: boolean } {
  const [name = '', order = 'asc', ...rest] = asked.split(':')
  if (!/^(asc|desc)$/i.test(order) || rest.length > 0)
    throw new BadRequest(`invalid sort: ${quotable(asked)}`)
  return { name, descending: order.toLowerCase() === 'desc' }
}

/** What a kind of filter knows. */
export interface FilterRules<A extends string, C extends string> {
  attributeOf(name: string): A | undefined
  comparators: readonly C[]
  /** A member as text. */
  textOf(value: unknown): string
  /** Whether they go together. */
  supports(attribute: A, comparator: C): boolean
}

/** `{ AND: [{ attribute, comparator, values }] }`; the values are as given. */
export function conditionsOf<A extends string, C extends string>(
  filter: unknown,
  { attributeOf, comparators, textOf, supports }: FilterRules<A, C>,
): { attribute: A; comparator: C; values: string[] }[] {
  const entries = isPlainObject(filter) ? filter['AND'] : undefined
  if (entries === undefined || entries === null) return []
  if (!Array.isArray(entries)) throw new BadRequest('filter.AND must be a list')
  if (entries.length > CONDITIONS_MAX) throw new BadRequest(`filter has more than ${CONDITIONS_MAX} entries`)
  return entries.map((entry: unknown) => {
    const { attribute, comparator, values } = isPlainObject(entry) ? entry : {}
    const name = textOf(attribute)
    const known = attributeOf(name)
    if (known === undefined) throw new BadRequest(`invalid attribute: ${quotable(name)}`)
    const found = oneOf('comparator', textOf(comparator), comparators)
    if (!supports(known, found))
      throw new BadRequest(`comparator '${found}' is not supported for attribute '${quotable(name)}'`)
    return { attribute: known, comparator: found, values: valuesOf(known, values, textOf) }
  })
}

/** `[{label?, value}]`, or the values as they are. */
function valuesOf(attribute: string, values: unknown, textOf: (value: unknown) => string): string[] {
  const given: unknown[] = Array.isArray(values) ? values.slice(0, VALUES_MAX + 1) : []
  const found = given.map((entry) => textOf(isPlainObject(entry) ? entry['value'] : entry))
  if (found.length === 0) throw new BadRequest(`filter ${attribute}: values must not be empty`)
  if (found.length > VALUES_MAX || found.some(({ length }) => length > VALUE_LENGTH_MAX)) {
    throw new BadRequest(
      `filter ${attribute}: at most ${VALUES_MAX} values of ${VALUE_LENGTH_MAX} characters`,
    )
  }
  return found
}
