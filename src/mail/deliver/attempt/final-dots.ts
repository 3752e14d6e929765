/**
 * Bounds the messages that are between their final dot and the record of its outcome on disk: that is how many a crash
 * can repeat (RFC 5321 §6.1: after the 250 the server has the message, whatever happens to us).
 *
 * 1. While UNCOMMITTED_MAX outcomes wait for their commit, no further dot is sent.
 * 2. For a while after a start, and longer after a crash, only CAREFUL_MAX may be past their dot, twice as many every ten
 *    seconds: what ended the process may end it again, and a loop of crashes would repeat mail by the hundred.
 *
 * In case 2 a message that waits for a slow server counts less: 2 at a time to one that takes 200 ms would be ten a
 * second. It counts 1 up to QUICK_MS, and QUICK_MS / t at an answer time of t, so that about 200 a second are sent however
 * slow the servers are. Time in which an answer lay unread, because we were busy, is not the server's: its time is
 * measured up to the last poll of all sockets that found no answer. A server that never answers counts by the time it
 * has taken so far, and blocks nothing.
 *
 * Why case 2 does not always apply: under full load most of that time is spent waiting for our own turn. With 12 at a
 * time 13 % fewer messages a second were delivered, with 8 17 %, with 4 31 %, with 2 36 % (decision 30).
 */

import { PassingSet } from '../../../base/flow/cache.ts'
import type { Clock, Timer } from '../../../base/time/clock.ts'

/**
 * Outcomes that may wait for their commit before further final dots are held back. When the database is slow for a
 * moment (a checkpoint), a crash can repeat these and what is past its dot already, not a whole lane.
 */
const UNCOMMITTED_MAX = 8
/** A cause of crashes in the environment shows at once; one in the work itself when that has been resumed. */
const CAREFUL_AFTER_START_MS = 5_000
const CAREFUL_AFTER_CRASH_MS = 30_000
const CAREFUL_MAX = 2
const DOUBLED_EVERY_MS = 10_000
/** Answer time up to which a message counts 1, and how often unanswered ones are checked. */
const QUICK_MS = 10
/** A lane's remembered answer time: a shorter one replaces it, a longer one is added with this weight. */
const LONGER_WEIGHT = 1 / 8

export type FinalDots = ReturnType<typeof createFinalDots>
/** One attempt's dot; may be sent again, to another host. */
export type FinalDot = ReturnType<FinalDots['of']>

interface Dot {
  lane: object
  sentAt: number
  answered: boolean
  /** Time after `sentAt` at which there was no answer yet. */
  unansweredMs: number
}

export function createFinalDots(clock: Clock) {
  let startedAt = Number.NEGATIVE_INFINITY
  let carefulUntil = Number.NEGATIVE_INFINITY
  /** Outcomes being written. */
  let committing = 0
  const past = new PassingSet<Dot>()
  const waiting: { dot: Dot; resume(): void }[] = []
  /** How long answers take, by lane. */
  const answerMs = new WeakMap<object, number>()
  let check: Timer | null = null

  const careful = () => clock.monotonic() < carefulUntil

  function mayPass(): boolean {
    if (committing >= UNCOMMITTED_MAX) return false
    if (!careful()) return true
    let atRisk = 0
    for (const dot of past) atRisk += shareOf(dot)
    return atRisk < CAREFUL_MAX * 2 ** Math.floor((clock.monotonic() - startedAt) / DOUBLED_EVERY_MS)
  }

  function shareOf({ lane, answered, unansweredMs }: Dot): number {
    if (answered) return 1
    return Math.min(1, QUICK_MS / Math.max(answerMs.get(lane) ?? 0, unansweredMs))
  }

  function send(dot: Dot): void {
    dot.sentAt = clock.monotonic()
    dot.answered = false
    dot.unansweredMs = 0
    past.add(dot)
    watch()
  }

  /** One for each that has ended; all when no outcome is being written, since those released before may have failed. */
  function release(): void {
    for (let count = 0; waiting.length > 0 && mayPass(); count++) {
      if (count > 0 && committing > 0 && !careful()) return
      const next = waiting.shift()
      if (!next) return
      send(next.dot)
      next.resume()
    }
  }

  /** While any message is past its dot or waits: notes which sockets have been polled and had no answer. */
  function watch(): void {
    if (check || past.size + waiting.length === 0 || !careful()) return
    check = clock.setTimer(QUICK_MS, () => {
      // After the next poll of the event loop.
      setImmediate(() => {
        check = null
        const now = clock.monotonic()
        for (const dot of past) if (!dot.answered) dot.unansweredMs = now - dot.sentAt
        release()
        watch()
      })
    })
  }

  function learn({ lane, unansweredMs }: Dot): void {
    const known = answerMs.get(lane) ?? 0
    const longer = unansweredMs - known
    answerMs.set(lane, longer > 0 ? known + longer * LONGER_WEIGHT : unansweredMs)
  }

  return {
    /** The process has started; `afterCrash`: the previous one left deliveries unsettled. */
    started(afterCrash: boolean): void {
      startedAt = clock.monotonic()
      carefulUntil = startedAt + (afterCrash ? CAREFUL_AFTER_CRASH_MS : CAREFUL_AFTER_START_MS)
    },
    /** `lane`: whose answer times are alike. */
    of(lane: object) {
      const dot: Dot = { lane, sentAt: 0, answered: true, unansweredMs: 0 }
      return {
        /** Resolves when the dot may be sent; from then on the message counts. */
        async pass(): Promise<void> {
          past.delete(dot)
          const inTurn = waiting.length === 0 || !careful()
          if (inTurn && mayPass()) return send(dot)
          await new Promise<void>((resume) => {
            waiting.push({ dot, resume })
            watch()
          })
        },
        /** The server has answered, or never will. */
        answered(): void {
          if (dot.answered) return
          learn(dot)
          dot.answered = true
        },
        /** Its outcome is on disk, or there will be none. */
        end(): void {
          if (past.delete(dot) && careful()) release()
        },
      }
    },
    /** An outcome is being written. */
    writing(): void {
      committing++
    },
    /** It is on disk, or lost. */
    written(): void {
      committing--
      release()
    },
  }
}
