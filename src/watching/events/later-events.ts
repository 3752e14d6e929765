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

/** Makes events of one name; `others` are the members that only they have. */
const visitEvent =
  <V extends Visit>(event: EventName, others: (visit: V) => object) =>
  (message: EventMessage, to: EventRecipient, visit: V, nowMs: number): EventRecord => {
    const payload = {
      ...head(event, nowMs, 'info'),
      ...addressee(to),
      'recipient-provider': visit.recipientProvider,
      ...labels(message),
      ...mailingList(message),
      message: { headers: { 'message-id': message.messageId } },
      ip: visit.ip,
      'client-info': visit.client,
      geolocation: visit.geolocation,
      ...others(visit),
    }
    return record(payload, message, to.recipient)
  }

const deliveredAt = ({ deliveredAt: at }: Visit) =>
  at === null ? {} : { 'delivered-at': Math.round(at * 1000) / 1_000_000 }

export const openedEvent = visitEvent('opened', deliveredAt)

/** `url`: the link's target as written in the message. */
export const clickedEvent = visitEvent('clicked', (visit: Visit & { url: string }) => ({
  ...deliveredAt(visit),
  url: visit.url,
}))

export const unsubscribedEvent = visitEvent('unsubscribed', () => ({}))

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
  { accountId, domainName, taskId, listAddress }: ListUpload,
  first: ReturnType<typeof head>,
  members: object,
): EventRecord {
  const payload = { ...first, 'task-id': taskId, 'mailing-list': { address: listAddress }, ...members }
  return record(payload, { accountId, domainName, messageId: null }, null)
}

export const listMemberUploadedEvent = (
  upload: ListUpload,
  member: { address: string; name: string; subscribed: boolean },
  nowMs: number,
): EventRecord => uploadEvent(upload, head('list_member_uploaded', nowMs, 'info'), { member })

/** `description`: the member as given, `message`: why it was refused. */
export const listMemberUploadErrorEvent = (
  upload: ListUpload,
  { format, description, message }: { format: 'json' | 'csv'; description: string; message: string },
  nowMs: number,
): EventRecord =>
  uploadEvent(upload, head('list_member_upload_error', nowMs, 'error'), {
    ...{ format, 'member-description': description, error: { message } },
  })

export const listUploadedEvent = (
  upload: ListUpload,
  result: {
    format: 'json' | 'csv'
    subscribed: boolean
    isUpsert: boolean
    upsertedCount: number
    failedCount: number
  },
  nowMs: number,
): EventRecord =>
  uploadEvent(upload, head('list_uploaded', nowMs, 'info'), {
    format: result.format,
    subscribed: result.subscribed,
    'is-upsert': result.isUpsert,
    'upserted-count': result.upsertedCount,
    'failed-count': result.failedCount,
  })
