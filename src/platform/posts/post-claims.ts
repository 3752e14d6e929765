/**
 * Claiming: finds lanes with due rows, takes their leases, and reads rows into memory.
 *
 * 1. A lane wakes up shortly after rows for it were handed out, when their transaction should be committed, and for a
 *    retry that is due soon.
 * 2. `discover` finds every lane with due rows: those of other processes and of earlier runs, and later retries.
 * 3. `serve` reads due rows of a lane, takes its lease, and starts as many rows as there are slots.
 * 4. `keepLeases` renews the leases of lanes in use and releases the others.
 */
import type { Logger } from 'pino'
import type { Clock, Timer } from '../../base/time/clock.ts'
import type { Lane, PostLanes } from './post-lanes.ts'
import { LANE_LEASE_MS, type PostRows } from './post-rows.ts'

/** Rows of a lane in memory: several rounds of what a lane runs at a time. */
const FETCH_MAX = 50
/** How soon rows of other processes, and lanes of lost ones, are found. */
const DISCOVER_EVERY_MS = 5_000
/** Discovery takes at most a twentieth of the time, however many lanes there are, up to the longest pause. */
const DISCOVER_SHARE = 20
const DISCOVER_MAX_MS = 30_000
/** When to look for rows that are about to be committed; later ones are found by discovery. */
const SOON_MS = [15, 60, 250, 1_000] as const
/** As `step`: look once, without repeating. */
const ONCE = SOON_MS.length
const RENEW_EVERY_MS = LANE_LEASE_MS / 3
/** A lane is served only with this much of its lease left: more than an attempt takes. */
const LEASE_LEFT_MIN_MS = 12_000
const STORE_RETRY_MS = 1_000

interface PostClaimParts {
  rows: PostRows
  lanes: PostLanes
  clock: Clock
  log: Logger
  /** Aborts when the queue stops. */
  signal: AbortSignal
}

