/**
 * Lanes and slots: the lanes that this process works on, and which of them may start an attempt.
 *
 * A lane runs at most LANE_MAX attempts at a time in the whole cluster, since only one process holds its lease. All lanes
 * of a process share TOTAL_MAX slots. Slow lanes share half of these, so that any number of them leaves slots for the
 * fast ones. Lanes that wait for a slot take turns.
 */

import { PassingSet } from '../../base/flow/cache.ts'
import type { Timer } from '../../base/time/clock.ts'
import type { OutgoingPostRow } from '../store/schema.ts'

/** webhooks.md rule 25. */
const LANE_MAX = 10
/** Below what the HTTP client admits, so that a full queue leaves capacity for other requests. */
const TOTAL_MAX = 500
const SLOW_TOTAL_MAX = TOTAL_MAX / 2

export interface Lane {
  readonly name: string
  /** Rows in memory that wait for a slot. */
  readonly waiting: OutgoingPostRow[]
  readonly inFlight: PassingSet<string>
  lease: { token: string; until: number } | null
  /** Its last attempt took long. */
  slow: boolean
  serving: boolean
  /** A wake-up arrived while it was being served. */
  serveAgain: boolean
  /** More rows are due in the database than were read. */
  hasMore: boolean
  wakeUp: { timer: Timer; at: number } | null
  /** A second wake-up, on the monotonic clock; rows that are due later are found by discovery. */
  nextWakeUpAt: number | null
}

interface PostLaneParts {
  /** Makes one attempt; never rejects. */
  attempt(lane: Lane, row: OutgoingPostRow): Promise<void>
  /** Reads more rows of a lane that has none in memory. */
  refill(lane: Lane): void
  /** Aborts when the queue stops. */
  signal: AbortSignal
}

export type PostLanes = ReturnType<typeof createPostLanes>

export function createPostLanes({ attempt, refill, signal }: PostLaneParts) {
  const lanes = new Map<string, Lane>()
  /** Lanes that have rows, in memory or in the database, and wait for a slot, in turn. */
  const queued = new Set<Lane>()
  const running = new PassingSet<Promise<void>>()
  let slowRunning = 0

  const hasSlot = (lane: Lane) =>
    !signal.aborted &&
    lane.inFlight.size < LANE_MAX &&
    running.size < TOTAL_MAX &&
    (!lane.slow || slowRunning < SLOW_TOTAL_MAX)

  /** Starts waiting rows while there are slots. */
  function startWaiting(lane: Lane): void {
    while (lane.waiting.length > 0 && hasSlot(lane)) start(lane, lane.waiting.shift() as OutgoingPostRow)
    if (lane.waiting.length === 0 && !lane.hasMore) queued.delete(lane)
    else queued.add(lane)
  }

  function start(lane: Lane, row: OutgoingPostRow): void {
    const { slow } = lane
    if (slow) slowRunning++
    lane.inFlight.add(row.id)
    const run = attempt(lane, row).finally(() => {
      running.delete(run)
      if (slow) slowRunning--
      lane.inFlight.delete(row.id)
      passSlot(lane)
    })
    running.add(run)
  }

  /** A slot became free: the lane that used it goes to the end of the queue. */
  function passSlot(lane: Lane): void {
    if (signal.aborted) return
    queued.delete(lane)
    if (lane.waiting.length > 0 || lane.hasMore) queued.add(lane)
    else forgetIfIdle(lane)
    for (const next of [...queued]) {
      if (running.size >= TOTAL_MAX) return
      if (next.waiting.length > 0) startWaiting(next)
      else refill(next)
    }
  }

  function forgetIfIdle(lane: Lane): void {
    const idle = lane.waiting.length === 0 && lane.inFlight.size === 0 && !lane.wakeUp && !lane.serving
    if (!idle || lane.lease || lane.hasMore) return
    queued.delete(lane)
    lanes.delete(lane.name)
  }

  return {
    named(name: string): Lane {
      let lane = lanes.get(name)
      if (!lane) {
        lane = newLane(name)
        lanes.set(name, lane)
      }
      return lane
    },
    /** Whether the lane is in use here. */
    has: (name: string): boolean => lanes.has(name),
    all: () => [...lanes.values()],
    hasSlot,
    startWaiting,
    /** Refills the lane once there is a slot for it. */
    waitForSlot(lane: Lane): void {
      lane.hasMore = true
      queued.add(lane)
    },
    forgetIfIdle,
    /** Resolves when the attempts now in flight have ended. */
    settled: (): Promise<unknown> => Promise.allSettled([...running]),
  }
}

const newLane = (name: string): Lane => ({
  name,
  waiting: [],
  inFlight: new PassingSet<string>(),
  lease: null,
  slow: false,
  serving: false,
  serveAgain: false,
  hasMore: false,
  wakeUp: null,
  nextWakeUpAt: null,
})
