import assert from 'node:assert/strict'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { openSyncedSqlite, temporaryFolder } from '../../../../test/support/stores.ts'
import { insert } from '../store.ts'
import { judgeSpace, pagesToRelease } from './free-space.ts'

const MB = 1024 * 1024
const PAGE = 4096

test('free pages count as free space, and deliveries continue below the floor until almost nothing is left', () => {
  type Case = [disk: number, spare: number, log: number, floor: number, enough: boolean, mayClaim: boolean]
  const cases: Case[] = [
    [100, 0, 0, 100, true, true],
    [99, 0, 0, 100, false, true],
    [99, 1, 0, 100, true, true],
    [8, 500, 0, 100, true, true],
    // There is space for the rows, but not for the log.
    [7, 500, 0, 100, false, true],
    [16, 0, 0, 100, false, true],
    [15, 0, 0, 100, false, false],
    // Pages in the log need space in the file.
    [18, 0, 4, 100, false, false],
    [20, 0, 4, 100, false, true],
    [0, 0, 4, 0, true, true],
    [1, 0, 0, 8, false, false],
    [2, 0, 0, 8, false, true],
  ]
  for (const [disk, spare, log, floor, enough, mayClaim] of cases) {
    const bytes = { diskBytes: disk * MB, spareBytes: spare * MB, logBytes: log * MB }
    const judged = judgeSpace(bytes, floor * MB)
    const name = `${disk} MB free, ${spare} MB of pages, a log of ${log} MB, floor ${floor} MB`
    assert.deepEqual({ enough: judged.enough, mayClaim: judged.mayClaim }, { enough, mayClaim }, name)
  }
})

test('a share of the free pages is kept, and the rest is released in steps', () => {
  const usage = (sizeBytes: number, freeBytes: number) => ({
    pageBytes: PAGE,
    pages: sizeBytes / PAGE,
    freePages: freeBytes / PAGE,
  })
  assert.equal(pagesToRelease(usage(1000 * MB, 250 * MB), false, 1e12), 0)
  assert.equal(pagesToRelease(usage(100 * MB, 60 * MB), false, 1e12), 0)
  assert.equal(pagesToRelease(usage(1000 * MB, 251 * MB), false, 1e12), 256)
  assert.equal(pagesToRelease(usage(1000 * MB, 900 * MB), false, 1e12), 640)
  assert.equal(pagesToRelease(usage(1000 * MB, 900 * MB), true, 1e12), 320)
  assert.equal(pagesToRelease(usage(1000 * MB, 4 * MB), true, 1e12), 0)
  // Pages that move pass through the log, which has to fit.
  assert.equal(pagesToRelease(usage(1000 * MB, 900 * MB), true, 1 * MB), 128)
  assert.equal(pagesToRelease(usage(1000 * MB, 900 * MB), true, 0), 64)
})

test('while the disk is short the log stays small, and emptied pages leave the file', async (t) => {
  const folder = await temporaryFolder(t)
  const store = await openSyncedSqlite(folder)
  t.after(() => store.close())
  const { files } = store
  assert.ok(files?.shrinks)
  const sizeOf = async (name: string) => (await stat(join(folder, name))).size
  files.setShort(true)
  let longest = 0
  const policy_text = 'x'.repeat(100_000)
  for (let number = 0; number < 400; number++) {
    const domain = `d${number}.example`
    await store.commit([insert('mta_sts_policies', { domain, policy_id: '1', policy_text, expires_at: 0 })])
    longest = Math.max(longest, await sizeOf('sendwright.db-wal'))
  }
  // 40 MB passed through it.
  assert.ok(longest < 16 * MB, `the log took ${longest} bytes`)
  await store.commit([{ sql: 'DELETE FROM mta_sts_policies WHERE domain <> ?', values: ['d399.example'] }])
  const { freePages } = await files.measure()
  assert.ok(freePages * PAGE > 35 * MB, `${freePages} free pages`)
  await files.trimLog()
  const before = await sizeOf('sendwright.db')
  for (let step = 0; step < 100; step++) await files.shrink(64)
  await files.trimLog()
  assert.equal(await sizeOf('sendwright.db-wal'), 0)
  assert.ok(before - (await sizeOf('sendwright.db')) >= 6400 * PAGE)
  const kept = await store.db.selectFrom('mta_sts_policies').select('policy_text').execute()
  assert.deepEqual(kept, [{ policy_text }])
  assert.deepEqual(await store.read({ sql: 'PRAGMA integrity_check', values: [] }), [
    { integrity_check: 'ok' },
  ])
})
