import assert from 'node:assert/strict'
import { createTestClock, type TestClock } from '../../../test/support/clock.ts'
import { eachStore } from '../../../test/support/stores.ts'
import type { Allowed } from '../../delivery/contract.ts'
import { insert, type Store } from '../../store/store.ts'
import { openAddresses } from '../known-addresses.ts'
import { createAllowances, type WarmupAllowances } from './allowances.ts'
import { HOUR_MS, newWarmup } from './plan.ts'

const IP = '192.0.2.1'
const PLAN = [1_000, 650_000]
const FIRST_HOUR = 42
const LAST_HOUR = 27_084

/** Starts in the middle of an hour. */
const newClock = () => createTestClock(Date.UTC(2026, 5, 1, 12, 30))

async function start(store: Store, clock: TestClock, stage = 1): Promise<void> {
  await store.commit([insert('ip_warmups', { ...newWarmup(IP, 'first', 0, clock.now()), stage })])
}

/** As one process has it. */
async function processOf(store: Store, clock: TestClock): Promise<WarmupAllowances> {
  const config = {
    sourceAddresses: [{ ip: IP, shared: false, helo: null }],
    requireFcrdns: false,
    delivery: { kind: 'direct' as const },
  }
  const known = await openAddresses(store, clock, config, 'first')
  return createAllowances({ store, clock, plan: PLAN, book: known.book })
}

async function takeAll(process: WarmupAllowances, upTo = Number.POSITIVE_INFINITY): Promise<Allowed[]> {
  const taken: Allowed[] = []
  while (taken.length < upTo) {
    const one = await process.take(IP)
    assert.ok(one !== undefined)
    if (one === null) break
    taken.push(one)
  }
  return taken
}

const rowOf = (store: Store) => store.db.selectFrom('ip_warmups').selectAll().executeTakeFirstOrThrow()

eachStore('an hour has its number of messages, and what no server got is given back', async (store) => {
  const clock = newClock()
  await start(store, clock)
  const process = await processOf(store, clock)
  assert.equal(process.take('192.0.2.9'), undefined, 'not on warm-up')
  const taken = await takeAll(process)
  assert.equal(taken.length, FIRST_HOUR)
  assert.equal(process.hasRoom(IP), false)
  taken[0]?.giveBack()
  taken[0]?.giveBack()
  assert.equal(process.hasRoom(IP), true)
  assert.equal((await takeAll(process)).length, 1, 'once')
  await clock.advance(30 * 60_000 - 1)
  assert.equal(process.hasRoom(IP), false)
  await clock.advance(1)
  assert.equal((await takeAll(process)).length, FIRST_HOUR, 'the next hour')
})

eachStore('24 hours have the limit of the stage, whatever the hours would have', async (store) => {
  const clock = newClock()
  await start(store, clock)
  const process = await processOf(store, clock)
  let sent = 0
  for (let hour = 0; hour < 24; hour++) {
    sent += (await takeAll(process)).length
    await process.flush()
    await clock.advance(HOUR_MS - (hour === 23 ? 1 : 0))
  }
  assert.equal(sent, 1_000)
  assert.equal(Number((await rowOf(store)).window_used), 1_000)
  assert.equal((await takeAll(process)).length, 0)
  await clock.advance(1)
  assert.equal((await takeAll(process)).length, 0, 'until the stage is judged')
})

eachStore(
  'the count survives a restart: a clean one loses nothing, a crash never sends more',
  async (store) => {
    const clock = newClock()
    await start(store, clock, 2)
    const first = await processOf(store, clock)
    await takeAll(first, 1_000)
    await first.close()
    assert.equal(Number((await rowOf(store)).hour_used), 1_000)
    const crashed = await processOf(store, clock)
    await takeAll(crashed, 1_000)
    const last = await processOf(store, clock)
    const rest = (await takeAll(last)).length
    assert.ok(rest <= LAST_HOUR - 2_000 && rest > (LAST_HOUR - 2_000) * 0.98, `${rest}`)
  },
)

eachStore('processes share the hour, and leave less than 2 % of it unused', async (store) => {
  const clock = newClock()
  await start(store, clock, 2)
  const processes = [
    await processOf(store, clock),
    await processOf(store, clock),
    await processOf(store, clock),
  ]
  // One stops early, with something left.
  const counts = await Promise.all(
    processes.map(async (process, at) => (await takeAll(process, at === 0 ? 5_001 : undefined)).length),
  )
  const sent = counts.reduce((total, count) => total + count, 0)
  assert.ok(sent <= LAST_HOUR, `${sent}`)
  assert.ok(sent > LAST_HOUR * 0.98, `${sent} of ${LAST_HOUR}`)
  // What it has left is of use to the 24 hours.
  await clock.advance(HOUR_MS)
  for (const process of processes) await process.flush()
  assert.equal(Number((await rowOf(store)).window_used), sent)
})

eachStore('what waits is spread over the hours that have room', async (store) => {
  const clock = newClock()
  await start(store, clock)
  const process = await processOf(store, clock)
  const next = Math.floor(clock.now() / HOUR_MS) * HOUR_MS + HOUR_MS
  const hours = Array.from({ length: 3 * FIRST_HOUR }, () => (process.nextFree(IP) - next) / HOUR_MS)
  assert.deepEqual(
    [...Map.groupBy(hours, (hour) => hour)].map(([hour, all]) => [hour, all.length]),
    [
      [0, FIRST_HOUR],
      [1, FIRST_HOUR],
      [2, FIRST_HOUR],
    ],
  )
  for (let n = 0; n < 30 * FIRST_HOUR; n++) process.nextFree(IP)
  assert.equal(process.nextFree(IP), next + 23 * HOUR_MS, 'a day ahead at the most')
})

eachStore('what is kept away is counted for the hour', async (store) => {
  const clock = newClock()
  await start(store, clock)
  const process = await processOf(store, clock)
  const used = (await takeAll(process)).length
  for (let n = 0; n < 58; n++) process.diverted(IP)
  await process.flush()
  await process.flush()
  const row = await rowOf(store)
  assert.deepEqual([used, Number(row.hour_used), Number(row.hour_diverted)], [FIRST_HOUR, FIRST_HOUR, 58])
})
