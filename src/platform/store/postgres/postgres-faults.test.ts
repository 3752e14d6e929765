/** What PostgreSQL refuses, and how it is named. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import pg from 'pg'
import { createMigratedDatabase } from '../../../../test/support/migrated.ts'
import { startTestService } from '../../../../test/support/service.ts'
import { StoreUnavailable } from '../store.ts'
import { openPostgres } from './postgres.ts'

test('what PostgreSQL refuses for now, by a limit of time, a conflict or a shortage, is 503 with Retry-After', async (t) => {
  for (const limit of ['statement_timeout', 'lock_timeout']) {
    const database = await createMigratedDatabase()
    const client = new pg.Client({ connectionString: database.url })
    await client.connect()
    t.after(() => client.end().then(() => database.drop()))
    const { rows } = await client.query('SELECT current_database() AS name')
    await client.query(`ALTER DATABASE ${rows[0].name} SET ${limit} = '1s'`)
    const service = await startTestService(t, { SENDWRIGHT_DATABASE_URL: database.url })
    await client.query('BEGIN; LOCK TABLE messages, suppressions IN ACCESS EXCLUSIVE MODE')
    const path = `/v3/${service.domain}/bounces`
    const answers = await Promise.all([
      service.send({}),
      service.call('GET', path),
      service.call('POST', path, { form: { address: 'gone@example.org' } }),
    ])
    await client.query('ROLLBACK')
    for (const { status, headers } of answers)
      assert.deepEqual([status, headers.get('retry-after')], [503, '5'], limit)
    assert.equal((await service.send({})).status, 200)
  }
})

test('errors of PostgreSQL that pass are StoreUnavailable, others are not', async (t) => {
  const database = await createMigratedDatabase()
  const store = await openPostgres(database.url)
  t.after(() => store.close().then(() => database.drop()))
  const raise = (code: string) => `DO $$ BEGIN RAISE SQLSTATE '${code}'; END $$`
  const codes =
    '57014 55P03 40001 40P01 53000 53200 53300 53400 58030 57P01 57P02 57P03 25006 25P03 25P04 08006'
  for (const code of codes.split(' ')) {
    await assert.rejects(store.commit([{ sql: raise(code), values: [] }]), StoreUnavailable, code)
    await assert.rejects(store.read({ sql: raise(code), values: [] }), StoreUnavailable, code)
    await assert.rejects(
      store.transaction((tx) => sql.raw(raise(code)).execute(tx)),
      StoreUnavailable,
      code,
    )
  }
  // What Citus says of a machine that it lost.
  for (const words of [
    'could not commit transaction for shard 7 on at least one active node',
    'failure on connection marked as essential: 10.0.0.7:5432',
  ])
    await assert.rejects(
      store.commit([{ sql: `DO $$ BEGIN RAISE '${words}'; END $$`, values: [] }]),
      StoreUnavailable,
    )
  for (const code of ['23505', '42601', '22P02'])
    await assert.rejects(store.commit([{ sql: raise(code), values: [] }]), { code })
})

test('PostgreSQL that cannot be reached is named with server, database and reason, never with the password', async () => {
  const url = 'postgres://owner:pLanted@127.0.0.1:1/mail'
  await assert.rejects(openPostgres(url), (error: StoreUnavailable) => {
    const reason = 'connect ECONNREFUSED 127.0.0.1:1'
    assert.equal(error.detail, `Cannot reach PostgreSQL at 127.0.0.1:1, database "mail": ${reason}`)
    return true
  })
  await assert.rejects(openPostgres(url.replace(':1/', ':1,127.0.0.2:2/')), (error: StoreUnavailable) => {
    assert.match(
      error.detail,
      /^Cannot reach PostgreSQL at 127\.0\.0\.1:1, 127\.0\.0\.2:2, database "mail": .*ECONNREFUSED/,
    )
    assert.doesNotMatch(error.detail, /pLanted/)
    return true
  })
})
