/**
 * Removing stored messages: a message is kept for as long as its domain, its account or the service says (retention.md),
 * counted from the last recipient's final state (messages.md rule 49), and never while anything of it is still to be
 * sent, archived, expanded or posted. If messages take more space than allowed, the oldest that are finished go before
 * their time.
 *
 * Messages of domains that keep none are found by the events that end a delivery. Whatever those miss, such as mail without
 * recipients, the pass over all messages removes.
 */

import { sql } from 'kysely'
import { pause } from '../../base/flow/pause.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import { createJob } from '../../platform/jobs/job.ts'
import {
  domainsKeepingNone,
  type KeptBounds,
  type KeptDays,
  readKeptDays,
} from '../../platform/store/kept-days.ts'
import { StoreFull } from '../../platform/store/store.ts'
import type { MessageRecords } from '../record/record.ts'
import {
  endedMessages,
  isFinished,
  isInUse,
  progressOf,
  REMOVED_COLUMNS,
  type RemovedRow,
} from './finished-messages.ts'
import type { PastDeliveries, RemovedSummary } from './past-deliveries.ts'

export type Retention = ReturnType<typeof createRetention>

export interface RetentionParts extends Pick<Core, 'store' | 'blobs' | 'domains' | 'clock' | 'log'> {
  records: MessageRecords
  /** Keeps what later events need of the deliveries. */
  past: PastDeliveries
  /** What accounts may set. */
  bounds: KeptBounds
  /** Approximate space that messages may take; null: no limit. */
  bytesMax: number | null
}

const EVERY_MS = 10 * MINUTE_MS
const FINISHED_EVERY_MS = MINUTE_MS
/** A process that has not looked yet looks so far back; the pass over all messages removes what ended before. */
const LOOK_BACK_MS = HOUR_MS
/** An event may be committed after events with a later time. */
const OVERLAP_MS = 2 * MINUTE_MS
/** Between portions of removals, so that other writes come in between. */
const PAUSE_MS = 20
/** Messages checked in one step; other work runs between steps. */
const STEP = 500
/** Approximate, with index entries: 1,000 bytes for a message without its content, 800 for each delivery. */
const ROW_BYTES = sql<number>`1000 + COALESCE(length(content), 0)
  + 800 * (SELECT count(*) FROM deliveries WHERE message_pk = messages.id)`

