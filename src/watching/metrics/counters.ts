/**
 * Maps events to counters (tags-stats.md section 3, metrics-logs.md section 3).
 *
 * Nearly all accepted events are plain: outgoing mail. `payloadColumn` recognises them by the absence of certain texts in
 * their JSON, which is then not parsed.
 */
import { providerOfDomain } from '../../mail/deliver/shaping/provider-names.ts'
import type { FigureRow } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'

/**
 * In the order of the columns. `unique-visits.ts` determines `opened_unique` and `clicked_unique`; `archived` is no event
 * (`archived.ts`).
 */
export const COUNTERS = [
  'accepted_incoming',
  'accepted_outgoing',
  'delivered_smtp',
  'delivered_http',
  'delivered_optimized',
  'delivered_first',
  'delivered_later',
  'failed_temporary',
  'failed_temporary_espblock',
  'rate_limited',
  'failed_permanent',
  'failed_suppress_bounce',
  'failed_suppress_unsubscribe',
  'failed_suppress_complaint',
  'failed_bounce',
  'failed_soft',
  'failed_delayed_bounce',
  'failed_old',
  'failed_permanent_espblock',
  'failed_webhook',
  'failed_optimized',
  'stored',
  'opened',
  'opened_unique',
  'clicked',
  'clicked_unique',
  'unsubscribed',
  'complained',
  'accepted_listed',
  'test_delivered',
  'archived',
] as const satisfies readonly (keyof FigureRow)[]
export type Counter = (typeof COUNTERS)[number]
export type Counts = Record<Counter, number>

export type Payload = Readonly<Record<string, unknown>>

const ZEROS = Object.fromEntries(COUNTERS.map((name) => [name, 0])) as Record<Counter, number>
export const noCounts = (): Counts => ({ ...ZEROS })

/** JSON texts of which every accepted event that is not plain has at least one. */
const NOT_PLAIN = ['"mailing-list":', '"is-routed":true']

/**
 * SQL for the payload as `countersOf` expects it: NULL for a plain event. The database decides that, because transferring
 * and parsing the text would be most of the cost of counting an event.
 */
export function payloadColumn(database: Store['kind']): string {
  const find = { sqlite: 'instr', postgres: 'strpos' }[database]
  const isPlain = NOT_PLAIN.map((text) => `${find}(payload_json, '${text}') = 0`).join(' AND ')
  return `CASE WHEN event = 'accepted' AND ${isPlain} THEN NULL ELSE payload_json END AS payload_json`
}

/** Whether the rule that classified a failure is about the rate of sending. */
export type IsRateLimit = (ruleId: string) => boolean

