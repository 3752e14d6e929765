// Both databases: a post is claimed with row locks on PostgreSQL.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pino from 'pino'
import { createTestClock, type TestClock } from '../../../test/support/clock.ts'
import { createReceiver, type Receiver } from '../../../test/support/http-receiver.ts'
import { createTestDatabase } from '../../../test/support/postgres.ts'
import { eventually } from '../../../test/support/service.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { parseCidr } from '../../base/net/ip.ts'
import { systemClock } from '../../base/time/clock.ts'
import { openPostgres } from '../store/postgres/postgres.ts'
import { ownLeaseTimes, type Store } from '../store/store.ts'
import { createHttpClient, type HttpOutcome } from './http-client.ts'
import { type Attempt, conclude, type PostKind } from './post-attempts.ts'
import { createPostQueue } from './post-queue.ts'
import { LANE_LEASE_MS, laneOf } from './post-rows.ts'

const MINUTE = 60_000
const SCHEDULE = [5, 10].map((minutes) => minutes * MINUTE)
const LOOPBACK = [parseCidr('127.0.0.0/8')].flatMap((cidr) => cidr ?? [])
/** Polls of `until`, each with a moment of real time for the network and the database. */
const POLLS = 400
const log = pino({ level: 'silent' })

const answered = (status: number): HttpOutcome => ({
  kind: 'answered',
  retryAfter: '',
  status,
  reason: '',
  contentType: '',
  body: Buffer.alloc(0),
  durationMs: 1,
})

test('2xx ends a row, 406 gives up at once, everything else follows the retry schedule to its end', () => {
  const schedule = [5, 10, 15, 60, 120, 240].map((minutes) => minutes * MINUTE)
  const end = (attempts: number, outcome: HttpOutcome) => {
    const { status, nextAttemptAt, number } = conclude(
      attempts,
      outcome,
      { retryScheduleMs: schedule },
      1_000,
    )
    return [status, nextAttemptAt === null ? null : (nextAttemptAt - 1_000) / MINUTE, number]
  }
  for (const status of [200, 201, 202, 204, 299]) assert.deepEqual(end(0, answered(status)), ['ok', null, 1])
  assert.deepEqual(end(0, answered(406)), ['given-up', null, 1])
  for (const status of [100, 301, 302, 400, 401, 404, 410, 429, 500, 503]) {
    assert.deepEqual(end(0, answered(status)), ['failing', 5, 1], String(status))
  }
  const broken: HttpOutcome = { kind: 'failed', why: 'connection refused', durationMs: 1 }
  const refused: HttpOutcome = { kind: 'refused', why: 'address not allowed', durationMs: 0 }
  for (const outcome of [broken, refused]) {
    const waits = schedule.map((_wait, attempts) => end(attempts, outcome)[1])
    assert.deepEqual(waits, [5, 10, 15, 60, 120, 240])
    assert.deepEqual(end(6, outcome), ['given-up', null, 7])
  }
})

test('a kind may find a refusal in the body of a 2xx, which is retried like any failure', () => {
  const prepared = {
    retryScheduleMs: [5],
    refusalIn: (body: Buffer) => (body.includes('no') ? 'it said no' : null),
  }
  const end = (attempts: number, body: string) => {
    const outcome = { ...answered(200), body: Buffer.from(body) } as HttpOutcome
    const { status, refusal, nextAttemptAt } = conclude(attempts, outcome, prepared, 1_000)
    return [status, refusal, nextAttemptAt]
  }
  assert.deepEqual(end(0, 'yes'), ['ok', null, null])
  assert.deepEqual(end(0, 'no'), ['failing', 'it said no', 1_005])
  assert.deepEqual(end(1, 'no'), ['given-up', 'it said no', null])
})

interface Rig {
  clock: TestClock
  attempts: { subject: string; attempt: Attempt }[]
  queue: ReturnType<typeof createPostQueue>
  /** Commits rows for this URL. */
  post(url: string, ...subjects: string[]): Promise<void>
  /** Advances the clock until `done`, by at most `withinMs`. */
  until(condition: string, done: () => boolean | Promise<boolean>, withinMs?: number): Promise<void>
  waiting(): Promise<number>
}

