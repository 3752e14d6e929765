/**
 * Accepting a message: from a checked draft to rows on disk.
 *
 * 1. The message gets its ids and header fields, large files become blobs.
 * 2. It is composed once, to know that it can be and how large it is.
 * 3. Message, one delivery per recipient and their accepted events are committed together.
 * 4. The delivery engine is woken. Only then is the call answered.
 */
import type { Clock } from '../base/clock.ts'
import { BadRequest, Forbidden } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { messageSize } from '../base/mime-message.ts'
import { LIFETIME_MS } from '../delivery/schedule.ts'
import type { DomainDirectory } from '../domains/directory.ts'
import type { Domain } from '../domains/domain.ts'
import {
  acceptedEvent,
  type EventMessage,
  type EventRecord,
  eventStatement,
  type MessageSummary,
} from '../events/event.ts'
import { bareAddress, formatMailbox } from '../mime/address.ts'
import type { BlobStore } from '../store/blobs.ts'
import type { DeliveryRow, MessageRow } from '../store/schema.ts'
import { insert, type Statement, type Store } from '../store/store.ts'
import { bareAddresses, buildMessage, mailHeaders, needsUtf8, newMessageId, readMessageId } from './build.ts'
import {
  CONTENT_IN_ROW_MAX_BYTES,
  type MessageContent,
  type MessageRecord,
  type StoredFile,
} from './content.ts'
import type { Draft, DraftFile } from './draft.ts'
import type { MessageRecords } from './records.ts'

/** Who sends, how, and for which domain. */
export interface Submission {
  domain: Domain
  method: 'http' | 'smtp'
  originatingIp: string | null
  keyId: string | null
}

export interface Acceptance {
  /** Message-Id with its angle brackets. */
  id: string
  message: 'Queued. Thank you.'
}

export interface AcceptParts {
  store: Store
  blobs: BlobStore
  domains: DomainDirectory
  records: MessageRecords
  clock: Clock
  headerPrefix: string
  storageUrl: string
  /** Unverified domains may send (capture mode). */
  allowUnverified: boolean
  wakeDelivery(): void
  /** Webhook rows of these events, for their transaction. */
  outbox(events: readonly EventRecord[]): Statement[]
}

const MESSAGE_BYTES_MAX = 25 * 1024 * 1024

const UNVERIFIED =
  'The domain is unverified and requires DNS configuration. Log in to your control panel to view required DNS records.'

/** @throws Forbidden when the domain cannot send now (messages.md rule 9) */
export function checkMaySend(domain: Domain, allowUnverified: boolean): void {
  const why =
    domain.state === 'disabled'
      ? 'The domain is disabled'
      : domain.state === 'unverified' && !allowUnverified
        ? UNVERIFIED
        : null
  if (why) throw new Forbidden(`Domain ${domain.name} is not allowed to send: ${why}`)
}

/**
 * Stores the message durably and queues it for every recipient.
 * @throws BadRequest when it is too large, Forbidden for a From domain of another account
 */
export async function acceptMessage(
  parts: AcceptParts,
  draft: Draft,
  submission: Submission,
): Promise<Acceptance> {
  const { store, clock } = parts
  const { domain } = submission
  await checkFromDomain(parts.domains, draft, domain)
  const now = clock.now()
  const given = draft.headers.findLast(([name]) => name.toLowerCase() === 'message-id')
  const messageId = (given && readMessageId(given[1])) ?? newMessageId(now, domain.name)
  const content: MessageContent = {
    headers: mailHeaders(draft, {
      domainName: domain.name,
      messageId,
      date: new Date(now),
      headerPrefix: parts.headerPrefix,
    }),
    text: draft.text,
    html: draft.html,
    amp: draft.amp,
    files: await Promise.all(draft.files.map((file) => storeFile(file, parts.blobs))),
  }
  const id = newId(now)
  const addresses = bareAddresses(draft.recipients)
  const composed = await buildMessage(
    content,
    [],
    { seed: id, utf8: needsUtf8([...addresses, ...bareAddresses(draft.from)]) },
    parts.blobs,
  )
  const sizeBytes = messageSize(composed)
  if (sizeBytes > MESSAGE_BYTES_MAX) throw new BadRequest('Message is too large, max size is 25MB')
  const record: MessageRecord = {
    id,
    accountId: domain.accountId,
    domainId: domain.id,
    domainName: domain.name,
    messageId,
    summary: summarise(draft, content, submission, addresses, sizeBytes),
    options: draft.options,
    content,
    createdAt: now,
  }
  await store.commit(await acceptanceStatements(parts, draft, record, now))
  parts.records.remember(record)
  parts.wakeDelivery()
  return { id: `<${messageId}>`, message: 'Queued. Thank you.' }
}

