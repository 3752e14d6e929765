/** The operations of the public API that the activity pages use, and the response fields that they show. */
import { type Answer, askJson, followJson, getJson, getJsonAs, sendForm, sendJson } from '../api.ts'
import type * as Api from '../api-types.ts'

export type DeliveryStatus = NonNullable<Api.LogItem['delivery-status']>

export type LogItem = Api.LogItem

export type LogPage = Api.LogsResult

export interface LogFilter {
  attribute: string
  comparator: '=' | '!=' | 'contains' | 'not contains'
  values: { value: string; label: string }[]
}

export interface LogQuery {
  events?: readonly string[]
  metric_events?: readonly string[]
  duration?: string
  start?: string
  end?: string
  filter?: { AND: LogFilter[] }
  pagination?: { sort?: string; token?: string; limit?: number }
}

export type DeliveryView = Api.Delivery

export type Rule = Api.BounceRule

export type StoredMessage = Api.StoredMessage

const OWN = '/sendwright/v1'
const segment = encodeURIComponent

/** One condition; the comparison ignores letter case. */
export const condition = (
  attribute: string,
  comparator: LogFilter['comparator'],
  value: string,
): LogFilter => ({ attribute, comparator, values: [{ value, label: '' }] })

export const LOGS_PATH = '/v1/analytics/logs'

export const readLogs = (query: LogQuery, signal?: AbortSignal) => askJson(LOGS_PATH, query, signal)

export const deliveriesPath = (messageId: string, limit: number) =>
  `${OWN}/messages/${segment(messageId)}/deliveries?limit=${limit}`

export const readDeliveries = (path: string, signal?: AbortSignal) =>
  followJson<'GET /sendwright/v1/messages/{}/deliveries'>(path, signal)

export const readDialogues = (deliveryId: string, signal?: AbortSignal) =>
  getJson(`${OWN}/deliveries/${segment(deliveryId)}/transcript`, signal)

export const readRules = (signal?: AbortSignal) => getJson('/v1/bounce-classification/config/rules', signal)

const storedPath = (domain: string, key: string) =>
  `/v3/domains/${segment(domain)}/messages/${segment(key)}` as const

/** Without `Accept` it comes parsed. */
export const readStored = (domain: string, key: string, signal?: AbortSignal) =>
  getJson(storedPath(domain, key), signal) as Promise<Answer<Api.StoredMessage>>

export const readSource = (domain: string, key: string, signal?: AbortSignal) =>
  getJsonAs(storedPath(domain, key), 'message/rfc2822', signal) as Promise<Answer<Api.StoredMime>>

/** A new message with the stored content. */
export const resend = (domain: string, key: string, to: string) =>
  sendForm('POST', storedPath(domain, key), { to })

export type QueueAction = 'retry' | 'drop' | 'pause' | 'resume'

export const actOnMessage = (action: QueueAction, messageId: string) =>
  sendJson('POST', `${OWN}/queue/actions`, {
    action,
    filter: { message_id: messageId },
  })

export const cancelScheduled = (messageId: string) =>
  sendJson('DELETE', `${OWN}/scheduled/${segment(messageId)}`)
