/**
 * Writes web/src/api-types.ts from the machine description of a service that it starts: `node scripts/api-types.ts`. It has an
 * interface for each named schema, and what each operation returns. A test compares it with the description.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describeService } from './description.ts'

export const API_TYPES = join(import.meta.dirname, '../web/src/api-types.ts')

/** JSON Schema, as far as shapes print it (src/base/shape.ts). */
interface Schema {
  $ref?: string
  type?: string | string[]
  description?: string
  'x-unit'?: string
  enum?: unknown[]
  anyOf?: Schema[]
  items?: Schema
  prefixItems?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: Schema
}

interface Answer {
  $ref?: string
  description: string
  content?: Record<string, { schema?: Schema }>
}

interface Operation {
  'x-alias-of'?: string
  responses: Record<string, Answer>
}

export interface Description {
  paths: Record<string, Record<string, Operation>>
  components: {
    schemas: Record<string, Schema>
    /** Answers that operations refer to. */
    responses: Record<string, Answer>
  }
}

const HEAD = `/** Made by \`node scripts/api-types.ts\` from the API description: what the service returns. */
`

/** The whole file. A line has one member with its description. */
export function apiTypes({ paths, components }: Description): string {
  const answers = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([method, operation]) => {
      const type = answerOf(operation)
      return type === undefined
        ? []
        : [`  '${method.toUpperCase()} ${path.replaceAll(/\{[^}]+\}/g, '{}')}': ${type}`]
    }),
  )
  const used = reachable(answers, components.schemas)
  const interfaces = [...used].sort().map((name) => declaration(name, components.schemas[name] as Schema))
  const map = [
    '/** The body of a success, by method and path. */',
    'export interface Answers {',
    ...answers.sort(),
    '}',
    '',
  ]
  return [HEAD, ...interfaces, map.join('\n')].join('\n')
}

/** `undefined`: no body. Undefined: no JSON, or a second path. */
function answerOf({ responses, 'x-alias-of': main }: Operation): string | undefined {
  if (main !== undefined) return undefined
  const types = Object.entries(responses).flatMap(([status, { content }]) => {
    if (!status.startsWith('2')) return []
    if (content === undefined) return ['undefined']
    const json = content['application/json']
    return json === undefined ? [] : [typeOf(json.schema ?? {})]
  })
  return types.length === 0 ? undefined : union(types)
}

/** Names of the schemas that these types refer to, directly or not. */
function reachable(types: readonly string[], schemas: Record<string, Schema>): Set<string> {
  const found = new Set<string>()
  const visit = (text: string) => {
    for (const name of text.match(/\b[A-Z]\w*/g) ?? []) {
      if (found.has(name) || schemas[name] === undefined) continue
      found.add(name)
      visit(typeOf(schemas[name]))
    }
  }
  types.forEach(visit)
  return found
}

function declaration(name: string, schema: Schema): string {
  const { properties } = schema
  if (properties === undefined) return `${comment('', schema)}export type ${name} = ${typeOf(schema)}\n`
  return `${comment('', schema)}export interface ${name} {\n${members(schema, '\n')}\n}\n`
}

const members = ({ properties = {}, required = [] }: Schema, between: string) =>
  Object.entries(properties)
    .map(([name, schema]) => {
      const key = /^[A-Za-z_]\w*$/.test(name) ? name : `'${name}'`
      const member = `${key}${required.includes(name) ? '' : '?'}: ${typeOf(schema)}`
      return between === '\n' ? `  ${comment(' ', schema)}${member}` : member
    })
    .join(between)

function comment(end: string, { description, 'x-unit': unit }: Schema): string {
  const text = [description, unit].filter(Boolean).join('; ').replaceAll('*/', '*\\/')
  return text === '' ? '' : `/** ${text} */${end || '\n'}`
}

function typeOf(schema: Schema): string {
  const { $ref, anyOf, enum: values, type, items, prefixItems, properties, additionalProperties } = schema
  if ($ref !== undefined) return $ref.slice($ref.lastIndexOf('/') + 1)
  if (anyOf !== undefined) return union(anyOf.map(typeOf))
  if (values !== undefined)
    return union(values.map((value) => (typeof value === 'string' ? `'${value}'` : String(value))))
  if (Array.isArray(type)) return union(type.map((one) => typeOf({ ...schema, type: one })))
  if (type === 'array') {
    if (prefixItems !== undefined) return `[${prefixItems.map(typeOf).join(', ')}]`
    const item = typeOf(items ?? {})
    return /\W/.test(item) ? `(${item})[]` : `${item}[]`
  }
  if (type === 'object' && properties !== undefined) {
    const inside = members(schema, '; ')
    return inside === '' ? 'Record<string, never>' : `{ ${inside} }`
  }
  if (type === 'object' && additionalProperties !== undefined)
    return `Record<string, ${typeOf(additionalProperties)}>`
  if (type === 'integer') return 'number'
  return type ?? 'unknown'
}

const union = (types: readonly string[]) => [...new Set(types)].join(' | ')

if (import.meta.main) await writeFile(API_TYPES, apiTypes(await describeService<Description>()))
