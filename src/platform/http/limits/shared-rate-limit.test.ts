/** Limiters of several processes over one PostgreSQL, with a clock of the test's own. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { ManualClock } from '../../../../test/support/http-server.ts'
import { createTestDatabase } from '../../../../test/support/postgres.ts'
import { eventually } from '../../../../test/support/service.ts'
import { openPostgres } from '../../store/postgres/postgres.ts'
import { ownLeaseTimes } from '../../store/store.ts'
import { DEFAULT_LIMITS, type LimitName } from './rate-limit.ts'
import { createSharedRateLimiter, createTokenLeases, type SharedLimiter } from './shared-rate-limit.ts'

const RATE = 100
const SECOND_MS = 1_000
const STEP_MS = 10

async function start(t: TestContext, limits = DEFAULT_LIMITS) {
  const database = await createTestDatabase()
  const store = await openPostgres(database.url, { leaseTimes: ownLeaseTimes })
  t.after(async () => {
    await store.close()
    await database.drop()
  })
  const clock = new ManualClock()
  const leases = createTokenLeases(store, clock)
  const counted = { exchanges: 0, last: Promise.resolve<unknown>(null) }
  const limiter = (): SharedLimiter =>
    createSharedRateLimiter({
      clock,
      limits,
      exchange(requests) {
        counted.exchanges++
        const answer = leases(requests)
        counted.last = answer
        return answer
      },
    })
  const row = async () => {
    const [found] = await store.read({ sql: 'SELECT tokens, leased FROM rate_buckets', values: [] })
    return [found?.['tokens'], found?.['leased']]
  }
  return { clock, limiter, counted, row, store }
}

/** How many of so many requests at once pass. */
async function passed(
  limiter: SharedLimiter,
  requests: number,
  limit: LimitName = 'sending',
): Promise<number> {
  const grants = await Promise.all(Array.from({ length: requests }, () => limiter.take(limit, 'account')))
  return grants.filter((grant) => grant?.allowed).length
}

function assertNear(count: number, expected: number): void {
  const off = Math.abs(count - expected) / expected
  assert.ok(off <= 0.02, `${count} instead of ${expected}`)
}

const LOADS: [what: string, perStep: readonly number[]][] = [
  ['two processes under the same load', [5, 5]],
  ['one process alone', [5, 0]],
  ['unequal processes', [20, 1]],
  ['four processes', [3, 3, 3, 3]],
]
for (const [what, perStep] of LOADS) {
  test(`together they stay within the rate: ${what}`, async (t) => {
    const { clock, limiter } = await start(t)
    const limiters = perStep.map(limiter)
    let count = 0
    const seconds = 4
    for (let ms = 0; ms < seconds * SECOND_MS; ms += STEP_MS) {
      const counts = await Promise.all(limiters.map((one, at) => passed(one, perStep[at] as number)))
      count += counts.reduce((sum, of) => sum + of, 0)
      clock.advance(STEP_MS)
    }
    // The bucket was full at the beginning.
    assertNear(count, RATE + RATE * seconds)
  })
}

test('a burst in several processes at once has one bucket', async (t) => {
  const { limiter } = await start(t)
  const counts = await Promise.all([limiter(), limiter()].map((one) => passed(one, 300)))
  assertNear(
    counts.reduce((sum, of) => sum + of, 0),
    RATE,
  )
})

test('far below the limit few requests have an exchange, and almost none waits', async (t) => {
  const limits = { ...DEFAULT_LIMITS, sending: { count: 5_000, windowMs: SECOND_MS } }
  const { clock, limiter, counted } = await start(t, limits)
  const one = limiter()
  let waited = 0
  for (let ms = 0; ms < SECOND_MS; ms += STEP_MS) {
    for (let at = 0; at < 10; at++) {
      const grant = one.take('sending', 'account')
      if (grant instanceof Promise) waited++
      assert.equal((await grant)?.allowed, true)
    }
    clock.advance(STEP_MS)
    // An exchange in the background begins, gets its answer, and applies it.
    for (let turn = 0; turn < 2; turn++) {
      await new Promise((resolve) => setImmediate(resolve))
      await counted.last
    }
  }
  assert.ok(counted.exchanges < 50, `${counted.exchanges} exchanges for 1000 requests`)
  assert.ok(waited < 50, `${waited} requests waited`)
})

test('the first request after a pause does not wait, and is paid later', async (t) => {
  const { limiter, clock, row } = await start(t)
  const grant = limiter().take('sending', 'account')
  assert.ok(!(grant instanceof Promise))
  assert.deepEqual([grant?.allowed, grant?.limit, grant?.remaining], [true, 100, 99])
  clock.advance(50)
  await until(async () => (await row())[0] === 99)
  assert.deepEqual(await row(), [99, 0])
})

test('what a process holds is returned when it is idle, and when it stops', async (t) => {
  const { limiter, clock, row } = await start(t)
  const one = limiter()
  const two = limiter()
  for (const each of [one, two]) {
    assert.equal(await passed(each, 20), 20)
    clock.advance(50)
  }
  await until(async () => Number((await row())[1]) > 0)
  await two.close()
  clock.advance(2 * SECOND_MS)
  clock.advance(SECOND_MS)
  await until(async () => (await row())[1] === 0)
})

test('leases of a killed process delay nobody for long', async (t) => {
  const { limiter, clock, row, store } = await start(t)
  await passed(limiter(), 20)
  clock.advance(50)
  await until(async () => Number((await row())[1]) > 0)
  await store.commit([{ sql: 'UPDATE rate_buckets SET leased = 50', values: [] }])
  clock.advance(11 * SECOND_MS)
  assertNear(await passed(limiter(), 300), RATE)
})

test('a cost above the bucket passes when it is full and is paid off; what is given back counts', async (t) => {
  const limits = { ...DEFAULT_LIMITS, 'sending-recipients': { count: 60, windowMs: 60 * SECOND_MS } }
  const { limiter, clock } = await start(t, limits)
  const one = limiter()
  const take = async (cost: number) => (await one.take('sending-recipients', 'a', cost))?.allowed
  assert.equal(await take(90), true)
  assert.equal(await take(1), false)
  clock.advance(30 * SECOND_MS)
  assert.equal(await take(1), false)
  clock.advance(SECOND_MS)
  assert.equal(await take(1), true)
  one.giveBack('sending-recipients', 'a', 1)
  assert.equal(await take(1), true)
  assert.equal(await take(1), false)
})

test('a count of 0 and the general switch lift the limit; a database that is away fails the request', async () => {
  const clock = new ManualClock()
  const exchange = () => Promise.reject(new Error('away'))
  const shared = createSharedRateLimiter({ clock, exchange })
  assert.equal(shared.take('sending-bytes', 'a', 1e9), undefined)
  assert.equal(createSharedRateLimiter({ clock, exchange, off: true }).take('sending', 'a'), undefined)
  await assert.rejects(async () => shared.take('domain-verify', 'a'), /away/)
  await shared.close()
})

const until = (look: () => Promise<boolean>) => eventually('exchanges in the background', look)
