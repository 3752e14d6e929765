/**
 * The durable queue of POSTs: rows are the truth, each URL is a lane of its own.
 *
 * 1. `statements` gives the rows of POSTs for the transaction of what they tell, and notes that their lanes
 *    should be looked at soon: the rows are there once that transaction is committed.
 * 2. `discover` finds every lane with rows that are due: those of other processes, of earlier runs, retries.
 * 3. `serve` takes a lane's lease, reads some due rows and starts as many as the lane may run.
 * 4. An attempt is `prepare` (by the kind, afresh each time) -> POST -> `conclude` -> one transaction that ends
 *    or postpones the row and holds the kind's own record. It counts only under the lane's token.
 *
 * A lane runs at most LANE_MAX at a time in the whole cluster, since one process holds it. Lanes whose answers
 * take long share half of all places, so that any number of them leaves room for the quick ones. A process that
 * dies between the POST and its record repeats the POST: at least once, never lost.
 */
import type { Logger } from 'pino'
import type { Clock, Timer } from '../base/clock.ts'
import { PassingSet } from '../base/passing.ts'
import type { OutgoingPostRow } from '../store/schema.ts'
import { StaleWrite, type Statement, type Store } from '../store/store.ts'
import type { HttpClient, HttpOutcome } from './http-client.ts'
import { createPostRows, LANE_LEASE_MS, type NewPost, postStatements } from './post-rows.ts'

/** One kind of POST: what to send and what to write down. */
export interface PostKind {
  /** Built afresh for each attempt; null: what it tells about is gone or unwanted, the row is dropped. */
  prepare(row: OutgoingPostRow): Promise<PreparedPost | null>
}

export interface PreparedPost {
  /** What is called; the row's URL may be masked. Default: the row's. */
  url?: string
  headers: Readonly<Record<string, string>>
  body: Uint8Array
  /** Waits in milliseconds, each from the attempt before; empty: one attempt only. */
  retryScheduleMs: readonly number[]
  /** Statements that belong into the transaction of the attempt's end. */
  record(attempt: Attempt): Statement[]
}

/** How an attempt ended. `failing`: another follows at `nextAttemptAt`. */
export interface Attempt {
  number: number
  outcome: HttpOutcome
  status: 'ok' | 'failing' | 'given-up'
  nextAttemptAt: number | null
  at: number
}

export interface PostQueueParts {
  store: Store
  client: HttpClient
  clock: Clock
  log: Logger
  /** Names this process among those that share the database. */
  owner: string
  kinds: Readonly<Record<string, PostKind>>
}

export interface PostQueue {
  /** The rows of new POSTs, due at once. To be committed now or never. */
  statements(posts: readonly NewPost[]): Statement[]
  start(): Promise<void>
  /** Takes nothing new, waits for running attempts up to `drainMs`, gives the lanes back. */
  stop(drainMs: number): Promise<void>
}

/** webhooks.md rule 25. */
const LANE_MAX = 10
/** All lanes together: below what the client lets through, so that other requests pass beside a full queue. */
const TOTAL_MAX = 500
/** A lane is slow after an attempt that took this long; slow lanes share half of all places. */
const SLOW_MS = 2_000
const SLOW_TOTAL_MAX = TOTAL_MAX / 2
/** Rows of a lane in memory: some rounds of LANE_MAX. */
const FETCH_MAX = 50
/** Rows of other processes, and lanes of lost ones, are found this soon. */
const DISCOVER_EVERY_MS = 5_000
/** Looking takes a twentieth of the time, however many lanes there are, up to the longest wait between looks. */
const DISCOVER_SHARE = 20
const DISCOVER_MAX_MS = 30_000
/** When to look for a row that is about to be committed; later ones are found by discovery. */
const SOON_MS = [15, 60, 250, 1_000] as const
const RENEW_EVERY_MS = LANE_LEASE_MS / 3
/** A lane is worked on only with this much of its lease left: more than an attempt takes. */
const LEASE_LEFT_MIN_MS = 12_000
const STORE_RETRY_MS = 1_000
/** A row whose request could not be made, by a fault of ours, lets the others pass. */
const FAULT_RETRY_MS = 60_000
/** What the receiver says to stop for good, webhooks.md rule 21. */
const NEVER_AGAIN = 406

