/** Alerts on sending metrics and their hits, as the API shows them (alerts.md section 1). */

import type { Of } from '../../base/shape.ts'
import { formatRfc3339 } from '../../base/time/dates.ts'
import { HOUR_MS } from '../../base/time/durations.ts'
import type { AlertHitRow, AlertRow } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'
import type { ALERT, CHANNELS, COMPARATORS, DIMENSIONS, FILTER, HIT, METRICS } from './shapes.ts'

export type AlertMetric = (typeof METRICS)[number]
export type Comparator = (typeof COMPARATORS)[number]
type AlertDimension = (typeof DIMENSIONS)[number]
export type Channel = (typeof CHANNELS)[number]
export type AlertFilter = Of<typeof FILTER>

/** What the owner of an alert decides. */
export interface AlertDefinition<M extends string = AlertMetric> {
  name: string
  description: string
  accountGroup: string | null
  metric: M
  comparator: Comparator
  /** Decimal text as given. */
  limit: string
  dimension: AlertDimension
  channels: Channel[]
  filters: AlertFilter[]
  /** `1h`, `7d` */
  period: string
}

/** Alerts, and limits of usage, which have the same columns. */
export interface Alert<M extends string = AlertMetric> extends AlertDefinition<M> {
  id: string
  accountId: string
  /** Unix milliseconds, as the times below. */
  createdAt: number
  updatedAt: number
  lastCheckedAt: number | null
}

/** The parent of the account that owns it; null: it is not a subaccount. */
export type ParentId = string | null

/** The ids of an account and of its subaccounts. */
export const familyOf = (db: Store['db'], accountId: string) =>
  db
    .selectFrom('accounts')
    .select('accounts.id')
    .where((eb) => eb.or([eb('accounts.id', '=', accountId), eb('accounts.parent_id', '=', accountId)]))

/** Begins the names of the service's own checks; names of alerts must not begin with it. */
export const OWN_PREFIX = 'sendwright:'

/** The length of a valid period in milliseconds. */
export const periodMs = (period: string): number =>
  Number(period.slice(0, -1)) * (period.endsWith('d') ? 24 : 1) * HOUR_MS

export function alertOfRow<M extends string = AlertMetric>(row: AlertRow): Alert<M> {
  return {
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    description: row.description,
    accountGroup: row.account_group,
    metric: row.metric as M,
    comparator: row.comparator as Comparator,
    limit: row.limit_text,
    dimension: row.dimension as AlertDimension,
    channels: JSON.parse(row.channels_json) as Channel[],
    filters: JSON.parse(row.filters_json) as AlertFilter[],
    period: row.period,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    lastCheckedAt: row.last_checked_at,
  }
}

const timeText = (at: number) => formatRfc3339(new Date(at))

/** What Go clients read as "no time". */
const NO_TIME = '0001-01-01T00:00:00Z'

const accountView = (accountId: string, parentId: ParentId) =>
  parentId === null ? {} : { parent_account_id: parentId, subaccount_id: accountId }

export function alertView<M extends string>(
  alert: Alert<M>,
  parentId: ParentId,
): Omit<Of<typeof ALERT>, 'metric'> & { metric: M } {
  return {
    id: alert.id,
    ...accountView(alert.accountId, parentId),
    ...(alert.accountGroup !== null && { account_group: alert.accountGroup }),
    name: alert.name,
    description: alert.description,
    metric: alert.metric,
    comparator: alert.comparator,
    limit: alert.limit,
    dimension: alert.dimension,
    alert_channels: alert.channels,
    filters: alert.filters,
    period: alert.period,
    created_at: timeText(alert.createdAt),
    updated_at: timeText(alert.updatedAt),
    ...(alert.lastCheckedAt !== null && { last_checked: timeText(alert.lastCheckedAt) }),
  }
}

export function hitView(row: AlertHitRow, parentId: ParentId): Of<typeof HIT> {
  return {
    id: row.id,
    ...accountView(row.account_id, parentId),
    name: row.name,
    created_at: timeText(row.created_at),
    updated_at: timeText(row.updated_at),
    triggered: row.triggered === 1,
    expires_at: row.expires_at === null ? NO_TIME : timeText(row.expires_at),
    latest_value: row.latest_value,
    metric: row.metric,
    comparator: row.comparator,
    limit: row.limit_text,
    ...(row.dimension !== '' && { dimension: row.dimension, dimension_value: row.dimension_value }),
    ...(row.advice !== '' && { since: timeText(row.since_at), advice: row.advice }),
  }
}
