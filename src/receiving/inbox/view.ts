/** Parses a captured message for display, whatever its bytes. */
import type { Of } from '../../base/shape.ts'
import type { InboxRow } from '../../platform/store/schema.ts'
import { type ParsedMessage, parseMessage } from '../../protocols/mime/parse.ts'
import { DELIVERED_HEADER_LIMITS, MimeSyntaxError, splitMessage } from '../../protocols/mime/split.ts'
import type { Authentication } from './authentication.ts'
import type { CAPTURED, CAPTURED_WHOLE } from './shapes.ts'

/** A row without its bytes. */
export type ListedRow = Pick<
  InboxRow,
  | 'id'
  | 'received_at'
  | 'envelope_from'
  | 'envelope_to_json'
  | 'from_header'
  | 'to_header'
  | 'subject'
  | 'size_bytes'
  | 'tags_json'
  | 'delivery_id'
>

export type ShownRow = ListedRow &
  Pick<InboxRow, 'domain_name' | 'message_id' | 'storage_key' | 'authentication_json'>

export type InboxItem = Of<typeof CAPTURED>

export interface ShownFile {
  name: string
  contentType: string
  content: Uint8Array
}

export function itemOf(row: ListedRow): InboxItem {
  return {
    id: row.id,
    received_at: new Date(row.received_at).toISOString(),
    envelope: { from: row.envelope_from, to: JSON.parse(row.envelope_to_json) as string[] },
    from: row.from_header,
    to: row.to_header,
    subject: row.subject,
    size: row.size_bytes,
    tags: JSON.parse(row.tags_json) as string[],
    delivery_id: row.delivery_id,
  }
}

/** The members of the response about one captured message. */
export async function viewOf(row: ShownRow, raw: Uint8Array): Promise<Of<typeof CAPTURED_WHOLE>> {
  const parsed = await parsedMail(raw)
  return {
    ...itemOf(row),
    domain: row.domain_name,
    message_id: row.message_id,
    storage_key: row.storage_key,
    headers: parsed.headers,
    text: parsed.text,
    html: parsed.html,
    amp: parsed.amp,
    attachments: parsed.attachments.map((file, n) => ({
      n,
      name: file.filename,
      'content-type': file.contentType,
      size: file.sizeBytes,
      'content-id': file.contentId,
    })),
    authentication: JSON.parse(row.authentication_json) as Authentication,
  }
}

/** Its file `n`, or null. */
export async function fileOf(raw: Uint8Array, n: number): Promise<ShownFile | null> {
  const file = (await parsedMail(raw)).attachments[n]
  return file ? { name: file.filename, contentType: file.contentType, content: file.content } : null
}

type Shown = Pick<ParsedMessage, 'headers' | 'text' | 'html' | 'amp' | 'attachments'>

/** If a message exceeds the limits on parts, only its header is shown; its bytes can still be fetched. */
async function parsedMail(raw: Uint8Array): Promise<Shown> {
  try {
    return await parseMessage(raw, DELIVERED_HEADER_LIMITS)
  } catch (error) {
    if (!(error instanceof MimeSyntaxError)) throw error
  }
  const headers = splitMessage(raw, DELIVERED_HEADER_LIMITS).headers.map(
    ({ name, value }): [string, string] => [name, value],
  )
  return { headers, text: null, html: null, amp: null, attachments: [] }
}

/** Texts of a message, each cut. */
export interface ShownTexts {
  /** '' without one. */
  html: string
  text: string
  fileNames: readonly string[]
}

/** Length of each text; a check reads no more. */
const TEXT_CHARS_MAX = 512 * 1024 + 1
const FILE_NAMES_MAX = 100

export async function textsOf(raw: Uint8Array): Promise<ShownTexts> {
  const { html, text, attachments } = await parsedMail(raw)
  return {
    html: html?.slice(0, TEXT_CHARS_MAX) ?? '',
    text: text?.slice(0, TEXT_CHARS_MAX) ?? '',
    fileNames: attachments.slice(0, FILE_NAMES_MAX).map(({ filename }) => filename),
  }
}
