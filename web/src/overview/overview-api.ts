/** The operations of the public API that the overview uses, and the response fields that it shows. */
import { getJson, sendJson } from '../api.ts'

export interface SystemAlert {
  name: string
  dimension: string | null
  dimension_value: string | null
  latest_value: string
  since: string
  advice: string
}

export interface Hit {
  name: string
  metric?: string
  dimension?: string
  dimension_value?: string
  latest_value?: string
  triggered: boolean
  created_at?: string
}

export interface WebhookAttempt {
  id: string
  event_id: string
  event: string
  domain: string
  url: string
  status: 'ok' | 'failing' | 'given-up'
  status_code?: number
  error?: string
  created_at: string
}

export interface Lane {
  source: string
  site: string
  provider: string
  queued: number
  due: number
  deferred: number
  backed_off_until: string | null
  backed_off_why: string | null
  /** RFC 3339. */
  oldest_due: string | null
}

const OWN = '/sendwright/v1'
const ATTEMPTS_READ = 100 // the newest of some endpoints at least

export const listDomainsIn = (state: 'unverified' | 'disabled', limit: number, signal?: AbortSignal) =>
  getJson<{ total_count: number; items: { name: string }[] }>(
    `/v4/domains?state=${state}&limit=${limit}`,
    signal,
  )

export const readSystemAlerts = (signal?: AbortSignal) =>
  getJson<{ alerts?: SystemAlert[] }>(`${OWN}/system`, signal)

export const readHits = (signal?: AbortSignal) =>
  getJson<{ items: Hit[] | null }>('/v1/thresholds/hits', signal)

export const readAttempts = (signal?: AbortSignal) =>
  getJson<{ items: WebhookAttempt[] }>(`${OWN}/webhooks/attempts?limit=${ATTEMPTS_READ}`, signal)

/** Sends the event of one attempt again. */
export const replayAttempt = (id: string) =>
  sendJson<object>('POST', `${OWN}/webhooks/attempts/${encodeURIComponent(id)}/replay`)

export const readLanes = (signal?: AbortSignal) => getJson<{ items: Lane[] }>(`${OWN}/queue/lanes`, signal)

export const retryLane = (lane: string) =>
  sendJson<{ matched: number; changed: number }>('POST', `${OWN}/queue/actions`, {
    action: 'retry',
    filter: { lane },
  })

export const readAccountWebhooks = (signal?: AbortSignal) =>
  getJson<{ webhooks: unknown[] | null }>('/v1/webhooks', signal)

export const readDomainWebhooks = (domain: string, signal?: AbortSignal) =>
  getJson<{ webhooks: Record<string, unknown> }>(`/v3/domains/${encodeURIComponent(domain)}/webhooks`, signal)
