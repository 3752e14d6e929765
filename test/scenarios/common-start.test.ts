/** Several processes over one PostgreSQL database: which may start, and simultaneous starts. */
// Slow: it starts several whole processes on one database, and ends some.
import assert from 'node:assert/strict'
import { access, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import pg from 'pg'
import { createTestDatabase } from '../support/postgres.ts'
import { assertPlain, installed, refusedStart, startFor } from '../support/starts.ts'
import { temporaryFolder } from '../support/stores.ts'

const SECRET = 'the-secret-of-this-installation-01'
const ROUNDS = 3

test('PostgreSQL: one node per data folder, and one secret for all', async (t) => {
  const database = await createTestDatabase()
  t.after(() => database.drop())
  const folder = await temporaryFolder(t)
  const env = { SENDWRIGHT_DATA: folder, SENDWRIGHT_DATABASE_URL: database.url }
  const one = await startFor(t, env)
  const halfWritten = join(folder, 'spool', 'half-written')
  await writeFile(halfWritten, 'x')
  assertPlain(await refusedStart(env), /^Cannot open data folder ".*": another process is using it/)
  await access(halfWritten)

  const other = { ...env, SENDWRIGHT_DATA: await temporaryFolder(t) }
  assertPlain(await refusedStart(other), /^Cannot start: the database has keys sealed/)
  await assert.rejects(access(join(other.SENDWRIGHT_DATA, 'secret')))
  const secret = (await readFile(join(folder, 'secret'), 'utf8')).trim()
  await installed(t, { ...other, SENDWRIGHT_SECRET: secret })
  assert.equal(await one.end('SIGTERM'), 0)
})

test('PostgreSQL: processes that start together on an empty database create one account', async (t) => {
  for (let round = 1; round <= ROUNDS; round++) {
    await t.test(`round ${round}`, async (t) => {
      const database = await createTestDatabase()
      t.after(() => database.drop())
      const env = { SENDWRIGHT_DATABASE_URL: database.url, SENDWRIGHT_SECRET: SECRET }
      const folders = [await temporaryFolder(t), await temporaryFolder(t)]
      const both = await Promise.all(
        folders.map((folder) => startFor(t, { ...env, SENDWRIGHT_DATA: folder })),
      )
      assert.equal(both[0]?.domain, both[1]?.domain)
      const client = new pg.Client({ connectionString: database.url })
      await client.connect()
      const { rows } = await client.query(`SELECT (SELECT count(*)::int FROM accounts) AS accounts,
        (SELECT count(*)::int FROM domains) AS domains, (SELECT count(*)::int FROM api_keys) AS keys`)
      await client.end()
      assert.deepEqual(rows, [{ accounts: 1, domains: 1, keys: 1 }])
      for (const service of both) assert.equal(await service.end('SIGTERM'), 0)
    })
  }
})
