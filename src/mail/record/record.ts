/**
 * The content of an accepted message as stored: its headers and parts once for all recipients. Small contents are in
 * the message's row; large files and large contents are blobs. What differs per recipient (variables of a batch, a
 * template's data) is resolved when a copy is made.
 */

import { PassingMap } from '../../base/flow/cache.ts'
import type { BlobStore } from '../../platform/store/blobs/blobs.ts'
import type { MessageRow } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'
import { type Chunk, readChunk, sliceChunk } from '../../protocols/message/mime-message.ts'
import type { Mailbox } from '../../protocols/mime/address.ts'
import type { MimeLeaf } from '../../protocols/mime/part-map.ts'
import type { MessageSummary } from '../../watching/events/event.ts'
import type { MessageOptions, RecipientVariables } from './options.ts'

/**
 * A header field: its name and its value as Unicode text; `raw` is the field as it was given in a MIME
 * message, sent unchanged unless its value changes.
 */
export type StoredHeader = [name: string, value: string, raw?: string]

interface CommonContent {
  /** In order, without those that composing or delivery adds. */
  headers: StoredHeader[]
  template: StoredTemplate | null
  /** All copies show their own recipient in To. */
  batch: boolean
  /** Variables of the call by address key, for members of lists that it goes to. */
  listVariables?: Record<string, Record<string, unknown>>
  /**
   * Message-Ids that the variables give to several copies of a call, each with the address key of the one that keeps it:
   * the first.
   */
  repeatedIds?: Record<string, string>
  /** A stored message sent again unchanged: nothing in it is tracked. */
  resent?: true
  /** Received for routes; absent: sent by the account. */
  incoming?: IncomingContent
}

/** What a copy of received mail has in addition when it is forwarded; nothing else of it changes. */
export interface IncomingContent {
  /** Raw fields for every copy. */
  forwardFields: readonly string[]
  /** By address: the ids of the routes that forward to it. */
  forwardedBy: Readonly<Record<string, readonly string[]>>
}

export interface PartsContent extends CommonContent {
  kind: 'parts'
  text: string | null
  html: string | null
  amp: string | null
  files: StoredFile[]
}

/** A message as given; `leaves` are offsets in `body`. */
export interface MimeContent extends CommonContent {
  kind: 'mime'
  body: StoredBytes & { sizeBytes: number }
  leaves: MimeLeaf[]
}

export type MessageContent = PartsContent | MimeContent

/** A template version as fixed at acceptance: later changes do not reach mail already accepted. */
export interface ChosenTemplate {
  name: string
  /** Version tag. */
  version: string
  /** Handlebars source of the html. */
  source: string
  /** Sources of the template's own headers, by their proper spelling: From, Subject, Reply-To. */
  headers: Readonly<Record<string, string>>
}

export interface StoredTemplate {
  chosen: ChosenTemplate
  /** t:variables; they override the message's own variables. */
  variables: Record<string, unknown>
  text: boolean
}

export interface StoredFile {
  disposition: 'inline' | 'attachment'
  filename: string
  /** With its parameters, as `text/calendar; method=REQUEST`. */
  contentType: string
  sizeBytes: number
  bytes: StoredBytes
}

/** Bytes in base 64, or a blob's from `offset` (default 0) on. */
export type StoredBytes = { base64: string } | { blob: string; offset?: number }

/** An accepted message with its content, as deliveries and readers need it. */
export interface MessageRecord {
  id: string
  accountId: string
  domainId: string
  domainName: string
  /** Without angle brackets. */
  messageId: string
  summary: MessageSummary
  options: MessageOptions
  content: MessageContent
  createdAt: number
}

/** A content up to this size is kept in its row; larger ones would slow down every page of the table. */
export const CONTENT_IN_ROW_MAX_BYTES = 512 * 1024

export async function recordOfRow(row: MessageRow, blobs: BlobStore): Promise<MessageRecord> {
  return {
    id: row.id,
    accountId: row.account_id,
    domainId: row.domain_id,
    domainName: row.domain_name,
    messageId: row.message_id,
    summary: JSON.parse(row.summary_json) as MessageSummary,
    options: JSON.parse(row.options_json) as MessageOptions,
    content: contentOfBytes(await storedContent(row, blobs)),
    createdAt: row.created_at,
  }
}

async function storedContent(row: MessageRow, blobs: BlobStore): Promise<Buffer> {
  if (row.content) return asBuffer(row.content)
  if (row.content_blob === null)
    throw Object.assign(new Error(`Message ${row.id} has no content`), { code: 'ENOENT' })
  return readChunk(await blobs.read(row.content_blob))
}

