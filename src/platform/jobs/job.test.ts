// Both databases: a job is claimed with row locks on PostgreSQL.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import pino from 'pino'
import { createTestClock } from '../../../test/support/clock.ts'
import { eventually } from '../../../test/support/service.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { ChangeHub } from '../../base/changes.ts'
import type { Store } from '../store/store.ts'
import { createJob, createJobRunner, type JobContext, type JobSpec } from './job.ts'

const log = pino({ level: 'silent' })
const NO_STORE = null as unknown as Store

function contextOf(
  store: Store,
  owner = 'a',
  clock = createTestClock(),
): JobContext & { clock: typeof clock } {
  return { store, clock, log, random: () => 0, owner }
}

/** A job of this process whose work is given by `results`, one for each step, then nothing. */
function steps(results: (Awaited<ReturnType<JobSpec['work']>> | Error)[], more: Partial<JobSpec> = {}) {
  let runs = 0
  const job = createJob({
    name: 'test',
    everyMs: 1000,
    scope: 'process',
    async work() {
      const result = results[runs++]
      if (result instanceof Error) throw result
      return result
    },
    ...more,
  })
  return { job, runs: () => runs }
}

test('work runs at the start, by the clock and when woken, one run at a time, and after a failure', async () => {
  const context = contextOf(NO_STORE)
  const { clock } = context
  const { job, runs } = steps([new Error('fails once')])
  job.wake()
  assert.equal(runs(), 0, 'not before the start')
  job.start(context)
  job.wake()
  await clock.advance(0)
  assert.equal(runs(), 2, 'woken during a run: once more')
  await clock.advance(1000)
  assert.equal(runs(), 3)
  await job.stop()
  job.wake()
  await clock.advance(5000)
  assert.equal(runs(), 3)
})

test('steps follow at once while there is more; a run may name an earlier time for the next', async () => {
  const context = contextOf(NO_STORE)
  const { clock } = context
  const { job, runs } = steps(['more', 'more', { againInMs: 100 }])
  job.start(context)
  await clock.advance(0)
  assert.equal(runs(), 3)
  await clock.advance(100)
  assert.equal(runs(), 4)
  await clock.advance(999)
  assert.equal(runs(), 4)
  await job.stop()
})

test('a failed run is repeated after its own wait and stands in the report until one succeeds', async () => {
  const context = contextOf(NO_STORE)
  const { clock } = context
  const { job, runs } = steps([new Error('no disk')], { retryMs: 10 })
  job.start(context)
  await clock.advance(0)
  const failed = await job.report()
  assert.equal(failed.lastError, 'no disk')
  assert.equal(failed.lastStartedAt, Math.floor(clock.now()))
  await clock.advance(10)
  assert.equal(runs(), 2)
  assert.equal((await job.report()).lastError, null)
  await job.stop()
})

test('of failures in a row the first is logged', async () => {
  const lines: string[] = []
  const context = { ...contextOf(NO_STORE), log: pino({}, { write: (line) => void lines.push(line) }) }
  const { job } = steps([new Error('away'), new Error('away'), undefined, new Error('away')], { everyMs: 10 })
  job.start(context)
  await (context.clock as ReturnType<typeof createTestClock>).advance(40)
  assert.equal(lines.filter((line) => line.includes('a job failed')).length, 2)
  await job.stop()
})

test('a stop aborts the run in progress and waits for it', async () => {
  const context = contextOf(NO_STORE)
  let ended = false
  const job = createJob({
    name: 'test',
    everyMs: 1000,
    scope: 'process',
    async work(signal) {
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      ended = true
    },
  })
  job.start(context)
  await job.stop()
  assert.ok(ended)
})

test('two jobs of one name are refused', () => {
  const runner = createJobRunner(contextOf(NO_STORE))
  const { job } = steps([])
  runner.add([job])
  assert.throws(() => runner.add([steps([]).job]), /two jobs named "test"/)
})

test('returned leases wake the jobs that claim, and no others', async () => {
  const context = contextOf({ changes: new ChangeHub() } as unknown as Store)
  const own = steps([])
  const claiming = steps([], { name: 'claiming', scope: 'claims' })
  const runner = createJobRunner(context)
  runner.add([own.job, claiming.job])
  runner.start()
  await context.clock.advance(0)
  assert.deepEqual([own.runs(), claiming.runs()], [1, 1])
  runner.leasesReturned()
  await context.clock.advance(0)
  assert.deepEqual([own.runs(), claiming.runs()], [1, 2])
  await runner.stop()
})

/** A job of the database; `runs` counts over all processes. */
function shared(runs: { count: number }, during?: (signal: AbortSignal) => Promise<void>) {
  return createJob({
    name: 'shared',
    everyMs: 3_600_000,
    scope: 'database',
    async work(signal) {
      runs.count++
      await during?.(signal)
    },
  })
}

