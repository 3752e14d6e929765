/**
 * What Gmail Postmaster Tools (API v2) is asked for about a domain, and how its answers become days. Pure.
 *
 * Each figure is a metric that we name ourselves; an answer is a list of values with these names and their dates. The API
 * has no reputation of domains or addresses any more: version 1 had.
 */
import { DAY_MS } from '../../../base/time/durations.ts'
import { isPlainObject } from '../../../base/values.ts'

/** Rates are from 0 to 1; null: Gmail names none. */
export interface GmailDay {
  /** First millisecond, UTC. */
  day: number
  spam: number | null
  spf: number | null
  dkim: number | null
  dmarc: number | null
  tls: number | null
  errors: number | null
  errorRates: readonly { type: string; reason: string; rate: number }[]
  loops: readonly { id: string; rate: number }[]
}

export interface Requirement {
  requirement: string
  status: string
}

interface Metric {
  name: string
  baseMetric: { standardMetric: string }
  filter?: string
}

const metric = (name: string, standardMetric: string, filter?: string): Metric => ({
  name,
  baseMetric: { standardMetric },
  ...(filter !== undefined && { filter }),
})

const REASONS = {
  reject: [
    'bad_attachment',
    'bad_or_missing_ptr_record',
    'ip_in_rbls',
    'low_domain_reputation',
    'low_ip_reputation',
    'spammy_content',
    'stamp_policy_error',
    'other',
  ],
  temp_fail: ['anomalous_traffic_pattern', 'other'],
} as const
const ERRORS = Object.entries(REASONS).flatMap(([type, reasons]) =>
  reasons.map((reason) => ({ type, reason })),
)
const LOOP_IDS = 'loop_ids'
const RATES = ['spam', 'spf', 'dkim', 'dmarc', 'tls', 'errors'] as const
/** Feedback loops of a domain that are asked for, and the length of an id: senders choose them (Feedback-ID). */
const LOOPS_MAX = 20
const LOOP_ID_LENGTH_MAX = 128

export const METRICS: readonly Metric[] = [
  metric('spam', 'SPAM_RATE'),
  metric('spf', 'AUTH_SUCCESS_RATE', 'auth_type = "spf"'),
  metric('dkim', 'AUTH_SUCCESS_RATE', 'auth_type = "dkim"'),
  metric('dmarc', 'AUTH_SUCCESS_RATE', 'auth_type = "dmarc"'),
  metric('tls', 'TLS_ENCRYPTION_RATE', 'traffic_direction = "inbound"'),
  metric('errors', 'DELIVERY_ERROR_RATE'),
  ...ERRORS.map(({ type, reason }, at) =>
    metric(`error_${at}`, 'DELIVERY_ERROR_RATE', `error_type = "${type}" AND error_reason = "${reason}"`),
  ),
  metric(LOOP_IDS, 'FEEDBACK_LOOP_ID'),
]

/** One value of an answer. */
export interface Stat {
  metric: string
  day: number
  /** Null: the value is none of a number. */
  number: number | null
  texts: readonly string[]
}

/** Null: `value` is no answer of `domainStats.query`. */
export function statsIn(value: unknown): { stats: Stat[]; nextPageToken: string } | null {
  if (!isPlainObject(value)) return null
  const { domainStats = [], nextPageToken = '' } = value
  if (!Array.isArray(domainStats) || typeof nextPageToken !== 'string') return null
  return { stats: domainStats.flatMap(statOf), nextPageToken }
}

function statOf(item: unknown): Stat[] {
  if (!isPlainObject(item)) return []
  const { metric: name, date, value } = item
  const day = dayIn(date)
  if (typeof name !== 'string' || day === null || !isPlainObject(value)) return []
  return [{ metric: name, day, number: numberIn(value), texts: textsIn(value) }]
}

/** `{ year, month, day }`. */
function dayIn(date: unknown): number | null {
  if (!isPlainObject(date)) return null
  const [year, month, day] = [date['year'], date['month'], date['day']].map(Number)
  const at = Date.UTC(year as number, (month as number) - 1, day)
  return Number.isNaN(at) ? null : at
}

