/**
 * What an accepted message becomes: its record (ids, header fields, summary), its stored body, and its rows: the message,
 * and for each copy a delivery and an accepted event. List expansion and received mail make the same rows.
 */

import type { MaybePromise } from '../../base/flow/cache.ts'
import { newId } from '../../base/ids.ts'
import { shownNames } from '../../platform/http/operation.ts'
import type { BlobStore } from '../../platform/store/blobs/blobs.ts'
import type { DeliveryRow, MessageRow } from '../../platform/store/schema.ts'
import { insert, insertMany, type Statement, type Store } from '../../platform/store/store.ts'
import { type Chunk, chunkSize, sliceChunk } from '../../protocols/message/mime-message.ts'
import { addressKey, bareAddress, formatMailbox } from '../../protocols/mime/address.ts'
import { mediaType } from '../../protocols/mime/parameters.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import type { SenderSettings } from '../../sending/ips/choice.ts'
import type { Sources } from '../../sending/ips/source-addresses.ts'
import type { EngineRelays } from '../../sending/relays/engine-relays.ts'
import { acceptedEvent, type EventRecorder, type MessageSummary } from '../../watching/events/event.ts'
import { findHeader, headerText, mailHeaders, newMessageId } from '../compose/headers.ts'
import { acceptedMessage, knownMessage } from '../record/event-message.ts'
import { DEFAULT_OPTIONS, type RecipientVariables } from '../record/options.ts'
import {
  blobsOf,
  CONTENT_IN_ROW_MAX_BYTES,
  contentBytes,
  isInline,
  type MessageContent,
  type MessageRecord,
  type MimeContent,
  mimeFiles,
  type PartsContent,
  type StoredBytes,
  type StoredFile,
} from '../record/record.ts'
import { messageIdOfCopy, readMessageId, recipientLookup, usesRecipient } from '../record/variables.ts'
import type { Draft, DraftBody, DraftFile } from '../request/draft.ts'
import type { MimeSource } from '../request/mime-source.ts'
import { ALL_RECIPIENTS } from '../request/options.ts'
import type { Accepted, NewCopy } from './decide.ts'

/** Who sends, how, and for which domain. */
export interface MessageOrigin {
  domain: Domain
  method: 'http' | 'smtp'
  originatingIp: string | null
  keyId: string | null
  /** Parameters of the call that were not known, as `unknownNames` returns them. */
  ignored?: readonly string[]
}

/** `summary.sizeBytes` is 0 until the message has been composed. */
export function makeRecord(
  draft: Draft,
  accepted: Accepted,
  body: StoredBody,
  origin: MessageOrigin,
  now: number,
): MessageRecord {
  const { domain } = origin
  const messageId = givenMessageId(draft) ?? newMessageId(now, domain.name)
  const content: MessageContent = {
    headers: mailHeaders(draft, { domainName: domain.name, messageId, date: new Date(now) }),
    template:
      accepted.template && draft.template
        ? { chosen: accepted.template, variables: draft.template.variables, text: draft.template.text }
        : null,
    batch: draft.recipientVariables !== null,
    ...body,
  }
  const id = newId(now)
  const summary = summaryOf(draft, accepted, content, origin)
  if (content.batch) {
    summary.batchId = id
    const shared = draft.recipientVariables?.get(ALL_RECIPIENTS)
    if (shared) summary.sharedVariables = shared
    const given = draft.headers.findLast(([name]) => name.toLowerCase() === 'message-id')?.[1]
    if (given !== undefined && usesRecipient(given)) {
      summary.messageIdTemplate = given
      content.repeatedIds = repeatedIds(given, accepted.direct, summary.sharedVariables)
    }
  }
  if (accepted.viaLists.length > 0 && draft.recipientVariables)
    content.listVariables = Object.fromEntries(draft.recipientVariables)
  return {
    id,
    accountId: domain.accountId,
    domainId: domain.id,
    domainName: domain.name,
    messageId,
    summary,
    options: draft.options,
    content,
    createdAt: now,
  }
}

/** Message-Ids that several copies would have, each with the address key of the first such copy. */
function repeatedIds(template: string, copies: readonly NewCopy[], shared?: RecipientVariables) {
  const first = new Map<string, string>()
  const repeated: Record<string, string> = {}
  for (const { recipient, variables } of copies) {
    const id = messageIdOfCopy(template, recipientLookup(recipient, variables ?? {}, shared))
    if (id === null) continue
    const holder = first.get(id)
    if (holder === undefined) first.set(id, addressKey(recipient))
    else repeated[id] = holder
  }
  return repeated
}

/** The last one of the call if it is valid, else that of the MIME message. */
function givenMessageId(draft: Draft): string | null {
  const given = draft.headers.findLast(([name]) => name.toLowerCase() === 'message-id')?.[1]
  const own = given !== undefined && draft.recipientVariables && usesRecipient(given) ? undefined : given
  const inside =
    draft.body.kind === 'mime'
      ? draft.body.source.headers.find(({ name }) => name.toLowerCase() === 'message-id')?.value
      : undefined
  return (
    (own === undefined ? null : readMessageId(own)) ?? (inside === undefined ? null : readMessageId(inside))
  )
}

