/**
 * Events after a delivery (opened, clicked, unsubscribed, complained), of received mail (stored), and of mailing list
 * uploads (events.md section 2).
 */
import type { Of } from '../../base/shape.ts'
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
import type { CLIENT_INFO, GEOLOCATION } from './shapes.ts'

export type ClientInfo = Of<typeof CLIENT_INFO>
export type Geolocation = Of<typeof GEOLOCATION>

/** The client that opened, clicked or unsubscribed. */
export interface Visit {
  ip: string
  client: ClientInfo
  geolocation: Geolocation
  recipientProvider: string
  /** Unix milliseconds of the delivery; null: not known. */
  deliveredAt: number | null
}

function visitPayload(
  event: EventName,
  message: EventMessage,
  to: EventRecipient,
  visit: Visit,
  nowMs: number,
) {
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
  const payload = { ...visitPayload('opened', message, to, visit, nowMs), ...deliveredAt(visit) }
  return record(payload, message, to.recipient)
}

/** `url`: the link's target as written in the message. */
export function clickedEvent(
  message: EventMessage,
  to: EventRecipient,
  visit: Visit & { url: string },
  nowMs: number,
): EventRecord {
  const payload = {
    ...visitPayload('clicked', message, to, visit, nowMs),
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
  return record(visitPayload('unsubscribed', message, to, visit, nowMs), message, to.recipient)
}

/** A feedback loop reported this message. */
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

/** A route stored an inbound message; `summary.recipients` are the envelope's. */
export function storedEvent(message: EventMessage, nowMs: number): EventRecord {
  const members = content(message)
  const payload = {
    ...head('stored', nowMs, 'info'),
    ...labels(message),
    ...members,
    message: { ...members.message, recipients: message.summary.recipients },
    flags: { 'is-test-mode': message.summary.testMode },
  }
  return record(payload, message, null)
}

/**
 * Turns a delivered or failed event of received mail into one of its POST to a URL. `isNotice`: the notice of a stored
 * message, else the message itself. `url`: as it may be shown.
 */
export function postedEvent(event: EventRecord, url: string, isNotice: boolean): EventRecord {
  const { payload } = event
  payload['envelope'] = { ...(payload['envelope'] as object), targets: url, transport: 'http' }
  if (isNotice)
    payload['flags'] = { ...(payload['flags'] as object), 'is-routed': false, 'is-callback': true }
  return event
}

/** One upload to a mailing list. */
export interface ListUpload {
  accountId: string
  domainName: string
  taskId: string
  listAddress: string
}

function uploadEvent(
  upload: ListUpload,
  payload: Record<string, unknown> & { event: EventName },
): EventRecord {
  const { accountId, domainName } = upload
  return record(payload, { accountId, domainName, messageId: null }, null)
}

const uploadLabels = ({ taskId, listAddress }: ListUpload) => ({
  'task-id': taskId,
  'mailing-list': { address: listAddress },
})

export function listMemberUploadedEvent(
  upload: ListUpload,
  member: { address: string; name: string; subscribed: boolean },
  nowMs: number,
): EventRecord {
  return uploadEvent(upload, {
    ...head('list_member_uploaded', nowMs, 'info'),
    ...uploadLabels(upload),
    member,
  })
}

/** `description`: the member as given, `message`: why it was refused. */
export function listMemberUploadErrorEvent(
  upload: ListUpload,
  fault: { format: 'json' | 'csv'; description: string; message: string },
  nowMs: number,
): EventRecord {
  return uploadEvent(upload, {
    ...head('list_member_upload_error', nowMs, 'error'),
    ...uploadLabels(upload),
    format: fault.format,
    'member-description': fault.description,
    error: { message: fault.message },
  })
}

export function listUploadedEvent(
  upload: ListUpload,
  result: {
    format: 'json' | 'csv'
    subscribed: boolean
    isUpsert: boolean
    upsertedCount: number
    failedCount: number
  },
  nowMs: number,
): EventRecord {
  return uploadEvent(upload, {
    ...head('list_uploaded', nowMs, 'info'),
    ...uploadLabels(upload),
    format: result.format,
    subscribed: result.subscribed,
    'is-upsert': result.isUpsert,
    'upserted-count': result.upsertedCount,
    'failed-count': result.failedCount,
  })
}
