/**
 * Removing stored messages: a message is kept for its domain's message_ttl, counted from the last recipient's
 * final state (messages.md rule 49), and never while anything of it is still to be sent, archived, expanded or posted.
 * If messages take more space than allowed, the oldest that are finished go before their time.
 */

import { sql } from 'kysely'
import type { Logger } from 'pino'
import type { Clock } from '../../base/time/clock.ts'
import { createJob, type Job } from '../../platform/jobs/job.ts'
import type { BlobStore } from '../../platform/store/blobs/blobs.ts'
import type { MessageRow } from '../../platform/store/schema.ts'
import { type Store, StoreFull } from '../../platform/store/store.ts'
import type { DomainDirectory } from '../../sending/domains/names/directory.ts'
import type { MessageRecords } from '../record/record.ts'
import type { PastDeliveries, RemovedSummary } from './past-deliveries.ts'

export interface Retention {
  /** Removes what is over time; resolves how many messages. */
  sweep(signal?: AbortSignal): Promise<number>
  job: Job
}

export interface RetentionParts {
  store: Store
  blobs: BlobStore
  domains: DomainDirectory
  records: MessageRecords
  /** Keeps what later events need of the deliveries. */
  past: PastDeliveries
  clock: Clock
  log: Logger
  /** Approximate space that messages may take; null: no limit. */
  bytesMax: number | null
}

const DEFAULT_TTL_MS = 3 * 86_400_000
const EVERY_MS = 600_000
/** Messages checked in one step; other work runs between steps. */
const STEP = 500
/** Approximate, with index entries: 1,000 bytes for a message without its content, 800 for each delivery. */
const ROW_BYTES = sql<number>`1000 + COALESCE(length(content), 0)
  + 800 * (SELECT count(*) FROM deliveries WHERE message_pk = messages.id)`

export function createRetention(parts: RetentionParts): Retention {
  const { store, clock } = parts

  async function sweep(signal?: AbortSignal): Promise<number> {
    await parts.past.sweep()
    let aged = 0
    // Each message is kept for an hour at least.
    for await (const row of oldestFirst(clock.now() - TTL_MIN_MS, signal))
      if (await isOver(row)) aged += await remove(row)
    return aged + (parts.bytesMax === null ? 0 : await sweepBeyond(parts.bytesMax, signal))
  }

  /** Removes finished messages, oldest first, until the rest takes at most `bytesMax`. */
  async function sweepBeyond(bytesMax: number, signal?: AbortSignal): Promise<number> {
    let total = 0
    for await (const row of oldestFirst(Number.POSITIVE_INFINITY, signal)) total += await bytesOf(row)
    let removed = 0
    if (total > bytesMax)
      for await (const row of oldestFirst(Number.POSITIVE_INFINITY, signal)) {
        if (!(await isFinished(row.id))) continue
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
      .select(['id', 'domain_id', 'domain_name', 'message_id', 'summary_json', 'created_at', 'blobs_json'])
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

  async function isOver(row: Candidate): Promise<boolean> {
    const domain = await parts.domains.byId(row.domain_id)
    const ttlMs = domain?.messageTtlSeconds ? domain.messageTtlSeconds * 1000 : DEFAULT_TTL_MS
    if (row.created_at > clock.now() - ttlMs) return false
    const { last, open } = await progressOf(row.id)
    return !open && (last ?? row.created_at) <= clock.now() - ttlMs && !(await isInUse(row.id))
  }

  const isFinished = async (id: string): Promise<boolean> =>
    !(await progressOf(id)).open && !(await isInUse(id))

  /** `open`: something is still to be sent. `last`: when the last delivery changed, null without any. */
  async function progressOf(id: string): Promise<{ last: number | null; open: boolean }> {
    const state = await store.db
      .selectFrom('deliveries')
      .select((eb) => [
        eb.fn.max('updated_at').as('last'),
        eb.fn
          .sum<number>(
            eb.case().when('state', 'in', ['scheduled', 'queued', 'sending']).then(1).else(0).end(),
          )
          .as('open'),
      ])
      .where('message_pk', '=', id)
      .executeTakeFirst()
    const last = state?.last ?? null
    return { last: last === null ? null : Number(last), open: Number(state?.open ?? 0) > 0 }
  }

  /** It is still to be archived, expanded or posted. */
  async function isInUse(id: string): Promise<boolean> {
    const archiving = await store.db
      .selectFrom('archive_outbox')
      .innerJoin('deliveries', 'deliveries.id', 'archive_outbox.delivery_id')
      .select('archive_outbox.id')
      .where('deliveries.message_pk', '=', id)
      .limit(1)
      .executeTakeFirst()
    const expanding = await store.db
      .selectFrom('list_expansions')
      .select('id')
      .where('message_pk', '=', id)
      .where('state', '=', 'running')
      .limit(1)
      .executeTakeFirst()
    const posting = await store.db
      .selectFrom('route_posts')
      .select('id')
      .where('message_pk', '=', id)
      .limit(1)
      .executeTakeFirst()
    return archiving !== undefined || expanding !== undefined || posting !== undefined
  }

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
    await parts.past.moveAll({ ...row, summary: JSON.parse(row.summary_json) as RemovedSummary })
    await store.commit([
      { sql: 'DELETE FROM list_expansions WHERE message_pk = ?', values: [row.id] },
      { sql: 'DELETE FROM deliveries WHERE message_pk = ?', values: [row.id] },
      { sql: 'DELETE FROM messages WHERE id = ?', values: [row.id] },
    ])
    parts.records.forget(row.id)
  }

  async function removeBlobs(row: RemovedRow): Promise<void> {
    for (const name of JSON.parse(row.blobs_json) as string[]) await parts.blobs.remove(name)
  }

  return {
    sweep,
    job: createJob({
      name: 'message-retention',
      everyMs: EVERY_MS,
      scope: 'database',
      work: async (signal) => void (await sweep(signal)),
    }),
  }
}

type Candidate = RemovedRow & Pick<MessageRow, 'domain_id'> & { row_bytes: number }

type RemovedRow = Pick<
  MessageRow,
  'id' | 'domain_name' | 'message_id' | 'summary_json' | 'created_at' | 'blobs_json'
>

const TTL_MIN_MS = 3_600_000