async function checkFromDomain(domains: DomainDirectory, draft: Draft, domain: Domain): Promise<void> {
  for (const from of draft.from) {
    if (from.domain === domain.name) continue
    const other = await domains.byName(from.domain)
    if (other && other.accountId !== domain.accountId) {
      throw new Forbidden(`From domain ${from.domain} belongs to another account`)
    }
  }
}

async function storeFile(file: DraftFile, blobs: BlobStore): Promise<StoredFile> {
  const { disposition, filename, contentType, chunk } = file
  const common = { disposition, filename, contentType }
  if (chunk instanceof Uint8Array) {
    const base64 = Buffer.from(chunk).toString('base64')
    return { ...common, sizeBytes: chunk.byteLength, bytes: { base64 } }
  }
  return { ...common, sizeBytes: chunk.sizeBytes, bytes: { blob: await blobs.keep(chunk) } }
}

function summarise(
  draft: Draft,
  content: MessageContent,
  submission: Submission,
  recipients: string[],
  sizeBytes: number,
): MessageSummary {
  const header = (name: string) => content.headers.find(([other]) => other.toLowerCase() === name)?.[1] ?? ''
  const sender = draft.from[0]
  return {
    from: header('from'),
    to: header('to'),
    subject: header('subject'),
    sender: sender ? bareAddress(sender) : '',
    recipients,
    attachments: content.files.map((file) => ({
      filename: file.filename,
      'content-type': file.contentType,
      size: file.sizeBytes,
    })),
    sizeBytes,
    tags: [...draft.tags],
    userVariables: draft.userVariables,
    testMode: draft.options.testMode,
    method: submission.method,
    originatingIp: submission.originatingIp,
    keyId: submission.keyId,
    template: null,
  }
}

/** All rows of one acceptance. */
async function acceptanceStatements(
  parts: AcceptParts,
  draft: Draft,
  record: MessageRecord,
  now: number,
): Promise<Statement[]> {
  const statements = [insert('messages', await messageRow(parts.blobs, record))]
  const about = eventMessage(record, parts.storageUrl)
  for (const mailbox of draft.recipients) {
    const recipient = bareAddress(mailbox)
    const delivery: DeliveryRow = {
      id: newId(now),
      account_id: record.accountId,
      domain_id: record.domainId,
      message_pk: record.id,
      recipient,
      recipient_domain: mailbox.domain,
      recipient_header: formatMailbox(mailbox),
      variables_json: null,
      state: 'queued',
      due_at: Math.floor(now),
      expires_at: Math.floor(now + LIFETIME_MS),
      attempts: 0,
      lease_owner: null,
      lease_token: null,
      lease_until: null,
      reason: 'new',
      last_code: null,
      last_reply: null,
      created_at: Math.floor(now),
      updated_at: Math.floor(now),
    }
    statements.push(insert('deliveries', delivery))
    const event = acceptedEvent(about, { recipient, recipientDomain: mailbox.domain }, now, null)
    statements.push(eventStatement(event), ...parts.outbox([event]))
  }
  return statements
}

async function messageRow(blobs: BlobStore, record: MessageRecord): Promise<MessageRow> {
  const bytes = Buffer.from(JSON.stringify(record.content))
  const inRow = bytes.byteLength <= CONTENT_IN_ROW_MAX_BYTES
  const contentBlob = inRow ? null : await blobs.keep((await blobs.spool(once(bytes))).chunk)
  const fileBlobs = record.content.files.flatMap((file) => ('blob' in file.bytes ? [file.bytes.blob] : []))
  return {
    id: record.id,
    account_id: record.accountId,
    domain_id: record.domainId,
    domain_name: record.domainName,
    message_id: record.messageId,
    summary_json: JSON.stringify(record.summary),
    options_json: JSON.stringify(record.options),
    content_kind: 'parts',
    content: inRow ? bytes : null,
    content_blob: contentBlob,
    blobs_json: JSON.stringify(contentBlob ? [...fileBlobs, contentBlob] : fileBlobs),
    created_at: Math.floor(record.createdAt),
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

/** The message as its events name it; the storage key is the message's own id. */
export function eventMessage(record: MessageRecord, storageUrl: string): EventMessage {
  return {
    accountId: record.accountId,
    domainName: record.domainName,
    messageId: record.messageId,
    storageKey: record.id,
    storageUrl: `${storageUrl}/v3/domains/${record.domainName}/messages/${record.id}`,
    summary: record.summary,
  }
}