export function createRetention(parts: RetentionParts) {
  const { store, clock } = parts
  const remove = createRemoval(parts)

  /** Removes what is over time; resolves how many messages. */
  async function sweep(signal?: AbortSignal): Promise<number> {
    await parts.past.sweep()
    const kept = await readKeptDays(store, 'messages', parts.bounds)
    let aged = 0
    // Nothing younger can be over, but what `sweepFinished` removes.
    for await (const row of oldestFirst(clock.now() - TTL_MIN_MS, signal))
      if (await isOver(row, kept)) aged += await remove(row)
    return aged + (parts.bytesMax === null ? 0 : await sweepBeyond(parts.bytesMax, signal))
  }

  /** Events before it have been looked at; Unix milliseconds. */
  let lookedUpTo = 0

  /** Removes finished messages of domains that keep none; resolves how many. */
  async function sweepFinished(signal?: AbortSignal): Promise<number> {
    const now = clock.now()
    const from = Math.max(lookedUpTo - OVERLAP_MS, now - LOOK_BACK_MS)
    let removed = 0
    for (const domain of await domainsKeepingNone(store))
      for await (const rows of endedMessages(store, domain, from * 1000, signal)) {
        for (const row of rows) if (await isFinished(store, row.id)) removed += await remove(row)
        await pause(clock, PAUSE_MS, signal)
      }
    if (!signal?.aborted) lookedUpTo = now
    return removed
  }

  /** Removes finished messages, oldest first, until the rest takes at most `bytesMax`. */
  async function sweepBeyond(bytesMax: number, signal?: AbortSignal): Promise<number> {
    let total = 0
    for await (const row of oldestFirst(Number.POSITIVE_INFINITY, signal)) total += await bytesOf(row)
    let removed = 0
    if (total > bytesMax)
      for await (const row of oldestFirst(Number.POSITIVE_INFINITY, signal)) {
        if (!(await isFinished(store, row.id))) continue
        total -= await bytesOf(row)
        removed += await remove(row)
        if (total <= bytesMax) break
      }
    if (removed > 0) parts.log.info({ removed }, 'messages removed before their time, to save space')
    if (total > bytesMax && !signal?.aborted)
      parts.log.warn({ bytes: total }, 'messages that are not finished take more space than allowed')
    return removed
  }

  async function bytesOf({ row_bytes, blobs_json }: Candidate): Promise<number> {
    let bytes = Number(row_bytes)
    for (const name of JSON.parse(blobs_json) as string[])
      bytes += await parts.blobs.read(name).then(
        ({ sizeBytes }) => sizeBytes,
        () => 0,
      )
    return bytes
  }

  async function* oldestFirst(before: number, signal?: AbortSignal): AsyncGenerator<Candidate> {
    let position = { created_at: -1, id: '' }
    while (!signal?.aborted) {
      const rows = await candidates(position, Math.min(before, clock.now()))
      yield* rows
      const last = rows.at(-1)
      if (!last || rows.length < STEP) return
      position = last
    }
  }

  function candidates(position: { created_at: number; id: string }, before: number): Promise<Candidate[]> {
    return store.db
      .selectFrom('messages')
      .select(REMOVED_COLUMNS)
      .select(parts.bytesMax === null ? sql<number>`0`.as('row_bytes') : ROW_BYTES.as('row_bytes'))
      .where('created_at', '<', Math.floor(before))
      .where((eb) =>
        eb.or([
          eb('created_at', '>', position.created_at),
          eb.and([eb('created_at', '=', position.created_at), eb('id', '>', position.id)]),
        ]),
      )
      .orderBy('created_at')
      .orderBy('id')
      .limit(STEP)
      .execute()
  }

  async function isOver(row: Candidate, kept: KeptDays): Promise<boolean> {
    const domain = await parts.domains.byId(row.domain_id)
    const days = kept.of(row.account_id, row.domain_id)
    const keptMs = keptDaysOfMessages(days, domain?.messageTtlSeconds ?? 0, parts.bounds.preset) * DAY_MS
    if (row.created_at > clock.now() - keptMs) return false
    const { last, open } = await progressOf(store, row.id)
    return !open && (last ?? row.created_at) <= clock.now() - keptMs && !(await isInUse(store, row.id))
  }

  return {
    sweep,
    sweepFinished,
    jobs: [
      createJob({
        name: 'message-retention',
        everyMs: EVERY_MS,
        scope: 'database',
        work: async (signal) => void (await sweep(signal)),
      }),
      createJob({
        name: 'finished-messages',
        everyMs: FINISHED_EVERY_MS,
        scope: 'database',
        work: async (signal) => void (await sweepFinished(signal)),
      }),
    ],
  }
}

/** Removes a message with all that belongs to it; resolves to 1, for sums. */
function createRemoval({
  store,
  past,
  records,
  blobs,
}: RetentionParts): (row: RemovedRow) => Promise<number> {
  /**
   * Rows first: a blob without a row wastes space, a row without its blob is a broken message. If the disk has no room for
   * the log of that, the blobs are removed first to make some: the message has expired anyway.
   */
  async function remove(row: RemovedRow): Promise<number> {
    try {
      await removeRows(row)
    } catch (error) {
      if (!(error instanceof StoreFull)) throw error
      await removeBlobs(row)
      await removeRows(row)
    }
    await removeBlobs(row)
    return 1
  }

  async function removeRows(row: RemovedRow): Promise<void> {
    await past.moveAll({ ...row, summary: JSON.parse(row.summary_json) as RemovedSummary })
    await store.commit([
      { sql: 'DELETE FROM list_expansions WHERE message_pk = ?', values: [row.id] },
      { sql: 'DELETE FROM deliveries WHERE message_pk = ?', values: [row.id] },
      { sql: 'DELETE FROM messages WHERE id = ?', values: [row.id] },
    ])
    records.forget(row.id)
  }

  async function removeBlobs(row: RemovedRow): Promise<void> {
    for (const name of JSON.parse(row.blobs_json) as string[]) await blobs.remove(name)
  }

  return remove
}

/**
 * Days, a fraction where `message_ttl` is not of whole days. `set`: by the domain or its account; undefined: by neither.
 * A `message_ttl` (seconds, 0: none) shortens what was set, since administrators decide about that, and holds alone otherwise.
 */
export function keptDaysOfMessages(set: number | undefined, ttlSeconds: number, preset: number): number {
  const ttlDays = ttlSeconds > 0 ? ttlSeconds / 86_400 : undefined
  if (set === undefined) return ttlDays ?? preset
  return Math.min(set, ttlDays ?? set)
}

type Candidate = RemovedRow & { row_bytes: number }

const TTL_MIN_MS = HOUR_MS
