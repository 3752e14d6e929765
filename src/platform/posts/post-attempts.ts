/**
 * Posting and settling: one attempt to send one row.
 *
 * `prepare` (by the row's kind, again for each attempt) -> POST -> `conclude` -> one transaction that removes or postpones
 * the row and contains the kind's own statements. The transaction counts only under the lane's token.
 */

import type { Logger } from 'pino'
import { pause } from '../../base/flow/pause.ts'
import { localFaultOf } from '../../base/process/system-fault.ts'
import type { Clock } from '../../base/time/clock.ts'
import { type Chunk, readChunks } from '../../protocols/message/mime-message.ts'
import type { OutgoingPostRow } from '../store/schema.ts'
import { StaleWrite, type Statement, type Store } from '../store/store.ts'
import type { Tracing } from '../traces/tracing.ts'
import type { HttpClient, HttpOutcome, HttpRequest } from './http-client.ts'
import type { Lane } from './post-lanes.ts'
import type { PostRows } from './post-rows.ts'

/** One kind of POST: what is sent and recorded. */
export interface PostKind {
  /** Called for each attempt; null: its subject no longer exists, or the POST is no longer wanted, and the row is dropped. */
  prepare(row: OutgoingPostRow): Promise<PreparedPost | null>
}

export interface PreparedPost extends Pick<HttpRequest, 'connectMs' | 'totalMs'> {
  /** The URL to call; the row's may be masked. Default: the row's. */
  url?: string
  headers: Readonly<Record<string, string>>
  body: Chunk
  /** Pauses in milliseconds, each after the previous attempt; empty: one attempt only. */
  retryScheduleMs: readonly number[]
  /** Why an answer with a 2xx is a failure all the same, from its body; null: it is none. Absent: the status alone counts. */
  refusalIn?(body: Buffer): string | null
  /** Names the span that led to the POST; undefined or absent: its span begins a trace. */
  traceparent?: string | undefined
  /** Statements for the transaction that ends the attempt. */
  record(attempt: Attempt): Statement[]
  /** Called when the attempt has ended, after its transaction. */
  done?(): void
}

/** How an attempt ended. `failing`: another follows at `nextAttemptAt`. */
export interface Attempt {
  number: number
  outcome: HttpOutcome
  /** As `refusalIn` says. */
  refusal: string | null
  status: 'ok' | 'failing' | 'given-up'
  nextAttemptAt: number | null
  at: number
}

export interface PostAttemptParts {
  store: Store
  client: HttpClient
  clock: Clock
  log: Logger
  kinds: ReadonlyMap<string, PostKind>
  rows: PostRows
  tracing: Tracing | undefined
  /** Schedules a retry that is due before the next discovery. */
  retryIn(lane: Lane, waitMs: number): void
  /** Aborts when the queue stops. */
  signal: AbortSignal
}

/** A lane is slow after an attempt that took this long. */
const SLOW_MS = 2_000
const STORE_RETRY_MS = 1_000
/** So often a record that cannot be written by its own fault is tried. */
const RECORD_TRIES_MAX = 5
/** After a fault of our own; other rows of the lane are sent meanwhile. */
const FAULT_RETRY_MS = 60_000
/** The receiver's status for "never again", webhooks.md rule 21. */
const NEVER_AGAIN = 406

