/** What the engine does with the allowances of addresses on warm-up. */
// Both databases: nodes share allowances by row locks.
import assert from 'node:assert/strict'
import { DELIVERED, fakeTransport } from '../../../test/support/fake-transport.ts'
import { seededEngine, seedQueue } from '../../../test/support/seed-queue.ts'
import { eventually } from '../../../test/support/service.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { systemClock } from '../../base/time/clock.ts'
import type { Store } from '../../platform/store/store.ts'
import { connectionFailure, type Outcome } from './attempt/outcome.ts'
import type { Allowances } from './contract.ts'

const IP = '192.0.2.1'
const SEED = { accountId: 'a', domainId: 'd', recipientDomain: 'x.example' }

const rowsOf = (store: Store) =>
  store.db
    .selectFrom('deliveries')
    .select(['id', 'state', 'attempts', 'reason', 'due_at'])
    .orderBy('id')
    .execute()

/** One address is on warm-up. */
function transportOf(answer: () => Promise<Outcome>) {
  const transport = fakeTransport(5, answer)
  const { laneOf } = transport
  return Object.assign(transport, {
    laneOf: async (delivery: Parameters<typeof laneOf>[0]) => ({
      ...(await laneOf(delivery)),
      source: { ip: IP, helo: null },
    }),
  })
}

eachStore('what no server got is given back, what one answered is not', async (store) => {
  const outcomes = [connectionFailure('no route'), DELIVERED, DELIVERED]
  let [left, back] = [3, 0]
  const allowances: Allowances = {
    take: () => (left-- > 0 ? { giveBack: () => back++ } : null),
    nextFree: () => systemClock.now() + 3_600_000,
  }
  await seedQueue(store, { ...SEED, count: 4, dueAt: systemClock.now() - 1 })
  const engine = seededEngine(
    store,
    systemClock,
    transportOf(async () => outcomes.pop() as Outcome),
    { allowances },
  )
  await engine.start()
  const rows = await eventually('all are done', async () => {
    const found = await rowsOf(store)
    return found.every(({ state, reason }) => state === 'delivered' || !['new', ''].includes(reason)) && found
  })
  await engine.stop(5_000)
  assert.equal(back, 1)
  const waiting = rows.filter(({ reason }) => reason === 'warm-up')
  assert.deepEqual(
    waiting.map(({ state, attempts }) => [state, Number(attempts)]),
    [['queued', 0]],
  )
  assert.equal(rows.filter(({ state }) => state === 'delivered').length, 2)
})

eachStore(
  'a message without an allowance ends with its window, also one that was never tried',
  async (store) => {
    const now = systemClock.now()
    await seedQueue(store, { ...SEED, count: 1, dueAt: now - 1, expiresAt: now - 1 })
    const allowances: Allowances = { take: () => null, nextFree: () => now + 3_600_000 }
    const transport = transportOf(async () => DELIVERED)
    const engine = seededEngine(store, systemClock, transport, { allowances })
    await engine.start()
    await eventually('it has ended', async () => (await rowsOf(store))[0]?.state === 'expired')
    await engine.stop(5_000)
    assert.equal(transport.attempts.length, 0)
  },
)

eachStore('an allowance that cannot be read is a fault of this machine, and no attempt', async (store) => {
  let asked = 0
  const allowances: Allowances = {
    take: async () => {
      if (asked++ === 0) throw new Error('away')
      return { giveBack() {} }
    },
    nextFree: () => systemClock.now(),
  }
  const [id] = await seedQueue(store, { ...SEED, count: 1, dueAt: systemClock.now() - 1 })
  const engine = seededEngine(
    store,
    systemClock,
    transportOf(async () => DELIVERED),
    { allowances },
  )
  await engine.start()
  const row = await eventually('delivered', async () => {
    const [found] = await rowsOf(store)
    return found?.state === 'delivered' && found
  })
  await engine.stop(5_000)
  assert.deepEqual([row.id, Number(row.attempts), asked], [id, 1, 2])
})
