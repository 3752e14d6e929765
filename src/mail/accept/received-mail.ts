/**
 * Received mail in the tables of sent mail: a message of the receiving domain, kept and shown like any other (messages.md
 * rule 49), a delivery for each address that it is forwarded to, and the expansion of a mailing list that it is posted to.
 * All of it is one transaction with its events.
 */

import { newId } from '../../base/ids.ts'
import { Forbidden } from '../../base/process/errors.ts'
import type { Core } from '../../core.ts'
import type { MessageLimits } from '../../people/message-limits/limits.ts'
import type { BlobStore } from '../../platform/store/blobs/blobs.ts'
import { insertMany, StaleWrite, type Statement, type Store } from '../../platform/store/store.ts'
import { type Chunk, chunkSize, readChunk, sliceChunk } from '../../protocols/message/mime-message.ts'
import { addressKey, bareAddress, type Mailbox, parseMailbox } from '../../protocols/mime/address.ts'
import { readStructured } from '../../protocols/mime/parameters.ts'
import { findLeaves, type MimeLeaf } from '../../protocols/mime/part-map.ts'
import { type RawHeader, readHead, splitMessage, unfoldedValue } from '../../protocols/mime/split.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import { type AcceptedPost, expansionStatement } from '../../sending/lists/expansion-job.ts'
import {
  acceptedEvent,
  type EventMessage,
  type MessageSummary,
  rejectedEvent,
} from '../../watching/events/event.ts'
import { headerText, newMessageId } from '../compose/headers.ts'
import type { Delivery } from '../deliver/contract.ts'
import { eventMessage } from '../record/event-message.ts'
import { DEFAULT_OPTIONS } from '../record/options.ts'
import type { IncomingContent, MessageContent, MessageRecord, StoredHeader } from '../record/record.ts'
import { readMessageId } from '../record/variables.ts'
import type { MimeSource } from '../request/mime-source.ts'
import { dueTime } from './decide.ts'
import type { ListExpander } from './list-recipients.ts'
import {
  attachmentsOf,
  deliveryRows,
  type KeyParts,
  messageStatement,
  sourceKeys,
  storeBody,
} from './rows.ts'

/** A mail as it came. */
export type ReadMail = Omit<MimeSource, 'bodyEnd'>

/** @throws MimeSyntaxError beyond the limits of a header or of parts */
export async function readMail(chunk: Chunk): Promise<ReadMail> {
  const { headers, bodyOffset } = splitMessage(await readHead(chunk))
  const bodyStart = Math.min(bodyOffset, chunkSize(chunk))
  const body = sliceChunk(chunk, bodyStart, chunkSize(chunk))
  const leaves = await findLeaves(headers, body)
  if (leaves.length === 0) leaves.push(await undivided(headers, body))
  return { headers, chunk, bodyStart, leaves }
}

/** Blank lines of a mail without content. */
const BLANK_BYTES_MAX = 100

/** A multipart in which no delimiter occurs: its text would be nowhere to be seen, so it is a file, unless it is blank. */
async function undivided(headers: readonly RawHeader[], body: Chunk): Promise<MimeLeaf> {
  const field = headers.find(({ name }) => name.toLowerCase() === 'content-type')
  const sizeBytes = chunkSize(body)
  const isBlank = sizeBytes <= BLANK_BYTES_MAX && (await readChunk(body)).toString('latin1').trim() === ''
  return {
    ...{ headerStart: -1, start: 0, end: sizeBytes, sizeBytes },
    type: isBlank ? 'text/plain' : readStructured(unfoldedValue(field?.raw ?? '')).value,
    ...{ charset: 'us-ascii', encoding: '7bit', disposition: null, filename: '', contentId: null },
  }
}

export interface ReceivedMessage {
  domain: Domain
  mail: ReadMail
  /** The fields to keep, those of the service included. */
  headers: readonly StoredHeader[]
  /** '' is `<>`. */
  envelopeSender: string
  remoteAddress: string
  recipients: readonly { mailbox: Mailbox; routes: readonly unknown[] }[]
  /** Addresses to forward it to, and the routes that do; an address may be given more than once. */
  forwards: readonly { mailbox: Mailbox; routeId: string }[]
  /** Raw fields of forwarded copies. */
  forwardFields: readonly string[]
  /** The list that distributes it; null: none. */
  post: ReceivedPost | null
  /** Its copies go only to servers that keep REQUIRETLS (RFC 8689). */
  requireTls?: boolean
}

