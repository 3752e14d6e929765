/** The operations of the public API that the overview uses, and the response fields that it shows. */
import { getJson, sendJson } from '../api.ts'
import type * as Api from '../api-types.ts'

export type SystemAlert = Api.OwnAlert

export type Hit = Api.AlertHit

export type WebhookAttempt = Api.WebhookAttempt

export type Lane = Api.Lane

const OWN = '/sendwright/v1'
const ATTEMPTS_READ = 100 // the newest of some endpoints at least

/** One of two is not the sandbox, of which there is one. */
export const listNewestDomains = (signal?: AbortSignal) => getJson('/v4/domains?limit=2', signal)

export const listDomainsIn = (
  state: 'active' | 'unverified' | 'disabled',
  limit: number,
  signal?: AbortSignal,
) => getJson(`/v4/domains?state=${state}&limit=${limit}`, signal)

export const readSystemAlerts = (signal?: AbortSignal) => getJson(`${OWN}/system`, signal)

export const readHits = (signal?: AbortSignal) => getJson('/v1/thresholds/hits', signal)

export const readAttempts = (signal?: AbortSignal) =>
  getJson(`${OWN}/webhooks/attempts?limit=${ATTEMPTS_READ}`, signal)

/** Sends the event of one attempt again. */
export const replayAttempt = (id: string) =>
  sendJson('POST', `${OWN}/webhooks/attempts/${encodeURIComponent(id)}/replay`)

export const readLanes = (signal?: AbortSignal) => getJson(`${OWN}/queue/lanes`, signal)

export const retryLane = (lane: string) =>
  sendJson('POST', `${OWN}/queue/actions`, {
    action: 'retry',
    filter: { lane },
  })

export const readAccountWebhooks = (signal?: AbortSignal) => getJson('/v1/webhooks', signal)

export const readDomainWebhooks = (domain: string, signal?: AbortSignal) =>
  getJson(`/v3/domains/${encodeURIComponent(domain)}/webhooks`, signal)
