// Both databases: the statement has values in an expression.
import assert from 'node:assert/strict'
import { createTestClock } from '../../../test/support/clock.ts'
import { seedQueue } from '../../../test/support/seed-queue.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { type ActionParts, change } from './actions.ts'

eachStore('what was held when it was paused is due when it is resumed', async (store) => {
  const clock = createTestClock()
  const due = Math.round(clock.now()) + 3_600_000
  const seed = { accountId: 'a', domainId: 'd', recipientDomain: 'x.example', count: 1 }
  const [held] = await seedQueue(store, { ...seed, dueAt: due })
  const [other] = await seedQueue(store, { ...seed, dueAt: due })
  const reason = `UPDATE deliveries SET reason = 'account-held' WHERE id = ?`
  await store.commit([{ sql: reason, values: [held as string] }])
  const rows = () => store.db.selectFrom('deliveries').selectAll().execute()
  const parts = { store, clock } as unknown as ActionParts
  assert.equal(await change(parts, { action: 'pause' }, await rows()), 2)
  assert.equal(await change(parts, { action: 'resume' }, await rows()), 2)
  const dueAt = new Map((await rows()).map(({ id, due_at }) => [id, Number(due_at)]))
  assert.ok((dueAt.get(held as string) ?? due) <= clock.now())
  assert.equal(dueAt.get(other as string), due)
})
