// Both databases: each has query plans of its own.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../../../test/support/clock.ts'
import { seedQueue } from '../../../../test/support/seed-queue.ts'
import { eachStore } from '../../../../test/support/stores.ts'
import type { Store } from '../../../platform/store/store.ts'
import { newDomainRow } from '../../../sending/domains/domain.ts'
import { countQueue, createQueueCounts } from './queue-counts.ts'

eachStore('deliveries that are not done are counted by state', async (store) => {
  assert.deepEqual(await countQueue(store), { scheduled: 0, queued: 0, sending: 0 })
  const seed = { accountId: 'a', domainId: 'd', recipientDomain: 'example.org', dueAt: 0 }
  const [first, second, third] = await seedQueue(store, { ...seed, count: 6 })
  for (const [state, id] of [
    ['scheduled', first],
    ['sending', second],
    ['delivered', third],
  ])
    await store.commit([
      { sql: 'UPDATE deliveries SET state = ? WHERE id = ?', values: [state ?? '', id ?? ''] },
    ])
  assert.deepEqual(await countQueue(store), { scheduled: 1, queued: 3, sending: 1 })
  assert.deepEqual(await countQueue(store, 'a'), { scheduled: 0, queued: 0, sending: 0 }, 'no domain of it')
  const account = { id: 'a', parent_id: null, name: 'a', signing_key_sealed: Buffer.of(1), created_at: 0 }
  await store.db.insertInto('accounts').values(account).execute()
  await store.db
    .insertInto('domains')
    .values(
      newDomainRow({
        ...{ id: 'd', account_id: 'a', name: 'a.example', type: 'custom', state: 'active' },
        created_at: 0,
      }),
    )
    .execute()
  assert.deepEqual(await countQueue(store, 'a'), { scheduled: 1, queued: 3, sending: 1 })
  assert.deepEqual(await countQueue(store, 'b'), { scheduled: 0, queued: 0, sending: 0 })
})

test('a count is shared while it runs, and for twenty times as long as it took', async () => {
  const clock = createTestClock()
  let answer: { resolve(rows: Record<string, unknown>[]): void; reject(error: Error): void } | undefined
  let asked = 0
  const store = {
    read() {
      asked++
      return new Promise<Record<string, unknown>[]>((resolve, reject) => {
        answer = { resolve, reject }
      })
    },
  } as unknown as Store
  const counts = createQueueCounts(store, clock)
  const both = Promise.all([counts(null), counts(null)])
  await clock.advance(100)
  answer?.resolve([{ scheduled: 0, queued: 7, waiting: 7 }])
  assert.deepEqual(
    (await both).map(({ queued }) => queued),
    [7, 7],
  )
  await clock.advance(1_999)
  assert.equal((await counts(null)).queued, 7)
  assert.equal(asked, 1)
  await clock.advance(1)
  const failed = counts(null)
  answer?.reject(new Error('away'))
  await assert.rejects(failed, /away/)
  const again = counts(null)
  answer?.resolve([{ scheduled: 0, queued: 8, waiting: 8 }])
  assert.equal((await again).queued, 8)
  assert.equal(asked, 3)
})
