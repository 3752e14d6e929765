/** The secret that encrypted the stored keys: a start without it, or with another one, is refused. */
// Slow: it starts and ends whole processes, again and again.
import assert from 'node:assert/strict'
import { access, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { assertPlain, installed, refusedStart } from '../support/starts.ts'
import { temporaryFolder } from '../support/stores.ts'

const SECRET = 'the-secret-of-this-installation-01'
const OTHER_SECRET = 'a-secret-of-another-installation-2'

const tablesOf = (folder: string) => {
  const database = new DatabaseSync(join(folder, 'sendwright.db'), { readOnly: true })
  try {
    const versions = database.prepare('SELECT version FROM schema_versions ORDER BY version').all()
    const keys = database.prepare('SELECT id, private_key_sealed FROM dkim_keys ORDER BY id').all()
    const accounts = database.prepare('SELECT id, signing_key_sealed FROM accounts ORDER BY id').all()
    return { versions, keys, accounts }
  } finally {
    database.close()
  }
}

const change = (folder: string, sql: string) => {
  const database = new DatabaseSync(join(folder, 'sendwright.db'))
  database.exec(sql)
  database.close()
}

test('a start with another secret is refused and changes nothing', async (t) => {
  const folder = await temporaryFolder(t)
  const env = { SENDWRIGHT_DATA: folder, SENDWRIGHT_SECRET: SECRET }
  await installed(t, env)
  const before = tablesOf(folder)
  const wrong = { ...env, SENDWRIGHT_SECRET: OTHER_SECRET }
  assertPlain(
    await refusedStart(wrong),
    /^Cannot start: SENDWRIGHT_SECRET is not the secret that this database/,
  )
  assert.deepEqual(tablesOf(folder), before)

  // As left by a version that did not record the secret.
  change(folder, "DELETE FROM installation; UPDATE accounts SET signing_key_sealed = x''")
  assertPlain(
    await refusedStart(wrong),
    /^Cannot start: SENDWRIGHT_SECRET is not the secret that this database/,
  )
  change(folder, 'DROP TABLE installation; DELETE FROM schema_versions WHERE version = 25')
  const old = tablesOf(folder)
  assertPlain(
    await refusedStart(wrong),
    /^Cannot start: SENDWRIGHT_SECRET is not the secret that this database/,
  )
  assert.deepEqual(tablesOf(folder), old, 'not even its schema')
  await installed(t, env)
  assert.equal(tablesOf(folder).versions.length, before.versions.length)
})

test('a start without the secret file is refused and generates no new one', async (t) => {
  const folder = await temporaryFolder(t)
  const env = { SENDWRIGHT_DATA: folder }
  await installed(t, env)
  const file = join(folder, 'secret')
  const secret = await readFile(file, 'utf8')
  await rename(file, join(folder, 'elsewhere'))
  assertPlain(
    await refusedStart(env),
    /^Cannot start: the database has keys sealed .* does not exist or is empty/,
  )
  await assert.rejects(access(file))
  await writeFile(file, '')
  assertPlain(await refusedStart(env), /does not exist or is empty/)
  assert.equal(await readFile(file, 'utf8'), '')
  await writeFile(file, OTHER_SECRET)
  assertPlain(await refusedStart(env), /^Cannot start: the secret in ".*\/secret" is not the secret/)
  await writeFile(file, secret)
  await installed(t, env)
})