export interface ReceivedPost extends Pick<AcceptedPost, 'list' | 'headers'> {
  /** The same for every transmission of one mail; null: it cannot be recognised. */
  key: string | null
}

interface ReceivedMailParts extends Pick<Core, 'blobs' | 'clock' | 'recorder'> {
  /** Refuses below the floor of free space. */
  store: Store
  sources: KeyParts['sources']
  relays: KeyParts['relays']
  storageUrl: string
  engine: Pick<Delivery, 'wake'>
  limits: MessageLimits
  lists: Pick<ListExpander, 'countMembers' | 'wake'>
}

/** What is known of a mail that is not kept. */
export type DroppedMessage = Omit<ReceivedMessage, 'forwards' | 'forwardFields' | 'post'>

export type ReceivedMailStore = ReturnType<typeof createReceivedMailStore>

export function createReceivedMailStore(parts: ReceivedMailParts) {
  const { store, clock, recorder } = parts
  return {
    /**
     * Stores the message durably, with an accepted event per recipient and what `also` returns for it. A spooled mail has
     * then been kept. Null: the list has distributed this mail already; nothing was stored.
     * @throws Forbidden if the forwarded copies or the members would pass a monthly limit, StaleWrite of a statement of `also`,
     * StoreFull, StoreUnavailable, InsufficientStorage; nothing
     * was stored then
     */
    async store(
      message: ReceivedMessage,
      also: (about: EventMessage, record: MessageRecord) => Statement[],
    ): Promise<MessageRecord | null> {
      const now = clock.now()
      const kept = notingBlobs(parts.blobs)
      const { blobs } = kept
      const record = await recordOf(message, blobs, now)
      const about = eventMessage(record, parts.storageUrl, record.id, record.summary)
      const accepted = message.recipients.map(({ mailbox, routes }) => {
        const to = { recipient: bareAddress(mailbox), recipientDomain: mailbox.domain }
        return acceptedEvent({ ...about, summary: { ...record.summary, routes } }, to, now, null)
      })
      const forwards = [
        ...new Map(message.forwards.map((one) => [addressKey(one.mailbox), one.mailbox])).values(),
      ]
      const copies = forwards.map((recipient) => ({
        recipient,
        variables: null,
        due: dueTime(now, record.options),
        list: null,
      }))
      const keyOf = sourceKeys(parts, record, message.domain)
      const expansion = message.post ? expansionOf(record, message.post, now) : null
      const unit = [
        await messageStatement(blobs, record),
        ...(expansion ? [expansion] : []),
        ...insertMany('deliveries', deliveryRows(record, keyOf, copies, now), store.leaseTimes),
        ...recorder.statements(accepted),
        ...also(about, record),
      ]
      try {
        await commitCounted(parts, record, { copies: copies.length, post: message.post }, unit)
      } catch (error) {
        const isRepeated = expansion !== null && error instanceof StaleWrite && error.statement === expansion
        // Of other errors it is unknown whether the rows that name the blobs have been written.
        if (isRepeated || error instanceof Forbidden) await kept.remove()
        if (isRepeated) return null
        throw error
      }
      if (copies.length > 0) parts.engine.wake()
      if (expansion) parts.lists.wake()
      return record
    },
    /** Writes a rejected event of a mail that was accepted and is dropped. @throws StoreFull, StoreUnavailable */
    async reject({ domain, ...message }: DroppedMessage, reason: string, description: string): Promise<void> {
      const now = clock.now()
      const { headers, mail } = message
      const about = {
        accountId: domain.accountId,
        domainName: domain.name,
        messageId: messageIdOf(headers, domain, now),
        storageKey: '',
        storageUrl: '',
        summary: summaryOf(message, filesOf(mail.leaves), headers),
      }
      await store.commit(recorder.statements([rejectedEvent(about, reason, description, now, false)]))
    },
  }
}

/** The blobs, and those of them that are kept through it. */
function notingBlobs(blobs: BlobStore): { blobs: BlobStore; remove(): Promise<void> } {
  const names: string[] = []
  return {
    blobs: {
      ...blobs,
      async keep(chunk) {
        const name = await blobs.keep(chunk)
        names.push(name)
        return name
      },
    },
    async remove() {
      for (const name of names) await blobs.remove(name)
    },
  }
}

