/** Alerts, their hits and where notices go (docs/api/alerts.md). */
import { queryOptions } from '@tanstack/react-query'
import { getJson, sendJson } from '../../api.ts'
import type * as Api from '../../api-types.ts'
import { valueOrThrow } from '../../queries.ts'

export const METRICS = [
  'hard_bounce_rate',
  'temporary_fail_rate',
  'complained_rate',
  'delivered_rate',
] as const
export const COMPARATORS = ['>', '>=', '<', '<=', '=', '!='] as const
export const DIMENSIONS = ['domain', 'recipient_provider', 'ip', 'ip_pool', 'subaccount'] as const
export const CHANNELS = ['email', 'slack', 'webhook'] as const
export type Channel = (typeof CHANNELS)[number]
export type Metric = (typeof METRICS)[number]

export type Alert = Api.Alert

export type Hit = Api.AlertHit

export type Setting = Api.AlertSetting

export const ALERTS_KEY = 'alerts'
const ALERTS = '/v1/thresholds/alerts/send'
const SETTINGS = '/v1/alerts/settings'
const HITS_REFRESH_MS = 30_000 // the checks run every five minutes, some of the service's own every minute
const segment = encodeURIComponent

export const alertsQuery = queryOptions({
  queryKey: [ALERTS_KEY, 'alerts'],
  queryFn: async ({ signal }) => valueOrThrow(await getJson(ALERTS, signal)).items,
})

export const hitsQuery = queryOptions({
  queryKey: [ALERTS_KEY, 'hits'],
  queryFn: async ({ signal }) => valueOrThrow(await getJson('/v1/thresholds/hits', signal)).items,
  refetchInterval: HITS_REFRESH_MS,
})

export const settingsQuery = queryOptions({
  queryKey: [ALERTS_KEY, 'settings'],
  queryFn: async ({ signal }) => valueOrThrow(await getJson(SETTINGS, signal)).events,
})

export const eventTypesQuery = queryOptions({
  queryKey: [ALERTS_KEY, 'event-types'],
  queryFn: async ({ signal }) => valueOrThrow(await getJson('/v1/alerts', signal)).events,
})

/** `name`: of the one that is replaced; undefined: a new one. */
export const saveAlert = async (name: string | undefined, alert: Partial<Alert>) =>
  valueOrThrow<unknown>(
    await (name === undefined
      ? sendJson('POST', ALERTS, alert)
      : sendJson('PUT', `${ALERTS}/${segment(name)}`, alert)),
  )

export const deleteAlert = async (name: string) =>
  valueOrThrow(await sendJson('DELETE', `${ALERTS}/${segment(name)}`))

export const saveSetting = async ({ id, ...setting }: Omit<Setting, 'id'> & { id?: string | undefined }) =>
  valueOrThrow(
    await (id === undefined
      ? sendJson('POST', `${SETTINGS}/events`, setting)
      : sendJson('PUT', `${SETTINGS}/events/${segment(id)}`, setting)),
  )

/** Sends a notice in which nothing has happened to where the setting leads. */
export const testSetting = async ({ event_type, channel, settings: { emails, url } }: Setting) =>
  valueOrThrow<unknown>(
    await (channel === 'email'
      ? sendJson('POST', '/v1/alerts/email/test', { event_type, emails })
      : channel === 'webhook'
        ? sendJson('POST', '/v1/alerts/webhooks/test', { event_type, url })
        : sendJson('POST', '/v1/alerts/slack/test', { event_type })),
  )

export const deleteSetting = async (id: string) =>
  valueOrThrow(await sendJson('DELETE', `${SETTINGS}/events/${segment(id)}`))
