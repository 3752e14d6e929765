/**
 * Events without personal data, for accounts with `webhooks_redact_pii` (webhooks.md rule 27). Only members known to be
 * harmless are kept, so that a new one is left out until it is listed here.
 */
import { isPlainObject } from '../../base/values.ts'

type Members = Record<string, unknown>

const REDACTED = 'REDACTED'

/** About the event, the sender and the receiving server. */
const KEPT = [
  ...['event', 'id', 'timestamp', 'log-level', 'severity', 'reason', 'reject', 'i-classification-rule-id'],
  ...['recipient-domain', 'recipient-provider', 'tags', 'campaigns', 'flags', 'method', 'storage'],
  ...['api-key-id', 'template', 'batch', 'i-delivery-optimizer', 'primary-dkim', 'delivered-at'],
]

/** What replaces the others, where they are present. */
const REPLACED: Record<string, (value: unknown) => unknown> = {
  recipient: () => REDACTED,
  ip: () => REDACTED,
  'originating-ip': () => REDACTED,
  url: () => REDACTED,
  'user-variables': () => ({}),
  geolocation: (value) => picked(value, ['country']),
  'client-info': (value) => picked(value, ['client-name', 'client-os', 'client-type', 'device-type', 'bot']),
  'mailing-list': (value) => picked(value, ['address', 'list-id']),
  envelope: (value) => ({
    ...masked(value, ['sender', 'targets']),
    ...picked(value, ['transport', 'sending-ip']),
  }),
  message: messageOf,
  'delivery-status': statusOf,
}

/** A copy of an event's payload without personal data of its recipient. */
export function redacted(payload: Readonly<Members>): Members {
  const kept = picked(payload, KEPT)
  for (const [name, replace] of Object.entries(REPLACED))
    if (payload[name] !== undefined) kept[name] = replace(payload[name])
  return kept
}

function messageOf(message: unknown): Members {
  if (!isPlainObject(message)) return {}
  const { headers, attachments, recipients } = message
  return {
    ...picked(message, ['size', 'scheduled-for']),
    headers: { ...masked(headers, ['to', 'from', 'subject']), ...picked(headers, ['message-id']) },
    ...(Array.isArray(attachments) && {
      attachments: attachments.map((one) => ({
        ...masked(one, ['filename']),
        ...picked(one, ['content-type', 'size']),
      })),
    }),
    ...(recipients !== undefined && { recipients: [REDACTED] }),
  }
}

/** What the receiving server said, which often repeats the address. */
const SERVER_TEXTS = ['message', 'description', 'last-message']
const ADDRESS = /[^\s<>"'()[\],;:]{1,64}@[^\s<>"'()[\],;:]{1,255}/g

function statusOf(status: unknown): Members {
  if (!isPlainObject(status)) return {}
  const texts = SERVER_TEXTS.flatMap((name) => {
    const text = status[name]
    return typeof text === 'string' ? [[name, text.replace(ADDRESS, REDACTED)] as const] : []
  })
  return { ...status, ...Object.fromEntries(texts) }
}

/** The named members that are present. */
function picked(value: unknown, names: readonly string[]): Members {
  if (!isPlainObject(value)) return {}
  return Object.fromEntries(
    names.filter((name) => Object.hasOwn(value, name)).map((name) => [name, value[name]]),
  )
}

/** The named members that are present, without their values. */
const masked = (value: unknown, names: readonly string[]): Members =>
  Object.fromEntries(Object.keys(picked(value, names)).map((name) => [name, REDACTED]))
