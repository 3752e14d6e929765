import assert from 'node:assert/strict'
import { copyFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { seededNumbers } from '../../../test/support/random.ts'
import { temporaryFolder } from '../../../test/support/stores.ts'
import { checkLog } from './log-check.ts'
import { openSqlite } from './sqlite/sqlite.ts'
import { StoreFault } from './store.ts'

const HEADER_BYTES = 32
const FRAME_BYTES = 4096 + 24
const COMMITS = 30

/** The files as a crash leaves them. `restarted`: the log has restarted over frames of an earlier round. */
async function crashed(t: TestContext, restarted: boolean) {
  const folder = await temporaryFolder(t)
  const running = join(folder, 'running.db')
  const database = new DatabaseSync(running)
  database.exec(
    'PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (id INTEGER, text TEXT)',
  )
  const row = database.prepare('INSERT INTO t VALUES (?, ?)')
  const write = (count: number) => {
    for (let number = 0; number < count; number++) row.run(number, 'x'.repeat(3_000))
  }
  write(restarted ? 2 * COMMITS : COMMITS)
  if (restarted) {
    database.exec('PRAGMA wal_checkpoint(PASSIVE)')
    write(COMMITS / 2)
  }
  const file = join(folder, 'sendwright.db')
  await copyFile(running, file)
  await copyFile(`${running}-wal`, `${file}-wal`)
  database.close()
  return {
    folder,
    file,
    log: await readFile(`${file}-wal`),
    put: (log: Buffer) => writeFile(`${file}-wal`, log),
  }
}

/** Overwritten with random bytes from `at` on, the same in each run. */
function corrupted(log: Buffer, at: number, length: number): Buffer {
  const random = seededNumbers(26)
  const bytes = Buffer.from(log)
  for (let offset = at; offset < at + length; offset++) bytes[offset] = Math.floor(random() * 256)
  return bytes
}

const frameAt = (number: number) => HEADER_BYTES + number * FRAME_BYTES

test('damage before complete transactions is reported with its byte offset', async (t) => {
  const { file, folder, log, put } = await crashed(t, false)
  checkLog(file)
  const cases: [name: string, at: number, length: number, badAt: number][] = [
    ['a page', frameAt(10) + 500, 1, frameAt(10)],
    ["a frame's header", frameAt(10), 24, frameAt(10)],
    ['some pages', frameAt(5) + 100, 3 * FRAME_BYTES, frameAt(5)],
    ['the header', 0, 24, 0],
  ]
  for (const [name, at, length, badAt] of cases) {
    await put(corrupted(log, at, length))
    const namesOffset = (error: unknown) =>
      error instanceof StoreFault && error.detail.includes(`sendwright.db-wal" is damaged at byte ${badAt};`)
    assert.throws(() => checkLog(file), namesOffset, name)
    await assert.rejects(openSqlite(folder), namesOffset, name)
  }
  // As the error message proposes.
  await put(log.subarray(0, frameAt(10)))
  const store = await openSqlite(folder)
  t.after(() => store.close())
  const [row] = await store.read({ sql: 'SELECT count(*) AS count FROM t', values: [] })
  assert.ok(Number(row?.['count']) > 0)
})

test('a log that a crash cut off does not count as damaged', async (t) => {
  const { file, log, put } = await crashed(t, false)
  const last = frameAt(Math.floor((log.length - HEADER_BYTES) / FRAME_BYTES) - 1)
  const cases: [name: string, log: Buffer][] = [
    ['nothing', Buffer.alloc(0)],
    ['half a header', log.subarray(0, 10)],
    ['a header', log.subarray(0, HEADER_BYTES)],
    ['half a frame', log.subarray(0, last + 100)],
    ['a last frame that was not written', corrupted(log, last, FRAME_BYTES)],
    // Its pages may reach the disk in any order before they are synced.
    ['the last transaction without its first page', corrupted(log, last - FRAME_BYTES, FRAME_BYTES)],
  ]
  for (const [name, left] of cases) {
    await put(left)
    assert.doesNotThrow(() => checkLog(file), name)
  }
  const restarted = await crashed(t, true)
  assert.ok(restarted.log.length > frameAt(COMMITS), 'frames of the earlier round follow')
  checkLog(restarted.file)
})
