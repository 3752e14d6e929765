/** Reads the alert in the body of a request (alerts.md sections 1 and 4). */
import { BadRequest } from '../../base/process/errors.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import { isPlainObject, jsonText, quotable } from '../../base/values.ts'
import { type AlertDefinition, type AlertFilter, OWN_PREFIX, periodMs } from './alert.ts'
import { CHANNELS, COMPARATORS, DIMENSIONS, FILTER_COMPARATORS, LIMIT_METRICS, METRICS } from './shapes.ts'

const NAME_LENGTH_MAX = 128
const DESCRIPTION_LENGTH_MAX = 1_000
const GROUP_LENGTH_MAX = 128
const FILTERS_MAX = 20
const VALUES_MAX = 100
const VALUE_LENGTH_MAX = 500
/** Every check reads them, and every webhook of a hit repeats them. */
const FILTERS_BYTES_MAX = 64 * 1024
const PERIOD_MAX_MS = 30 * DAY_MS

/** The definition, and the subaccount that it names. @throws BadRequest with the texts of section 4 */
export function givenAlert(document: unknown): AlertDefinition & { subaccountId: string | null } {
  const body = isPlainObject(document) ? document : {}
  return {
    ...thresholdOf(body, METRICS, shareOf),
    accountGroup: optionalText('account_group', body['account_group'], GROUP_LENGTH_MAX),
    subaccountId: optionalText('subaccount_id', body['subaccount_id'], NAME_LENGTH_MAX),
    channels: channelsOf(body['alert_channels']),
  }
}

/** The same of a limit of usage, which has fewer members. */
export const givenLimit = (document: unknown): AlertDefinition<(typeof LIMIT_METRICS)[number]> => ({
  ...thresholdOf(isPlainObject(document) ? document : {}, LIMIT_METRICS, countOf),
  accountGroup: null,
  channels: [],
})

/** What both have; `limitOf` reads the limit. */
function thresholdOf<const M extends string>(
  body: Record<string, unknown>,
  metrics: readonly M[],
  limitOf: (text: string) => string,
) {
  const name = required('name', body['name'])
  checkName(name)
  return {
    name,
    metric: known('metric', required('metric', body['metric']), metrics),
    comparator: known('comparator', required('comparator', body['comparator']), COMPARATORS),
    limit: limitOf(required('limit', body['limit'])),
    dimension: known('dimension', required('dimension', body['dimension']), DIMENSIONS),
    description: optionalText('description', body['description'], DESCRIPTION_LENGTH_MAX) ?? '',
    filters: filtersOf(body['filters']),
    period: periodOf(optionalText('period', body['period'], NAME_LENGTH_MAX) ?? '1h'),
  }
}

export const invalid = (what: string, value: unknown) =>
  new BadRequest(`invalid ${what}: ${quotable(jsonText(value))}`)

/** Numbers count as text: clients send limits as either. */
function required(name: string, value: unknown): string {
  if (value === undefined || value === null || value === '') throw new BadRequest(`${name} is required`)
  if (typeof value !== 'string' && typeof value !== 'number') throw invalid(name, value)
  return String(value)
}

export function known<const V extends string>(what: string, value: unknown, values: readonly V[]): V {
  const found = values.find((candidate) => candidate === value)
  if (found === undefined) throw invalid(what, value)
  return found
}

/** PostgreSQL stores no NUL, and mail shows names in its subject: no control characters. */
function optionalText(name: string, value: unknown, lengthMax: number): string | null {
  if (value === undefined || value === null || value === '') return null
  if (typeof value !== 'string' || value.length > lengthMax || /[\0-\x08\x0b-\x1f\x7f]/.test(value))
    throw invalid(name, value)
  return value
}

function checkName(name: string): void {
  const isOwn = name.toLowerCase().startsWith(OWN_PREFIX)
  if (name.length > NAME_LENGTH_MAX || /\p{Cc}/u.test(name) || isOwn) throw invalid('name', name)
}

function shareOf(text: string): string {
  const isDecimal = /^(?:\d{1,3}(?:\.\d{0,20})?|\.\d{1,20})$/.test(text)
  if (!isDecimal || Number(text) > 1) throw invalid('limit', text)
  return text
}

function countOf(text: string): string {
  if (!/^\d{1,9}$/.test(text)) throw invalid('limit', text)
  return text
}

function channelsOf(value: unknown): AlertDefinition['channels'] {
  if (value === undefined || value === null) return ['email']
  if (!Array.isArray(value) || value.length > 2 * CHANNELS.length) throw invalid('alert_channels', value)
  return [...new Set(value.map((channel) => known('alert_channels', channel, CHANNELS)))]
}

function filtersOf(value: unknown): AlertFilter[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) throw invalid('filters', value)
  if (value.length > FILTERS_MAX) throw new BadRequest(`filters has more than ${FILTERS_MAX} entries`)
  const filters = value.map((entry: unknown) => {
    const { dimension, comparator, values } = isPlainObject(entry) ? entry : {}
    return {
      dimension: known('dimension', dimension ?? '', DIMENSIONS),
      comparator: known('comparator', comparator ?? '', FILTER_COMPARATORS),
      values: valuesOf(values),
    }
  })
  if (Buffer.byteLength(JSON.stringify(filters)) > FILTERS_BYTES_MAX)
    throw new BadRequest(`filters are larger than ${FILTERS_BYTES_MAX / 1024} KB`)
  return filters
}

function valuesOf(value: unknown): string[] {
  const values = Array.isArray(value) ? value : []
  if (values.length === 0 || values.length > VALUES_MAX)
    throw new BadRequest(`filters: values must have 1 to ${VALUES_MAX} entries`)
  return values.map((one: unknown) => {
    if (typeof one !== 'string' || one.length > VALUE_LENGTH_MAX || one.includes('\0'))
      throw invalid('values', one)
    return one
  })
}

function periodOf(text: string): string {
  if (!/^\d{1,3}[hd]$/.test(text)) throw invalid('period', text)
  const ms = periodMs(text)
  if (ms <= 0 || ms > PERIOD_MAX_MS) throw invalid('period', text)
  return text
}
