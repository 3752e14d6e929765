import { newId } from '../../base/ids.ts'
import type { Of } from '../../base/shape.ts'
import { insertMany, type Statement } from '../../platform/store/store.ts'
import type { CONTENT_CHECK, DELIVERY_STATUS } from './shapes.ts'
/**
 * Event records as clients see them (events.md section 2). An event is built once, when it happens. Its JSON is stored
 * in the transaction of the change that it reports, and never changes afterwards.
 */

/** Fields that every event of a message repeats; stored with the message, so that no event has to read its body. */
export interface MessageSummary {
  /** Header texts as people read them: unicode, unfolded. */
  from: string
  to: string
  subject: string
  /** Bare address of From. */
  sender: string
  /** Bare addresses given in the API call. */
  recipients: string[]
  attachments: { filename: string; 'content-type': string; size: number }[]
  sizeBytes: number
  tags: string[]
  userVariables: Record<string, unknown>
  testMode: boolean
  method: 'http' | 'smtp'
  originatingIp: string | null
  keyId: string | null
  template: { name: string; version: string; isText: boolean } | null
  /** With a copy to a member of a mailing list. */
  mailingList?: { address: string; 'list-id': string; sid?: string } | null
  batchId?: string | null
  /** Unix milliseconds after which the message is not to be delivered any more. */
  deliverBy?: number | null
  /** The caller requested delivery at each recipient's best time. */
  optimized?: boolean
  /** The Message-Id field of a batch as given, with recipient variables in it: each copy has its own id. */
  messageIdTemplate?: string
  /** Recipient variables of all recipients; absent: there are none. Those of a recipient are with its delivery. */
  sharedVariables?: Readonly<Record<string, unknown>>
  /** Names of parameters and header fields that were not understood, as `shownNames` writes them; absent: none. */
  ignored?: readonly string[] | undefined
  /** Received for routes; absent: sent by the account. */
  incoming?: true | undefined
  /** The routes that matched, as the accepted event of received mail shows them. */
  routes?: readonly unknown[] | null
}

/** The message with the fields that its events need. */
export interface EventMessage {
  accountId: string
  domainName: string
  /** Without angle brackets. */
  messageId: string
  storageKey: string
  storageUrl: string
  summary: MessageSummary
  /** What the content check found in it; absent: nothing, or it was not asked. */
  contentCheck?: Of<typeof CONTENT_CHECK>
}

export interface EventRecipient {
  recipient: string
  recipientDomain: string
}

/** All event names, in the order of events.md section 2. */
export const EVENT_NAMES = [
  'accepted',
  'delivered',
  'failed',
  'rejected',
  'opened',
  'clicked',
  'unsubscribed',
  'complained',
  'stored',
  'list_member_uploaded',
  'list_member_upload_error',
  'list_uploaded',
] as const

export type EventName = (typeof EVENT_NAMES)[number]

export interface EventRecord {
  id: string
  accountId: string
  domainName: string
  event: EventName
  timestampUs: number
  recipient: string | null
  messageId: string | null
  payload: Record<string, unknown>
}

/** The pool that the sending address is in. */
export interface SendingPool {
  id: string
  name: string
}

/** Fields of delivered and failed events that come from the attempt. */
export interface AttemptFacts {
  sendingIp: string | null
  /** Absent or null: the address is in none. */
  sendingPool?: SendingPool | null
  primaryDkim: string | null
  recipientProvider: string
  status: Of<typeof DELIVERY_STATUS>
}

/** Unix seconds with microseconds. */
const timestampOf = (nowMs: number) => Math.round(nowMs * 1000) / 1_000_000

/** The first members of every event. */
export const head = (event: EventName, nowMs: number, logLevel: 'info' | 'warn' | 'error') => ({
  event,
  id: newId(nowMs),
  timestamp: timestampOf(nowMs),
  'log-level': logLevel,
})

/** Tags and variables, repeated by every event of a message. */
export const labels = ({ summary }: EventMessage) => ({
  tags: summary.tags,
  campaigns: [],
  'user-variables': summary.userVariables,
})

export const mailingList = ({ summary }: EventMessage) =>
  summary.mailingList ? { 'mailing-list': summary.mailingList } : {}

/** The members `message` and `storage` of events about the message itself. */
export const content = ({ summary, ...message }: EventMessage) => ({
  message: {
    headers: {
      to: summary.to,
      from: summary.from,
      subject: summary.subject,
      'message-id': message.messageId,
    },
    attachments: summary.attachments,
    size: summary.sizeBytes,
  },
  storage: { key: message.storageKey, url: message.storageUrl, region: 'default', env: 'production' },
})

