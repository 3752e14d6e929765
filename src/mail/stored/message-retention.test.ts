import assert from 'node:assert/strict'
import { test } from 'node:test'
import pino from 'pino'
import { createTestClock } from '../../../test/support/clock.ts'
import { prepareDataFolder } from '../../../test/support/migrated.ts'
import { temporaryFolder } from '../../../test/support/stores.ts'
import { openBlobs } from '../../platform/store/blobs/blobs.ts'
import { openSqlite } from '../../platform/store/sqlite/sqlite.ts'
import { insert, type Statement, StoreFull } from '../../platform/store/store.ts'
import { createRetention, type RetentionParts } from './message-retention.ts'

test('where there is no room even for removing rows, blobs go first and make some', async (t) => {
  const folder = await temporaryFolder(t)
  await prepareDataFolder(folder)
  const store = await openSqlite(folder)
  t.after(() => store.close())
  const blobs = await openBlobs(folder)
  const clock = createTestClock()
  const bytes = async function* () {
    yield Buffer.alloc(1000)
  }
  const blob = await blobs.keep((await blobs.spool(bytes())).chunk)
  const row = {
    ...{ id: 'm1', account_id: 'a', domain_id: 'd', domain_name: 'example.org', message_id: 'x@example.org' },
    ...{ summary_json: '{}', options_json: '{}', content_kind: 'parts', content: null, content_blob: blob },
    ...{ blobs_json: JSON.stringify([blob]), created_at: clock.now() },
  }
  await store.commit([insert('messages', row)])
  const isThere = () =>
    blobs.read(blob).then(
      () => true,
      () => false,
    )
  const parts = {
    store: {
      ...store,
      async commit(unit: readonly Statement[]) {
        if (await isThere()) throw new StoreFull('no room for the log')
        return store.commit(unit)
      },
    },
    blobs,
    domains: { byId: async () => null },
    records: { forget() {} },
    past: { moveAll: async () => {}, sweep: async () => {} },
    clock,
    bounds: { preset: 3, min: 0, max: 7 },
    bytesMax: null,
    log: pino({ level: 'silent' }),
  } as unknown as RetentionParts
  const retention = createRetention(parts)
  assert.equal(await retention.sweep(), 0)
  assert.equal(await isThere(), true)
  clock.leap(4 * 86_400_000)
  assert.equal(await retention.sweep(), 1)
  assert.equal(await isThere(), false)
  assert.deepEqual(await store.db.selectFrom('messages').select('id').execute(), [])
})
