/** Storing a draft's body: small files in the message's row, large ones as blobs. */
import type { MaybePromise } from '../../base/flow/cache.ts'
import type { BlobStore } from '../../platform/store/blobs/blobs.ts'
import type { MessageRow } from '../../platform/store/schema.ts'
import { insert, type Statement } from '../../platform/store/store.ts'
import { type Chunk, chunkSize, sliceChunk } from '../../protocols/message/mime-message.ts'
import {
  blobsOf,
  CONTENT_IN_ROW_MAX_BYTES,
  contentBytes,
  type MessageRecord,
  type MimeContent,
  type PartsContent,
  type StoredBytes,
  type StoredFile,
} from '../record/record.ts'
import type { DraftBody, DraftFile } from '../request/draft.ts'
import type { MimeSource } from '../request/mime-source.ts'
import { DEFAULT_OPTIONS } from '../request/options.ts'

/** Most messages have these. */
const DEFAULT_OPTIONS_JSON = JSON.stringify(DEFAULT_OPTIONS)

export type StoredBody =
  | Pick<PartsContent, 'kind' | 'text' | 'html' | 'amp' | 'files'>
  | Pick<MimeContent, 'kind' | 'body' | 'leaves'>

/** Files in memory up to this size are kept in the row, as base 64. */
const BYTES_IN_ROW_MAX = 256 * 1024

export function storeBody(body: DraftBody, blobs: BlobStore): MaybePromise<StoredBody> {
  if (body.kind === 'mime' || body.files.length > 0) return storeBytes(body, blobs)
  return { kind: 'parts', text: body.text, html: body.html, amp: body.amp, files: [] }
}

async function storeBytes(body: DraftBody, blobs: BlobStore): Promise<StoredBody> {
  if (body.kind === 'mime') {
    return { kind: 'mime', body: await storeMime(body.source, blobs), leaves: body.source.leaves }
  }
  const files = await Promise.all(body.files.map((file) => storeFile(file, blobs)))
  return { kind: 'parts', text: body.text, html: body.html, amp: body.amp, files }
}

async function storeFile(file: DraftFile, blobs: BlobStore): Promise<StoredFile> {
  const { disposition, filename, contentType, chunk } = file
  return {
    disposition,
    filename,
    contentType,
    sizeBytes: chunkSize(chunk),
    bytes: await storeChunk(chunk, blobs),
  }
}

async function storeChunk(chunk: Chunk, blobs: BlobStore): Promise<StoredBytes> {
  if (!(chunk instanceof Uint8Array)) return { blob: await blobs.keep(chunk) }
  if (chunk.byteLength <= BYTES_IN_ROW_MAX) return { base64: Buffer.from(chunk).toString('base64') }
  return { blob: await blobs.keep((await blobs.spool(once(chunk))).chunk) }
}

/** A spooled message is kept as it is; its body is the rest of that file. */
async function storeMime(
  { chunk, bodyStart, bodyEnd }: MimeSource,
  blobs: BlobStore,
): Promise<MimeContent['body']> {
  const sizeBytes = bodyEnd - bodyStart
  if (!(chunk instanceof Uint8Array)) return { blob: await blobs.keep(chunk), offset: bodyStart, sizeBytes }
  return { ...(await storeChunk(sliceChunk(chunk, bodyStart, bodyEnd), blobs)), sizeBytes }
}

export function messageStatement(blobs: BlobStore, record: MessageRecord): MaybePromise<Statement> {
  const bytes = contentBytes(record.content)
  if (bytes.byteLength <= CONTENT_IN_ROW_MAX_BYTES) return rowStatement(record, bytes, null)
  return blobs
    .spool(once(bytes))
    .then(({ chunk }) => blobs.keep(chunk))
    .then((blob) => rowStatement(record, null, blob))
}

function rowStatement(
  record: MessageRecord,
  content: Uint8Array | null,
  contentBlob: string | null,
): Statement {
  const own = blobsOf(record.content)
  const row: MessageRow = {
    id: record.id,
    account_id: record.accountId,
    domain_id: record.domainId,
    domain_name: record.domainName,
    message_id: record.messageId,
    summary_json: JSON.stringify(record.summary),
    options_json: record.options === DEFAULT_OPTIONS ? DEFAULT_OPTIONS_JSON : JSON.stringify(record.options),
    content_kind: record.content.kind,
    content,
    content_blob: contentBlob,
    blobs_json:
      contentBlob || own.length > 0 ? JSON.stringify(contentBlob ? [...own, contentBlob] : own) : '[]',
    created_at: Math.floor(record.createdAt),
  }
  return insert('messages', row)
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}
