/** Accepted messages by id, read once for all their recipients: a bounded memory in front of the database. */
import type { BlobStore } from '../store/blobs.ts'
import type { Store } from '../store/store.ts'
import { type MessageRecord, recordOfRow } from './content.ts'

export interface MessageRecords {
  /** A message just accepted: its deliveries follow at once and need not read it back. */
  remember(record: MessageRecord): void
  byId(id: string): Promise<MessageRecord | null>
  /** A message that was removed. */
  forget(id: string): void
}

/** Remembered contents together; a large newsletter with inline files is a few hundred kilobytes. */
const REMEMBERED_BYTES_MAX = 64 * 1024 * 1024

export function createMessageRecords(store: Store, blobs: BlobStore): MessageRecords {
  const remembered = new Map<string, { record: Promise<MessageRecord | null>; bytes: number }>()
  let total = 0

  function keep(id: string, record: Promise<MessageRecord | null>, bytes: number): void {
    forget(id)
    remembered.set(id, { record, bytes })
    total += bytes
    for (const oldest of remembered.keys()) {
      if (total <= REMEMBERED_BYTES_MAX || oldest === id) break
      forget(oldest)
    }
  }
  function forget(id: string): void {
    total -= remembered.get(id)?.bytes ?? 0
    remembered.delete(id)
  }
  async function load(id: string): Promise<MessageRecord | null> {
    const row = await store.db.selectFrom('messages').selectAll().where('id', '=', id).executeTakeFirst()
    return row ? recordOfRow(row, blobs) : null
  }

  return {
    forget,
    remember: (record) => keep(record.id, Promise.resolve(record), weigh(record)),
    async byId(id) {
      const known = remembered.get(id)
      if (known) return known.record
      const loading = load(id)
      keep(id, loading, 0)
      try {
        const record = await loading
        if (record) keep(id, loading, weigh(record))
        else forget(id)
        return record
      } catch (error) {
        forget(id)
        throw error
      }
    },
  }
}

/** About what a record takes in memory: its texts and bytes, and their encoded form that copies share. */
function weigh({ content, summary }: MessageRecord): number {
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