type Payload = Record<string, unknown>

/**
 * Members shared by accepted, delivered and failed; the caller adds the others. Assigned one by one: every message has
 * two such events, and spreading one object into another costs as much as serialising it.
 */
function base(
  event: EventName,
  message: EventMessage,
  to: EventRecipient,
  sendingIp: string | null,
  nowMs: number,
  logLevel: 'info' | 'warn' | 'error',
): Payload {
  const { summary } = message
  const { template } = summary
  const payload: Payload = {
    event,
    id: newId(nowMs),
    timestamp: timestampOf(nowMs),
    'log-level': logLevel,
    tags: summary.tags,
    campaigns: NO_CAMPAIGNS,
    'user-variables': summary.userVariables,
    ...content(message),
    recipient: to.recipient,
    'recipient-domain': to.recipientDomain,
    envelope: { sender: summary.sender, targets: to.recipient, transport: 'smtp' },
  }
  if (sendingIp) payload['envelope'] = { ...(payload['envelope'] as object), 'sending-ip': sendingIp }
  if (summary.mailingList) payload['mailing-list'] = summary.mailingList
  if (template)
    payload['template'] = { name: template.name, version: template.version, 'is-text': template.isText }
  if (summary.batchId) payload['batch'] = { id: summary.batchId }
  if (summary.optimized) payload['i-delivery-optimizer'] = 'send-time'
  return payload
}

const NO_CAMPAIGNS: readonly never[] = []

/** Adds the columns that queries need to a payload. */
export function record(
  payload: Record<string, unknown>,
  message: Pick<EventMessage, 'accountId' | 'domainName'> & { messageId: string | null },
  recipient: string | null,
): EventRecord {
  return {
    id: payload['id'] as string,
    accountId: message.accountId,
    domainName: message.domainName,
    event: payload['event'] as EventName,
    timestampUs: Math.round((payload['timestamp'] as number) * 1_000_000),
    recipient,
    messageId: message.messageId,
    payload,
  }
}

export const addressee = (to: EventRecipient) => ({
  recipient: to.recipient,
  'recipient-domain': to.recipientDomain,
})

/** One per recipient of an accepted message. */
export function acceptedEvent(
  message: EventMessage,
  to: EventRecipient,
  nowMs: number,
  scheduledFor: number | null,
): EventRecord {
  const { summary } = message
  const payload = base('accepted', message, to, null, nowMs, 'info')
  const messagePayload = payload['message'] as Payload
  messagePayload['recipients'] = summary.recipients
  if (scheduledFor !== null) messagePayload['scheduled-for'] = Math.floor(scheduledFor / 1000)
  payload['method'] = summary.method
  payload['flags'] = summary.incoming
    ? { 'is-authenticated': false, 'is-routed': true, 'is-test-mode': false }
    : { 'is-authenticated': true, 'is-test-mode': summary.testMode }
  if (summary.originatingIp) payload['originating-ip'] = summary.originatingIp
  if (summary.keyId) payload['api-key-id'] = summary.keyId
  if (summary.deliverBy) payload['deliver-by'] = summary.deliverBy / 1000
  if (summary.routes) payload['routes'] = summary.routes
  if (summary.ignored?.length) payload['ignored'] = summary.ignored
  return record(payload, message, to.recipient)
}

function addAttempt(payload: Payload, { summary, contentCheck }: EventMessage, facts: AttemptFacts): void {
  if (facts.sendingPool) {
    const { id, name } = facts.sendingPool
    Object.assign(payload['envelope'] as object, { 'i-ip-pool-id': id, 'i-ip-pool-name': name })
  }
  payload['flags'] = {
    'is-authenticated': !summary.incoming,
    'is-routed': summary.incoming === true,
    'is-big': false,
    'is-system-test': false,
    'is-test-mode': summary.testMode,
  }
  payload['recipient-provider'] = facts.recipientProvider
  payload['delivery-status'] = facts.status
  if (contentCheck) payload['content-check'] = contentCheck
  if (facts.primaryDkim) payload['primary-dkim'] = facts.primaryDkim
}

/** The receiving server accepted the message (or test mode simulated that). */
export function deliveredEvent(
  message: EventMessage,
  to: EventRecipient,
  facts: AttemptFacts,
  nowMs: number,
): EventRecord {
  const payload = base('delivered', message, to, facts.sendingIp, nowMs, 'info')
  addAttempt(payload, message, facts)
  return record(payload, message, to.recipient)
}