export function createPostClaims(parts: PostClaimParts) {
  const { rows, lanes, clock, log, signal } = parts
  const leases = createLeases(parts)
  let discovery: Timer | null = null

  /** Wakes a lane shortly; `step` counts the wake-ups in vain. */
  function wakeSoon(lane: Lane, step: number): void {
    const wait = SOON_MS[step]
    if (signal.aborted || wait === undefined) return
    wake(lane, wait, step)
  }

  function wake(lane: Lane, waitMs: number, step: number): void {
    const at = clock.monotonic() + waitMs
    if (lane.wakeUp) {
      lane.nextWakeUpAt = Math.min(
        lane.nextWakeUpAt ?? Number.POSITIVE_INFINITY,
        Math.max(lane.wakeUp.at, at),
      )
      if (lane.wakeUp.at <= at) return
      lane.wakeUp.timer.cancel()
    }
    const fire = () => {
      const { nextWakeUpAt } = lane
      lane.wakeUp = null
      lane.nextWakeUpAt = null
      if (nextWakeUpAt !== null) wake(lane, Math.max(0, nextWakeUpAt - clock.monotonic()), ONCE)
      void serve(lane, step)
    }
    lane.wakeUp = { at, timer: clock.setTimer(waitMs, fire) }
  }

  async function discover(): Promise<void> {
    const startedAt = clock.monotonic()
    discovery = null
    try {
      const horizon = clock.now() + DISCOVER_EVERY_MS
      for (const { lane: name, due_at } of await rows.dueLanes(horizon)) {
        const lane = lanes.named(name)
        const wait = due_at - clock.now()
        if (wait > 0) wake(lane, wait, ONCE)
        else if (lane.waiting.length === 0) void serve(lane, ONCE)
      }
    } catch (error) {
      log.error({ err: error }, 'cannot look for outgoing requests')
    }
    if (signal.aborted) return
    const share = (clock.monotonic() - startedAt) * DISCOVER_SHARE
    const wait = Math.min(Math.max(DISCOVER_EVERY_MS, share), DISCOVER_MAX_MS)
    discovery = clock.setTimer(wait, () => void discover())
  }

  /** Starts waiting rows, or reads more of them. */
  async function serve(lane: Lane, step: number): Promise<void> {
    if (signal.aborted) return
    if (lane.serving) {
      lane.serveAgain = true
      return
    }
    lane.serving = true
    try {
      do {
        lane.serveAgain = false
        if (lane.waiting.length > 0) lanes.startWaiting(lane)
        else if (lanes.hasSlot(lane)) await claim(lane, step)
        else lanes.waitForSlot(lane)
      } while (lane.serveAgain && !signal.aborted)
    } catch (error) {
      log.error({ err: error }, 'cannot read outgoing requests')
      wake(lane, STORE_RETRY_MS, 0)
    } finally {
      lane.serving = false
      lanes.forgetIfIdle(lane)
    }
  }

  async function claim(lane: Lane, step: number): Promise<void> {
    // A row may end while the query runs: those in flight before it are excluded from its result.
    const busy = new Set(lane.inFlight)
    const due = await rows.due(lane.name, clock.now(), FETCH_MAX + busy.size)
    const fresh = due.filter((row) => !busy.has(row.id)).slice(0, FETCH_MAX)
    lane.hasMore = fresh.length === FETCH_MAX
    if (fresh.length === 0) return wakeSoon(lane, step + 1)
    if (!(await leases.hold(lane))) return wake(lane, LANE_LEASE_MS / 2, ONCE)
    lane.waiting.push(...fresh)
    lanes.startWaiting(lane)
  }

  return {
    /** Rows for this lane are about to be committed. */
    expectRows: (laneName: string) => wakeSoon(lanes.named(laneName), 0),
    /** Rows for these lanes are in the database; `leased`: only lanes whose lease is here need them. */
    foundRows(names: readonly string[], leased: boolean): void {
      for (const name of names) if (!leased || lanes.has(name)) wakeSoon(lanes.named(name), 0)
    },
    /** Leases of other processes are free. */
    lookNow(): void {
      if (discovery === null || signal.aborted) return
      discovery.cancel()
      void discover()
    },
    /** Serves the lane after `waitMs`, unless discovery finds it soon enough. */
    wakeIn(lane: Lane, waitMs: number): void {
      if (waitMs < DISCOVER_EVERY_MS && !signal.aborted) wake(lane, Math.max(waitMs, 0), ONCE)
    },
    /** Serves a lane that has a free slot. */
    refill: (lane: Lane): void => void serve(lane, ONCE),
    async start(): Promise<void> {
      await discover()
      leases.start()
    },
    stop(): void {
      discovery?.cancel()
      leases.stop()
      for (const lane of lanes.all()) lane.wakeUp?.timer.cancel()
    },
  }
}

/** The leases of this process on lanes, which it renews while they are in use. */
function createLeases({ rows, lanes, clock, log, signal }: PostClaimParts) {
  let renewal: Timer | null = null

  function renewLater(): void {
    renewal = clock.setTimer(RENEW_EVERY_MS, () => void keep())
  }

  async function hold(lane: Lane): Promise<boolean> {
    const now = clock.monotonic()
    if (lane.lease && lane.lease.until - now > LEASE_LEFT_MIN_MS) return true
    // A new token would invalidate the outcomes of attempts in flight.
    if (lane.inFlight.size > 0) return lane.lease !== null && lane.lease.until > now
    const token = await rows.acquire(lane.name, clock.now())
    lane.lease = token === null ? null : { token, until: now + LANE_LEASE_MS }
    return token !== null
  }

  async function keep(): Promise<void> {
    try {
      const unused = lanes
        .all()
        .filter(
          (lane) =>
            lane.lease && !lane.hasMore && lane.waiting.length + lane.inFlight.size === 0 && !lane.serving,
        )
      for (const lane of unused) lane.lease = null
      await rows.release(unused.map((lane) => lane.name))
      for (const lane of unused) lanes.forgetIfIdle(lane)
      const held = lanes.all().flatMap((lane) => (lane.lease ? [lane.lease] : []))
      if (held.length > 0) {
        const now = clock.monotonic()
        await rows.renew(clock.now())
        for (const lease of held) lease.until = now + LANE_LEASE_MS
      }
    } catch (error) {
      log.error({ err: error }, 'cannot renew the leases of outgoing requests')
    }
    if (!signal.aborted) renewLater()
  }

  return {
    /** False: another process has the lane. */
    hold,
    start: renewLater,
    stop(): void {
      renewal?.cancel()
    },
  }
}