function summaryOf(
  draft: Draft,
  { tags, template }: Accepted,
  content: MessageContent,
  { domain, method, originatingIp, keyId, ignored = [] }: MessageOrigin,
): MessageSummary {
  const [sender] = draft.from
  const { unknownHeaders = [] } = draft
  const from = findHeader(content.headers, 'from')?.[1] ?? `postmaster@${domain.name}`
  return {
    from: template && draft.from.length === 0 ? '' : from,
    to: headerText(content.headers, 'to'),
    subject: headerText(content.headers, 'subject'),
    sender: sender ? bareAddress(sender) : `postmaster@${domain.name}`,
    recipients: draft.recipients.map((mailbox) => bareAddress(mailbox)),
    attachments: attachmentsOf(content),
    sizeBytes: 0,
    tags: [...tags],
    userVariables: draft.userVariables,
    testMode: draft.options.testMode,
    ...(draft.options.optimizeHours !== null && { optimized: true }),
    ...(ignored.length + unknownHeaders.length > 0 && {
      ignored: [...ignored, ...shownNames([...new Set(unknownHeaders)])],
    }),
    method,
    originatingIp,
    keyId,
    template:
      template && draft.template
        ? { name: template.name, version: template.version, isText: draft.template.text }
        : null,
  }
}

/** Files that a mail program lists, without those shown inside an html part (messages.md rule 11). */
export function attachmentsOf(content: MessageContent): MessageSummary['attachments'] {
  if (content.kind === 'parts') {
    return content.files
      .filter(({ disposition }) => disposition === 'attachment')
      .map((file) => ({
        filename: file.filename,
        'content-type': mediaType(file.contentType),
        size: file.sizeBytes,
      }))
  }
  return mimeFiles(content)
    .filter((file) => !isInline(file))
    .map((file) => ({
      filename: file.filename,
      'content-type': file.type,
      size: file.sizeBytes,
    }))
}

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

function rowStatement(record: MessageRecord, content: Uint8Array | null, contentBlob: string | null) {
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

export interface RowParts {
  store: Pick<Store, 'leaseTimes'>
  storageUrl: string
  recorder: EventRecorder
}

/** One delivery and one accepted event per copy, in few statements. `rows`: from `deliveryRows`. */
export function copyStatements(
  record: MessageRecord,
  parts: RowParts,
  copies: readonly NewCopy[],
  rows: readonly DeliveryRow[],
  now: number,
): Statement[] {
  return [
    ...insertMany('deliveries', rows, parts.store.leaseTimes),
    ...acceptedStatements(record, parts, copies, rows, now),
  ]
}

/** The events alone: the address of a list is accepted but gets no mail itself. */
export function acceptedStatements(
  record: MessageRecord,
  { storageUrl, recorder }: RowParts,
  copies: readonly NewCopy[],
  rows: readonly { id: string }[],
  now: number,
): Statement[] {
  const events = copies.map((copy, at) => {
    const { id } = rows[at] as { id: string }
    // No caller is there to be refused for a member of a list: an error would hold up this member and all later ones.
    const about = (copy.list ? knownMessage : acceptedMessage)(
      record,
      storageUrl,
      copy.recipient,
      { id },
      copy.variables,
      copy.list,
    )
    const to = { recipient: bareAddress(copy.recipient), recipientDomain: copy.recipient.domain }
    return acceptedEvent(about, to, now, copy.due.dueAt > now ? copy.due.dueAt : null)
  })
  return recorder.statements(events)
}

export interface KeyParts {
  sources: Pick<Sources, 'keysFor'>
  relays: Pick<EngineRelays, 'keysFor'>
}

/** Source keys of a message from the domain; null: the domain is gone. */
export function sourceKeys(
  { sources, relays }: KeyParts,
  { accountId, options }: MessageRecord,
  domain: SenderSettings | null,
): (deliveryId: string) => string {
  const { sendingIps = null, sendingPoolId = null, dynamicPoolId = null } = domain ?? {}
  const requested = { ip: options.sendingIp, pool: options.sendingIpPool }
  const keyOf = sources.keysFor({ accountId, sendingIps, sendingPoolId, dynamicPoolId }, requested)
  return relays.keysFor(keyOf, options.relay ?? null)
}

export function deliveryRows(
  record: MessageRecord,
  keyOf: (deliveryId: string) => string,
  copies: readonly NewCopy[],
  now: number,
): DeliveryRow[] {
  return copies.map((copy) => deliveryRow(record, keyOf, copy, now))
}

function deliveryRow(
  record: MessageRecord,
  keyOf: (deliveryId: string) => string,
  copy: NewCopy,
  now: number,
): DeliveryRow {
  const { recipient, due, variables, list } = copy
  const isScheduled = due.dueAt > now
  const id = newId(now)
  return {
    id,
    account_id: record.accountId,
    domain_id: list?.domainId ?? record.domainId,
    message_pk: record.id,
    recipient: bareAddress(recipient),
    recipient_domain: recipient.domain,
    recipient_header: formatMailbox(recipient),
    variables_json: variables ? JSON.stringify(variables) : null,
    list_json: list ? JSON.stringify(list) : null,
    state: isScheduled ? 'scheduled' : 'queued',
    due_at: due.dueAt,
    expires_at: due.expiresAt,
    attempts: 0,
    lease_owner: null,
    lease_token: null,
    lease_until: null,
    reason: isScheduled ? 'scheduled' : 'new',
    last_code: null,
    last_reply: null,
    paused_due_at: null,
    source_key: keyOf(id),
    created_at: Math.floor(now),
    updated_at: Math.floor(now),
  }
}