interface Lane {
  name: string
  waiting: OutgoingPostRow[]
  inFlight: PassingSet<string>
  lease: { token: string; until: number } | null
  slow: boolean
  serving: boolean
  /** Asked for while it was being served. */
  again: boolean
  /** More rows are due in the database than were read. */
  more: boolean
  timer: { rings: Timer; at: number } | null
  /** The next look after the timer's, on the monotonic clock; further ones are left to discovery. */
  later: number | null
}

export function createPostQueue(parts: PostQueueParts): PostQueue {
  const { store, client, clock, log } = parts
  const rows = createPostRows(store, parts.owner)
  const lanes = new Map<string, Lane>()
  /** Lanes that have rows, in memory or in the database, and wait for a place; in turn. */
  const ready = new Set<Lane>()
  const running = new PassingSet<Promise<void>>()
  let slowRunning = 0
  let stopping = false
  const periodic: { discover: Timer | null; renew: Timer | null } = { discover: null, renew: null }

  function laneNamed(name: string): Lane {
    let lane = lanes.get(name)
    if (!lane) {
      const empty = { waiting: [], inFlight: new PassingSet<string>(), lease: null, timer: null, later: null }
      lane = { name, ...empty, slow: false, serving: false, again: false, more: false }
      lanes.set(name, lane)
    }
    return lane
  }

  /** Looks at a lane in a moment, and again later while nothing is found. */
  function lookSoon(lane: Lane, step: number): void {
    const wait = SOON_MS[step]
    if (stopping || wait === undefined) return
    lookIn(lane, wait, step)
  }

  function lookIn(lane: Lane, waitMs: number, step: number): void {
    const at = clock.monotonic() + waitMs
    if (lane.timer) {
      lane.later = Math.min(lane.later ?? Number.POSITIVE_INFINITY, Math.max(lane.timer.at, at))
      if (lane.timer.at <= at) return
      lane.timer.rings.cancel()
    }
    const ring = () => {
      const { later } = lane
      lane.timer = null
      lane.later = null
      if (later !== null) lookIn(lane, Math.max(0, later - clock.monotonic()), SOON_MS.length)
      void serve(lane, step)
    }
    lane.timer = { at, rings: clock.setTimer(waitMs, ring) }
  }

  async function discover(): Promise<void> {
    const startedAt = clock.monotonic()
    try {
      const horizon = clock.now() + DISCOVER_EVERY_MS
      for (const { lane: name, due_at } of await rows.dueLanes(horizon)) {
        const lane = laneNamed(name)
        const wait = due_at - clock.now()
        if (wait > 0) lookIn(lane, wait, SOON_MS.length)
        else if (lane.waiting.length === 0) void serve(lane, SOON_MS.length)
      }
    } catch (error) {
      log.error({ err: error }, 'cannot look for outgoing requests')
    }
    if (stopping) return
    const share = (clock.monotonic() - startedAt) * DISCOVER_SHARE
    const wait = Math.min(Math.max(DISCOVER_EVERY_MS, share), DISCOVER_MAX_MS)
    periodic.discover = clock.setTimer(wait, () => void discover())
  }

  /** Fills a lane from the database and starts what may start. `step`: how often to look again in vain. */
  async function serve(lane: Lane, step: number): Promise<void> {
    if (stopping) return
    if (lane.serving) {
      lane.again = true
      return
    }
    lane.serving = true
    try {
      do {
        lane.again = false
        if (lane.waiting.length > 0) advance(lane)
        else if (mayRun(lane)) await fill(lane, step)
        else wants(lane)
      } while (lane.again && !stopping)
    } catch (error) {
      log.error({ err: error }, 'cannot read outgoing requests')
      lookIn(lane, STORE_RETRY_MS, 0)
    } finally {
      lane.serving = false
      forgetIfIdle(lane)
    }
  }

  /** All its places, or all there are, are taken: its turn comes when one is free. */
  function wants(lane: Lane): void {
    lane.more = true
    ready.add(lane)
  }

  async function fill(lane: Lane, step: number): Promise<void> {
    // A row may end while it is being read: what was in flight before the question is not in the answer.
    const busy = new Set(lane.inFlight)
    const found = await rows.due(lane.name, clock.now(), FETCH_MAX + busy.size)
    const fresh = found.filter((row) => !busy.has(row.id)).slice(0, FETCH_MAX)
    lane.more = fresh.length === FETCH_MAX
    if (fresh.length === 0) return lookSoon(lane, step + 1)
    if (!(await holdLease(lane))) return lookIn(lane, LANE_LEASE_MS / 2, SOON_MS.length)
    lane.waiting.push(...fresh)
    advance(lane)
  }

  async function holdLease(lane: Lane): Promise<boolean> {
    const asked = clock.monotonic()
    if (lane.lease && lane.lease.until - asked > LEASE_LEFT_MIN_MS) return true
    // A new token would refuse the outcomes of what runs under the old one.
    if (lane.inFlight.size > 0) return lane.lease !== null && lane.lease.until > asked
    const token = await rows.acquire(lane.name, clock.now())
    lane.lease = token === null ? null : { token, until: asked + LANE_LEASE_MS }
    return token !== null
  }

  const mayRun = (lane: Lane) =>
    !stopping &&
    lane.inFlight.size < LANE_MAX &&
    running.size < TOTAL_MAX &&
    (!lane.slow || slowRunning < SLOW_TOTAL_MAX)

  function advance(lane: Lane): void {
    while (lane.waiting.length > 0 && mayRun(lane)) start(lane, lane.waiting.shift() as OutgoingPostRow)
    if (lane.waiting.length === 0 && !lane.more) ready.delete(lane)
    else ready.add(lane)
  }

  function start(lane: Lane, row: OutgoingPostRow): void {
    const { slow } = lane
    if (slow) slowRunning++
    lane.inFlight.add(row.id)
    const run = work(lane, row).finally(() => {
      running.delete(run)
      if (slow) slowRunning--
      lane.inFlight.delete(row.id)
      takeTurns(lane)
    })
    running.add(run)
  }

  /** A place is free: the lane that freed it goes to the end of those that wait. */
  function takeTurns(lane: Lane): void {
    if (stopping) return
    ready.delete(lane)
    if (lane.waiting.length > 0 || lane.more) ready.add(lane)
    else forgetIfIdle(lane)
    for (const next of [...ready]) {
      if (running.size >= TOTAL_MAX) return
      if (next.waiting.length > 0) advance(next)
      else void serve(next, SOON_MS.length)
    }
  }

  function forgetIfIdle(lane: Lane): void {
    const idle = lane.waiting.length === 0 && lane.inFlight.size === 0 && !lane.timer && !lane.serving
    if (!idle || lane.lease || lane.more) return
    ready.delete(lane)
    lanes.delete(lane.name)
  }

  async function work(lane: Lane, row: OutgoingPostRow): Promise<void> {
    const token = lane.lease?.token ?? ''
    try {
      const prepared = (await parts.kinds[row.kind]?.prepare(row)) ?? null
      if (!prepared) {
        log.info({ post: row.id, kind: row.kind }, 'outgoing request dropped: nobody wants it any more')
        return await settle(lane, row, [rows.remove(row, token)])
      }
      const { url = row.url, headers, body } = prepared
      const outcome = await client.send({ url, headers, body })
      lane.slow = outcome.durationMs >= SLOW_MS
      const attempt = conclude(row.attempts, outcome, prepared.retryScheduleMs, clock.now())
      const end =
        attempt.nextAttemptAt === null
          ? rows.remove(row, token)
          : rows.postpone(row, token, attempt.nextAttemptAt)
      await settle(lane, row, [end, ...prepared.record(attempt)])
      tell(row, attempt)
      // Discovery would come too late for a short wait.
      const wait = (attempt.nextAttemptAt ?? Number.POSITIVE_INFINITY) - clock.now()
      if (wait < DISCOVER_EVERY_MS && !stopping) lookIn(lane, Math.max(wait, 0), SOON_MS.length)
    } catch (error) {
      log.error({ err: error, post: row.id }, 'outgoing request failed inside the service')
      await settle(lane, row, [rows.defer(row, token, clock.now() + FAULT_RETRY_MS)])
    }
  }

  function tell(row: OutgoingPostRow, { outcome, status, number, nextAttemptAt }: Attempt): void {
    const code = outcome.kind === 'answered' ? outcome.status : null
    const why = outcome.kind === 'answered' ? undefined : outcome.why
    const facts = { post: row.id, kind: row.kind, subject: row.subject, status, attempt: number, code, why }
    log.info({ ...facts, nextAttemptAt }, 'outgoing request')
  }

  /** Writes an end; the database may be away for a while, and the outcome stays ours to write. */
  async function settle(lane: Lane, row: OutgoingPostRow, unit: Statement[]): Promise<void> {
    for (;;) {
      try {
        await store.commit(unit)
        return
      } catch (error) {
        if (error instanceof StaleWrite) {
          log.warn({ post: row.id }, 'outcome refused: the lane was lost')
          lane.lease = null
          lane.waiting.length = 0
          return
        }
        log.error({ err: error, post: row.id }, 'cannot record an outgoing request')
        if (stopping) return
        await new Promise<void>((resolve) => clock.setTimer(STORE_RETRY_MS, resolve))
      }
    }
  }

  /** Renews the leases of lanes in use, gives the others back. */
  async function keepLeases(): Promise<void> {
    try {
      const unused = [...lanes.values()].filter(
        (lane) => lane.lease && !lane.more && lane.waiting.length + lane.inFlight.size === 0 && !lane.serving,
      )
      for (const lane of unused) lane.lease = null
      await rows.release(unused.map((lane) => lane.name))
      for (const lane of unused) forgetIfIdle(lane)
      const held = [...lanes.values()].flatMap((lane) => (lane.lease ? [lane.lease] : []))
      if (held.length > 0) {
        const asked = clock.monotonic()
        await rows.renew(clock.now())
        for (const lease of held) lease.until = asked + LANE_LEASE_MS
      }
    } catch (error) {
      log.error({ err: error }, 'cannot renew the leases of outgoing requests')
    }
    if (!stopping) periodic.renew = clock.setTimer(RENEW_EVERY_MS, () => void keepLeases())
  }

  return {
    statements(posts) {
      if (posts.length === 0) return []
      for (const lane of new Set(posts.map((post) => post.lane))) lookSoon(laneNamed(lane), 0)
      return postStatements(posts, clock.now())
    },
    async start() {
      await discover()
      periodic.renew = clock.setTimer(RENEW_EVERY_MS, () => void keepLeases())
    },
    async stop(drainMs) {
      stopping = true
      periodic.discover?.cancel()
      periodic.renew?.cancel()
      for (const lane of lanes.values()) lane.timer?.rings.cancel()
      ready.clear()
      const drain = Promise.withResolvers<void>()
      const timer = clock.setTimer(drainMs, drain.resolve)
      await Promise.race([Promise.allSettled([...running]), drain.promise])
      timer.cancel()
      await rows.releaseAll().catch((error: unknown) => {
        log.error({ err: error }, 'cannot give back lanes; their leases will run out')
      })
    },
  }
}

/** What an answer means for the row (webhooks.md rules 21 and 22). `attempts`: those before this one. */
export function conclude(
  attempts: number,
  outcome: HttpOutcome,
  retryScheduleMs: readonly number[],
  now: number,
): Attempt {
  const common = { number: attempts + 1, outcome, at: now }
  const status = outcome.kind === 'answered' ? outcome.status : 0
  if (status >= 200 && status < 300) return { ...common, status: 'ok', nextAttemptAt: null }
  const wait = retryScheduleMs[attempts]
  if (status === NEVER_AGAIN || wait === undefined) {
    return { ...common, status: 'given-up', nextAttemptAt: null }
  }
  return { ...common, status: 'failing', nextAttemptAt: now + wait }
}
