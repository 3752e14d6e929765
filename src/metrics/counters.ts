/**
 * What an event counts as (tags-stats.md section 3, metrics-logs.md section 3). Pure.
 *
 * Nearly all events are mail of our own that was accepted and delivered as usual. `payloadColumn` tells them by what
 * their texts lack, and nobody parses those.
 */
import type { EventName } from '../events/event.ts'
import type { Counts } from '../store/counter-rows.ts'
import type { Store } from '../store/store.ts'

export type Counter = keyof Counts

/** In the order of the columns. `opened_unique` and `clicked_unique` are found by `unique-visits.ts`. */
export const COUNTERS = [
  'accepted_incoming',
  'accepted_outgoing',
  'delivered_smtp',
  'delivered_http',
  'delivered_optimized',
  'failed_temporary',
  'failed_temporary_espblock',
  'failed_permanent',
  'failed_suppress_bounce',
  'failed_suppress_unsubscribe',
  'failed_suppress_complaint',
  'failed_bounce',
  'failed_delayed_bounce',
  'failed_webhook',
  'failed_optimized',
  'stored',
  'opened',
  'opened_unique',
  'clicked',
  'clicked_unique',
  'unsubscribed',
  'complained',
] as const satisfies readonly Counter[]

export const noCounts = (): Counts =>
  Object.fromEntries(COUNTERS.map((name) => [name, 0])) as Record<Counter, number>

type Payload = Readonly<Record<string, unknown>>

/** What most events of a name count as, and JSON texts of which each of the others has at least one. */
const PLAIN = {
  accepted: { counter: 'accepted_outgoing', unless: ['"mailing-list":', '"is-routed":true'] },
  delivered: { counter: 'delivered_smtp', unless: ['"transport":"http"', '"i-delivery-optimizer":'] },
} as const satisfies Partial<Record<EventName, { counter: Counter; unless: readonly string[] }>>

/**
 * SQL for the payload as `countersOf` takes it: NULL for a plain event. Told by the database, which has the text at
 * hand; handed over, it would be most of what counting an event costs.
 */
export function payloadColumn(database: Store['kind']): string {
  const find = { sqlite: 'instr', postgres: 'strpos' }[database]
  const isPlain = Object.entries(PLAIN).map(([event, { unless }]) =>
    [`event = '${event}'`, ...unless.map((telling) => `${find}(payload_json, '${telling}') = 0`)].join(
      ' AND ',
    ),
  )
  return `CASE WHEN ${isPlain.join(' OR ')} THEN NULL ELSE payload_json END AS payload_json`
}

/** Every event that counts as something. */
export const COUNTED_EVENTS = [
  'accepted',
  'delivered',
  'failed',
  'stored',
  'opened',
  'clicked',
  'unsubscribed',
  'complained',
] as const satisfies readonly EventName[]

/** The counters to which an event adds one. `payload`: null for a plain one. */
export function countersOf(event: string, payload: Payload | null): readonly Counter[] {
  if (payload === null) return event === 'accepted' || event === 'delivered' ? [PLAIN[event].counter] : []
  switch (event) {
    case 'accepted':
      return [isIncoming(payload) ? 'accepted_incoming' : 'accepted_outgoing']
    case 'delivered':
      return deliveredAs(payload)
    case 'failed':
      return payload['severity'] === 'permanent' ? permanentAs(payload) : temporaryAs(payload)
    case 'stored':
    case 'opened':
    case 'clicked':
    case 'unsubscribed':
    case 'complained':
      return [event]
    default:
      return []
  }
}

/** Routed, forwarded, or the copy for a member of a mailing list. */
const isIncoming = (payload: Payload) =>
  payload['mailing-list'] !== undefined || within(payload, 'flags')['is-routed'] === true

const isOptimized = (payload: Payload) => payload['i-delivery-optimizer'] !== undefined

/** Rule 1: `optimized` is a part of `smtp`. */
function deliveredAs(payload: Payload): Counter[] {
  if (within(payload, 'envelope')['transport'] === 'http') return ['delivered_http']
  return isOptimized(payload) ? ['delivered_smtp', 'delivered_optimized'] : ['delivered_smtp']
}

const temporaryAs = ({ reason }: Payload): Counter[] =>
  reason === 'espblock' ? ['failed_temporary', 'failed_temporary_espblock'] : ['failed_temporary']

const SUPPRESSED: ReadonlyMap<unknown, Counter> = new Map([
  ['suppress-bounce', 'failed_suppress_bounce'],
  ['suppress-unsubscribe', 'failed_suppress_unsubscribe'],
  ['suppress-complaint', 'failed_suppress_complaint'],
])

/** Rules 2 and 3: the named members are a breakdown that need not add up. */
function permanentAs(payload: Payload): Counter[] {
  const { reason } = payload
  const flags = within(payload, 'flags')
  const counters: Counter[] = ['failed_permanent']
  if (flags['is-callback'] === true) counters.push('failed_webhook')
  if (flags['is-delayed-bounce'] === true) return [...counters, 'failed_delayed_bounce']
  const suppressed = SUPPRESSED.get(reason)
  if (suppressed) counters.push(suppressed)
  if (reason === 'bounce') counters.push('failed_bounce')
  if (reason === 'bounce' && isOptimized(payload)) counters.push('failed_optimized')
  return counters
}

function within(payload: Payload, name: string): Payload {
  const value = payload[name]
  return typeof value === 'object' && value !== null ? (value as Payload) : {}
}
