/**
 * Removing stored messages: a message is kept for its domain's message_ttl, counted from the last recipient's
 * final state (messages.md rule 49), and never while anything of it is still to be sent, archived or expanded.
 */
import type { Clock } from '../../base/clock.ts'
import type { DomainDirectory } from '../../domains/directory.ts'
import { createJob, type Job } from '../../jobs/job.ts'
import type { BlobStore } from '../../store/blobs.ts'
import type { MessageRow } from '../../store/schema.ts'
import { type Store, StoreFull } from '../../store/store.ts'
import type { MessageRecords } from './message-records.ts'
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
}

const DEFAULT_TTL_MS = 3 * 86_400_000
const EVERY_MS = 600_000
/** Messages checked in one step; other work runs between steps. */
const STEP = 500

export function createRetention(parts: RetentionParts): Retention {
  const { store, clock } = parts

  async function sweep(signal?: AbortSignal): Promise<number> {
    await parts.past.sweep()
    let removed = 0
    let position = { created_at: -1, id: '' }
    while (!signal?.aborted) {
      const rows = await candidates(position)
      for (const row of rows) {
        if (await isOver(row)) removed += await remove(row)
      }
      const last = rows.at(-1)
      if (!last || rows.length < STEP) return removed
      position = last
    }
    return removed
  }

  /** Messages by age; each is kept for an hour at least, so younger ones are skipped. */
  function candidates(position: { created_at: number; id: string }) {
    return store.db
      .selectFrom('messages')
      .select(['id', 'domain_id', 'domain_name', 'message_id', 'summary_json', 'created_at', 'blobs_json'])
      .where('created_at', '<', Math.floor(clock.now() - TTL_MIN_MS))
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

  async function isOver(row: { id: string; domain_id: string; created_at: number }): Promise<boolean> {
    const domain = await parts.domains.byId(row.domain_id)
    const ttlMs = domain?.messageTtlSeconds ? domain.messageTtlSeconds * 1000 : DEFAULT_TTL_MS
    if (row.created_at > clock.now() - ttlMs) return false
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
      .where('message_pk', '=', row.id)
      .executeTakeFirst()
    if (Number(state?.open ?? 0) > 0) return false
    if (Number(state?.last ?? row.created_at) > clock.now() - ttlMs) return false
    const archiving = await store.db
      .selectFrom('archive_outbox')
      .innerJoin('deliveries', 'deliveries.id', 'archive_outbox.delivery_id')
      .select('archive_outbox.id')
      .where('deliveries.message_pk', '=', row.id)
      .limit(1)
      .executeTakeFirst()
    const expanding = await store.db
      .selectFrom('list_expansions')
      .select('id')
      .where('message_pk', '=', row.id)
      .where('state', '=', 'running')
      .limit(1)
      .executeTakeFirst()
    const posting = await store.db
      .selectFrom('route_posts')
      .select('id')
      .where('message_pk', '=', row.id)
      .limit(1)
      .executeTakeFirst()
    return archiving === undefined && expanding === undefined && posting === undefined
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

type RemovedRow = Pick<
  MessageRow,
  'id' | 'domain_name' | 'message_id' | 'summary_json' | 'created_at' | 'blobs_json'
>

const TTL_MIN_MS = 3_600_000
