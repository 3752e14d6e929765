/**
 * Fills the tables of fields in docs/api from the machine description: `node scripts/field-tables.ts`. A table stands between
 * `<!-- fields of Bounce -->` and `<!-- end of fields -->`, where Bounce is the name of a schema. A test compares them.
 */
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { JsonSchema } from '../src/base/shape.ts'
import { describeService } from './description.ts'

export const CONTRACT = join(import.meta.dirname, '../docs/api')
const TABLE = /(<!-- fields of (\w+) -->\n)[\s\S]*?(<!-- end of fields -->)/g

export type Schemas = Readonly<Record<string, JsonSchema>>

/** The page with its tables as they should be. @throws Error naming a schema that does not exist */
export function withTables(page: string, schemas: Schemas): string {
  return page.replaceAll(TABLE, (_, begin: string, name: string, end: string) => {
    const schema = schemas[name]
    if (schema === undefined) throw new Error(`no schema is named ${name}`)
    return `${begin}\n${fieldTable(schema)}\n\n${end}`
  })
}

function fieldTable(schema: JsonSchema): string {
  const { properties = {}, required = [] } = schema as {
    properties?: Record<string, JsonSchema>
    required?: string[]
  }
  const rows = Object.entries(properties).map(([name, field]) => {
    const absent = required.includes(name) ? '' : ' (may be absent)'
    return `| \`${name}\` | ${typeName(field)} | ${meaning(field)}${absent} |`
  })
  return ['| Field | Type | Meaning |', '|---|---|---|', ...rows].join('\n')
}

function meaning({ description = '', enum: values, 'x-unit': unit, default: preset }: JsonSchema): string {
  const words = Array.isArray(values) ? `: ${values.map((value) => `\`${value}\``).join(', ')}` : ''
  const measured = unit === undefined ? '' : ` (${unit})`
  const standard = preset === undefined ? '' : `; default \`${preset}\``
  return `${description}${measured}${words}${standard}`.replaceAll('|', '\\|').replaceAll('\n', ' ')
}

/** `text`, `list of text`, `Bounce`: as a reader of the contract would say it. */
export function typeName(schema: JsonSchema): string {
  const { $ref, type, items, anyOf, format, additionalProperties } = schema as {
    $ref?: string
    type?: string | string[]
    items?: JsonSchema
    anyOf?: JsonSchema[]
    format?: string
    additionalProperties?: JsonSchema
  }
  if ($ref !== undefined) return $ref.slice($ref.lastIndexOf('/') + 1)
  if (anyOf !== undefined) return anyOf.map(typeName).join(' or ')
  if (Array.isArray(type)) return type.map((one) => typeName({ ...schema, type: one })).join(' or ')
  if (type === 'array') return items === undefined ? 'list' : `list of ${typeName(items)}`
  if (type === 'object' && additionalProperties !== undefined)
    return `map of ${typeName(additionalProperties)}`
  if (format === 'date-time') return 'date'
  return type === undefined ? 'any' : (NAMES[type] ?? type)
}

const NAMES: Readonly<Record<string, string>> = { string: 'text' }

/** The pages of the contract with their tables as they should be, by path. */
export async function contractPages(
  schemas: Schemas,
): Promise<Map<string, { is: string; shouldBe: string }>> {
  const pages = new Map<string, { is: string; shouldBe: string }>()
  for (const file of await readdir(CONTRACT)) {
    const path = join(CONTRACT, file)
    const is = await readFile(path, 'utf8')
    pages.set(path, { is, shouldBe: withTables(is, schemas) })
  }
  return pages
}

if (import.meta.main) {
  const { components } = await describeService<{ components: { schemas: Schemas } }>()
  for (const [path, { is, shouldBe }] of await contractPages(components.schemas)) {
    if (is !== shouldBe) await writeFile(path, shouldBe)
  }
}
