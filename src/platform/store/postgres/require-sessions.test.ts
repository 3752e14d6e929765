import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { createTestDatabase } from '../../../../test/support/postgres.ts'
import { startPostgresRelay } from '../../../../test/support/postgres-relay.ts'
import { startTransactionPooler } from '../../../../test/support/transaction-pooler.ts'
import { StoreUnavailable } from '../store.ts'
import { openPostgres } from './postgres.ts'

test('a pooler by transactions is refused before anything is written, a relay by sessions is not', async (t) => {
  const database = await createTestDatabase()
  t.after(() => database.drop())
  const pooler = await startTransactionPooler(database.url)
  t.after(() => pooler.close())
  await assert.rejects(openPostgres(pooler.url), (error: StoreUnavailable) => {
    assert.ok(error instanceof StoreUnavailable, String(error))
    assert.match(
      error.detail,
      /^Cannot use PostgreSQL through the pooler at \S+, database "test_\w+": it gives each/,
    )
    assert.match(error.detail, /address of PostgreSQL itself, or .* \(PgBouncer: pool_mode = session\)\.$/)
    return true
  })
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  const { rows } = await client.query(`SELECT 1 FROM pg_tables WHERE schemaname = 'public'`)
  await client.end()
  assert.deepEqual(rows, [])
  const relay = await startPostgresRelay(database.url)
  t.after(() => relay.close())
  await (await openPostgres(relay.url)).close()
})

test('a prepared statement has the same name in every process, whatever was prepared before', async (t) => {
  const database = await createTestDatabase()
  t.after(() => database.drop())
  const namesAfter = async (...texts: string[]) => {
    // Modules are loaded once for each query: as in another process.
    const { openPostgres: open } = await import(`./postgres.ts?${texts.join()}`)
    const store = (await open(database.url)) as Awaited<ReturnType<typeof openPostgres>>
    await store.commit(texts.map((sql) => ({ sql, values: [] })))
    const sql = 'SELECT name, statement FROM pg_prepared_statements'
    const [found] = await store.commit([{ sql, values: [] }])
    await store.close()
    return new Map(found?.rows.map(({ name, statement }) => [statement, name]))
  }
  const one = await namesAfter('SELECT 1', 'SELECT 2')
  const two = await namesAfter('SELECT 2', 'SELECT 1')
  for (const text of ['SELECT 1', 'SELECT 2']) {
    assert.ok(one.get(text), text)
    assert.equal(one.get(text), two.get(text), text)
  }
  assert.notEqual(one.get('SELECT 1'), one.get('SELECT 2'))
})
