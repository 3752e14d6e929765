/**
 * Checks JSON values against shapes, for the JSON bodies of requests: those keywords of JSON Schema that shapes print, in
 * its sense. A `format` is for readers and not checked, and a whole number must be a safe integer.
 */
import type { Bounds, Shape } from './shape.ts'
import { isPlainObject } from './values.ts'

interface ShapeFault {
  /** Where: `requests[0].name`; empty for the value itself. */
  path: string
  kind: 'missing' | 'invalid'
}

/** The first fault of a value, in the order of the declaration; null: it has the shape. Further members are no fault. */
export function shapeFault({ schema, parts }: Shape<unknown>, value: unknown): ShapeFault | null {
  return faultOf(schema as Keywords, value, parts)
}

type Parts = Shape<unknown>['parts']
interface Keywords extends Bounds {
  $ref?: string
  anyOf?: Keywords[]
  type?: string | string[]
  items?: Keywords
  prefixItems?: Keywords[]
  properties?: Record<string, Keywords>
  required?: string[]
  additionalProperties?: Keywords
}

function faultOf(schema: Keywords, value: unknown, parts: Parts): ShapeFault | null {
  const { $ref, anyOf } = schema
  if ($ref !== undefined) {
    const target = parts[$ref.slice($ref.lastIndexOf('/') + 1)]
    if (target === undefined) throw new Error(`shape without ${$ref}`)
    return faultOf(target as Keywords, value, parts)
  }
  if (anyOf !== undefined) {
    let first: ShapeFault | null = null
    for (const one of anyOf) {
      const fault = faultOf(one, value, parts)
      if (fault === null) return null
      first ??= fault
    }
    return first
  }
  if (!isOfType(schema, value) || !isInBounds(schema, value)) return { path: '', kind: 'invalid' }
  if (Array.isArray(value)) return itemFault(schema, value, parts)
  return isPlainObject(value) ? memberFault(schema, value, parts) : null
}

function itemFault(schema: Keywords, values: readonly unknown[], parts: Parts): ShapeFault | null {
  const { items, prefixItems } = schema
  for (let i = 0; i < values.length; i++) {
    const one = prefixItems?.[i] ?? items
    const fault = one === undefined ? null : faultOf(one, values[i], parts)
    if (fault !== null) return inside(`[${i}]`, fault)
  }
  return null
}

function memberFault(schema: Keywords, value: Record<string, unknown>, parts: Parts): ShapeFault | null {
  const { properties = {}, required = [], additionalProperties } = schema
  for (const name in properties) {
    const isGiven = Object.hasOwn(value, name)
    if (!isGiven && required.includes(name)) return { path: name, kind: 'missing' }
    const fault = isGiven ? faultOf(properties[name] as Keywords, value[name], parts) : null
    if (fault !== null) return inside(name, fault)
  }
  if (additionalProperties === undefined) return null
  for (const [name, member] of Object.entries(value)) {
    const fault = Object.hasOwn(properties, name) ? null : faultOf(additionalProperties, member, parts)
    if (fault !== null) return inside(name, fault)
  }
  return null
}

const inside = (name: string, { path, kind }: ShapeFault): ShapeFault => ({
  path: path === '' || path.startsWith('[') ? name + path : `${name}.${path}`,
  kind,
})

function isOfType({ type, enum: values }: Keywords, value: unknown): boolean {
  if (values !== undefined && !values.includes(value)) return false
  if (type === undefined) return true
  const has = (name: string) => (typeof type === 'string' ? type === name : type.includes(name))
  return has(typeOf(value)) || (typeof value === 'number' && has('number'))
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return Number.isSafeInteger(value) ? 'integer' : typeof value
}

function isInBounds(bounds: Bounds, value: unknown): boolean {
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
