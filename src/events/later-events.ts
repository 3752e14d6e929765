/**
 * Events that follow a delivery (opened, clicked, unsubscribed, complained), that tell of mail received
 * (stored), and of mailing list uploads (events.md section 2).
 */
import {
  addressee,
  content,
  type EventMessage,
  type EventName,
  type EventRecipient,
  type EventRecord,
  head,
  labels,
  mailingList,
  record,
} from './event.ts'

export interface ClientInfo {
  'client-name': string
  'client-os': string
  'client-type': string
  'device-type': string
  'user-agent': string
  bot: string
}

export interface Geolocation {
  country: string
  region: string
  city: string
  timezone: string
}

/** Who opened, clicked or unsubscribed, and with what. */
export interface Visit {
  ip: string
  client: ClientInfo
  geolocation: Geolocation
  recipientProvider: string
  /** Unix milliseconds of the delivery; null: not known. */
  deliveredAt: number | null
}

function visited(event: EventName, message: EventMessage, to: EventRecipient, visit: Visit, nowMs: number) {
  return {
    ...head(event, nowMs, 'info'),
    ...addressee(to),
    'recipient-provider': visit.recipientProvider,
    ...labels(message),
    ...mailingList(message),
    message: { headers: { 'message-id': message.messageId } },
    ip: visit.ip,
    'client-info': visit.client,
    geolocation: visit.geolocation,
  }
}

const deliveredAt = ({ deliveredAt: at }: Visit) =>
  at === null ? {} : { 'delivered-at': Math.round(at * 1000) / 1_000_000 }

export function openedEvent(
  message: EventMessage,
  to: EventRecipient,
  visit: Visit,
  nowMs: number,
): EventRecord {
  const payload = { ...visited('opened', message, to, visit, nowMs), ...deliveredAt(visit) }
  return record(payload, message, to.recipient)
}

/** `url`: where the link leads, as it stood in the message. */
export function clickedEvent(
  message: EventMessage,
  to: EventRecipient,
  visit: Visit & { url: string },
  nowMs: number,
): EventRecord {
  const payload = {
    ...visited('clicked', message, to, visit, nowMs),
    ...deliveredAt(visit),
    url: visit.url,
  }
  return record(payload, message, to.recipient)
}

export function unsubscribedEvent(
  message: EventMessage,
  to: EventRecipient,
  visit: Visit,
  nowMs: number,
): EventRecord {
  return record(visited('unsubscribed', message, to, visit, nowMs), message, to.recipient)
}

/** A feedback loop's report matched this message. */
export function complainedEvent(
  message: EventMessage,
  to: EventRecipient,
  facts: { recipientProvider: string; sendingIp: string | null },
  nowMs: number,
): EventRecord {
  const payload = {
    ...head('complained', nowMs, 'warn'),
    ...addressee(to),
    'recipient-provider': facts.recipientProvider,
    ...labels(message),
    ...mailingList(message),
    ...content(message),
    ...(facts.sendingIp && { envelope: { 'sending-ip': facts.sendingIp } }),
  }
  return record(payload, message, to.recipient)
}

/** A route stored an inbound message; `summary.recipients` are those of its envelope. */
export function storedEvent(message: EventMessage, nowMs: number): EventRecord {
  const about = content(message)
  const payload = {
    ...head('stored', nowMs, 'info'),
    ...labels(message),
    ...about,
    message: { ...about.message, recipients: message.summary.recipients },
    flags: { 'is-test-mode': message.summary.testMode },
  }
  return record(payload, message, null)
}

/** One upload to a mailing list. */
export interface ListUpload {
  accountId: string
  domainName: string
  taskId: string
  listAddress: string
}

function ofUpload(upload: ListUpload, payload: Record<string, unknown> & { event: EventName }): EventRecord {
  const { accountId, domainName } = upload
  return record(payload, { accountId, domainName, messageId: null }, null)
}

const upload = ({ taskId, listAddress }: ListUpload) => ({
  'task-id': taskId,
  'mailing-list': { address: listAddress },
})

export function listMemberUploadedEvent(
  of: ListUpload,
  member: { address: string; name: string; subscribed: boolean },
  nowMs: number,
): EventRecord {
  return ofUpload(of, { ...head('list_member_uploaded', nowMs, 'info'), ...upload(of), member })
}

/** `description`: the member as it was given, `message`: why it was not taken. */
export function listMemberUploadErrorEvent(
  of: ListUpload,
  fault: { format: 'json' | 'csv'; description: string; message: string },
  nowMs: number,
): EventRecord {
  return ofUpload(of, {
    ...head('list_member_upload_error', nowMs, 'error'),
    ...upload(of),
    format: fault.format,
    'member-description': fault.description,
    error: { message: fault.message },
  })
}

export function listUploadedEvent(
  of: ListUpload,
  result: {
    format: 'json' | 'csv'
    subscribed: boolean
    isUpsert: boolean
    upsertedCount: number
    failedCount: number
  },
  nowMs: number,
): EventRecord {
  return ofUpload(of, {
    ...head('list_uploaded', nowMs, 'info'),
    ...upload(of),
    format: result.format,
    subscribed: result.subscribed,
    'is-upsert': result.isUpsert,
    'upserted-count': result.upsertedCount,
    'failed-count': result.failedCount,
  })
}
