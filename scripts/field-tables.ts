/**
 * Fills the tables in docs/api from the machine description: `npx node scripts/field-tables.ts`. A table stands between
 * `<!-- fields of Bounce -->` and `<!-- end of fields -->`, where Bounce is the name of a schema, or between
 * `<!-- parameters of listBounces -->` and `<!-- end of parameters -->`, with the id of an operation. A test compares them.
 */
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { JsonSchema } from '../src/base/shape.ts'
import { describeService } from './description.ts'

export const CONTRACT = join(import.meta.dirname, '../docs/api')
const TABLE = /(<!-- (fields|parameters) of (\w+) -->\n)[\s\S]*?(<!-- end of \2 -->)/g

/** What of `/openapi.json` the tables need. */
export interface Description {
  readonly components: { readonly schemas: Readonly<Record<string, JsonSchema>> }
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>
}
interface DescribedOperation {
  readonly operationId: string
  readonly parameters: readonly {
    name: string
    in: string
    description: string
    required: boolean
    schema: JsonSchema
  }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: JsonSchema }>> }
}

/** The parts of a schema that a table shows. */
interface Shown {
  description?: string
  enum?: unknown[]
  const?: unknown
  'x-unit'?: string
  default?: unknown
  examples?: unknown[]
  $ref?: string
  type?: string | string[]
  items?: Shown
  prefixItems?: Shown[]
  anyOf?: Shown[]
  format?: string
  properties?: Record<string, Shown>
  required?: string[]
  additionalProperties?: Shown
}

/** The page with its tables as they should be. @throws Error naming a schema or operation that does not exist */
export function withTables(page: string, api: Description): string {
  return page.replaceAll(TABLE, (_, begin: string, kind: string, name: string, end: string) => {
    const table = kind === 'fields' ? fieldTable(name, api) : parameterTable(name, api)
    return `${begin}\n${table}\n\n${end}`
  })
}

function fieldTable(name: string, api: Description): string {
  const schema = api.components.schemas[name] as Shown | undefined
  if (schema === undefined) throw new Error(`no schema is named ${name}`)
  return table(
    'Field',
    rowsOf(schema, api, (isRequired) => (isRequired ? '' : ', optional')),
  )
}

/** Parameters in the query and in the body; the path shows its own. */
function parameterTable(id: string, api: Description): string {
  const operations = Object.values(api.paths).flatMap((item) => Object.values(item))
  const operation = operations.find(({ operationId }) => operationId === id)
  if (operation === undefined) throw new Error(`no operation is named ${id}`)
  const query = operation.parameters.filter((parameter) => parameter.in === 'query')
  const body = Object.values(operation.requestBody?.content ?? {})[0]?.schema as Shown | undefined
  const properties = query.map(({ name, description, schema }) => [name, { ...schema, description }])
  const required = query.filter((parameter) => parameter.required).map(({ name }) => name)
  const all = {
    properties: { ...Object.fromEntries(properties), ...body?.properties },
    required: [...required, ...(body?.required ?? [])],
  }
  return table(
    'Parameter',
    rowsOf(all, api, (isRequired) => (isRequired ? ', required' : '')),
  )
}

function table(head: string, rows: readonly Row[]): string {
  const lines = rows.map(({ names, type, meaning }) => `| ${names} | ${type} |${meaning && ` ${meaning}`} |`)
  return [`| ${head} | Type | Meaning |`, '|---|---|---|', ...lines].join('\n')
}

interface Row {
  names: string
  type: string
  meaning: string
  isPlain: boolean
}

/**
 * A row for each member, and below it one for each member of an object without a name: `reason.code`, `rules[].name`.
 * Neighbours that differ in nothing but their names share a row.
 */
function rowsOf(
  { properties = {}, required = [] }: Shown,
  api: Description,
  note: (isRequired: boolean) => string,
  prefix = '',
): Row[] {
  const rows: Row[] = []
  for (const [name, field] of Object.entries(properties)) {
    const inner = innerObject(field)
    const row = {
      names: `\`${prefix}${name}\``,
      type: `${typeName(field)}${note(required.includes(name))}`,
      meaning: meaning(field, api),
      isPlain: inner === undefined,
    }
    const last = rows.at(-1)
    if (last !== undefined && isAlike(last, row)) last.names += `, ${row.names}`
    else rows.push(row)
    if (inner !== undefined) rows.push(...rowsOf(inner.object, api, note, `${prefix}${name}${inner.step}`))
  }
  return rows
}

