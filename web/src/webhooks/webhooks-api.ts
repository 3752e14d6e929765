/** The operations of webhooks (docs/api/webhooks.md) and of their attempts (docs/api/own-operations.md section 5). */
import { queryOptions } from '@tanstack/react-query'
import { followJson, getJson, sendForm, sendJson } from '../api.ts'
import type * as Api from '../api-types.ts'
import { valueOrThrow } from '../queries.ts'

export const EVENT_TYPES = [
  'accepted',
  'delivered',
  'temporary_fail',
  'permanent_fail',
  'opened',
  'clicked',
  'unsubscribed',
  'complained',
] as const
export type EventType = (typeof EVENT_TYPES)[number]

/** A URL and what is posted to it. */
export interface Webhook {
  url: string
  types: readonly string[]
  /** Only webhooks of the account have one. */
  id?: string
}

const OWN = '/sendwright/v1/webhooks'
const segment = encodeURIComponent

export const WEBHOOKS_KEY = 'webhooks'

/** `domain` undefined: those of the account. */
export const webhooksQuery = (domain: string | undefined) =>
  queryOptions({
    queryKey: [WEBHOOKS_KEY, domain ?? ''],
    queryFn: async ({ signal }) => (domain === undefined ? ofAccount(signal) : ofDomain(domain, signal)),
  })

async function ofAccount(signal: AbortSignal): Promise<Webhook[]> {
  const { webhooks } = valueOrThrow(await getJson('/v1/webhooks', signal))
  return webhooks.map(({ webhook_id: id, url, event_types: types }) => ({ id, url, types }))
}

/** The API lists the URLs of each type; the page shows the types of each URL. */
async function ofDomain(domain: string, signal: AbortSignal): Promise<Webhook[]> {
  const { webhooks } = valueOrThrow(await getJson(`/v3/domains/${segment(domain)}/webhooks`, signal))
  const types = new Map<string, string[]>()
  for (const [type, value] of Object.entries(webhooks))
    for (const url of value?.urls ?? []) types.set(url, [...(types.get(url) ?? []), type])
  return [...types].map(([url, ofUrl]) => ({ url, types: ofUrl }))
}

const fieldsOf = ({ url, types }: Webhook) => {
  const fields = new URLSearchParams({ url })
  for (const type of types) fields.append('event_types', type)
  return fields
}

export async function createWebhook(domain: string | undefined, webhook: Webhook): Promise<void> {
  const path = domain === undefined ? '/v1/webhooks' : (`/v4/domains/${segment(domain)}/webhooks` as const)
  valueOrThrow(await sendForm('POST', path, fieldsOf(webhook)))
}

/** Replaces the types of the webhook's URL. */
export async function changeWebhook(domain: string | undefined, webhook: Webhook): Promise<void> {
  if (domain !== undefined) {
    valueOrThrow(await sendForm('PUT', `/v4/domains/${segment(domain)}/webhooks`, fieldsOf(webhook)))
    return
  }
  valueOrThrow(await sendForm('PUT', `/v1/webhooks/${segment(webhook.id ?? '')}`, fieldsOf(webhook)))
}

export async function deleteWebhook(domain: string | undefined, { id, url }: Webhook): Promise<void> {
  if (domain !== undefined) {
    const query = new URLSearchParams({ url })
    valueOrThrow(await sendJson('DELETE', `/v4/domains/${segment(domain)}/webhooks?${query}`))
    return
  }
  valueOrThrow(await sendJson('DELETE', `/v1/webhooks/${segment(id ?? '')}`))
}

/** Posts a sample event; `code` 0: no response, `message` says why. */
export const testWebhook = async (domain: string, type: string, url: string) =>
  valueOrThrow(
    await sendForm('PUT', `/v3/domains/${segment(domain)}/webhooks/${segment(type)}/test`, { url }),
  )

export const STATUSES = ['ok', 'failing', 'given-up'] as const
export type AttemptStatus = (typeof STATUSES)[number]

export type Attempt = Api.WebhookAttempt

export type AttemptPage = Api.WebhookAttemptPage

export const ATTEMPTS_PAGE_SIZE = 50 // about three screens
const REFRESH_MS = 10_000

export const attemptsPath = (filters: Readonly<Record<string, string>>) =>
  `${OWN}/attempts?${new URLSearchParams({ limit: String(ATTEMPTS_PAGE_SIZE), ...filters })}`

export const attemptsQuery = (path: string) =>
  queryOptions({
    queryKey: [WEBHOOKS_KEY, 'attempts', path],
    queryFn: async ({ signal }) =>
      valueOrThrow(await followJson<'GET /sendwright/v1/webhooks/attempts'>(path, signal)),
    refetchInterval: REFRESH_MS,
  })

export const attemptQuery = (id: string) =>
  queryOptions({
    queryKey: [WEBHOOKS_KEY, 'attempt', id],
    queryFn: async ({ signal }) => valueOrThrow(await getJson(`${OWN}/attempts/${segment(id)}`, signal)),
  })

export const replayAttempt = async (id: string) =>
  valueOrThrow(await sendJson('POST', `${OWN}/attempts/${segment(id)}/replay`))

export interface ReplaySpan {
  domain: string
  url: string
  event: string
  /** RFC 3339. */
  from: string
  to: string
}

export async function replaySpan({ domain, url, event, from, to }: ReplaySpan) {
  const fields = new URLSearchParams({ from, to })
  if (domain !== '') fields.set('domain', domain)
  if (url !== '') fields.set('url', url)
  if (event !== '') fields.set('events', event)
  return valueOrThrow(await sendForm('POST', `${OWN}/replay`, fields))
}
