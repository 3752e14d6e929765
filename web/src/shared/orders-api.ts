/** Limits per provider, and the operator's orders over them (docs/api/own-operations.md section 3). */
import { queryOptions } from '@tanstack/react-query'
import { getJson, sendForm, sendJson } from '../api.ts'
import type * as Api from '../api-types.ts'
import { valueOrThrow } from '../queries.ts'

export type Pause = NonNullable<Api.SiteOrder['pause']>

export type Override = Api.SiteOrder

export type SiteLimits = Api.Shaping['default']

export type Shaping = Api.Shaping

const BASE = '/sendwright/v1/shaping'
const pathOf = (site: string) => `${BASE}/${encodeURIComponent(site)}` as const
/** Lanes show orders as well, so that both are asked again by one prefix. */
export const ORDERS_KEY = 'queue'

export const shapingQuery = queryOptions({
  queryKey: [ORDERS_KEY, 'shaping'],
  queryFn: async ({ signal }) => valueOrThrow(await getJson(BASE, signal)),
})

/** `seconds` '': until somebody ends it. */
export const untilIn = (seconds: string): Record<string, string> =>
  seconds === '' ? {} : { until: String(Math.ceil(Date.now() / 1000) + Number(seconds)) }

export const pauseSite = async (site: string, reason: string, seconds: string) =>
  valueOrThrow(
    await sendForm('PUT', `${pathOf(site)}/pause`, {
      ...(reason !== '' && { reason }),
      ...untilIn(seconds),
    }),
  )

/** The order as it was. */
export const pauseAgain = (site: string, { reason, until }: Pause) =>
  pauseSite(site, reason, secondsTo(until))

/** '': null, until somebody ends it. */
export const secondsTo = (until: string | null) =>
  until === null ? '' : String(Math.max(1, Math.ceil((Date.parse(until) - Date.now()) / 1000)))

export const resumeSite = async (site: string) =>
  valueOrThrow(await sendJson('DELETE', `${pathOf(site)}/pause`))

/** '': as the shaping says. */
export const orderLimits = async (site: string, connections: string, rate: string, seconds: string) =>
  valueOrThrow(
    await sendForm('PUT', `${pathOf(site)}/limits`, {
      ...(connections !== '' && { connections }),
      ...(rate !== '' && { rate }),
      ...untilIn(seconds),
    }),
  )

export const resetLimits = async (site: string) =>
  valueOrThrow(await sendJson('DELETE', `${pathOf(site)}/limits`))
