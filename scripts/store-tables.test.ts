import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { openPostgres } from '../src/platform/store/postgres/postgres.ts'
import { createTestDatabase } from '../test/support/postgres.ts'
import { readTables, SCHEMA_FILE, schemaText } from './store-tables.ts'

test('src/platform/store/schema.ts is what the migrations say; else run scripts/store-tables.ts', async () => {
  assert.equal(await readFile(SCHEMA_FILE, 'utf8'), schemaText(readTables()))
})

test('a listed column that no migration makes is named', () => {
  const tables = readTables()
  tables.delete('certificates')
  assert.throws(() => schemaText(tables), /No migration makes certificates\.requested/)
})

const SQLITE_ONLY = ['event_index', 'event_index_place', 'event_segments']
const SQL_TYPES: Record<string, string> = { number: 'number', Flag: 'number', Uint8Array: 'bytea' }
const NUMBERS = ['int2', 'int4', 'int8', 'float8']

test('the types are those of PostgreSQL, too', async (t) => {
  const { url, drop } = await createTestDatabase()
  const store = await openPostgres(url)
  t.after(() => store.close().then(drop))
  const found = await store.db.introspection.getTables()
  for (const [table, columns] of readTables()) {
    if (SQLITE_ONLY.includes(table)) continue
    const { columns: theirs, isView } = found.find(({ name }) => name === table) ?? assert.fail(table)
    const actual = theirs.map(({ name, dataType, isNullable }) => {
      const type = NUMBERS.includes(dataType) ? 'number' : dataType
      return `${name} ${type} ${isView || isNullable}`
    })
    const ours = columns.map(({ name, type, isNullable }) => {
      return `${name} ${SQL_TYPES[type] ?? 'text'} ${isView || isNullable}`
    })
    assert.deepEqual(actual.sort(), ours.sort(), table)
  }
})
