import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { diskFolder } from '../../../../test/support/memory-folder.ts'
import { openSyncedSqlite } from '../../../../test/support/stores.ts'
import { createCheckpoints } from './writer.ts'

const MB = 1024 * 1024

test('one checkpoint runs at a time, after enough writes; the log restarts only when it is long', async () => {
  const calls: string[] = []
  let pages = 100
  let finish = () => {}
  const checkpoints = createCheckpoints({
    checkpoint() {
      calls.push('checkpoint')
      return new Promise((resolve, reject) => {
        finish = () => (pages < 0 ? reject(new Error('disk')) : resolve(pages))
      })
    },
    syncFile: async () => void calls.push('sync'),
    restartLog: async () => void calls.push('restart'),
  })
  checkpoints.wrote(10, 1 * MB)
  assert.deepEqual(calls, [], 'little was written')
  checkpoints.wrote(10, 20 * MB)
  checkpoints.wrote(10, 20 * MB)
  assert.deepEqual(calls, ['checkpoint'], 'one is running')
  finish()
  await turn()
  checkpoints.wrote(10, 1 * MB)
  assert.deepEqual(calls.splice(0), ['checkpoint', 'sync', 'checkpoint'], 'writes during a checkpoint count')
  pages = 100_000
  finish()
  await turn()
  finish()
  await turn()
  assert.deepEqual(calls.splice(0), ['sync', 'checkpoint', 'restart'], 'little is left to the writer')
  pages = -1
  checkpoints.wrote(10, 20 * MB)
  finish()
  await turn()
  checkpoints.wrote(10, 20 * MB)
  assert.deepEqual(calls, ['checkpoint', 'checkpoint'], 'a failed one is followed by another')
})

test('the log stays bounded under continuous writes', async () => {
  const folder = mkdtempSync(join(diskFolder(), 'checkpoints-'))
  const store = await openSyncedSqlite(folder)
  try {
    await store.commit([{ sql: 'CREATE TABLE filler (id INTEGER PRIMARY KEY, bytes BLOB)', values: [] }])
    const insert = { sql: 'INSERT INTO filler (bytes) VALUES (?)', values: [Buffer.alloc(100_000, 'x')] }
    let left = 3_000
    const writer = async () => {
      while (left-- > 0) await store.commit([insert])
    }
    await Promise.all(Array.from({ length: 8 }, writer))
    const [row] = await store.read({ sql: 'SELECT COUNT(*) AS count FROM filler', values: [] })
    assert.equal(row?.['count'], 3_000)
    const log = statSync(join(folder, 'sendwright.db-wal')).size
    assert.ok(log < 150 * MB, `300 MB were written, the log has ${Math.round(log / MB)} MB`)
  } finally {
    await store.close()
    rmSync(folder, { recursive: true })
  }
})