/** An attempt failed, temporarily (a retry follows) or permanently. `reason`: a value of events.md section 2. */
export function failedEvent(
  message: EventMessage,
  to: EventRecipient,
  failure: AttemptFacts & {
    severity: 'temporary' | 'permanent'
    reason: string
    /** Id of the rule that classified the reply (bounce-classification.md); absent if no server was involved. */
    ruleId?: string
    delayedBounce?: boolean
  },
  nowMs: number,
): EventRecord {
  const logLevel = failure.severity === 'permanent' ? 'error' : 'warn'
  const payload = base('failed', message, to, failure.sendingIp, nowMs, logLevel)
  payload['severity'] = failure.severity
  payload['reason'] = failure.reason
  if (failure.ruleId) payload['i-classification-rule-id'] = failure.ruleId
  addAttempt(payload, message, failure)
  if (failure.delayedBounce) (payload['flags'] as Payload)['is-delayed-bounce'] = true
  return record(payload, message, to.recipient)
}

/** The message was accepted, and rejected before delivery; names no recipient. `isStored`: its content can be read. */
export function rejectedEvent(
  message: EventMessage,
  reason: string,
  description: string,
  nowMs: number,
  isStored = true,
): EventRecord {
  const { storage, ...shown } = content(message)
  const payload = {
    ...head('rejected', nowMs, 'warn'),
    ...labels(message),
    ...shown,
    ...(isStored && { storage }),
    reject: { reason, description },
    flags: { 'is-test-mode': message.summary.testMode },
  }
  return record(payload, message, null)
}

// PostgreSQL's JSON refuses NUL, and no tag needs the others.
const CONTROLS = /[\u0000-\u001f]/g

/** Tags as stored with events and failures: a JSON array of distinct lower-case tags; null without any. */
export function tagsJson(tags: unknown): string | null {
  if (!Array.isArray(tags) || tags.length === 0) return null
  const kept = tags.map((tag) => String(tag).toLowerCase().replaceAll(CONTROLS, ' '))
  return JSON.stringify([...new Set(kept)])
}

/** 32-bit FNV-1a of domain and recipient; an index key only, so a collision costs time and nothing else. */
export function recipientHash(domainName: string, recipient: string): number {
  let hash = 0x811c9dc5
  const text = `${domainName}\n${recipient.toLowerCase()}`
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return hash >>> 0
}

/** What an area adds to the transaction of events that it has an interest in. */
export interface EventInterest {
  /** Null: all events. */
  of: readonly EventName[] | null
  /** Answers from memory; usually there are none. */
  rows(events: readonly EventRecord[]): readonly Statement[]
}

/**
 * The one way to write events. A writer hands in the events of its transaction and gets every statement that belongs
 * to them: the rows of the events and those of the areas that have an interest in them (webhook posts, classified
 * failures). No writer knows these areas, and none can leave one out.
 *
 * What may happen later reads committed events instead (follower.ts).
 */
export type EventRecorder = ReturnType<typeof createEventRecorder>

/** `interests` may grow until the first event is written. */
export function createEventRecorder(interests: readonly EventInterest[] = []) {
  return {
    /**
     * All rows of these events, for the transaction of what they report. The order of events (`tx`, `seq`) is given by
     * the database; the rows of their tags are written by a trigger, on SQLite with the index (indexing.ts).
     */
    statements(events: readonly EventRecord[]): Statement[] {
      const statements = insertMany('events', events.map(eventRow))
      for (const { of, rows } of interests) {
        const own = of === null ? events : events.filter(({ event }) => of.includes(event))
        if (own.length > 0) statements.push(...rows(own))
      }
      return statements
    },
  }
}

function eventRow(event: EventRecord) {
  const recipient = event.recipient?.toLowerCase() ?? null
  return {
    id: event.id,
    account_id: event.accountId,
    domain_name: event.domainName,
    event: event.event,
    timestamp_us: event.timestampUs,
    recipient,
    message_id: event.messageId,
    payload_json: payloadText(event.payload),
    tags_json: tagsJson(event.payload['tags']),
    recipient_hash: recipient === null ? null : recipientHash(event.domainName, recipient),
  }
}

/** A JSON escape; longer than one character: NUL or a lone surrogate. */
const ESCAPE = /\\(u0000|ud[89a-f][\da-f]{2}|.)/g

/**
 * Variables and subjects may contain NUL and lone surrogates, which PostgreSQL cannot extract from JSON: they would break
 * the index of opens and clicks, and every query that reads the payload.
 */
function payloadText(payload: object): string {
  const text = JSON.stringify(payload)
  if (!text.includes('\\u')) return text
  return text.replaceAll(ESCAPE, (match, escaped: string) => (escaped.length > 1 ? '\ufffd' : match))
}
