/** How the databases find the rows of a claim and of an outcome when their statistics are old. */
// Both databases: each has query plans of its own.
import assert from 'node:assert/strict'
import { bareRecorder } from '../../../../test/support/events.ts'
import { seedQueue } from '../../../../test/support/seed-queue.ts'
import { eachStore } from '../../../../test/support/stores.ts'
import type { Statement, Store } from '../../../platform/store/store.ts'
import { CLAIM_MAX, createQueue } from './queue.ts'

const NOW_MS = Date.UTC(2026, 0, 5)
const DAY_MS = 86_400_000
const OF = { accountId: 'a', domainId: 'd', recipientDomain: 'x.example' }

/** Claims and settles; resolves how the rows of both statements are found, without the values in them. */
async function plansOf(store: Store): Promise<string[]> {
  const statements: Statement[] = []
  const queue = createQueue(
    {
      ...store,
      async commit(unit, place) {
        statements.push(unit[0] as Statement)
        return store.commit(unit, place)
      },
    },
    'owner',
    bareRecorder,
  )
  const due = await queue.due(CLAIM_MAX, NOW_MS, 'oldest')
  const ids = due.map(({ id }) => id)
  const claimed = await queue.claim(ids, NOW_MS)
  assert.equal(claimed.length, CLAIM_MAX)
  const [first] = claimed
  assert.ok(first)
  const end = { dueAt: NOW_MS, attempts: 1, reason: '', lastCode: 250, lastReply: 'ok' }
  await queue.settle(first, { ...end, state: 'delivered' }, [], [], NOW_MS)
  const word = store.kind === 'sqlite' ? 'EXPLAIN QUERY PLAN' : 'EXPLAIN'
  const plans = statements.map(({ sql, values }) => store.read({ sql: `${word} ${sql}`, values }))
  return (await Promise.all(plans)).map((plan) => JSON.stringify(plan).replaceAll(/'[^']*'/g, ''))
}

eachStore('rows are found by id, whatever the database believes of how many wait', async (store) => {
  if (store.kind === 'postgres') {
    await store.commit([{ sql: 'ALTER TABLE deliveries SET (autovacuum_enabled = false)', values: [] }])
  }
  await seedQueue(store, { ...OF, count: 2_000, dueAt: NOW_MS - DAY_MS })
  await store.commit([{ sql: `UPDATE deliveries SET state = 'delivered'`, values: [] }])
  // SQLite is never asked to look at its tables by the service.
  if (store.kind === 'postgres') await store.commit([{ sql: 'ANALYZE deliveries', values: [] }])
  await seedQueue(store, { ...OF, count: 15_000, dueAt: NOW_MS - DAY_MS })
  const plans = await plansOf(store)
  assert.equal(plans.length, 2)
  for (const plan of plans) {
    assert.match(plan, store.kind === 'sqlite' ? /INDEX sqlite_autoindex_deliveries_1/ : /deliveries_pkey/)
    assert.doesNotMatch(plan, /SCAN|deliveries_(due|leased|waiting|of_)/)
  }
})
