/** Applies filters to one event. */
import { type FieldName, type Filter, matches } from './search/filter.ts'

/** The values of an event's field that a filter is compared with. */
function valuesOf(name: FieldName, payload: Record<string, unknown>): (string | number)[] {
  const message = objectIn(payload, 'message')
  const headers = objectIn(message, 'headers')
  const scalars = (value: unknown) => listOf(value).filter(isPlain)
  switch (name) {
    case 'from':
    case 'to':
    case 'subject':
    case 'message-id':
      return scalars(headers[name])
    case 'attachment':
      return listOf(message['attachments']).flatMap((file) => scalars(objectIn({ file }, 'file')['filename']))
    case 'size':
      return scalars(message['size'])
    case 'recipients':
      return scalars(message['recipients'])
    case 'list':
      return scalars(objectIn(payload, 'mailing-list')['address'])
    default:
      return scalars(payload[name])
  }
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [value])

const isPlain = (value: unknown): value is string | number =>
  typeof value === 'string' || typeof value === 'number'

function objectIn(value: Record<string, unknown>, name: string): Record<string, unknown> {
  const inner = value[name]
  return typeof inner === 'object' && inner !== null ? (inner as Record<string, unknown>) : {}
}

/** Whether an event satisfies every filter. A deleted event (`''`) satisfies none. */
export function passes(filters: readonly Filter[], event: string, payload: Record<string, unknown>): boolean {
  if (event === '') return false
  return filters.every((filter) => matches(filter, valuesOf(filter.name, payload)))
}