const expansionOf = (record: MessageRecord, { key, ...post }: ReceivedPost, now: number): Statement =>
  expansionStatement(
    { ...post, domainId: record.domainId, messagePk: record.id, exclude: [], postKey: key },
    now,
  )

/**
 * Forwarded copies count at once, the members of a list when their copies are made; a post to more than are left of a limit
 * is refused now.
 */
async function commitCounted(
  { store, limits, lists }: ReceivedMailParts,
  { accountId, domainName }: MessageRecord,
  { copies, post }: { copies: number; post: ReceivedPost | null },
  unit: readonly Statement[],
): Promise<void> {
  const commit = (all: readonly Statement[]) => store.commit(all)
  if (copies === 0 && post === null) await commit(unit)
  else {
    const later = (upTo: number) =>
      post ? lists.countMembers(accountId, [parseMailbox(post.list.address)], upTo) : Promise.resolve(0)
    await limits.commit({ accountId, domainName, recipients: copies, later }, unit, commit)
  }
}

async function recordOf(message: ReceivedMessage, blobs: BlobStore, now: number): Promise<MessageRecord> {
  const { domain, mail } = message
  const headers = [...message.headers]
  const source = {
    headers: mail.headers,
    chunk: mail.chunk,
    bodyStart: mail.bodyStart,
    bodyEnd: chunkSize(mail.chunk),
    leaves: mail.leaves,
  }
  const body = await storeBody({ kind: 'mime', source }, blobs)
  const content: MessageContent = {
    ...body,
    headers,
    template: null,
    batch: false,
    incoming: incomingOf(message),
  } as MessageContent
  return {
    id: newId(now),
    accountId: domain.accountId,
    domainId: domain.id,
    domainName: domain.name,
    messageId: messageIdOf(headers, domain, now),
    summary: summaryOf(message, attachmentsOf(content), headers),
    options: message.requireTls ? { ...DEFAULT_OPTIONS, requireTls: 'requiretls' } : DEFAULT_OPTIONS,
    content,
    createdAt: now,
  }
}

const messageIdOf = (headers: readonly StoredHeader[], domain: Domain, now: number): string =>
  readMessageId(headerText(headers, 'message-id')) ?? newMessageId(now, domain.name)

/** Attachments of a mail that has no content. */
const filesOf = (leaves: MimeLeaf[]) =>
  attachmentsOf({
    ...{ kind: 'mime', headers: [], template: null, batch: false, leaves },
    body: { base64: '', sizeBytes: 0 },
    incoming: { forwardFields: [], forwardedBy: {} },
  })

function incomingOf({ forwards, forwardFields }: ReceivedMessage): IncomingContent {
  const forwardedBy: Record<string, string[]> = Object.create(null)
  for (const { mailbox, routeId } of forwards) {
    const key = addressKey(mailbox)
    forwardedBy[key] = [...(forwardedBy[key] ?? []), routeId]
  }
  return { forwardFields, forwardedBy }
}

/** Subjects and addresses of strangers are cut in events; the message has all of them. */
const SHOWN_CHARS_MAX = 4_096

function summaryOf(
  { envelopeSender, remoteAddress, recipients, mail }: Omit<DroppedMessage, 'domain'>,
  attachments: MessageSummary['attachments'],
  headers: readonly StoredHeader[],
): MessageSummary {
  const shown = (name: string) => headerText(headers, name).slice(0, SHOWN_CHARS_MAX).toWellFormed()
  const added = headers.reduce((sum, [name, value, raw]) => sum + (raw ?? `${name}: ${value}`).length + 2, 2)
  return {
    from: shown('from'),
    to: shown('to'),
    subject: shown('subject'),
    sender: envelopeSender,
    recipients: recipients.map(({ mailbox }) => bareAddress(mailbox)),
    attachments,
    sizeBytes: added + chunkSize(mail.chunk) - mail.bodyStart,
    tags: [],
    userVariables: {},
    testMode: false,
    method: 'smtp',
    originatingIp: remoteAddress,
    keyId: null,
    template: null,
    incoming: true,
  }
}
