/** Events as items of logs (metrics-logs.md section 5): stored events in another form. Pure. */
import type { CsvValue } from '../../base/csv.ts'
import type { Of } from '../../base/shape.ts'
import { isPlainObject } from '../../base/values.ts'
import type { LogRow } from './log-filter.ts'
import type { LOG_ITEM } from './shapes.ts'

type Members = Readonly<Record<string, unknown>>
export type LogItem = Of<typeof LOG_ITEM>

interface StoredEvent extends LogRow {
  timestampUs: number
  /** Parent of the event's account, if that is a subaccount. */
  parentId: string | null
}

/** Text of the user variables; further ones are left out. */
const VARIABLES_BYTES_MAX = 4096

/** All members of the event; those that logs show differently are replaced. */
export function logItem({ payload, timestampUs, accountId, parentId, domainName }: StoredEvent): LogItem {
  // Stored by this service: what logs show in another form than events is replaced.
  const { timestamp: _, ...event } = payload as unknown as LogItem & { timestamp: number }
  const { method, storage, reject, tags = [], campaigns = [] } = event
  return {
    ...event,
    '@timestamp': new Date(Math.floor(timestampUs / 1000)).toISOString(),
    account: { ...(parentId && { 'parent-id': parentId }), id: accountId },
    domain: { name: domainName },
    ...{ tags, campaigns },
    'user-variables': variablesText(event['user-variables']),
    ...(method !== undefined && { method: method.toUpperCase() }),
    ...(storage !== undefined && { storage: { ...storage, url: urlsOf(storage.url) } }),
    ...(reject !== undefined && { reason: reject.reason }),
  }
}

const urlsOf = (url: unknown) => [url].flat().filter((one) => typeof one === 'string')

/** JSON of as many variables as fit, in their order. */
function variablesText(variables: unknown): string {
  if (!isPlainObject(variables)) return '{}'
  const whole = JSON.stringify(variables)
  if (Buffer.byteLength(whole) <= VARIABLES_BYTES_MAX) return whole
  const kept: Record<string, unknown> = {}
  let bytes = 2
  for (const [name, value] of Object.entries(variables)) {
    const added = Buffer.byteLength(JSON.stringify({ [name]: value })) - 1
    if (bytes + added > VARIABLES_BYTES_MAX) continue
    bytes += added
    kept[name] = value
  }
  return JSON.stringify(kept)
}

/** The columns of a CSV file, and where an item has them. */
const COLUMNS: readonly [name: string, path: readonly string[]][] = [
  ['timestamp', ['@timestamp']],
  ['event', ['event']],
  ['id', ['id']],
  ['account', ['account', 'id']],
  ['domain', ['domain', 'name']],
  ['recipient', ['recipient']],
  ['recipient_domain', ['recipient-domain']],
  ['recipient_provider', ['recipient-provider']],
  ['from', ['message', 'headers', 'from']],
  ['to', ['message', 'headers', 'to']],
  ['subject', ['message', 'headers', 'subject']],
  ['message_id', ['message', 'headers', 'message-id']],
  ['size', ['message', 'size']],
  ['tags', ['tags']],
  ['severity', ['severity']],
  ['reason', ['reason']],
  ['code', ['delivery-status', 'code']],
  ['enhanced_code', ['delivery-status', 'enhanced-code']],
  ['delivery_message', ['delivery-status', 'message']],
  ['description', ['delivery-status', 'description']],
  ['attempt', ['delivery-status', 'attempt-no']],
  ['mx_host', ['delivery-status', 'mx-host']],
  ['sending_ip', ['envelope', 'sending-ip']],
  ['method', ['method']],
  ['mailing_list', ['mailing-list', 'address']],
  ['url', ['url']],
  ['ip', ['ip']],
  ['country', ['geolocation', 'country']],
  ['device', ['client-info', 'device-type']],
  ['bot', ['client-info', 'bot']],
  ['storage_key', ['storage', 'key']],
  ['user_variables', ['user-variables']],
]

export const CSV_HEADER: readonly string[] = COLUMNS.map(([name]) => name)

export const csvRow = (item: LogItem): CsvValue[] => COLUMNS.map(([, path]) => cell(valueAt(item, path)))

function valueAt(item: Members, path: readonly string[]): unknown {
  let value: unknown = item
  for (const name of path) value = isPlainObject(value) ? value[name] : undefined
  return value
}

function cell(value: unknown): CsvValue {
  if (Array.isArray(value)) return value.join(', ')
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : (value as CsvValue)
}
