import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Client } from 'pg'
import { createMigratedDatabase } from '../../../../test/support/migrated.ts'
import type { StoreUnavailable } from '../store.ts'
import * as locks from './advisory-locks.ts'
import { openPostgres } from './postgres.ts'

const SOURCES = join(import.meta.dirname, '../../..')

test('no two advisory locks have the same key', () => {
  const keys = Object.values(locks)
  assert.equal(new Set(keys).size, keys.length)
})

test('every advisory lock of the sources is one of the list', () => {
  const calls = globSync('**/*.{ts,sql}', { cwd: SOURCES })
    .filter((file) => !file.endsWith('.test.ts'))
    .flatMap((file) => {
      const rows = readFileSync(join(SOURCES, file), 'utf8').split('\n')
      return rows.filter((row) => /pg_\w*advisory_\w*\(/.test(row)).map((row) => `${file}: ${row.trim()}`)
    })
  assert.ok(calls.length >= 8, 'they are found')
  const names = new RegExp(`\\b(?:${Object.keys(locks).join('|')})\\b`)
  assert.deepEqual(
    calls.filter((call) => !names.test(call)),
    [],
  )
})

test('a node opens the database while another one creates the first account', async (t) => {
  const database = await createMigratedDatabase()
  const other = new Client({ connectionString: database.url })
  await other.connect()
  t.after(async () => {
    await other.end()
    await database.drop()
  })
  await other.query('BEGIN')
  await other.query('SELECT pg_advisory_xact_lock($1)', [locks.FIRST_START_LOCK])
  await (await openPostgres(database.url)).close()
  await other.query('COMMIT')
  await other.query('SELECT pg_advisory_lock($1)', [locks.COPY_LOCK])
  await assert.rejects(openPostgres(database.url), (error: StoreUnavailable) =>
    error.detail.includes('`sendwright migrate` is copying it'),
  )
})
