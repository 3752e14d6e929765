import { keepPreviousData, queryOptions } from '@tanstack/react-query'
import { getJson, sendJson } from '../api.ts'
import { valueOrThrow } from '../queries.ts'
import { type MetricsQuery, readMetrics } from '../shared/charts/metrics-api.ts'
import { readReasons } from '../shared/mail/reasons-api.ts'
import type { Span } from './statistics-search.ts'

const REFRESH_MS = 60_000

export const figuresQuery = (query: MetricsQuery) =>
  queryOptions({
    queryKey: ['statistics', query],
    queryFn: async ({ signal }) => valueOrThrow(await readMetrics(query, signal)),
    placeholderData: keepPreviousData,
    refetchInterval: REFRESH_MS,
  })

export const SHARED_KEY = 'shared-figures'
const SHARED_PATH = '/sendwright/v1/shared-figures'

export const sharedFiguresQuery = queryOptions({
  queryKey: [SHARED_KEY],
  queryFn: async ({ signal }) => valueOrThrow(await getJson(SHARED_PATH, signal)).items,
})

export const shareFigure = async (figure: { title: string; days: number; query: MetricsQuery }) =>
  valueOrThrow(await sendJson('POST', SHARED_PATH, figure))

export const revokeFigure = async (id: string) =>
  valueOrThrow(await sendJson('DELETE', `${SHARED_PATH}/${encodeURIComponent(id)}`))

export const classesQuery = ({ startMs, endMs }: Span, domain: string | undefined) =>
  queryOptions({
    queryKey: ['statistics', 'classes', startMs, endMs, domain ?? ''],
    queryFn: async ({ signal }) => valueOrThrow(await readReasons(startMs, endMs, domain, signal)),
    placeholderData: keepPreviousData,
  })
