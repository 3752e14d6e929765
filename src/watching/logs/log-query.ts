/** Reads the request of the logs operation (metrics-logs.md section 5). */

import { BadRequest } from '../../base/process/errors.ts'
import { formatRfc2822 } from '../../base/time/dates.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import { invalidFormat, isPlainObject, jsonObject, jsonText, quotable } from '../../base/values.ts'
import { before, type Unit } from '../metrics/intervals.ts'
import { dateOf, flagOf, namesOf, textOf } from '../metrics/request-fields.ts'
import { type Condition, conditionsOf } from './log-filter.ts'
import { METRIC_EVENT_NAMES, type MetricEventName } from './metric-events.ts'

export interface LogQuery {
  /** As the caller wrote them, else as they were computed. */
  start: string
  end: string
  /** Microseconds, both inclusive; `highUs` null: ascending without an end, so later events follow. */
  lowUs: number
  highUs: number | null
  ascending: boolean
  limit: number
  /** An event must have one of the names or count in one of the metrics; null: all events. */
  events: readonly string[] | null
  metrics: readonly MetricEventName[] | null
  filter: readonly Condition[]
  subaccounts: boolean
  totals: boolean
}

/** Names of the contract; some of them belong to features that write no events here. */
export const LOG_EVENTS = [
  'accepted',
  'delivered',
  'failed',
  'opened',
  'unique_opened',
  'clicked',
  'unique_clicked',
  'unsubscribed',
  'complained',
  'rejected',
  'stored',
  'email_validation',
  'list_uploaded',
  'list_member_uploaded',
  'list_member_upload_error',
  'trapped',
] as const

export const LIMIT_DEFAULT = 50
export const LIMIT_MAX = 100

const US_PER_MS = 1000

/** A member of the request: a JSON value, or the text of a form. */
export type Given = (name: string) => unknown

/**
 * @param limit default and maximum of `pagination.limit`
 * @throws BadRequest naming what is not understood
 */
export function readLogQuery(
  given: Given,
  now: number,
  limit = { default: LIMIT_DEFAULT, max: LIMIT_MAX },
): LogQuery {
  const pagination = objectOf(given('pagination'))
  const ascending = isAscending(textOf(pagination['sort']))
  return {
    ...rangeOf(given, now, ascending),
    ascending,
    limit: limitOf(pagination['limit'], limit),
    ...selectionOf(given),
    filter: conditionsOf(objectOf(given('filter'))),
    subaccounts: flagOf('include_subaccounts', given('include_subaccounts')),
    totals: flagOf('include_totals', given('include_totals')),
  }
}

/** The token of a request; undefined: it has none. */
export const tokenOf = (given: Given): string | undefined =>
  textOf(objectOf(given('pagination'))['token']) || undefined

/** @throws BadRequest for one above the maximum. 0 is the default: Go clients send it for one that was never set. */
export function limitOf(value: unknown, rule: { default: number; max: number }): number {
  if (value === undefined || value === null || value === '') return rule.default
  const limit = Number(value)
  if (!Number.isSafeInteger(limit) || limit < 0) throw invalidFormat('limit', jsonText(value))
  if (limit > rule.max) throw new BadRequest(`limit must not exceed ${rule.max}`)
  return limit || rule.default
}

/** An object, also as text in a form; anything else is read as an empty one. */
export function objectOf(value: unknown): Record<string, unknown> {
  if (isPlainObject(value)) return value
  if (typeof value !== 'string' || !value.trimStart().startsWith('{')) return {}
  return jsonObject(value) ?? {}
}

function isAscending(sort: string): boolean {
  const match = /^timestamp:(asc|desc)$/i.exec(sort || 'timestamp:desc')
  if (!match) throw new BadRequest(`invalid sort: ${quotable(sort)}`)
  return match[1]?.toLowerCase() === 'asc'
}

type Range = Pick<LogQuery, 'start' | 'end' | 'lowUs' | 'highUs'>

function rangeOf(given: Given, now: number, ascending: boolean): Range {
  const end = givenDate(given, 'end')
  const endMs = end?.ms ?? now
  const duration = textOf(given('duration'))
  const start = duration === '' ? givenDate(given, 'start') : undefined
  const startMs = duration === '' ? (start?.ms ?? endMs - DAY_MS) : endMs - durationMs(duration, endMs)
  if (startMs > endMs) throw new BadRequest("'start' must be before 'end'")
  const shown = (ms: number) => formatRfc2822(new Date(Math.max(0, ms)))
  return {
    start: start?.text ?? shown(startMs),
    end: end?.text ?? shown(endMs),
    lowUs: Math.floor(startMs * US_PER_MS),
    highUs: !end && ascending ? null : Math.floor(endMs * US_PER_MS),
  }
}

/** Undefined for one that is not given. */
function givenDate(given: Given, name: string): { text: string; ms: number } | undefined {
  const value = given(name)
  const ms = dateOf(name, value)
  if (ms === undefined) return undefined
  return { text: typeof value === 'number' ? formatRfc2822(new Date(ms)) : textOf(value), ms }
}

const UNITS: Readonly<Record<string, Unit>> = { h: 'hour', d: 'day', m: 'month' }

/** `24h`, `7d` or `1m`, a calendar month. */
function durationMs(text: string, endMs: number): number {
  const match = /^(\d{1,5})([hdm])$/.exec(text)
  const unit = UNITS[match?.[2] ?? '']
  if (!unit) throw invalidFormat('duration', text)
  return endMs - before(unit, endMs, Number(match?.[1]))
}

function selectionOf(given: Given): Pick<LogQuery, 'events' | 'metrics'> {
  const names = listed('event', given('events'), LOG_EVENTS)
  const metrics = listed('metric event', given('metric_events'), METRIC_EVENT_NAMES)
  if (names.length === 0 && metrics.length === 0) return { events: null, metrics: null }
  const isUnique = (name: string) => name === 'unique_opened' || name === 'unique_clicked'
  const uniques = METRIC_EVENT_NAMES.filter((name) => isUnique(name) && names.some((one) => one === name))
  return {
    events: names.filter((name) => !isUnique(name)),
    metrics: [...new Set([...metrics, ...uniques])],
  }
}

/** A list, or one name as text. @throws BadRequest `invalid <what>: <name>` */
function listed<const V extends string>(what: string, value: unknown, known: readonly V[]): V[] {
  return value === '' ? [] : namesOf(what, [value ?? []].flat(), known)
}
