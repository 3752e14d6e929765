/** Accepted messages by id, read once for all their recipients: a bounded memory in front of the database. */
import type { BlobStore } from '../store/blobs.ts'
import type { Store } from '../store/store.ts'
import { type MessageRecord, recordOfRow } from './content.ts'

export interface MessageRecords {
  /** A message just accepted: its deliveries follow at once and need not read it back. */
  remember(record: MessageRecord): void
  byId(id: string): Promise<MessageRecord | null>
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

/** About what a record takes in memory: its texts and the files held in it. */
function weigh({ content }: MessageRecord): number {
  const texts = (content.text?.length ?? 0) + (content.html?.length ?? 0) + (content.amp?.length ?? 0)
  const files = content.files.reduce(
    (sum, file) => sum + ('base64' in file.bytes ? file.bytes.base64.length : 0),
    0,
  )
  return 1024 + texts + files
}