const CELL_MAX = 200
const isAlike = (a: Row, b: Row) =>
  a.isPlain &&
  b.isPlain &&
  a.type === b.type &&
  a.meaning === b.meaning &&
  a.names.length + b.names.length < CELL_MAX

/** The object without a name that the field is, or that it lists or maps, and the step to its members. */
function innerObject(field: Shown): Inner | undefined {
  const { properties, items, additionalProperties, anyOf } = field
  if (properties !== undefined) return { object: field, step: '.' }
  for (const choice of anyOf ?? []) {
    const inner = innerObject(choice)
    if (inner !== undefined) return inner
  }
  const [part, step] = items === undefined ? [additionalProperties, '.*'] : [items, '[]']
  const inner = part === undefined ? undefined : innerObject(part)
  return inner && { object: inner.object, step: `${step}${inner.step}` }
}
interface Inner {
  object: Shown
  step: string
}

function meaning(field: Shown, api: Description): string {
  const { 'x-unit': unit, default: preset } = field
  const measured = unit === undefined ? '' : ` (${unit})`
  const standard = preset === undefined || preset === '' ? '' : `; default \`${preset}\``
  return `${descriptionOf(field, api)}${measured}${standard}`.replaceAll('|', '\\|').replaceAll('\n', ' ')
}

/** Its own, else that of the named schema. */
function descriptionOf({ description, $ref, anyOf = [] }: Shown, api: Description): string {
  if (description !== undefined) return description
  if ($ref !== undefined) return String(api.components.schemas[nameOf($ref)]?.['description'] ?? '')
  return anyOf.map((choice) => descriptionOf(choice, api)).find((text) => text !== '') ?? ''
}

/** `text`, `list of text`, `Bounce`, or its few values: as a reader of the contract would say it. */
function typeName(schema: Shown): string {
  const { $ref, type, items, prefixItems, anyOf, format, additionalProperties, examples = [] } = schema
  if ($ref !== undefined) return nameOf($ref)
  if (anyOf !== undefined) return anyOf.map(typeName).join(' or ')
  const values = schema.const === undefined ? schema.enum : [schema.const]
  if (values !== undefined) return values.map(valueName).join(', ')
  if (Array.isArray(type)) return type.map((one) => typeName({ ...schema, type: one })).join(' or ')
  if (prefixItems !== undefined) return `[${prefixItems.map(typeName).join(', ')}]`
  if (type === 'array') return items === undefined ? 'list' : `list of ${typeName(items)}`
  if (type === 'object' && additionalProperties !== undefined)
    return `map of ${typeName(additionalProperties)}`
  if (type === 'string' && format === 'date-time') return 'date'
  const zone = type === 'string' && /^\w{3}, .* (\S+)$/.exec(String(examples[0]))?.[1]
  if (zone) return `date (${zone})`
  return type === undefined ? 'any' : (NAMES[type] ?? type)
}

const valueName = (value: unknown) => (value === '' ? 'empty' : value === null ? 'null' : `\`${value}\``)
const nameOf = ($ref: string) => $ref.slice($ref.lastIndexOf('/') + 1)
const NAMES: Readonly<Record<string, string>> = { string: 'text' }

/** The pages of the contract with their tables as they should be, by path. */
export async function contractPages(
  api: Description,
): Promise<Map<string, { is: string; shouldBe: string }>> {
  const pages = new Map<string, { is: string; shouldBe: string }>()
  for (const file of await readdir(CONTRACT)) {
    const path = join(CONTRACT, file)
    const is = await readFile(path, 'utf8')
    pages.set(path, { is, shouldBe: withTables(is, api) })
  }
  return pages
}

if (import.meta.main) {
  const api = await describeService<Description>()
  for (const [path, { is, shouldBe }] of await contractPages(api)) {
    if (is !== shouldBe) await writeFile(path, shouldBe)
  }
}
