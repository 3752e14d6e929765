/** The one bound on what the engine holds: neither fresh mail nor mail that is due keeps the other out. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { DELIVERED, fakeTransport } from '../../../test/support/fake-transport.ts'
import { seededEngine, seedQueue } from '../../../test/support/seed-queue.ts'
import { eventually } from '../../../test/support/service.ts'
import { openNewSqlite } from '../../../test/support/stores.ts'
import type { Delivery, Reservation } from './contract.ts'

const [FRESH_BELOW, CROWDED_ABOVE, FRESH_PER_LANE] = [4_000, 2_500, 100]
const seedOf = (recipientDomain: string, count: number, dueAt: number) => ({
  accountId: 'a',
  domainId: 'd',
  recipientDomain,
  count,
  dueAt,
})
const key = (recipient_domain: string) => ({ domain_id: 'd', recipient_domain })
const laneName = (n: number) => `lane${n}.example`

/** An engine that has delivered one message over each of `count` lanes. */
async function startWithLanes(t: TestContext, count: number) {
  const store = await openNewSqlite(t)
  t.after(() => store.close())
  const clock = createTestClock()
  const transport = fakeTransport(2, async () => DELIVERED)
  const engine = seededEngine(store, clock, transport)
  t.after(() => engine.stop(0))
  await engine.start()
  for (let n = 0; n < count; n++) await seedQueue(store, seedOf(laneName(n), 1, clock.now() - 1))
  engine.wake()
  await eventually('one message over each lane', async () => {
    const ended = engine.lanes().filter(({ running, waiting }) => running + waiting === 0)
    return transport.attempts.length === count && ended.length === count
  })
  return { store, clock, transport, engine }
}

function reserveAll(engine: Delivery, recipientDomain: string): Reservation[] {
  const slots: Reservation[] = []
  for (;;) {
    const slot = engine.reserve(key(recipientDomain))
    if (!slot) return slots
    slots.push(slot)
  }
}

test('fresh mail leaves slots for mail that is due', async (t) => {
  const lanes = FRESH_BELOW / FRESH_PER_LANE + 5
  const { store, clock, transport, engine } = await startWithLanes(t, lanes)
  const slots = Array.from({ length: lanes }, (_, n) => reserveAll(engine, laneName(n))).flat()
  assert.equal(slots.length, FRESH_BELOW)
  await seedQueue(store, seedOf('due.example', 600, clock.now() - 1))
  engine.inserted([key('due.example')])
  await eventually('all that is due', async () => {
    await clock.advance(100)
    return transport.attempts.length === lanes + 600
  })
  for (const slot of slots) slot.cancel()
})

test('a stalled lane takes one delivery of fresh mail once half of the bound is in use', async (t) => {
  const lanes = CROWDED_ABOVE / FRESH_PER_LANE + 2
  const { clock, engine } = await startWithLanes(t, lanes)
  await clock.advance(11_000)
  const slots = Array.from({ length: lanes }, (_, n) => reserveAll(engine, laneName(n)))
  assert.deepEqual(
    slots.map(({ length }) => length),
    [...Array.from({ length: lanes - 2 }, () => FRESH_PER_LANE), 1, 1],
  )
  for (const slot of slots.flat()) slot.cancel()
})
