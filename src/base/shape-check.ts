/**
 * Checks JSON values against shapes, for the JSON bodies of requests: those keywords of JSON Schema that shapes print, in
 * its sense. A `format` is for readers and not checked, and a whole number must be a safe integer.
 */
import type { Bounds, JsonSchema, Shape } from './shape.ts'
import { isPlainObject } from './values.ts'

export interface ShapeFault {
  /** Where: `requests[0].name`; empty for the value itself. */
  path: string
  kind: 'missing' | 'invalid'
}

/** The first fault of a value, in the order of the declaration; null: it has the shape. Further members are no fault. */
export function shapeFault({ schema, parts }: Shape<unknown>, value: unknown): ShapeFault | null {
  return faultOf(schema, value, '', parts)
}

type Parts = Shape<unknown>['parts']

function faultOf(schema: JsonSchema, value: unknown, path: string, parts: Parts): ShapeFault | null {
  const { $ref, anyOf } = schema as { $ref?: string; anyOf?: JsonSchema[] }
  if ($ref !== undefined) {
    const target = parts[$ref.slice($ref.lastIndexOf('/') + 1)]
    if (target === undefined) throw new Error(`shape without ${$ref}`)
    return faultOf(target, value, path, parts)
  }
  if (anyOf !== undefined) {
    let first: ShapeFault | null = null
    for (const one of anyOf) {
      const fault = faultOf(one, value, path, parts)
      if (fault === null) return null
      first ??= fault
    }
    return first
  }
  if (!isOfType(schema, value) || !isInBounds(schema, value)) return { path, kind: 'invalid' }
  if (Array.isArray(value))
    return firstOf(value, (item, i) => itemFault(schema, item, `${path}[${i}]`, parts))
  return isPlainObject(value) ? memberFault(schema, value, path, parts) : null
}

const itemFault = ({ items }: JsonSchema, item: unknown, path: string, parts: Parts) =>
  items === undefined ? null : faultOf(items as JsonSchema, item, path, parts)

function memberFault(
  schema: JsonSchema,
  value: Record<string, unknown>,
  path: string,
  parts: Parts,
): ShapeFault | null {
  const {
    properties = {},
    required = [],
    additionalProperties,
  } = schema as {
    properties?: Record<string, JsonSchema>
    required?: string[]
    additionalProperties?: JsonSchema
  }
  const inside = (name: string) => (path === '' ? name : `${path}.${name}`)
  const fault = firstOf(Object.entries(properties), ([name, member]) => {
    if (Object.hasOwn(value, name)) return faultOf(member, value[name], inside(name), parts)
    return required.includes(name) ? { path: inside(name), kind: 'missing' as const } : null
  })
  if (fault !== null || typeof additionalProperties !== 'object') return fault
  const others = Object.entries(value).filter(([name]) => !Object.hasOwn(properties, name))
  return firstOf(others, ([name, member]) => faultOf(additionalProperties, member, inside(name), parts))
}

function firstOf<T>(
  items: readonly T[],
  faultAt: (item: T, i: number) => ShapeFault | null,
): ShapeFault | null {
  for (const [i, item] of items.entries()) {
    const fault = faultAt(item, i)
    if (fault !== null) return fault
  }
  return null
}

function isOfType({ type, enum: values }: JsonSchema, value: unknown): boolean {
  if (Array.isArray(values) && !values.includes(value)) return false
  if (type === undefined) return true
  const types = [type].flat()
  return types.includes(typeOf(value)) || (typeof value === 'number' && types.includes('number'))
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return Number.isSafeInteger(value) ? 'integer' : typeof value
}

function isInBounds(schema: JsonSchema, value: unknown): boolean {
  const bounds = schema as Bounds
  const within = (size: number, min = -Infinity, max = Infinity) => size >= min && size <= max
  if (typeof value === 'number') return within(value, bounds.minimum, bounds.maximum)
  if (Array.isArray(value)) return within(value.length, bounds.minItems, bounds.maxItems)
  if (isPlainObject(value)) return within(Object.keys(value).length, 0, bounds.maxProperties)
  if (typeof value !== 'string') return true
  const { minLength, maxLength, pattern } = bounds
  const isCounted = minLength !== undefined || maxLength !== undefined
  if (isCounted && !within(charsOf(value), minLength, maxLength)) return false
  return pattern === undefined || new RegExp(pattern, 'u').test(value)
}

/** Code points: a pair of surrogates is one character. */
function charsOf(text: string): number {
  let chars = 0
  for (const _ of text) chars += 1
  return chars
}
