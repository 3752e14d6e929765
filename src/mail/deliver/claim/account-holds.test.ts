// Both databases: each has query plans of its own.
import assert from 'node:assert/strict'
import { createTestClock } from '../../../../test/support/clock.ts'
import { bareRecorder } from '../../../../test/support/events.ts'
import { seedQueue } from '../../../../test/support/seed-queue.ts'
import { eachStore } from '../../../../test/support/stores.ts'
import type { Statement } from '../../../platform/store/store.ts'
import { createAccountHolds } from './account-holds.ts'
import { createQueue } from './queue.ts'

const SIGNAL = new AbortController().signal
const HOUR_MS = 3_600_000

eachStore('what is due is held and released, and nothing of others', async (store) => {
  const clock = createTestClock()
  const now = clock.now()
  const queue = createQueue(store, 'owner', bareRecorder)
  const statements: Statement[] = []
  const recording = {
    ...store,
    commit(unit: readonly Statement[]) {
      statements.push(...unit)
      return store.commit(unit)
    },
  }
  const holds = createAccountHolds(recording, queue, clock)
  const own = { accountId: 'held', domainId: 'd1', recipientDomain: 'a.example' }
  const due = await seedQueue(store, { ...own, count: 1_100, dueAt: now - 1 })
  due.push(
    ...(await seedQueue(store, {
      ...own,
      recipientDomain: 'b.example',
      count: 3,
      dueAt: now - 2,
      sourceKey: '#1',
    })),
  )
  const [later] = await seedQueue(store, { ...own, count: 1, dueAt: now + HOUR_MS })
  const [over] = await seedQueue(store, { ...own, count: 1, dueAt: now - 9, expiresAt: now - 1 })
  const [paused] = await seedQueue(store, { ...own, count: 1, dueAt: now - 1 })
  await store.commit([
    { sql: `UPDATE deliveries SET reason = 'paused' WHERE id = ?`, values: [paused as string] },
  ])
  const other = { accountId: 'other', domainId: 'd2', recipientDomain: 'a.example' }
  const others = await seedQueue(store, { ...other, count: 5, dueAt: now - 1 })

  const byReason = async () => {
    const rows = await store.db
      .selectFrom('deliveries')
      .select(['id', 'reason', 'due_at', 'expires_at'])
      .execute()
    return new Map(rows.map((row) => [row.id, row]))
  }
  await holds.hold(new Set(['d1']), SIGNAL)
  const held = await byReason()
  for (const id of due) {
    const row = held.get(id)
    assert.deepEqual([row?.reason, row?.due_at], ['account-held', row?.expires_at])
  }
  const rest = [later, over, paused, ...others] as string[]
  assert.deepEqual(
    rest.map((id) => held.get(id)?.reason),
    ['new', 'new', 'paused', 'new', 'new', 'new', 'new', 'new'],
  )
  assert.deepEqual(
    (await queue.due(100, now, 'oldest')).map(({ id }) => id).sort(),
    [over, paused, ...others].sort(),
    'the engine sees the others alone',
  )

  await holds.release('held', SIGNAL)
  const released = await byReason()
  for (const id of due) assert.equal(released.get(id)?.reason, 'resumed')
  assert.deepEqual(new Set(due.map((id) => released.get(id)?.due_at)), new Set([now - 1, now - 2]))
  assert.equal(released.get(paused as string)?.reason, 'paused')
  assert.equal((await queue.due(2_000, now, 'oldest')).length, due.length + 2 + others.length)

  // Neither reads the table, however large it is.
  if (store.kind === 'postgres') await store.commit([{ sql: 'ANALYZE deliveries', values: [] }])
  const word = store.kind === 'sqlite' ? 'EXPLAIN QUERY PLAN' : 'EXPLAIN'
  for (const { sql, values } of [statements[0], statements.at(-1)] as Statement[]) {
    const plan = JSON.stringify(await store.read({ sql: `${word} ${sql}`, values }))
    assert.match(plan, /deliveries_(waiting|due|held)/, plan)
    assert.doesNotMatch(plan, /Seq Scan|SCAN deliveries/, plan)
  }
})

eachStore(
  'a window that was longer by a wait is shorter by the rest of it, unless its sender has set it',
  async (store) => {
    const clock = createTestClock()
    const now = clock.now()
    const holds = createAccountHolds(store, createQueue(store, 'owner', bareRecorder), clock)
    const seed = { accountId: 'held', domainId: 'd1', recipientDomain: 'a.example', count: 1 }
    const waits = { ...seed, dueAt: now + HOUR_MS, expiresAt: now + 5 * HOUR_MS }
    const [ours] = await seedQueue(store, waits)
    const [senders] = await seedQueue(store, waits)
    await store.commit([
      { sql: `UPDATE deliveries SET reason = 'account-held'`, values: [] },
      {
        sql: `UPDATE messages SET options_json = '{"deliverWithinMs":18000000}'
        WHERE id = (SELECT message_pk FROM deliveries WHERE id = ?)`,
        values: [senders as string],
      },
    ])
    await holds.release('held', SIGNAL)
    const rows = await store.db.selectFrom('deliveries').select(['id', 'expires_at']).execute()
    const windows = new Map(rows.map(({ id, expires_at }) => [id, Number(expires_at) - now]))
    assert.equal(windows.get(ours as string), 4 * HOUR_MS)
    assert.equal(windows.get(senders as string), 5 * HOUR_MS)
  },
)
