/** Filters held against one event. */
import { type FieldName, type Filter, matches } from './filter.ts'

/** The values of an event's fields that filters are held against. */
function valuesOf(name: FieldName, payload: Record<string, unknown>): (string | number)[] {
  const message = inside(payload, 'message')
  const headers = inside(message, 'headers')
  const among = (value: unknown) => listOf(value).filter(isPlain)
  switch (name) {
    case 'from':
    case 'to':
    case 'subject':
    case 'message-id':
      return among(headers[name])
    case 'attachment':
      return listOf(message['attachments']).flatMap((file) => among(inside({ file }, 'file')['filename']))
    case 'size':
      return among(message['size'])
    case 'recipients':
      return among(message['recipients'])
    case 'list':
      return among(inside(payload, 'mailing-list')['address'])
    default:
      return among(payload[name])
  }
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [value])

const isPlain = (value: unknown): value is string | number =>
  typeof value === 'string' || typeof value === 'number'

function inside(value: Record<string, unknown>, name: string): Record<string, unknown> {
  const inner = value[name]
  return typeof inner === 'object' && inner !== null ? (inner as Record<string, unknown>) : {}
}

/** Whether an event satisfies every filter. An event that is gone (`''`) satisfies none. */
export function passes(filters: readonly Filter[], event: string, payload: Record<string, unknown>): boolean {
  if (event === '') return false
  return filters.every((filter) => matches(filter, valuesOf(filter.name, payload)))
}