/** A queue with one kind, whose body is the subject, on a manual clock. */
async function rig(
  t: TestContext,
  store: Store,
  options: { clock?: TestClock; kind?: Partial<PostKind>; owner?: string } = {},
): Promise<Rig> {
  const clock = options.clock ?? createTestClock()
  // Real time for the network: the test clock jumps.
  const client = createHttpClient({ resolve: async () => [], allow: LOOPBACK, clock: systemClock })
  const attempts: Rig['attempts'] = []
  const kind: PostKind = {
    prepare: async (row) => ({
      headers: { 'content-type': 'text/plain' },
      body: Buffer.from(row.subject),
      retryScheduleMs: SCHEDULE,
      record: (attempt) => {
        attempts.push({ subject: row.subject, attempt })
        return []
      },
    }),
    ...options.kind,
  }
  const queue = createPostQueue({
    tracing: undefined,
    isOff: false,
    store,
    client,
    clock,
    log,
    owner: options.owner ?? 'one',
  })
  queue.addKind('test', kind)
  t.after(async () => {
    client.close()
    const stopped = queue.stop(1_000)
    await clock.advance(1_000)
    await stopped
  })
  await queue.start()
  const until: Rig['until'] = async (condition, done, withinMs = 20 * MINUTE) => {
    const end = clock.now() + withinMs
    const step = Math.max(5, withinMs / POLLS)
    while (!(await done())) {
      if (clock.now() >= end) throw new Error(`not within ${withinMs} ms: ${condition}`)
      await clock.advance(Math.min(step, end - clock.now()))
      await sleep(2)
    }
  }
  return {
    clock,
    attempts,
    queue,
    until,
    async post(url, ...subjects) {
      const lane = laneOf(url)
      await store.commit(
        queue.statements(subjects.map((subject) => ({ kind: 'test', accountId: 'a', url, lane, subject }))),
      )
    },
    async waiting() {
      const count = store.db.selectFrom('outgoing_posts').select((eb) => eb.fn.countAll<number>().as('n'))
      return Number((await count.executeTakeFirstOrThrow()).n)
    },
  }
}

const bodies = (receiver: Receiver) => receiver.posts.map(({ raw }) => raw.toString())

eachStore(
  'a record that cannot be written by its own fault ends no lane, and nothing is posted twice',
  async (store, t) => {
    const receiver = await createReceiver()
    t.after(receiver.close)
    const kind: PostKind = {
      prepare: async ({ subject }) => ({
        headers: {},
        body: Buffer.from(subject),
        retryScheduleMs: [],
        record: () =>
          subject === 'bad' ? [{ sql: 'INSERT INTO no_such_table VALUES (1)', values: [] }] : [],
      }),
    }
    const { post, until, waiting } = await rig(t, store, { kind })
    await post(receiver.url, 'bad', 'good')
    await until('nothing waits', async () => (await waiting()) === 0, MINUTE)
    assert.deepEqual(bodies(receiver).sort(), ['bad', 'good'])
  },
)

eachStore('a row is posted soon after its transaction, and removed after a 2xx', async (store, t) => {
  const receiver = await createReceiver()
  t.after(receiver.close)
  const one = await rig(t, store)
  await one.post(receiver.url, 'a', 'b', 'c')
  await one.until('three posts', async () => (await one.waiting()) === 0, 2_000)
  assert.deepEqual(bodies(receiver).sort(), ['a', 'b', 'c'])
})

eachStore(
  'a refused row is retried by its schedule, then dropped; 406 drops it at once',
  async (store, t) => {
    const receiver = await createReceiver({ answer: 500 })
    const stopping = await createReceiver({ answer: 406 })
    t.after(() => Promise.all([receiver.close(), stopping.close()]))
    const one = await rig(t, store)
    await one.post(receiver.url, 'failing')
    await one.post(stopping.url, 'unwanted')
    await one.until('first attempts', () => one.attempts.length === 2, 5_000)
    for (const [index, wait] of SCHEDULE.entries()) {
      await one.clock.advance(wait - 10_000)
      assert.equal(receiver.posts.length, index + 1)
      await one.until('the next attempt', () => one.attempts.length === index + 3, MINUTE)
    }
    await one.until('the end', async () => (await one.waiting()) === 0, MINUTE)
    assert.deepEqual(
      one.attempts.map(({ subject, attempt }) => `${subject} ${attempt.number} ${attempt.status}`).sort(),
      ['failing 1 failing', 'failing 2 failing', 'failing 3 given-up', 'unwanted 1 given-up'],
    )
  },
)

eachStore('one URL gets at most ten at a time, and all of a long backlog', async (store, t) => {
  const held: (() => void)[] = []
  const receiver = await createReceiver({ answer: (response) => held.push(() => response.end()) })
  t.after(receiver.close)
  const one = await rig(t, store)
  const subjects = Array.from({ length: 130 }, (_none, n) => `n${n}`)
  await one.post(receiver.url, ...subjects)
  await one.until('ten at a time', () => held.length === 10, 5_000)
  receiver.answer = (response) => response.end()
  for (const release of held) release()
  await one.until('all of them', async () => (await one.waiting()) === 0)
  assert.equal(receiver.connections.peakPosts, 10)
  assert.deepEqual(bodies(receiver).sort(), subjects.sort())
})

const HOSTILE = 20
const ROWS_EACH = 5_000

