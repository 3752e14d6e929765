/** Rows in every table of a database, with the values at which databases differ. No service can work with them. */
import { createHash } from 'node:crypto'
import {
  type Catalog,
  type Column,
  planOf,
  type Table,
  type TablePlan,
} from '../../src/carry/migrate/catalog.ts'
import type { Target } from '../../src/carry/migrate/side.ts'
import type { Row, Value } from '../../src/carry/migrate/values.ts'

const ROWS = 4

/** Narrower than 64 bits on PostgreSQL (migration 0048), or with a meaning to the copy itself. */
const SPECIAL: Readonly<Record<string, bigint>> = {
  'figures.scope': 2_147_483_647n,
  'figures.split': 32_767n,
  'figures.unit': -32_768n,
  // As SQLite has them.
  'events.tx': 0n,
  'event_followers.tx': 0n,
  // Silent for long enough.
  'nodes.last_seen_at': 1n,
}

const TEXTS = [
  '',
  `quotes ' " \\ and {braces, commas} %s $1 ?`,
  'lines\r\n\ttabs, ключ, 鍵, 😀, \u00e9 and e\u0301, NULL',
  '\u007f\uffff\u{10ffff} null',
]
const INTEGERS = [0n, -9_223_372_036_854_775_808n, 9_223_372_036_854_775_807n, 9_007_199_254_740_993n]
const REALS = [0, 0.1 + 0.2, -1.7976931348623157e308, 5e-324]
const BLOBS = [Buffer.of(), Buffer.of(0, 1, 39, 92, 255), Buffer.alloc(70_000, 0), Buffer.from('\\x00')]

/** Texts that triggers and indexes read as JSON. */
const JSONS = ['{}', '{"a":"\\u00e9 \\" \\\\"}', '[1, 2.50, null]', '[]']
const TAGS = ['["one","two"]', '["ключ"]', null, '["one","with \\"quotes\\""]']

/** Named by rows of that number; the files are not made. */
export const blobName = (at: number): string => `${'blob'.repeat(5)}x${at}`

/**
 * Puts rows into each table of a SQLite database that the copy plans, so into those that a later migration adds as well.
 * The last row is null wherever it can be. `more`: further events. Resolves to the names of the tables.
 */
export async function fillTables(target: Target, more = 0): Promise<string[]> {
  const catalog = (await target.catalog()) as Catalog
  const plan = planOf(catalog, catalog)
  await target.write(async (writer) => {
    for (const table of plan) {
      const required = await target.query(
        `SELECT name FROM pragma_table_xinfo('${table.name}') WHERE "notnull" = 1`,
      )
      const rows = Array.from({ length: ROWS }, (_, at) => rowOf(table, catalog, at))
      const names = new Set([...required.map(([name]) => name), ...table.order])
      const isReference = (name: string) =>
        (catalog.get(table.name)?.refersTo.length ?? 0) > 0 && /_id$|login/.test(name)
      rows[ROWS - 1] = (rows[ROWS - 1] as Row).map((value, at) => {
        const name = table.columns[at]?.name as string
        return names.has(name) || isReference(name) ? value : null
      })
      await writer.run(`DELETE FROM ${table.name}`)
      await writer.insert(table, rows)
    }
    const events = plan.find(({ name }) => name === 'events') as TablePlan
    for (let at = 0; at < more; at += 1_000)
      await writer.insert(
        events,
        Array.from({ length: Math.min(1_000, more - at) }, (_, index) =>
          rowOf(events, catalog, at + index + ROWS),
        ),
      )
  })
  return plan.map(({ name }) => name)
}

function rowOf(table: TablePlan, catalog: Catalog, at: number): Row {
  const known = catalog.get(table.name) as Table
  return table.columns.map((column) => cellOf(table, column, known, at))
}

function cellOf({ name: table, order, hasKey }: TablePlan, column: Column, known: Table, at: number): Value {
  const { name, type } = column
  const isKey = hasKey && order.includes(name)
  const which = at % ROWS
  if (table === 'events' && name === 'seq') return BigInt(at + 1) * 3n
  // Keys name rows of other tables by the same texts: each has those of the same number.
  if (
    type === 'text' &&
    (isKey || known.refersTo.length > 0 || /(^|_)(id|login|email|host|name|key)$/.test(name))
  )
    return `${(TEXTS[which] as string).slice(0, 12)}-${at}`
  if (table === 'events' && name === 'tags_json') return TAGS[which] as Value
  if (type === 'text' && name === 'blobs_json') return JSON.stringify([blobName(which)])
  if (type === 'text' && /^(raw_)?blob$/.test(name)) return blobName(which)
  if (type === 'text' && name.endsWith('_json')) return JSONS[which] as string
  if (type === 'integer' && isKey)
    return SPECIAL[`${table}.${name}`] === undefined ? BigInt(at + 1) : BigInt(at)
  if (type === 'integer') return SPECIAL[`${table}.${name}`] ?? (INTEGERS[which] as bigint)
  if (type === 'real') return REALS[which] as number
  if (type === 'blob') return BLOBS[which] as Buffer
  // Unique in case an index says so.
  return `${TEXTS[which]}${createHash('md5').update(`${name}${at}`).digest('hex')}`
}
