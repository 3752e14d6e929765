/**
 * Removing stored messages: a message is kept for its domain's message_ttl, counted from the last recipient's
 * final state (messages.md rule 49), and never while anything of it is still to be sent, archived or expanded.
 */
import type { Logger } from 'pino'
import type { Clock, Timer } from '../base/clock.ts'
import type { DomainDirectory } from '../domains/directory.ts'
import type { BlobStore } from '../store/blobs.ts'
import type { MessageRow } from '../store/schema.ts'
import { type Store, StoreFull } from '../store/store.ts'
import type { PastDeliveries, RemovedSummary } from './past-deliveries.ts'
import type { MessageRecords } from './records.ts'

export interface Retention {
  /** Removes what is over time; resolves how many messages. */
  sweep(): Promise<number>
  start(): void
  stop(): Promise<void>
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
  /** Further things to remove at the same time. */
  also?(): Promise<void>
}

const DEFAULT_TTL_MS = 3 * 86_400_000
const EVERY_MS = 600_000
/** Messages looked at in one step; between steps other work goes on. */
const STEP = 500

export function createRetention(parts: RetentionParts): Retention {
  const { store, clock, log } = parts
  let timer: Timer | null = null
  let stopping = false
  let running: Promise<unknown> = Promise.resolve()

  async function sweep(): Promise<number> {
    await parts.also?.()
    await parts.past.sweep()
    let removed = 0
    let position = { created_at: -1, id: '' }
    while (!stopping) {
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

  /** Messages by age; the shortest time to keep one is an hour, so younger ones need no look. */
  function candidates(position: { created_at: number; id: string }) {
    return store.db
      .selectFrom('messages')
      .select(['id', 'domain_id', 'domain_name', 'message_id', 'summary_json', 'created_at', 'blobs_json'])
      .where('created_at', '<', Math.floor(clock.now() - TTL_MIN_MS))
      .where((of) =>
        of.or([
          of('created_at', '>', position.created_at),
          of.and([of('created_at', '=', position.created_at), of('id', '>', position.id)]),
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
      .select((of) => [
        of.fn.max('updated_at').as('last'),
        of.fn
          .sum<number>(
            of.case().when('state', 'in', ['scheduled', 'queued', 'sending']).then(1).else(0).end(),
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
    return archiving === undefined && expanding === undefined
  }

  /**
   * Rows first: a blob without a row is waste, a row without its blob a broken message. Unless the disk has no room
   * even for the log of that: then its blobs make some. Nobody is owed the message any more.
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

  function arm(): void {
    if (stopping) return
    timer = clock.setTimer(EVERY_MS, () => {
      running = sweep()
        .catch((error: unknown) => log.error({ err: error }, 'cannot remove old messages'))
        .finally(arm)
    })
  }

  return {
    sweep,
    start: arm,
    async stop() {
      stopping = true
      timer?.cancel()
      await running
    },
  }
}

type RemovedRow = Pick<
  MessageRow,
  'id' | 'domain_name' | 'message_id' | 'summary_json' | 'created_at' | 'blobs_json'
>

const TTL_MIN_MS = 3_600_000
