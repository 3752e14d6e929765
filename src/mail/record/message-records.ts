/**
 * Accepted messages by id, read once for all their recipients: a bounded cache in front of the database. A message that
 * was just accepted is added only if there is room, since under a backlog the oldest are needed first; one that is read
 * is always added, and the oldest entries are dropped. The message of a single recipient is dropped when its delivery
 * ends.
 */

import { PassingMap } from '../../base/flow/cache.ts'
import { sizesFor } from '../../base/process/memory-sizes.ts'
import type { BlobStore } from '../../platform/store/blobs/blobs.ts'
import type { MessageRow } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'
import { type MessageRecord, recordOfRow } from './record.ts'

export interface MessageRecords {
  /** A message just accepted: its deliveries follow at once and need not read it. */
  remember(record: MessageRecord): void
  byId(id: string): Promise<MessageRecord | null>
  /** A message that was removed, or is not needed any more. */
  forget(id: string): void
  /** A delivery of the message has ended that does not go through a list. */
  ended(id: string): void
}

/** Messages in one query: they share the round trip to the database thread. */
const PER_QUERY_MAX = 8

interface Waiting {
  id: string
  resolve(record: MessageRecord | null): void
  reject(error: unknown): void
}

/** @param bytesMax of remembered contents together */
export function createMessageRecords(
  store: Store,
  blobs: BlobStore,
  bytesMax: number = sizesFor('normal').rememberedBytes,
): MessageRecords {
  const remembered = new PassingMap<
    string,
    { record: Promise<MessageRecord | null>; bytes: number; single: boolean }
  >()
  let total = 0
  let waiting: Waiting[] = []

  function keep(id: string, record: Promise<MessageRecord | null>, known: MessageRecord | null): void {
    forget(id)
    const bytes = known ? sizeOf(known) : 0
    remembered.set(id, { record, bytes, single: known?.summary.recipients.length === 1 })
    total += bytes
    while (total > bytesMax) {
      const oldest = remembered.keys().next().value
      if (oldest === undefined || oldest === id) break
      forget(oldest)
    }
  }
  function forget(id: string): void {
    total -= remembered.get(id)?.bytes ?? 0
    remembered.delete(id)
  }

  /** Those requested in the same turn of the event loop are read together. */
  const load = (id: string) =>
    new Promise<MessageRecord | null>((resolve, reject) => {
      waiting.push({ id, resolve, reject })
      if (waiting.length === 1) setImmediate(readWaiting)
    })

  function readWaiting(): void {
    const all = waiting
    waiting = []
    for (let at = 0; at < all.length; at += PER_QUERY_MAX) void read(all.slice(at, at + PER_QUERY_MAX))
  }

  async function read(group: readonly Waiting[]): Promise<void> {
    try {
      const marks = group.map(() => '?').join(', ')
      const sql = `SELECT * FROM messages WHERE id IN (${marks})`
      const rows = (await store.read({ sql, values: group.map(({ id }) => id) })) as unknown as MessageRow[]
      const byId = new Map(rows.map((row) => [row.id, row]))
      for (const { id, resolve, reject } of group) {
        const row = byId.get(id)
        if (row) recordOfRow(row, blobs).then(resolve, reject)
        else resolve(null)
      }
    } catch (error) {
      for (const { reject } of group) reject(error)
    }
  }

  return {
    forget,
    ended(id) {
      if (remembered.get(id)?.single) forget(id)
    },
    remember(record) {
      if (total + sizeOf(record) <= bytesMax) keep(record.id, Promise.resolve(record), record)
    },
    async byId(id) {
      const known = remembered.get(id)
      if (known) return known.record
      const loading = load(id)
      keep(id, loading, null)
      try {
        const record = await loading
        if (record) keep(id, loading, record)
        else forget(id)
        return record
      } catch (error) {
        forget(id)
        throw error
      }
    },
  }
}

/** The approximate memory of a record: its texts and bytes, and their encoded form, which copies share. */
function sizeOf({ content, summary }: MessageRecord): number {
  const files = content.kind === 'mime' ? [content.body] : content.files.map((file) => file.bytes)
  const bytes = files.reduce((sum, file) => sum + ('base64' in file ? file.base64.length : 0), 0)
  const texts =
    content.kind === 'mime'
      ? 0
      : textLength(content.text) + textLength(content.html) + textLength(content.amp)
  const template = content.template?.chosen.source.length ?? 0
  return 2048 + 2 * (bytes + texts) + template + 64 * summary.recipients.length
}

const textLength = (text: string | null) => text?.length ?? 0