eachStore(
  `${HOSTILE} endpoints that never answer, ${HOSTILE * ROWS_EACH} rows: a good one is not delayed (R38)`,
  async (store, t) => {
    const silent = await createReceiver({ host: '127.0.0.4', answer: () => {} })
    const good = await createReceiver({ host: '127.0.0.5' })
    t.after(() => Promise.all([silent.close(), good.close()]))
    const clock = createTestClock()
    const insert = `INSERT INTO outgoing_posts
    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${ROWS_EACH})
    SELECT 'hostile-' || ${'HOST'} || '-' || n, 'test', 'a', 'LANE', 'URL', 'x', 0, ${clock.now() - MINUTE}, 0 FROM numbers`
    for (let host = 0; host < HOSTILE; host++) {
      const url = `${silent.url}/${host}`
      const sql = insert.replace('HOST', String(host)).replace('LANE', laneOf(url)).replace('URL', url)
      await store.commit([{ sql, values: [] }])
    }
    const one = await rig(t, store, { clock })
    await one.until('all hostile endpoints are busy', () => silent.connections.open === HOSTILE * 10, 2_000)
    const subjects = Array.from({ length: 100 }, (_none, n) => `good${n}`)
    for (const subject of subjects) await one.post(good.url, subject)
    // None of the hostile requests ends meanwhile: they keep their slots all the time.
    await one.until('all good ones', () => good.posts.length === subjects.length, 2_000)
    assert.deepEqual(bodies(good).sort(), subjects.sort())
    assert.equal(silent.connections.open, HOSTILE * 10)
  },
)

eachStore('a row that is no longer wanted is dropped without a request', async (store, t) => {
  const receiver = await createReceiver()
  t.after(receiver.close)
  const one = await rig(t, store, { kind: { prepare: async () => null } })
  await one.post(receiver.url, 'gone')
  await one.until('the row is gone', async () => (await one.waiting()) === 0, 5_000)
  assert.equal(receiver.posts.length, 0)
})

eachStore('a row that fails inside the service does not block others, and is retried', async (store, t) => {
  const receiver = await createReceiver()
  t.after(receiver.close)
  let faults = 2
  const one = await rig(t, store, {
    kind: {
      async prepare({ subject }) {
        if (subject === 'broken' && faults-- > 0) throw new Error('cannot read it')
        return { headers: {}, body: Buffer.from(subject), retryScheduleMs: [], record: () => [] }
      },
    },
  })
  await one.post(receiver.url, 'broken', 'whole')
  await one.until('the whole one', () => receiver.posts.length === 1, 5_000)
  assert.deepEqual(bodies(receiver), ['whole'])
  await one.until('the other one', () => receiver.posts.length === 2)
})

eachStore('rows written or left by another process are found', async (store, t) => {
  const receiver = await createReceiver({ answer: () => {} })
  t.after(receiver.close)
  const clock = createTestClock()
  const first = await rig(t, store, { clock, owner: 'first' })
  await first.post(receiver.url, 'left')
  await first.until('the first process has it', () => receiver.posts.length === 1, 5_000)
  // It never restarts: its lane is free once the lease has expired, on SQLite at once.
  const stopped = first.queue.stop(1)
  await clock.advance(1)
  await stopped
  receiver.answer = 200
  const second = await rig(t, store, { clock, owner: 'second' })
  await second.until(
    'the second process has it',
    async () => (await second.waiting()) === 0,
    2 * LANE_LEASE_MS,
  )
  assert.deepEqual(bodies(receiver), ['left', 'left'])
})

test('two processes on one database never post to one URL at the same time', async (t) => {
  const database = await createTestDatabase()
  const store = await openPostgres(database.url, { leaseTimes: ownLeaseTimes })
  t.after(async () => {
    await store.close()
    await database.drop()
  })
  const held: (() => void)[] = []
  const receiver = await createReceiver({ answer: (response) => held.push(() => response.end()) })
  t.after(receiver.close)
  const clock = createTestClock()
  const first = await rig(t, store, { clock, owner: 'first' })
  const second = await rig(t, store, { clock, owner: 'second' })
  const subjects = Array.from({ length: 30 }, (_none, n) => `n${n}`)
  await first.post(receiver.url, ...subjects.slice(0, 15))
  await second.post(receiver.url, ...subjects.slice(15))
  // In small steps: a clock that jumps ends leases before the database can renew them.
  const passing = (what: string, done: () => Promise<boolean> | boolean) =>
    eventually(what, async () => {
      await clock.advance(50)
      return done()
    })
  await passing('ten are in flight', () => held.length === 10)
  await clock.advance(8_000) // several discoveries of both
  assert.equal(receiver.posts.length, 10)
  receiver.answer = 200
  for (const release of held) release()
  await passing('all are posted', async () => (await second.waiting()) === 0)
  assert.deepEqual(bodies(receiver).sort(), subjects.sort())
  assert.equal(receiver.connections.peakPosts, 10)
})

eachStore('an outcome under a lost lease changes nothing', async (store, t) => {
  let release = () => {}
  const receiver = await createReceiver({ answer: (response) => (release = () => response.end()) })
  t.after(receiver.close)
  const one = await rig(t, store)
  await one.post(receiver.url, 'contested')
  await one.until('it is in flight', () => receiver.posts.length === 1, 5_000)
  await store.db.updateTable('outgoing_leases').set({ token: 'stolen', owner: 'thief' }).execute()
  release()
  await one.until('the attempt has ended', () => one.attempts.length === 1, 5_000)
  assert.equal(await one.waiting(), 1)
})