eachStore('the next run of a job of the database is kept over restarts', async (store) => {
  const clock = createTestClock()
  const runs = { count: 0 }
  const first = shared(runs)
  first.start(contextOf(store, 'a', clock))
  await eventually('the first run', async () => (await first.report()).lastEndedAt !== null)
  await first.stop()
  await clock.advance(1_800_000)
  const second = shared(runs)
  const looked = Promise.withResolvers<void>()
  const watched: Store = {
    ...store,
    read: (statement) => store.read(statement).finally(looked.resolve),
  }
  second.start(contextOf(watched, 'b', clock))
  await looked.promise
  await clock.advance(1_799_000)
  assert.equal(runs.count, 1)
  await eventually('the second run', async () => {
    await clock.advance(1_000)
    return runs.count === 2
  })
  await second.stop()
})

eachStore('a wake-up runs a job of the database before it is due', async (store) => {
  const runs = { count: 0 }
  const job = shared(runs)
  job.start(contextOf(store))
  await eventually('the first run', async () => (await job.report()).lastEndedAt !== null)
  job.wake()
  await eventually('the second run', async () => runs.count === 2)
  await job.stop()
})

eachStore(
  'of two processes one runs a job of the database; it passes to the other when the first is lost',
  async (store) => {
    if (store.kind === 'sqlite') return // one process has the database
    const clock = createTestClock()
    const runs = { count: 0 }
    let lost: AbortSignal | null = null
    const stuck = shared(runs, async (signal) => {
      lost = signal
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
    })
    // A process that stands still: its timers do not fire.
    stuck.start(contextOf(store, 'a', createTestClock()))
    await eventually('the first run', async () => lost !== null)
    const other = shared(runs)
    other.start(contextOf(store, 'b', clock))
    await clock.advance(59_000)
    assert.equal(runs.count, 1)
    assert.equal((await other.report()).running, true)
    await eventually('the run of the other', async () => {
      await clock.advance(5_000)
      return runs.count === 2
    })
    await eventually('its end', async () => (await other.report()).lastEndedAt !== null)
    await Promise.all([stuck.stop(), other.stop()])
  },
)

test('a wake-up does not put off a run that was due earlier', async () => {
  const context = contextOf(NO_STORE)
  const { clock } = context
  const { job, runs } = steps([{ againInMs: 100 }])
  job.start(context)
  await clock.advance(50)
  job.wake()
  await clock.advance(0)
  assert.equal(runs(), 2)
  await clock.advance(50)
  assert.equal(runs(), 3)
  await job.stop()
})

eachStore('a renewal that is answered after the end of the run does not keep the lease', async (store) => {
  const clock = createTestClock()
  const renewal = Promise.withResolvers<void>()
  const work = Promise.withResolvers<void>()
  let isRenewing = false
  const slow: Store = {
    ...store,
    async commit(unit, place) {
      const results = await store.commit(unit, place)
      if (/^UPDATE jobs SET lease_until/.test(unit[0]?.sql ?? '')) {
        isRenewing = true
        await renewal.promise
      }
      return results
    },
  }
  const runs = { count: 0 }
  const job = shared(runs, () => work.promise)
  job.start(contextOf(slow, 'a', clock))
  await eventually('the run', async () => runs.count === 1)
  await clock.advance(20_000)
  await eventually('the renewal', async () => isRenewing)
  work.resolve()
  await eventually('the end', async () => (await job.report()).lastEndedAt !== null)
  renewal.resolve()
  for (let minutes = 0; minutes < 3; minutes++) await clock.advance(60_000)
  assert.equal((await job.report()).running, false)
  await eventually('the second run', async () => {
    await clock.advance(600_000)
    return runs.count === 2
  })
  await job.stop()
})

eachStore('a next run further ahead than the interval is due: a clock was wrong', async (store) => {
  const runs = { count: 0 }
  const first = shared(runs)
  first.start(contextOf(store, 'a', createTestClock(Date.UTC(2036, 0, 1))))
  await eventually('the first run', async () => (await first.report()).lastEndedAt !== null)
  await first.stop()
  const second = shared(runs)
  second.start(contextOf(store, 'b', createTestClock(Date.UTC(2026, 0, 1))))
  await eventually('the second run', async () => runs.count === 2)
  await second.stop()
})

eachStore('a run that a stop cuts short is due at the next start', async (store) => {
  const runs = { count: 0 }
  const first = shared(
    runs,
    (signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve())),
  )
  const clock = createTestClock()
  first.start(contextOf(store, 'a', clock))
  await eventually('the first run', async () => runs.count === 1)
  await first.stop()
  const second = shared(runs)
  second.start(contextOf(store, 'b', clock))
  await eventually('the second run', async () => runs.count === 2)
  await second.stop()
})

eachStore('a lease that another process took aborts the run', async (store) => {
  const clock = createTestClock()
  let signal: AbortSignal | null = null
  const job = shared({ count: 0 }, async (given) => {
    signal = given
    await new Promise((resolve) => given.addEventListener('abort', resolve))
  })
  job.start(contextOf(store, 'a', clock))
  await eventually('the run', async () => signal !== null)
  await store.commit([{ sql: "UPDATE jobs SET lease_owner = 'b'", values: [] }])
  await eventually('the abort', async () => {
    await clock.advance(20_000)
    return (signal as AbortSignal | null)?.aborted
  })
  await job.stop()
  const row = await store.db.selectFrom('jobs').selectAll().executeTakeFirstOrThrow()
  assert.equal(row.lease_owner, 'b', 'what the other holds stays')
})
