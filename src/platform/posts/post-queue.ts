/**
 * The durable queue of POSTs. Its state is in the database; each URL is a lane of its own.
 *
 * 1. `statements` returns the rows of new POSTs, for the transaction of the change that they report.
 * 2. Claiming (`post-claims.ts`) finds lanes with due rows, takes their leases and reads rows.
 * 3. Slots (`post-lanes.ts`) decide which lane may start an attempt.
 * 4. Posting and settling (`post-attempts.ts`) send the request and record its outcome under the lane's token.
 *
 * A process that dies between the POST and its record repeats the POST: at least once, never lost.
 */
import type { Timer } from '../../base/time/clock.ts'
import type { Statement } from '../store/store.ts'
import { createPostAttempts, type PostAttemptParts, type PostKind } from './post-attempts.ts'
import { createPostClaims } from './post-claims.ts'
import { createPostLanes } from './post-lanes.ts'
import { createPostRows, type NewPost, postStatements } from './post-rows.ts'

interface PostQueueParts extends Pick<PostAttemptParts, 'store' | 'client' | 'clock' | 'log' | 'tracing'> {
  /** Identifies this process among those that share the database. */
  owner: string
  /** Other processes make the POSTs. */
  isOff: boolean
}

export type PostQueue = ReturnType<typeof createPostQueue>

const ROWS = 'posts-due'
/** Lanes that get rows within this time are named to the other processes together. */
const HINT_MS = 100
/** Further lanes are found by the discovery of the others. */
const LANES_IN_HINT_MAX = 100

export function createPostQueue(parts: PostQueueParts) {
  const { store, client, clock, log, owner, tracing, isOff } = parts
  const { changes } = store
  const kinds = new Map<string, PostKind>()
  const stopping = new AbortController()
  const { signal } = stopping
  const rows = createPostRows(store, owner)
  const lanes = createPostLanes({
    attempt: (lane, row) => attempt(lane, row),
    refill: (lane) => claims.refill(lane),
    signal,
  })
  const claims = createPostClaims({ rows, lanes, clock, log, signal })
  const retryIn = claims.wakeIn
  const attempt = createPostAttempts({
    ...{ store, client, clock, log, kinds, rows },
    ...{ retryIn, signal, tracing },
  })

  /** Rows that wait for a process that has the lane's lease, or for any if this one makes no POSTs. */
  const hinted = new Set<string>()
  let hintTimer: Timer | null = null
  function hintLater(lane: string): void {
    if (hinted.size < LANES_IN_HINT_MAX) hinted.add(lane)
    hintTimer ??= clock.setTimer(HINT_MS, () => {
      hintTimer = null
      changes.hint(ROWS, JSON.stringify({ lanes: [...hinted], leased: !isOff }))
      hinted.clear()
    })
  }
  if (!isOff)
    changes.follow(ROWS, (text) => {
      if (text === null) return claims.lookNow()
      const found = JSON.parse(text) as { lanes: string[]; leased: boolean }
      claims.foundRows(found.lanes, found.leased)
    })

  return {
    /** How POSTs of a kind are made; before the start. */
    addKind: (name: string, kind: PostKind): void => void kinds.set(name, kind),
    /** Inserts new POSTs, due at once. The statements must be committed right away or not at all. */
    statements(posts: readonly NewPost[]): Statement[] {
      if (posts.length === 0) return []
      for (const lane of new Set(posts.map((post) => post.lane))) {
        if (!isOff) claims.expectRows(lane)
        if (store.kind === 'postgres') hintLater(lane)
      }
      return postStatements(posts, clock.now())
    },
    start: async (): Promise<void> => {
      if (!isOff) await claims.start()
    },
    /** Leases of other processes were returned. */
    leasesReturned: () => claims.lookNow(),
    /** Starts nothing new, waits up to `drainMs` for attempts in flight, releases the leases. */
    async stop(drainMs: number): Promise<void> {
      stopping.abort()
      hintTimer?.cancel()
      claims.stop()
      const drain = Promise.withResolvers<void>()
      const timer = clock.setTimer(drainMs, drain.resolve)
      await Promise.race([lanes.settled(), drain.promise])
      timer.cancel()
      await rows.releaseAll().catch((error: unknown) => {
        log.error({ err: error }, 'cannot release lanes; their leases will expire')
      })
    },
  }
}