/** The counters that an event increments. `payload`: null for a plain event. */
export function countersOf(
  event: string,
  payload: Payload | null,
  isRateLimit: IsRateLimit,
): readonly Counter[] {
  if (payload === null) return event === 'accepted' ? ['accepted_outgoing'] : []
  switch (event) {
    case 'accepted':
      return acceptedAs(payload)
    case 'delivered':
      return deliveredAs(payload)
    case 'failed':
      return payload['severity'] === 'permanent' ? permanentAs(payload) : temporaryAs(payload, isRateLimit)
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

/** Incoming mail is routed or forwarded mail, and the copy for a member of a mailing list. */
function acceptedAs(payload: Payload): Counter[] {
  if (within(payload, 'flags')['is-routed'] === true) return ['accepted_incoming']
  return payload['mailing-list'] === undefined
    ? ['accepted_outgoing']
    : ['accepted_incoming', 'accepted_listed']
}

const isOptimized = (payload: Payload) => payload['i-delivery-optimizer'] !== undefined

/** Rule 1: `optimized` is a part of `smtp`. Test mail counts in both, and apart for those who leave it out. */
function deliveredAs(payload: Payload): Counter[] {
  const isTest = within(payload, 'flags')['is-test-mode'] === true
  return isTest ? [...deliveredBy(payload), 'test_delivered'] : deliveredBy(payload)
}

function deliveredBy(payload: Payload): Counter[] {
  const attempt = Number(within(payload, 'delivery-status')['attempt-no'])
  const counters: Counter[] = attempt === 1 ? ['delivered_first'] : attempt > 1 ? ['delivered_later'] : []
  if (within(payload, 'envelope')['transport'] === 'http') return [...counters, 'delivered_http']
  if (isOptimized(payload)) counters.push('delivered_optimized')
  return [...counters, 'delivered_smtp']
}

function temporaryAs(payload: Payload, isRateLimit: IsRateLimit): Counter[] {
  const counters: Counter[] = ['failed_temporary']
  if (payload['reason'] === 'espblock') counters.push('failed_temporary_espblock')
  const rule = payload['i-classification-rule-id']
  if (typeof rule === 'string' && isRateLimit(rule)) counters.push('rate_limited')
  return counters
}

const SUPPRESSED: ReadonlyMap<unknown, Counter> = new Map([
  ['suppress-bounce', 'failed_suppress_bounce'],
  ['suppress-unsubscribe', 'failed_suppress_unsubscribe'],
  ['suppress-complaint', 'failed_suppress_complaint'],
])

const SOFT: ReadonlySet<unknown> = new Set(['generic', 'greylisted', 'blacklisted', 'espblock'])

/** Rules 2 and 3: the named members are a breakdown that does not have to add up. */
function permanentAs(payload: Payload): Counter[] {
  const { reason } = payload
  const flags = within(payload, 'flags')
  const counters: Counter[] = ['failed_permanent']
  if (flags['is-callback'] === true) counters.push('failed_webhook')
  if (reason === 'espblock') counters.push('failed_permanent_espblock')
  if (reason === 'old') counters.push('failed_old')
  if (flags['is-delayed-bounce'] === true) return [...counters, 'failed_delayed_bounce']
  const suppressed = SUPPRESSED.get(reason)
  if (suppressed) counters.push(suppressed)
  if (SOFT.has(reason)) counters.push('failed_soft')
  if (reason === 'bounce') counters.push('failed_bounce')
  if (reason === 'bounce' && isOptimized(payload)) counters.push('failed_optimized')
  return counters
}

export function within(payload: Payload, name: string): Payload {
  const value = payload[name]
  return typeof value === 'object' && value !== null ? (value as Payload) : {}
}

/** The values by which an event is counted (metrics-logs.md section 2); columns of rows of figures. */
export const VALUE_NAMES = [
  'tag',
  'recipient_domain',
  'provider',
  'ip',
  'pool',
  'country',
  'device',
  'bot',
] as const satisfies readonly (keyof FigureRow)[]
export type ValueName = (typeof VALUE_NAMES)[number]

/**
 * Empty: the row is not split by this value, or its events have none. Tags are in lower case; in rows with all values they
 * are a JSON list.
 */
export type FigureValues = Record<ValueName, string>

/** All but the tags, of which an event has several. */
export type PlainValues = Omit<FigureValues, 'tag'>

/** Bots as section 2 names them; the empty name is a person. */
const BOTS: ReadonlyMap<unknown, string> = new Map([
  ['apple', 'Apple'],
  ['gmail', 'Gmail'],
  ['generic', 'Generic'],
])
const DEVICES: ReadonlySet<unknown> = new Set(['desktop', 'mobile', 'tablet', 'other'])

/** `payload`: null for a plain event, which was not attempted yet. */
export function valuesOfEvent(event: string, recipient: string | null, payload: Payload | null): PlainValues {
  const domain = recipient === null ? '' : recipient.slice(recipient.lastIndexOf('@') + 1).toLowerCase()
  // Accepted mail has no address yet.
  const envelope = payload === null || event === 'accepted' ? {} : within(payload, 'envelope')
  return {
    recipient_domain: domain,
    provider: textOf(payload?.['recipient-provider']) || providerOfDomain(domain),
    ip: textOf(envelope['sending-ip']).toLowerCase(),
    pool: textOf(envelope['i-ip-pool-id']),
    ...visitValues(event, payload),
  }
}

/** Openings and clicks have these, all other events are of nobody (section 2). */
function visitValues(
  event: string,
  payload: Payload | null,
): Pick<FigureValues, 'country' | 'device' | 'bot'> {
  if (payload === null || (event !== 'opened' && event !== 'clicked'))
    return { country: '', device: '', bot: '' }
  const client = within(payload, 'client-info')
  const country = textOf(within(payload, 'geolocation')['country']).toUpperCase()
  const device = client['device-type']
  return {
    country: /^[A-Z]{2}$/.test(country) ? country : '',
    device: DEVICES.has(device) ? (device as string) : '',
    bot: BOTS.get(client['bot']) ?? '',
  }
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
