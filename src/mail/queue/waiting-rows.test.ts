/** How lists of the queue find their rows, and how many they read. */
// Both databases: each has query plans of its own.
import assert from 'node:assert/strict'
import { seedQueue } from '../../../test/support/seed-queue.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { systemClock } from '../../base/time/clock.ts'
import type { Statement, Store } from '../../platform/store/store.ts'
import { listQueue, runAction } from './actions.ts'
import { type Place, type QueueFilter, waitingRows } from './waiting-rows.ts'

const ALL: QueueFilter = {
  ...{ domain: undefined, recipientDomain: undefined, provider: undefined, lane: undefined },
  ...{ tag: undefined, messageId: undefined, reason: undefined, olderThanMs: undefined },
}
const WAITING = (state: string) => `${state} IN ('scheduled', 'queued')`

function rig(store: Store) {
  const reads: Statement[] = []
  const parts = {
    store: {
      ...store,
      read(statement: Statement) {
        reads.push(statement)
        return store.read(statement)
      },
    },
    delivery: null as never,
    clock: systemClock,
    firstAccountId: 'a',
  }
  return { reads, parts }
}

eachStore('what waits is read in portions of accounts, and found by an index of it', async (store) => {
  const seed = { domainId: 'd', dueAt: systemClock.now() }
  await seedQueue(store, { ...seed, accountId: 'b', recipientDomain: 'done.example', count: 6_000 })
  await store.commit([{ sql: `UPDATE deliveries SET state = 'delivered'`, values: [] }])
  if (store.kind === 'postgres') await store.commit([{ sql: 'ANALYZE deliveries', values: [] }])
  const ids: Record<string, string[]> = {}
  for (const [accountId, count] of [
    ['a', 700],
    ['b', 1_200],
    ['c', 1],
  ] as const) {
    const recipientDomain = (index: number) => (index % 2 === 0 ? 'x.example' : 'y.example')
    ids[accountId] = await seedQueue(store, { ...seed, accountId, recipientDomain, count })
  }
  const { reads, parts } = rig(store)
  const walk = async (accountId: string | null, filter: QueueFilter, from?: Place, backwards?: boolean) => {
    const found: string[] = []
    const ends: Place[] = []
    for await (const { matching, end, read } of waitingRows(
      parts,
      accountId,
      filter,
      WAITING,
      from,
      backwards,
    )) {
      assert.ok(read <= 500)
      found.push(...matching.map(({ id }) => id))
      ends.push(end)
    }
    return { found, ends }
  }
  const { a = [], b = [], c = [] } = ids
  const all = [...a, ...b, ...c]
  const { found, ends } = await walk(null, ALL)
  assert.deepEqual(found, all)
  assert.deepEqual((await walk(null, ALL, ends[2])).found, all.slice(700 + 500))
  assert.deepEqual((await walk(null, ALL, ends[2], true)).found, all.slice(0, 1_199).reverse())
  assert.deepEqual((await walk('c', ALL)).found, c)
  assert.deepEqual((await walk('c', ALL, { accountId: 'a', id: '' })).found, c, 'a place of another account')
  const odd = { ...ALL, recipientDomain: 'Y.example' }
  assert.deepEqual(
    (await walk('a', odd)).found,
    a.filter((_, index) => index % 2 === 1),
  )
  const word = store.kind === 'sqlite' ? 'EXPLAIN QUERY PLAN' : 'EXPLAIN'
  for (const { sql, values } of new Map(reads.map((read) => [read.sql, read])).values()) {
    const plan = JSON.stringify(await store.read({ sql: `${word} ${sql}`, values }))
    assert.match(plan, /deliveries_queued|deliveries_pkey|sqlite_autoindex_deliveries_1/, plan)
    assert.doesNotMatch(plan, /SCAN deliveries(?! USING INDEX deliveries_queued)|Seq Scan|TEMP B-TREE/, plan)
    if (!sql.includes('d.*')) assert.match(plan, /deliveries_queued/, plan)
  }
})

eachStore('a page reads a bounded number of rows, and the next one goes on from there', async (store) => {
  const seed = { accountId: 'a', domainId: 'd', dueAt: systemClock.now() }
  await seedQueue(store, { ...seed, recipientDomain: 'x.example', count: 5_500 })
  const ids = await seedQueue(store, { ...seed, recipientDomain: 'rare.example', count: 1 })
  const { parts, reads } = rig(store)
  const delivery = { progressOf: () => null, laneOfGroup: () => null }
  const filter = { ...ALL, recipientDomain: 'rare.example' }
  const list = (from: Place | null) =>
    listQueue({ ...parts, delivery } as never, null, filter, { from, backwards: false, limit: 10 })
  const first = await list(null)
  assert.deepEqual(first.items, [])
  assert.ok(reads.length < 30, `${reads.length}`)
  const next = await list(first.last)
  assert.deepEqual(
    next.items.map(({ id }) => id),
    ids,
  )
})

eachStore('the deliveries of a message are found by it', async (store) => {
  const seed = { domainId: 'd', recipientDomain: 'x.example', dueAt: systemClock.now(), count: 600 }
  await seedQueue(store, { ...seed, accountId: 'a' })
  const ids = await seedQueue(store, { ...seed, accountId: 'b' })
  const [row] = await store.read({
    sql: 'SELECT message_id FROM messages WHERE account_id = ?',
    values: ['b'],
  })
  const { parts } = rig(store)
  const filter = { ...ALL, messageId: `<${String(row?.['message_id'])}>` }
  const found: string[] = []
  for await (const { matching } of waitingRows(parts, null, filter, WAITING))
    found.push(...matching.map(({ id }) => id))
  assert.deepEqual(found, ids)
})

eachStore('an action of a tenant lets the mail of all go on in between', async (store) => {
  const seed = { domainId: 'd', recipientDomain: 'x.example', dueAt: systemClock.now(), count: 1_600 }
  for (const accountId of ['a', 'b']) await seedQueue(store, { ...seed, accountId })
  const { parts } = rig(store)
  const did: string[] = []
  let time = 0
  const clock = {
    ...systemClock,
    // Each look takes long.
    monotonic: () => (time += 200),
    setTimer(ms: number, end: () => void) {
      did.push(`mail goes on for ${ms}`)
      setImmediate(end)
      return { cancel() {} }
    },
  }
  const delivery = {
    async whileIdle(run: () => Promise<unknown>) {
      did.push('idle')
      await run()
    },
  }
  const all = { ...parts, clock, delivery, totals: { forget() {} } } as never
  const order = { action: 'pause' } as const
  assert.deepEqual(await runAction(all, 'b', order, ALL, false), { matched: 1_600, changed: 1_600 })
  assert.ok(did.filter((one) => one === 'idle').length > 1, String(did))
  assert.ok(did.at(-1)?.startsWith('mail goes on for'), String(did))
  did.length = 0
  // The operator's mail is all mail.
  assert.deepEqual(await runAction(all, null, order, ALL, false), { matched: 1_600, changed: 1_600 })
  assert.deepEqual(did, ['idle'])
})
