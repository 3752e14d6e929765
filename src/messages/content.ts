/**
 * The content of an accepted message as stored: its headers and parts once, whoever gets it. Small contents
 * are a row's value; large files and large contents are blobs.
 */
import type { Chunk, LazyChunk } from '../base/mime-message.ts'
import type { MessageSummary } from '../events/event.ts'
import type { BlobStore } from '../store/blobs.ts'
import type { MessageRow } from '../store/schema.ts'
import type { MessageOptions } from './draft.ts'

export interface MessageContent {
  /** Unicode header fields in order, without those that MIME composing or delivery adds. */
  headers: [name: string, value: string][]
  text: string | null
  html: string | null
  amp: string | null
  files: StoredFile[]
}

export interface StoredFile {
  disposition: 'inline' | 'attachment'
  filename: string
  contentType: string
  sizeBytes: number
  /** The bytes in base 64, or the name of their blob. */
  bytes: { base64: string } | { blob: string }
}

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
    content: JSON.parse(await contentText(row, blobs)) as MessageContent,
    createdAt: row.created_at,
  }
}

async function contentText(row: MessageRow, blobs: BlobStore): Promise<string> {
  if (row.content) return Buffer.from(row.content).toString('utf8')
  if (row.content_blob === null) throw new Error(`Message ${row.id} has no content`)
  const parts: Uint8Array[] = []
  for await (const bytes of (await blobs.read(row.content_blob)).open()) parts.push(bytes)
  return Buffer.concat(parts).toString('utf8')
}

/** The bytes of a stored file, read when needed if they are in the blob store. */
export async function fileChunk(file: StoredFile, blobs: BlobStore): Promise<Chunk> {
  if ('base64' in file.bytes) return Buffer.from(file.bytes.base64, 'base64')
  const chunk: LazyChunk = await blobs.read(file.bytes.blob)
  return chunk
}