const asBuffer = (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** Its texts follow as they are: in JSON every line end would be escaped, and unescaped character by character. */
type StoredParts = Omit<PartsContent, 'text' | 'html' | 'amp'> & {
  /** Bytes of text, html and AMP. */
  sizes: readonly (number | null)[]
}

const LINE_END = 0x0a

/** The stored form: JSON; of a message of parts the JSON of all but its texts, a line end (which JSON escapes), the texts. */
export function contentBytes(content: MessageContent): Buffer {
  if (content.kind === 'mime') return Buffer.from(JSON.stringify(content))
  const { text, html, amp, ...rest } = content
  const texts = [text, html, amp]
  const sizes = texts.map((value) => (value === null ? null : Buffer.byteLength(value)))
  const head = JSON.stringify({ ...rest, sizes } satisfies StoredParts)
  const headBytes = Buffer.byteLength(head)
  const bytes = Buffer.allocUnsafe(sizes.reduce<number>((sum, size) => sum + (size ?? 0), headBytes + 1))
  bytes.write(head)
  bytes[headBytes] = LINE_END
  let at = headBytes + 1
  for (const [index, value] of texts.entries()) {
    // One byte per character: ASCII, which is copied without conversion.
    if (value !== null) at += bytes.write(value, at, sizes[index] === value.length ? 'latin1' : 'utf8')
  }
  return bytes
}

/** The inverse; also reads the former format of messages of parts, all JSON. */
export function contentOfBytes(bytes: Buffer): MessageContent {
  const headEnd = bytes.indexOf(LINE_END)
  if (headEnd < 0) return JSON.parse(bytes.toString()) as MessageContent
  const { sizes, ...rest } = JSON.parse(bytes.toString('utf8', 0, headEnd)) as StoredParts
  let at = headEnd + 1
  const take = (size: number | null | undefined) => {
    if (size === null || size === undefined) return null
    at += size
    return bytes.toString('utf8', at - size, at)
  }
  return { ...rest, text: take(sizes[0]), html: take(sizes[1]), amp: take(sizes[2]) }
}

/** The blobs of a content, to be removed with it. */
export function blobsOf(content: MessageContent): string[] {
  const stored = content.kind === 'mime' ? [content.body] : content.files.map((file) => file.bytes)
  return stored.flatMap((bytes) => ('blob' in bytes ? [bytes.blob] : []))
}

/** Bytes in memory, or read when needed if they are a blob. */
export async function storedChunk(bytes: StoredBytes, sizeBytes: number, blobs: BlobStore): Promise<Chunk> {
  if ('base64' in bytes) return Buffer.from(bytes.base64, 'base64')
  return sliceChunk(await blobs.read(bytes.blob), bytes.offset ?? 0, (bytes.offset ?? 0) + sizeBytes)
}

export const fileChunk = (file: StoredFile, blobs: BlobStore): Promise<Chunk> =>
  storedChunk(file.bytes, file.sizeBytes, blobs)

/** The parts of a MIME message that are files to a reader: all but its own texts. */
export function mimeFiles(content: MimeContent): MimeLeaf[] {
  return content.leaves.filter((leaf) => isFile(leaf, content.incoming !== undefined))
}

/** In received mail a text with a name is a file too. */
export const isFile = (leaf: MimeLeaf, isReceived: boolean): boolean =>
  leaf.disposition === 'attachment' || !isText(leaf) || (isReceived && leaf.filename !== '')

/** A file that an html part shows by its Content-ID (RFC 2392). */
export const isInline = (leaf: MimeLeaf): boolean =>
  leaf.contentId !== null && leaf.disposition !== 'attachment'

const TEXT_TYPES = new Set(['text/plain', 'text/html', 'text/x-amp-html'])
const isText = (leaf: MimeLeaf) => TEXT_TYPES.has(leaf.type)

/** Which copy. */
export interface CopyTarget {
  /** Null: the message as its sender sees it, without what delivery adds. */
  delivery: { id: string; sid: string } | null
  recipient: Mailbox | null
  /** Not null in batch and list mode. */
  variables: RecipientVariables | null
  list: ListCopy | null
}

/** What a mailing list adds to the copies that go through it. */
export interface ListCopy {
  address: string
  listId: string
  /** The list's own id: it finds the list again after its address changed. */
  sid: string
  /** The list's own domain, whose settings and keys the copy has. */
  domainId: string
  /** Lower-case names of fields that copies do not have. */
  remove: readonly string[]
  add: readonly (readonly [name: string, value: string])[]
}

/** Received mail as it came: every copy of it but those of a mailing list's members. */
export const isForward = ({ content }: Pick<MessageRecord, 'content'>, { list }: Pick<CopyTarget, 'list'>) =>
  content.incoming !== undefined && list === null

/**
 * Keeps a value derived from an object on the object, hidden from copies, JSON and comparisons. A `WeakMap` whose values
 * refer to their keys would keep all of them until a full collection (decision 40).
 */
export function attach<V>(object: object, key: symbol, value: V): V {
  Object.defineProperty(object, key, { value })
  return value
}

export type MessageRecords = ReturnType<typeof createMessageRecords>

/** Messages in one query: they share the round trip to the database thread. */
const PER_QUERY_MAX = 8

interface Waiting {
  id: string
  resolve(record: MessageRecord | null): void
  reject(error: unknown): void
}

/**
 * Accepted messages by id, read once for all their recipients: a bounded cache in front of the database. A message that
 * was just accepted is added only if there is room, since under a backlog the oldest are needed first; one that is read
 * is always added, and the oldest entries are dropped. The message of a single recipient is dropped when its delivery
 * ends.
 *
 * @param bytesMax of remembered contents together
 */
export function createMessageRecords(store: Store, blobs: BlobStore, bytesMax: number) {
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
  /** A message that was removed, or is not needed any more. */
  function forget(id: string): void {
    total -= remembered.get(id)?.bytes ?? 0
    remembered.delete(id)
  }

  /** Messages requested in the same turn of the event loop are read together. */
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
    /** A delivery of the message has ended that does not go through a list. */
    ended(id: string): void {
      if (remembered.get(id)?.single) forget(id)
    },
    /** A message just accepted: its deliveries follow at once and need not read it. */
    remember(record: MessageRecord): void {
      if (total + sizeOf(record) <= bytesMax) keep(record.id, Promise.resolve(record), record)
    },
    async byId(id: string): Promise<MessageRecord | null> {
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
