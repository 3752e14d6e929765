/** The operations of the public API that the activity pages use, and the response fields that they show. */
import { askJson, getJson, getJsonAs, sendForm, sendJson } from '../api.ts'

export interface DeliveryStatus {
  code: number
  message: string
  description: string
  'attempt-no': number
  'mx-host'?: string
  'session-seconds'?: number
  'retry-seconds'?: number
  tls?: boolean
  'bounce-type'?: string
}

/** An event as the logs have it. */
export interface LogItem {
  id: string
  event: string
  /** RFC 3339. */
  '@timestamp': string
  severity?: string
  reason?: string
  recipient?: string
  'recipient-provider'?: string
  domain: { name: string }
  tags: string[]
  method?: string
  /** Parameters of the call, of accepted events. */
  ignored?: string[]
  url?: string
  ip?: string
  message?: {
    headers: { to?: string; from?: string; subject?: string; 'message-id'?: string }
    size?: number
    'scheduled-for'?: number
  }
  storage?: { key: string }
  'delivery-status'?: DeliveryStatus
  'i-classification-rule-id'?: string
  geolocation?: { country?: string; city?: string }
  'client-info'?: { 'client-name'?: string; 'client-os'?: string; bot?: string }
  flags?: { 'is-test-mode'?: boolean; 'is-delayed-bounce'?: boolean }
  envelope?: { 'sending-ip'?: string }
}

export interface LogPage {
  items: LogItem[]
  pagination: { previous?: string; next?: string; first?: string; last?: string }
}

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

export interface DeliveryView {
  id: string
  recipient: string
  state: string
  attempts: number
  created_at: string
  updated_at: string
  next_attempt_at: string | null
  expires_at: string
  reason: { code: string; sentence: string }
  lane: string | null
  last_reply: { code: number; text: string } | null
}

export interface Dialogue {
  attempt: number
  started_at: string
  mx_host: string | null
  lines: { ms: number; direction: string; line: string }[]
}

export interface Rule {
  entity_id: string
  class: string
  explanation: string
  'short-explanation': string
}

export interface StoredMessage {
  subject: string
  from: string
  recipients: string
  'body-plain': string
  'body-html': string
  'message-headers': [name: string, value: string][]
  attachments: { name: string; 'content-type': string; size: number; url: string }[]
  'content-id-map': Record<string, { name: string; 'content-type': string; size: number; url: string }>
}

const OWN = '/sendwright/v1'
const segment = encodeURIComponent

/** One condition; the comparison ignores letter case. */
export const condition = (
  attribute: string,
  comparator: LogFilter['comparator'],
  value: string,
): LogFilter => ({ attribute, comparator, values: [{ value, label: '' }] })

export const readLogs = (query: LogQuery, signal?: AbortSignal) =>
  askJson<LogPage>('/v1/analytics/logs', query, signal)

export const deliveriesPath = (messageId: string, limit: number) =>
  `${OWN}/messages/${segment(messageId)}/deliveries?limit=${limit}`

export const readDeliveries = (path: string, signal?: AbortSignal) =>
  getJson<{ items: DeliveryView[]; paging: { next: string; previous: string } }>(path, signal)

export const readDialogues = (deliveryId: string, signal?: AbortSignal) =>
  getJson<{ items: Dialogue[] }>(`${OWN}/deliveries/${segment(deliveryId)}/transcript`, signal)

export const readRules = (signal?: AbortSignal) =>
  getJson<Record<string, Rule>>('/v1/bounce-classification/config/rules', signal)

const storedPath = (domain: string, key: string) => `/v3/domains/${segment(domain)}/messages/${segment(key)}`

export const readStored = (domain: string, key: string, signal?: AbortSignal) =>
  getJson<StoredMessage>(storedPath(domain, key), signal)

export const readSource = (domain: string, key: string, signal?: AbortSignal) =>
  getJsonAs<{ 'body-mime': string }>(storedPath(domain, key), 'message/rfc2822', signal)

/** A new message with the stored content. */
export const resend = (domain: string, key: string, to: string) =>
  sendForm<{ id: string; message: string }>('POST', storedPath(domain, key), { to })

export type QueueAction = 'retry' | 'drop' | 'pause' | 'resume'

export const actOnMessage = (action: QueueAction, messageId: string) =>
  sendJson<{ matched: number; changed: number }>('POST', `${OWN}/queue/actions`, {
    action,
    filter: { message_id: messageId },
  })

export const cancelScheduled = (messageId: string) =>
  sendJson<{ message: string }>('DELETE', `${OWN}/scheduled/${segment(messageId)}`)
