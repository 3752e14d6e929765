import assert from 'node:assert/strict'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { temporaryFolder } from '../../../../test/support/stores.ts'
import type { StoreFault } from '../store.ts'
import { describeFinding, startFileCheck } from './damage.ts'
import { openSqlite } from './sqlite.ts'

const PAGE_BYTES = 4096
/** The longest that a timer takes: a busy machine may need minutes for the process of a check. */
const NEVER_MS = 2 ** 31 - 1

/** Makes a database with a table of that size; returns the root page of its index. */
function makeDatabase(file: string, megabytes: number): number {
  const database = new DatabaseSync(file)
  database.exec('CREATE TABLE filler (id INTEGER PRIMARY KEY, bytes BLOB, name TEXT)')
  database.exec('CREATE INDEX filler_names ON filler (name)')
  const row = database.prepare('INSERT INTO filler (bytes, name) VALUES (?, ?)')
  database.exec('BEGIN')
  for (let number = 0; number < megabytes; number++) row.run(Buffer.alloc(1024 * 1024), `name ${number}`)
  database.exec('COMMIT')
  const root = database.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'filler_names'").get()
  database.close()
  return Number(root?.['rootpage'])
}

async function overwrite(file: string, page: number): Promise<void> {
  const handle = await open(file, 'r+')
  await handle.write(Buffer.alloc(PAGE_BYTES, 0xa5), 0, PAGE_BYTES, (page - 1) * PAGE_BYTES)
  await handle.close()
}

test('a damaged index is named; neither a locked file nor a stopped check counts as damage', async (t) => {
  const file = join(await temporaryFolder(t), 'sendwright.db')
  const index = makeDatabase(file, 1)
  assert.deepEqual(await startFileCheck(file, 'quick_check', NEVER_MS).result, {
    findings: [],
    complete: true,
  })
  await overwrite(file, index)
  const { findings } = await startFileCheck(file, 'quick_check', NEVER_MS).result
  assert.match(findings.map(describeFinding).join(), /^index filler_names: Tree \d+ page \d+/)

  const holder = new DatabaseSync(file)
  holder.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
  const locked = startFileCheck(file, 'quick_check', 2_000)
  assert.deepEqual(await locked.result, { findings: [], complete: false })
  holder.close()
  const stopped = startFileCheck(file)
  stopped.stop()
  assert.deepEqual(await stopped.result, { findings: [], complete: false })
})

test('a large database is checked while the service runs, which accepts nothing new once damage is found', async (t) => {
  const folder = await temporaryFolder(t)
  await overwrite(join(folder, 'sendwright.db'), makeDatabase(join(folder, 'sendwright.db'), 70))
  let noted = (_fault: StoreFault) => {}
  const fault = new Promise<StoreFault>((resolve) => {
    noted = resolve
  })
  const store = await openSqlite(folder, { onFault: (found) => noted(found), checkMaxMs: NEVER_MS })
  t.after(() => store.close())
  assert.match((await fault).detail, /is damaged \(index filler_names: .*sendwright doctor/)
  const statement = { sql: 'DELETE FROM api_keys', values: [] }
  await assert.rejects(store.commit([statement]), store.fault() as StoreFault)
  await assert.rejects(store.ping())
  await store.commit([statement], 'first')
  assert.deepEqual(await store.read({ sql: 'SELECT count(*) AS count FROM api_keys', values: [] }), [
    { count: 0 },
  ])
})
