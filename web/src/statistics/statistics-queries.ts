import { keepPreviousData, queryOptions } from '@tanstack/react-query'
import { valueOrThrow } from '../queries.ts'
import { type MetricsQuery, readMetrics } from '../shared/metrics-api.ts'
import { readReasons } from '../shared/reasons-api.ts'
import type { Span } from './statistics-search.ts'

const REFRESH_MS = 60_000

export const figuresQuery = (query: MetricsQuery) =>
  queryOptions({
    queryKey: ['statistics', query],
    queryFn: async ({ signal }) => valueOrThrow(await readMetrics(query, signal)),
    placeholderData: keepPreviousData,
    refetchInterval: REFRESH_MS,
  })

export const classesQuery = ({ startMs, endMs }: Span, domain: string | undefined) =>
  queryOptions({
    queryKey: ['statistics', 'classes', startMs, endMs, domain ?? ''],
    queryFn: async ({ signal }) => valueOrThrow(await readReasons(startMs, endMs, domain, signal)),
    placeholderData: keepPreviousData,
  })
