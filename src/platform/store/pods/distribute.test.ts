import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { createTestDatabase } from '../../../../test/support/postgres.ts'
import { openPostgres } from '../postgres/postgres.ts'
import { distribute } from './distribute.ts'

test('what a machine of a cluster cannot take as it is is changed before the schema goes there', async (t) => {
  const { url, drop } = await createTestDatabase()
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  t.after(async () => {
    await client.end()
    await drop()
  })
  await (await openPostgres(url, { pod: 'a' })).close()
  await client.query('SET search_path = pod_a')
  const query = async (sql: string) => (await client.query(sql)).rows
  const functions = `SELECT proname AS name, proconfig AS config FROM pg_proc WHERE prorettype = 'trigger'::regtype
    AND pronamespace = 'pod_a'::regnamespace ORDER BY proname`
  const tables = `SELECT relname AS name, relpersistence AS log, relreplident AS followed_by FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'pod_a'::regnamespace ORDER BY relname`
  const before = { functions: await query(functions), tables: await query(tables) }

  /** Answers what PostgreSQL alone cannot. */
  const asked: string[] = []
  const cluster = (isThere: boolean) => ({
    async query(sql: string, values?: unknown[]) {
      if (sql.includes("extname = 'citus'")) return { rows: [{}] }
      if (sql.includes('pg_dist_schema')) return { rows: isThere ? [{}] : [] }
      if (!sql.includes('citus_schema_distribute')) return client.query(sql, values)
      asked.push(String(values))
      return { rows: [] }
    },
  })
  await distribute(client, 'a')
  await distribute(cluster(true) as never, 'a')
  assert.deepEqual({ functions: await query(functions), tables: await query(tables) }, before)
  assert.deepEqual(asked, [])

  await distribute(cluster(false) as never, 'a')
  assert.deepEqual(asked, ['pod_a'])
  const config = ['search_path=pod_a']
  assert.deepEqual(
    await query(functions),
    before.functions.map((one) => ({ ...one, config })),
  )
  assert.deepEqual(
    await query(tables),
    before.tables.map((one) => ({
      ...one,
      log: 'p',
      followed_by: one.name === 'sandbox_mails' ? 'f' : one.followed_by,
    })),
  )
  assert.ok(before.tables.some(({ log }) => log === 'u'))
})