/** Whole numbers come as text (int64). */
function numberIn({ doubleValue, floatValue, intValue }: Record<string, unknown>): number | null {
  const value = doubleValue ?? floatValue ?? intValue
  const number = value === undefined ? Number.NaN : Number(value)
  return Number.isFinite(number) ? number : null
}

function textsIn({ stringList, stringValue }: Record<string, unknown>): string[] {
  const values = isPlainObject(stringList) && Array.isArray(stringList['values']) ? stringList['values'] : []
  return [stringValue, ...values].filter((text) => typeof text === 'string')
}

/** The ids of feedback loops in an answer, each once. */
export function loopIdsIn(stats: readonly Stat[]): string[] {
  const ids = stats.flatMap(({ metric: name, texts }) => (name === LOOP_IDS ? texts : []))
  // An id is quoted in a filter.
  const fit = ids.filter((id) => /^[^"\\\p{Cc}]+$/u.test(id) && id.length <= LOOP_ID_LENGTH_MAX)
  return [...new Set(fit)].slice(0, LOOPS_MAX)
}

export const loopMetrics = (ids: readonly string[]): Metric[] =>
  ids.map((id, at) => metric(`loop_${at}`, 'FEEDBACK_LOOP_SPAM_RATE', `feedback_loop_id = "${id}"`))

/** Days that have any value, oldest first. `ids`: those of `loopMetrics`. */
export function daysOf(stats: readonly Stat[], ids: readonly string[]): GmailDay[] {
  const days = [...Map.groupBy(stats, ({ day }) => day)].sort(([one], [other]) => one - other)
  return days.map(([day, some]) => {
    const values = new Map(some.map(({ metric: name, number }) => [name, number]))
    const rates = Object.fromEntries(RATES.map((name) => [name, rateOf(values.get(name))]))
    return {
      day,
      ...(rates as Pick<GmailDay, (typeof RATES)[number]>),
      errorRates: ERRORS.flatMap((error, at) => withRate(error, values.get(`error_${at}`))),
      loops: ids.flatMap((id, at) => withRate({ id }, values.get(`loop_${at}`))),
    }
  })
}

const rateOf = (value: number | null | undefined) => (value == null ? null : Math.min(Math.max(value, 0), 1))

function withRate<T>(thing: T, value: number | null | undefined): (T & { rate: number })[] {
  const rate = rateOf(value)
  return rate === null || rate === 0 ? [] : [{ ...thing, rate }]
}

const COMPLIANCE_ROWS_MAX = 50

/**
 * Requirements and whether they are met, of the domain itself if Gmail judges it apart from the one above it. Null: `value`
 * is no answer of `getComplianceStatus`.
 */
export function complianceIn(value: unknown): Requirement[] | null {
  if (!isPlainObject(value)) return null
  const data = value['subdomainComplianceData'] ?? value['complianceData']
  if (!isPlainObject(data)) return []
  const rows = Array.isArray(data['rowData']) ? data['rowData'] : []
  const verdicts = [
    ['HONOR_UNSUBSCRIBE', data['honorUnsubscribeVerdict']],
    ['ONE_CLICK_UNSUBSCRIBE', data['oneClickUnsubscribeVerdict']],
  ].map(([requirement, verdict]) => ({
    requirement,
    ...(isPlainObject(verdict) && { status: verdict['status'] }),
  }))
  const found = new Map<string, string>()
  for (const row of [...rows, ...verdicts]) {
    if (!isPlainObject(row) || !isPlainObject(row['status'])) continue
    const { requirement } = row
    const { status } = row['status']
    if (isWord(requirement) && isWord(status) && found.size < COMPLIANCE_ROWS_MAX)
      found.set(requirement, status)
  }
  return [...found].map(([requirement, status]) => ({ requirement, status }))
}

const isWord = (text: unknown): text is string => typeof text === 'string' && /^[A-Z_]{1,64}$/.test(text)

export const NEEDS_WORK = 'NEEDS_WORK'

/** The first millisecond of the day (UTC). */
export const dayOf = (at: number): number => Math.floor(at / DAY_MS) * DAY_MS

/** As the API writes a date. */
export function dateOf(day: number): { year: number; month: number; day: number } {
  const date = new Date(day)
  return { year: date.getUTCFullYear(), month: date.getUTCMonth() + 1, day: date.getUTCDate() }
}
