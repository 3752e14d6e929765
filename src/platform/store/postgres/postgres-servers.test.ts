/** A primary and its standby, of which one takes writes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { type PostgresCluster, startPostgres } from '../../../../test/support/postgres.ts'
import { eventually } from '../../../../test/support/service.ts'
import { type Store, StoreUnavailable } from '../store.ts'
import { openPostgres } from './postgres.ts'

const ADD = { sql: `INSERT INTO schema_versions (version, name, applied_at) VALUES (?, 'test', 0)` }
const add = (store: Store, version: number) => store.commit([{ ...ADD, values: [version] }])
const FIRST = 100_000

async function run(cluster: PostgresCluster, ...statements: string[]): Promise<void> {
  const client = new pg.Client({ connectionString: cluster.url })
  await client.connect()
  for (const statement of statements) await client.query(statement)
  await client.end()
}

test('a store finds the server that takes writes, and leaves one that is read-only or does not answer', async (t) => {
  const primary = await startPostgres({ settings: { synchronous_commit: 'on' } })
  t.after(() => primary.stop())
  const standby = await primary.startStandby()
  t.after(() => standby.stop())
  const [from, to] = [new URL(primary.url).host, new URL(standby.url).host]
  const store = await openPostgres(primary.url.replace(from, `${to},${from}`))
  t.after(() => store.close())
  let version = FIRST
  await add(store, version++)

  await run(primary, 'ALTER SYSTEM SET default_transaction_read_only = on', 'SELECT pg_reload_conf()')
  // The setting reaches an open session when it next looks.
  await assert.rejects(async () => {
    for (;;) await add(store, version++)
  }, StoreUnavailable)
  await run(
    primary,
    'SET default_transaction_read_only = off',
    'ALTER SYSTEM RESET default_transaction_read_only',
    'SELECT pg_reload_conf()',
  )
  // The reload may not have reached new sessions yet, and a busy server may need longer than a call waits.
  const taken = () => eventually('a write is taken', () => add(store, version++).then(Boolean, () => false))
  await taken()

  primary.freeze()
  let isOver = false
  const waiting = assert.rejects(add(store, version++), StoreUnavailable).finally(() => {
    isOver = true
  })
  // As the link between nodes does while it is not answered.
  for (; !isOver; await sleep(100)) store.endUnanswered?.(null)
  await waiting
  await standby.promote()
  await taken()
})
