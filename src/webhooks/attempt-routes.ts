/** The log of attempts and the replay of events over HTTP (own-operations.md section 5). */
import type { Clock } from '../base/clock.ts'
import { formatRfc3339, parseDate } from '../base/dates.ts'
import { BadRequest, NotFound } from '../base/errors.ts'
import type { DomainDirectory } from '../domains/directory.ts'
import { ownDomain } from '../domains/routes.ts'
import { type Operation, operation } from '../http/operation.ts'
import { limitOf, pageName, pivotPaging } from '../http/paging.ts'
import type { Params } from '../http/params.ts'
import type { WebhookAttemptRow } from '../store/schema.ts'
import type { AttemptLog, AttemptPage } from './attempts.ts'
import { WEBHOOK_TYPES, webhookType } from './types.ts'
import { maskedUrl } from './webhook-url.ts'
import type { Webhooks } from './webhooks.ts'

const PATH = '/sendwright/v1/webhooks'
const ATTEMPTS = `${PATH}/attempts`
const STATUSES = ['ok', 'failing', 'given-up'] as const
const PAGE_SIZE = 100

export interface AttemptRouteParts {
  attempts: AttemptLog
  webhooks: Webhooks
  domains: DomainDirectory
  clock: Clock
  baseUrl: string
}

export function attemptRoutes(parts: AttemptRouteParts): Operation[] {
  const { attempts, webhooks } = parts
  const common = { tag: 'Webhooks', rateLimit: 'domains' } as const
  const write = { area: 'domains', access: 'write' } as const
  return [
    operation({
      ...common,
      method: 'GET',
      path: ATTEMPTS,
      id: 'listWebhookAttempts',
      summary: 'List attempts to deliver webhooks, newest first',
      auth: { area: 'domains', access: 'read' },
      params: [
        { name: 'domain', type: 'string', description: 'Only events of this domain' },
        { name: 'url', type: 'string', description: 'Only this URL' },
        { name: 'event', type: 'string', description: 'Only this type', values: WEBHOOK_TYPES },
        { name: 'status', type: 'string', description: 'Only attempts with this status', values: STATUSES },
        { name: 'limit', type: 'integer', description: 'Page size, 1 to 1000', default: PAGE_SIZE },
        { name: 'page', type: 'string', description: 'From a paging link' },
        { name: 'id', type: 'string', description: 'From a paging link' },
      ],
      responses: { 200: { description: 'A page of attempts' } },
      async handler({ params, caller }) {
        const limit = limitOf(params, { default: PAGE_SIZE, max: 1000, above: 'cut' })
        const url = params.text('url')
        const filter = {
          domain: params.text('domain'),
          url: url === undefined ? undefined : maskedUrl(url),
          event: params.oneOf('event', WEBHOOK_TYPES),
          status: params.oneOf('status', STATUSES),
        }
        const page = pageOf(params)
        const rows = await attempts.list(caller.accountId, filter, page, limit)
        const paging = pivotPaging({
          baseUrl: parts.baseUrl,
          path: ATTEMPTS,
          pivotName: 'id',
          firstItem: rows.at(0)?.id,
          lastItem: rows.at(-1)?.id,
          pivot: 'pivot' in page ? page.pivot : undefined,
          carry: { limit, ...filter },
        })
        return { items: rows.map(view), paging }
      },
    }),
    operation({
      ...common,
      method: 'GET',
      path: `${ATTEMPTS}/{id}`,
      id: 'readWebhookAttempt',
      summary: 'Read an attempt, with what was posted about the event',
      auth: { area: 'domains', access: 'read' },
      params: [],
      responses: { 200: { description: 'The attempt' } },
      async handler({ path, caller }) {
        const attempt = await attempts.read(caller.accountId, path.id)
        if (!attempt) throw new NotFound('Attempt not found')
        return { ...view(attempt), 'event-data': await webhooks.eventData(attempt.event_id) }
      },
    }),
    operation({
      ...common,
      method: 'POST',
      path: `${ATTEMPTS}/{id}/replay`,
      id: 'replayWebhookAttempt',
      summary: 'Send the event of an attempt again',
      auth: write,
      params: [],
      responses: { 200: { description: 'Queued; the event keeps its id' } },
      async handler({ path, caller }) {
        const attempt = await attempts.read(caller.accountId, path.id)
        if (!attempt) throw new NotFound('Attempt not found')
        await webhooks.replayAttempt(attempt)
        return { message: 'Webhook has been queued', event_id: attempt.event_id }
      },
    }),
    operation({
      ...common,
      method: 'POST',
      path: `${PATH}/replay`,
      id: 'replayWebhooks',
      audit: { subject: ['domain'], given: ['url', 'from', 'to', 'events'] },
      summary: 'Send the events of a time span again',
      auth: write,
      params: [
        { name: 'domain', type: 'string', description: 'Default all domains' },
        { name: 'url', type: 'string', description: 'Default every URL registered for the event' },
        { name: 'from', type: 'string', required: true, description: 'RFC 3339, RFC 2822 or Unix seconds' },
        { name: 'to', type: 'string', description: 'Default now' },
        {
          name: 'events',
          type: 'string',
          repeated: true,
          description: 'Types; default all',
          values: WEBHOOK_TYPES,
        },
      ],
      responses: { 200: { description: 'How many events were found, and how many requests were queued' } },
      async handler({ params, caller }) {
        const domain = params.text('domain')
        const types = params.texts('events').map(webhookType)
        const span = {
          domainName: domain && (await ownDomain(parts.domains, caller, domain)).name,
          url: params.text('url'),
          from: timeOf('from', params.required('from')),
          to: timeOf('to', params.text('to')) ?? parts.clock.now(),
          types: types.length > 0 ? types : WEBHOOK_TYPES,
        }
        return webhooks.replaySpan(caller.accountId, span)
      },
    }),
  ]
}

const RFC3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})$/i

function timeOf(name: string, text: string): number
function timeOf(name: string, text: string | undefined): number | undefined
function timeOf(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const time = RFC3339.test(text) ? Date.parse(text) : parseDate(text)?.getTime()
  if (time === undefined || Number.isNaN(time)) {
    throw new BadRequest(`Invalid format for parameter ${name}: ${text.slice(0, 100)}`)
  }
  return time
}

function pageOf(params: Params): AttemptPage {
  const kind = pageName(params)
  const pivot = params.text('id')
  if (kind === 'next' || kind === 'previous') return pivot ? { kind, pivot } : { kind: 'first' }
  return { kind }
}

const view = (row: WebhookAttemptRow) => ({
  id: row.id,
  event_id: row.event_id,
  event: row.event_type,
  domain: row.domain_name,
  url: row.url,
  attempt: row.attempt,
  status: row.status,
  ...(row.status_code !== null && { status_code: row.status_code }),
  ...(row.error !== null && { error: row.error }),
  response: row.response,
  duration_ms: row.duration_ms,
  created_at: formatRfc3339(new Date(row.created_at)),
  ...(row.next_attempt_at !== null && { next_attempt_at: formatRfc3339(new Date(row.next_attempt_at)) }),
})
