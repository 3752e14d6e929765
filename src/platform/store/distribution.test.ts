import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { Client } from 'pg'
import { createMigratedDatabase } from '../../../test/support/migrated.ts'

const PAGE = join(import.meta.dirname, '../../../docs/scaling.md')

interface Table {
  notNull: ReadonlySet<string>
  primaryKey: readonly string[]
  /** Columns of the other unique constraints. */
  unique: readonly (readonly string[])[]
}

const TABLES = `SELECT relname AS name,
    ARRAY(SELECT attname::text FROM pg_attribute
      WHERE attrelid = c.oid AND attnum > 0 AND attnotnull AND NOT attisdropped) AS not_null
  FROM pg_class c
  WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = 'public'::regnamespace`

const UNIQUE = `SELECT c.relname AS name, i.indisprimary AS is_primary,
    ARRAY(SELECT attname::text FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS key (number, place)
        JOIN pg_attribute ON attrelid = i.indrelid AND attnum = number
      WHERE place <= i.indnkeyatts ORDER BY place) AS columns
  FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
  WHERE i.indisunique AND NOT c.relispartition AND c.relnamespace = 'public'::regnamespace`

let tables: Map<string, Table>
before(async () => {
  const database = await createMigratedDatabase()
  const client = new Client({ connectionString: database.url })
  await client.connect()
  const { rows } = await client.query<{ name: string; not_null: string[] }>(TABLES)
  const { rows: keys } = await client.query<{ name: string; is_primary: boolean; columns: string[] }>(UNIQUE)
  tables = new Map(
    rows.map(({ name, not_null }) => {
      const own = keys.filter((key) => key.name === name)
      const table = {
        notNull: new Set(not_null),
        primaryKey: own.find((key) => key.is_primary)?.columns ?? [],
        unique: own.filter((key) => !key.is_primary).map(({ columns }) => columns),
      }
      return [name, table]
    }),
  )
  await client.end()
  await database.drop()
})

const section = readFileSync(PAGE, 'utf8').split('\n### Distribution columns\n')[1]?.split('\n## ')[0] ?? ''
const namesIn = (text: string) => [...text.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)

/** One for each table of the page. `column`: null for reference and local tables. */
const listed = section
  .split('\n')
  .filter((row) => /^\| (?:`|reference|local)/.test(row))
  .flatMap((row) => {
    const [, kind = '', place = '', names = ''] = row.split('|')
    const [column = null] = namesIn(kind)
    return namesIn(names).map((table) => ({ table, column, place: place.trim() }))
  })
const distributed = listed.flatMap(({ column, ...rest }) => (column === null ? [] : [{ column, ...rest }]))

function placeOf(column: string, { primaryKey }: Table): string {
  if (primaryKey[0] === column) return 'first'
  return primaryKey.includes(column) ? 'later' : '**absent**'
}

test('docs/scaling.md names a distribution column of each table, or says that it is a reference or local table', () => {
  assert.deepEqual(listed.map(({ table }) => table).toSorted(), [...tables.keys()].toSorted())
})

test('each distribution column is NOT NULL, and where the page says in the primary key', () => {
  assert.ok(distributed.length > 0)
  for (const { table, column, place } of distributed) {
    const found = tables.get(table)
    assert.ok(found, table)
    assert.ok(found.notNull.has(column), `${table}.${column}`)
    assert.equal(place, placeOf(column, found), `${table}.${column}`)
  }
})

test('the page lists exactly the unique constraints that do not contain the distribution column', () => {
  const without = distributed.flatMap(({ table, column }) =>
    (tables.get(table)?.unique ?? [])
      .filter((columns) => !columns.includes(column))
      .map((columns) => `${table} (${columns.join(', ')})`),
  )
  const [, paragraph = ''] = section.split('**These other unique constraints')
  const named = namesIn(paragraph.split('\n- ')[0] ?? '')
  assert.deepEqual(named.toSorted(), without.toSorted())
})
