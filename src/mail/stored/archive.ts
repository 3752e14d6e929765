/**
 * Copies of delivered mail for the caller's archive (messages.md rule 38).
 *
 * 1. Before an attempt `note` remembers the URL for its copy and the header block that is sent.
 * 2. With the outcome `statements` returns the outbox row, for the transaction that records the delivery.
 * 3. The sender posts what is due: the stored header block and the body, which is composed again to the same bytes.
 * 4. A copy that was taken is counted in the transaction that removes its row.
 */
import { newId } from '../../base/ids.ts'
import { loggableUrl } from '../../base/printable.ts'
import type { Core } from '../../core.ts'
import { createJob } from '../../platform/jobs/job.ts'
import type { ArchiveOutboxRow } from '../../platform/store/schema.ts'
import { insert, type Statement } from '../../platform/store/store.ts'
import {
  chunkSize,
  type LazyChunk,
  type MimeMessage,
  readChunks,
} from '../../protocols/message/mime-message.ts'
import type { EventRecord } from '../../watching/events/event.ts'
import type { ArchivedCopy } from '../../watching/metrics/storage/archived.ts'
import type { ClaimedDelivery } from '../deliver/claim/queue.ts'

export interface ArchiveNote {
  url: string
  headers: readonly string[]
  /** Name of the field that the transport adds with the address it sent from; null: none. */
  sourceHeader: string | null
}

export type ArchiveNotes = ReturnType<typeof createArchiveNotes>

export function createArchiveNotes() {
  const notes = new WeakMap<ClaimedDelivery, ArchiveNote>()
  return {
    note: (delivery: ClaimedDelivery, note: ArchiveNote): void => void notes.set(delivery, note),
    /** The outbox row if this outcome is a delivery; nothing else. */
    statements(delivery: ClaimedDelivery, events: readonly EventRecord[], now: number): Statement[] {
      const note = notes.get(delivery)
      const delivered = events.find(({ event }) => event === 'delivered')
      if (!note || !delivered) return []
      const envelope = delivered.payload['envelope'] as { 'sending-ip'?: string } | undefined
      const ip = envelope?.['sending-ip']
      const added = note.sourceHeader !== null && ip ? [`${note.sourceHeader}: ${ip}`] : []
      const row: ArchiveOutboxRow = {
        id: newId(now),
        account_id: delivery.account_id,
        domain_name: delivered.domainName,
        delivery_id: delivery.id,
        url: note.url,
        head: [...note.headers, ...added].map((field) => `${field}\r\n`).join(''),
        state: 'waiting',
        attempts: 0,
        due_at: Math.floor(now),
        // The copy counts in the interval that has the delivery.
        created_at: Math.floor(delivered.timestampUs / 1000),
      }
      return [insert('archive_outbox', row)]
    },
  }
}

/** The result of a post: `gone` is never tried again. */
export type PostResult = 'taken' | 'retry' | 'gone'

/** Posts over HTTP under the rules for all URLs that callers name (no private networks). */
export interface ArchivePoster {
  post(url: string, contentType: string, body: LazyChunk): Promise<PostResult>
}

export interface ArchiveSenderParts extends Pick<Core, 'store' | 'clock' | 'log'> {
  poster: ArchivePoster
  /** The body of a delivery as it was sent; null when the message is gone. */
  bodyOf(deliveryId: string): Promise<MimeMessage['body'] | null>
  /** Commits the removal of the row with the count of a copy that was taken. */
  countTaken(copy: ArchivedCopy, removal: Statement): Promise<void>
  /** Delays between attempts; after the last one the copy is given up. */
  scheduleMs: readonly number[]
}

const BATCH_MAX = 50
const LOOK_EVERY_MS = 1000
/** Longer than any post may take; afterwards another process may try. */
const CLAIM_MS = 120_000

export function createArchiveSender(parts: ArchiveSenderParts) {
  const { store, clock, log } = parts
  const times = store.leaseTimes

  /** Takes due rows by moving their due time past the longest post: a lease, so it uses the clock of leases. */
  async function claim(): Promise<ArchiveOutboxRow[]> {
    const now = clock.now()
    const isDue = `state = 'waiting' AND due_at <= ${times.sql}`
    // A look each second that finds nothing, as nearly all do, is no transaction of the writer.
    const sql = `SELECT 1 AS due FROM archive_outbox WHERE ${isDue} LIMIT 1`
    if ((await store.read({ sql, values: [times.value(now, 0)] })).length === 0) return []
    const lock = store.kind === 'postgres' ? 'FOR UPDATE SKIP LOCKED' : ''
    const [result] = await store.commit([
      {
        sql: `UPDATE archive_outbox SET due_at = ${times.sql}, attempts = attempts + 1 WHERE id IN (
          SELECT id FROM archive_outbox WHERE ${isDue} ORDER BY due_at, id LIMIT ? ${lock})
          RETURNING *`,
        values: [times.value(now, CLAIM_MS), times.value(now, 0), BATCH_MAX],
      },
    ])
    return (result?.rows ?? []) as unknown as ArchiveOutboxRow[]
  }

  /** Gives back what was claimed and not tried: no attempt is lost. */
  async function unclaim(rows: readonly ArchiveOutboxRow[]): Promise<void> {
    const now = times.value(clock.now(), 0)
    const sql = `UPDATE archive_outbox SET due_at = ${times.sql}, attempts = attempts - 1 WHERE id = ? AND attempts = ?`
    await store.commit(rows.map(({ id, attempts }) => ({ sql, values: [now, id, attempts] })))
  }

  async function send(row: ArchiveOutboxRow): Promise<void> {
    const body = await parts.bodyOf(row.delivery_id)
    const result =
      body === null ? 'gone' : await parts.poster.post(row.url, 'application/mime', join(row.head, body))
    const wait = parts.scheduleMs[row.attempts - 1]
    if (result === 'retry' && wait !== undefined) {
      const due = times.expression(clock.now(), wait)
      await store.db.updateTable('archive_outbox').set({ due_at: due }).where('id', '=', row.id).execute()
      return
    }
    const removal = { sql: 'DELETE FROM archive_outbox WHERE id = ?', values: [row.id] }
    if (result === 'taken') {
      const copy = { accountId: row.account_id, domainName: row.domain_name, at: Number(row.created_at) }
      // A slow post may have been repeated by another process, which then counts or has counted it.
      await parts.countTaken(copy, { ...removal, expectRows: 1 })
      return
    }
    log.warn({ delivery: row.delivery_id, url: loggableUrl(row.url) }, 'archive copy given up')
    await store.commit([removal])
  }

  /** Posts what is due now, one after the other; resolves how many were tried. */
  async function run(signal?: AbortSignal): Promise<number> {
    const rows = await claim()
    for (const [at, row] of rows.entries()) {
      if (signal?.aborted) {
        await unclaim(rows.slice(at))
        break
      }
      await send(row).catch((error: unknown) =>
        log.error({ err: error, id: row.id }, 'cannot archive a copy'),
      )
    }
    return rows.length
  }

  return {
    run,
    job: createJob({
      name: 'archive-posts',
      everyMs: LOOK_EVERY_MS,
      // Each process claims rows of its own.
      scope: 'claims',
      work: async (signal) => void (await run(signal)),
    }),
  }
}

function join(head: string, body: MimeMessage['body']): LazyChunk {
  const first = Buffer.from(`${head}\r\n`)
  const sizeBytes = body.reduce((sum, chunk) => sum + chunkSize(chunk), first.byteLength)
  return { sizeBytes, open: () => readChunks([first, ...body]) }
}
