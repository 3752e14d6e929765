import assert from 'node:assert/strict'
import { createTestClock, type TestClock } from '../../../../test/support/clock.ts'
import { eachStore } from '../../../../test/support/stores.ts'
import { HOUR_MS } from '../../../base/time/durations.ts'
import type { Allowed } from '../../../mail/deliver/contract.ts'
import { insert, type Store } from '../../../platform/store/store.ts'
import { openAddresses } from '../known-addresses.ts'
import { createAllowances, type WarmupAllowances } from './allowances.ts'
import { newProvider, newWarmup } from './plan.ts'

const IP = '192.0.2.1'
const SITE = 'one'
const PLAN = [1_000, 650_000]
const FIRST_HOUR = 42
const LAST_HOUR = 27_084

/** Starts in the middle of an hour. */
const newClock = () => createTestClock(Date.UTC(2026, 5, 1, 12, 30))

async function start(store: Store, clock: TestClock, stage = 1): Promise<void> {
  await store.commit([
    insert('ip_warmups', { ...newWarmup(IP, 'first', 0, clock.now()), stage }),
    insert('ip_warmup_providers', { ...newProvider(IP, SITE, clock.now()), stage }),
  ])
}

/** As one process has it. */
async function processOf(store: Store, clock: TestClock): Promise<WarmupAllowances> {
  const config = {
    sourceAddresses: [{ ip: IP, shared: false, helo: null }],
    requireFcrdns: 'off' as const,
    delivery: { kind: 'direct' as const },
  }
  const known = await openAddresses(store, clock, config, 'first')
  return createAllowances({ store, clock, plan: PLAN, book: known.book, providerOf: (site) => site })
}

async function takeAll(
  process: WarmupAllowances,
  upTo = Number.POSITIVE_INFINITY,
  site = SITE,
): Promise<Allowed[]> {
  const taken: Allowed[] = []
  while (taken.length < upTo) {
    const one = await process.take(IP, site)
    assert.ok(one !== undefined)
    if (one === null) break
    taken.push(one)
  }
  return taken
}

const rowOf = (store: Store) => store.db.selectFrom('ip_warmups').selectAll().executeTakeFirstOrThrow()
const providerOf = (store: Store, provider: string) =>
  store.db
    .selectFrom('ip_warmup_providers')
    .selectAll()
    .where('provider', '=', provider)
    .executeTakeFirstOrThrow()

eachStore('an hour has its number of messages, and what no server got is given back', async (store) => {
  const clock = newClock()
  await start(store, clock)
  const process = await processOf(store, clock)
  assert.equal(process.take('192.0.2.9', SITE), undefined, 'not on warm-up')
  const taken = await takeAll(process)
  assert.equal(taken.length, FIRST_HOUR)
  assert.equal(process.hasRoom(IP, SITE), false)
  taken[0]?.giveBack()
  taken[0]?.giveBack()
  assert.equal(process.hasRoom(IP, SITE), true)
  assert.equal((await takeAll(process)).length, 1, 'once')
  await clock.advance(30 * 60_000 - 1)
  assert.equal(process.hasRoom(IP, SITE), false)
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
  for (let n = 0; n < 2 * FIRST_HOUR; n++)
    assert.equal(process.nextFree(IP, SITE, next), next, 'what ends before the hour takes no room')
  const hours = Array.from(
    { length: 3 * FIRST_HOUR },
    () => (process.nextFree(IP, SITE, Number.POSITIVE_INFINITY) - next) / HOUR_MS,
  )
  assert.deepEqual(
    [...Map.groupBy(hours, (hour) => hour)].map(([hour, all]) => [hour, all.length]),
    [
      [0, FIRST_HOUR],
      [1, FIRST_HOUR],
      [2, FIRST_HOUR],
    ],
  )
  for (let n = 0; n < 30 * FIRST_HOUR; n++) process.nextFree(IP, SITE, Number.POSITIVE_INFINITY)
  assert.equal(
    process.nextFree(IP, SITE, Number.POSITIVE_INFINITY),
    next + 23 * HOUR_MS,
    'a day ahead at the most',
  )
})

eachStore('what is kept away is counted for the hour', async (store) => {
  const clock = newClock()
  await start(store, clock)
  const process = await processOf(store, clock)
  const used = (await takeAll(process)).length
  for (let n = 0; n < 58; n++) process.diverted(IP, SITE)
  await process.flush()
  await process.flush()
  const row = await rowOf(store)
  assert.deepEqual([used, Number(row.hour_used), Number(row.hour_diverted)], [FIRST_HOUR, FIRST_HOUR, 58])
})

eachStore('a provider keeps its part of half an hour for itself, also over processes', async (store) => {
  const clock = newClock()
  await start(store, clock)
  const [process, another] = [await processOf(store, clock), await processOf(store, clock)]
  assert.equal((await takeAll(process)).length, FIRST_HOUR, 'alone it may take all')
  assert.equal((await takeAll(process, 1, 'two')).length, 0)
  assert.deepEqual([process.hasRoom(IP, 'two'), process.hasRoom(IP, null)], [false, false])
  for (let n = 0; n < FIRST_HOUR; n++) process.diverted(IP, 'two')
  await process.flush()

  await clock.advance(HOUR_MS)
  // The half of an hour is 21, and of W messages that were wanted, 42 are those of the other: 21 * 42 / W are kept.
  const own = (await takeAll(process)).length + (await takeAll(another)).length
  assert.equal(own, 35)
  assert.deepEqual([process.hasRoom(IP, SITE), process.hasRoom(IP, null)], [false, true])
  assert.equal((await takeAll(another, 100, 'two')).length, FIRST_HOUR - own)
  assert.equal((await takeAll(process, 100, 'three')).length, 0, 'the hour is used up')
  const { hour_used, window_used, window_diverted } = await providerOf(store, 'two')
  assert.deepEqual([hour_used, window_used, window_diverted].map(Number), [7, 7, FIRST_HOUR])
  assert.equal(Number((await rowOf(store)).hour_used), FIRST_HOUR)
})

eachStore('a provider that is new to the address begins with the first stage', async (store) => {
  const clock = newClock()
  await start(store, clock, 2)
  const process = await processOf(store, clock)
  assert.equal((await takeAll(process, 1_000)).length, 1_000)
  const first = await takeAll(process, 1_000, 'new')
  assert.equal(first.length, FIRST_HOUR)
  first[0]?.giveBack()
  await process.close()
  assert.equal(Number((await providerOf(store, 'new')).window_used), FIRST_HOUR - 1)
  assert.equal(Number((await rowOf(store)).window_used), 1_000 + FIRST_HOUR - 1)
})

eachStore('a cancelled warm-up gets no new rows', async (store) => {
  const clock = newClock()
  await start(store, clock)
  const process = await processOf(store, clock)
  for (const table of ['ip_warmups', 'ip_warmup_providers'] as const)
    await store.db.deleteFrom(table).execute()
  process.diverted(IP, 'two')
  assert.equal((await takeAll(process, 1, 'two')).length, 0)
  await process.flush()
  assert.deepEqual(await store.db.selectFrom('ip_warmup_providers').selectAll().execute(), [])
})