/** The returned function makes one attempt and records it; it never rejects. */
export function createPostAttempts(
  parts: PostAttemptParts,
): (lane: Lane, row: OutgoingPostRow) => Promise<void> {
  const { store, client, clock, log, kinds, rows, retryIn, signal, tracing } = parts

  async function attempt(lane: Lane, row: OutgoingPostRow): Promise<void> {
    const token = lane.lease?.token ?? ''
    let prepared: PreparedPost | null = null
    try {
      prepared = (await kinds.get(row.kind)?.prepare(row)) ?? null
      if (!prepared) {
        log.info({ post: row.id, kind: row.kind }, 'outgoing request dropped: no longer wanted')
        return await settle(lane, row, rows.remove(row, token))
      }
      const { url = row.url, headers, body, connectMs, totalMs } = prepared
      const outcome = await client.send({
        url,
        headers,
        body,
        ...(connectMs !== undefined && { connectMs }),
        ...(totalMs !== undefined && { totalMs }),
      })
      lane.slow = outcome.durationMs >= SLOW_MS
      const result = conclude(row.attempts, outcome, prepared, clock.now())
      if (tracing !== undefined) {
        const { traceparent } = prepared
        tracePost(tracing, { kind: row.kind, url, traceparent, attempt: result, at: clock.now() })
      }
      const { nextAttemptAt } = result
      const change =
        nextAttemptAt === null ? rows.remove(row, token) : rows.postpone(row, token, nextAttemptAt)
      await settle(lane, row, change, prepared.record(result))
      logAttempt(row, result)
      if (nextAttemptAt !== null) retryIn(lane, nextAttemptAt - clock.now())
    } catch (error) {
      log.error({ err: error, post: row.id }, 'outgoing request failed inside the service')
      await settle(lane, row, rows.defer(row, token, clock.now() + FAULT_RETRY_MS))
    } finally {
      prepared?.done?.()
    }
  }

  /**
   * Commits the end of an attempt; retries while the database is unavailable, as the outcome exists only here. What is recorded
   * of it is given up after some tries if it is at fault itself: the row must not be posted again for that.
   */
  async function settle(
    lane: Lane,
    row: OutgoingPostRow,
    change: Statement,
    record: readonly Statement[] = [],
  ): Promise<void> {
    for (let ownFaults = 0; ; ) {
      const isGivenUp = ownFaults >= RECORD_TRIES_MAX
      try {
        await store.commit(isGivenUp ? [change] : [change, ...record])
        return
      } catch (error) {
        if (error instanceof StaleWrite) {
          log.warn({ post: row.id }, 'outcome refused: the lease of the lane was lost')
          lane.lease = null
          lane.waiting.length = 0
          return
        }
        if (localFaultOf(error) === null) ownFaults++
        log.error({ err: error, post: row.id }, 'cannot record an outgoing request')
        if (signal.aborted) return
        await pause(clock, STORE_RETRY_MS)
      }
    }
  }

  function logAttempt(row: OutgoingPostRow, attempt: Attempt): void {
    const { outcome, refusal, status, number, nextAttemptAt } = attempt
    const code = outcome.kind === 'answered' ? outcome.status : null
    const why = outcome.kind === 'answered' ? (refusal ?? undefined) : outcome.why
    const facts = { post: row.id, kind: row.kind, subject: row.subject, status, attempt: number, code, why }
    log.info({ ...facts, nextAttemptAt }, 'outgoing request')
  }

  return attempt
}

/** What an outcome means for the row (webhooks.md rules 21 and 22). `attempts`: those before this one. */
export function conclude(
  attempts: number,
  outcome: HttpOutcome,
  { retryScheduleMs, refusalIn }: Pick<PreparedPost, 'retryScheduleMs' | 'refusalIn'>,
  now: number,
): Attempt {
  const status = outcome.kind === 'answered' ? outcome.status : 0
  const isTaken = outcome.kind === 'answered' && status >= 200 && status < 300
  const refusal = isTaken ? (refusalIn?.(outcome.body) ?? null) : null
  const common = { number: attempts + 1, outcome, refusal, at: now }
  if (isTaken && refusal === null) return { ...common, status: 'ok', nextAttemptAt: null }
  const wait = retryScheduleMs[attempts]
  if (status === NEVER_AGAIN || wait === undefined) {
    return { ...common, status: 'given-up', nextAttemptAt: null }
  }
  return { ...common, status: 'failing', nextAttemptAt: now + wait }
}

/** The URL may have secrets in its path: of it only the host is shown. `at`: when it ended, in Unix milliseconds. */
export function tracePost(
  tracing: Tracing,
  post: {
    kind: string
    url: string
    traceparent: string | undefined
    attempt: { number: number; outcome: HttpOutcome; status: string }
    at: number
  },
): void {
  const { kind, url, traceparent, attempt, at } = post
  const { outcome } = attempt
  const span = tracing.begin({
    name: `post ${kind}`,
    kind: 'client',
    parent: traceparent,
    at: at - outcome.durationMs,
  })
  const attributes = {
    'http.request.method': 'POST',
    'http.response.status_code': outcome.kind === 'answered' ? outcome.status : undefined,
    'server.address': URL.canParse(url) ? new URL(url).hostname : undefined,
    'sendwright.attempt': attempt.number,
    'sendwright.outcome': attempt.status,
  }
  span.end(at, attributes, attempt.status !== 'ok')
}

/** A single POST of bytes to a URL, for areas that keep their own queue (archive). */
export type Poster = ReturnType<typeof createPoster>

/** Enough for a message of 25 MB over a slow line. */
const POST_MAX_MS = 60_000

export function createPoster(client: HttpClient) {
  return {
    /** `taken`: a 2xx. `gone`: 406, do not retry. `retry`: everything else. Network errors do not reject. */
    async post(url: string, contentType: string, body: Chunk): Promise<'taken' | 'retry' | 'gone'> {
      const parts: Uint8Array[] = []
      for await (const bytes of readChunks([body])) parts.push(bytes)
      const headers = { 'content-type': contentType }
      const outcome = await client.send({ url, headers, body: Buffer.concat(parts), totalMs: POST_MAX_MS })
      const { status, nextAttemptAt } = conclude(0, outcome, { retryScheduleMs: [1] }, 0)
      if (status === 'ok') return 'taken'
      return nextAttemptAt === null ? 'gone' : 'retry'
    },
  }
}
