/** Figures of the public API (metrics-logs.md), for all sections that show some. */
import { askJson } from '../../api.ts'
import type * as Api from '../../api-types.ts'

export interface MetricsFilter {
  attribute: string
  comparator: '=' | '!=' | 'contains' | 'not contains'
  values: { value: string; label: string }[]
}

export interface MetricsQuery {
  /** RFC 2822 or Unix seconds as text. */
  start?: string
  end?: string
  duration?: string
  resolution?: 'hour' | 'day' | 'month'
  dimensions?: readonly string[]
  metrics: readonly string[]
  filter?: { AND: MetricsFilter[] }
  include_aggregates?: boolean
  include_subaccounts?: boolean
  pagination?: { sort?: string; skip?: number; limit?: number }
}

export type Figures = Api.MetricsItem['metrics']

export type MetricsItem = Api.MetricsItem

export type MetricsPage = Api.MetricsResult

export const METRICS_PATH = '/v1/analytics/metrics'

export const readMetrics = (query: MetricsQuery, signal?: AbortSignal) => askJson(METRICS_PATH, query, signal)

/** False: by this dimension or filter it cannot be counted. */
export const isKnown = (figures: Figures, name: string) => figures[name] !== null

/** Counts are numbers, rates are decimal texts; null: not known by these dimensions. */
export const figure = (figures: Figures, name: string): number => Number(figures[name] ?? 0)
