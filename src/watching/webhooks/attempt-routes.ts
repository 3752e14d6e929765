/** The log of attempts and the replay of events over HTTP (own-operations.md section 5). */

import { BadRequest, present } from '../../base/process/errors.ts'
import { formatRfc3339, parseDate } from '../../base/time/dates.ts'
import type { Core } from '../../core.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import {
  choiceParam,
  limitParam,
  parsedParam,
  textParam,
  wordParam,
} from '../../platform/http/request/inputs.ts'
import { ID_PAGE_PARAMS, idPage, pivotPaging } from '../../platform/http/request/paging.ts'
import type { Params } from '../../platform/http/request/params.ts'
import type { WebhookAttemptRow } from '../../platform/store/schema.ts'
import { ownDomain } from '../../sending/domains/names/directory.ts'
import type { AttemptLog } from './attempts.ts'
import { ATTEMPTS, ONE_ATTEMPT, REPLAYED, SPAN_REPLAYED, STATUSES } from './shapes.ts'
import { WEBHOOK_TYPES, webhookType } from './types.ts'
import { maskedUrl } from './webhook-url.ts'
import type { Webhooks } from './webhooks.ts'

const api = operationsOf({ tag: 'Webhooks', auth: { area: 'domains' }, rateLimit: 'domains' })

const PATH = '/sendwright/v1/webhooks'
const LIST = `${PATH}/attempts` as const

interface AttemptRouteParts extends Pick<Core, 'domains' | 'clock'> {
  attempts: AttemptLog
  webhooks: Webhooks
  baseUrl: string
}

export function attemptRoutes(parts: AttemptRouteParts): Operation[] {
  const { attempts, webhooks } = parts
  return [
    api.get(LIST, {
      id: 'listWebhookAttempts',
      summary: 'List attempts to deliver webhooks, newest first',
      params: {
        limit: limitParam(100, 1000, { above: 'cut' }),
        url: wordParam('Only this URL', maskedUrl),
        domain: textParam('Only events of this domain'),
        event: choiceParam('Only this type', WEBHOOK_TYPES),
        status: choiceParam('Only attempts with this status', STATUSES),
        search: parsedParam(
          'Only attempts whose recipient or subject has this part, of 2 to 200 characters',
          partOf,
        ),
        ...ID_PAGE_PARAMS,
      },
      answers: { 200: ATTEMPTS },
      async handler({ input, caller }) {
        const { limit, url, domain, event, status, search, ...at } = input()
        const filter = { domain, url, event, status, search }
        const page = idPage(at)
        const { rows, stoppedAt } = await attempts.list(caller.accountId, filter, page, limit)
        const ascending = page.kind === 'last' || page.kind === 'previous'
        const paging = pivotPaging({
          baseUrl: parts.baseUrl,
          path: LIST,
          pivotName: 'id',
          firstItem: (ascending ? stoppedAt : null) ?? rows.at(0)?.id,
          lastItem: (ascending ? null : stoppedAt) ?? rows.at(-1)?.id,
          pivot: 'pivot' in page ? page.pivot : undefined,
          carry: { limit, ...filter },
        })
        return { items: rows.map(view), paging, ...(stoppedAt !== null && { partial: true as const }) }
      },
    }),
    api.get(`${LIST}/{id}`, {
      id: 'readWebhookAttempt',
      summary: 'Read an attempt, with what was posted about the event',
      answers: { 200: ONE_ATTEMPT, 404: 'Attempt not found' },
      async handler({ path, caller }) {
        const attempt = present(await attempts.read(caller.accountId, path.id), 'Attempt not found')
        return { ...view(attempt), 'event-data': await webhooks.eventData(attempt.event_id) }
      },
    }),
    api.post(`${LIST}/{id}/replay`, {
      id: 'replayWebhookAttempt',
      summary: 'Send the event of an attempt again',
      answers: { 200: REPLAYED, 404: 'Attempt not found, or its event or webhook is gone' },
      async handler({ path, caller }) {
        const attempt = present(await attempts.read(caller.accountId, path.id), 'Attempt not found')
        await webhooks.replayAttempt(attempt)
        return { message: 'Webhook has been queued', event_id: attempt.event_id }
      },
    }),
    api.post(`${PATH}/replay`, {
      id: 'replayWebhooks',
      audit: { subject: ['domain'], given: ['url', 'from', 'to', 'events'] },
      summary: 'Send the events of a time span again',
      params: {
        events: parsedParam('Types; default all', (params, name) => params.texts(name).map(webhookType), {
          repeated: true,
          values: WEBHOOK_TYPES,
        }),
        domain: textParam('Default all domains'),
        url: textParam('Default every URL registered for the event'),
        from: wordParam('RFC 3339, RFC 2822 or Unix seconds', timeOf, { required: true }),
        to: wordParam('Default now', timeOf),
      },
      answers: { 200: SPAN_REPLAYED, 404: 'Domain not found' },
      async handler({ input, caller }) {
        const { events: types, domain, to = parts.clock.now(), ...given } = input()
        const span = {
          ...given,
          to,
          domainName: domain && (await ownDomain(parts.domains, caller, domain)).name,
          types: types.length > 0 ? types : WEBHOOK_TYPES,
        }
        return webhooks.replaySpan(caller.accountId, span)
      },
    }),
  ]
}

const PART = { min: 2, max: 200 }

/** @throws BadRequest */
function partOf(params: Params, name: string): string | undefined {
  const text = params.text(name)?.trim()
  if (text === undefined || text === '') return undefined
  if (text.length < PART.min || text.length > PART.max)
    throw new BadRequest(`${name} must have ${PART.min} to ${PART.max} characters`)
  return text
}

const RFC3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})$/i

function timeOf(text: string, name: string): number {
  const time = RFC3339.test(text) ? Date.parse(text) : parseDate(text)?.getTime()
  if (time === undefined || Number.isNaN(time)) {
    throw new BadRequest(`Invalid format for parameter ${name}: ${text.slice(0, 100)}`)
  }
  return time
}

const view = (row: WebhookAttemptRow) => ({
  id: row.id,
  event_id: row.event_id,
  event: row.event_type,
  domain: row.domain_name,
  ...(row.recipient !== null && { recipient: row.recipient }),
  ...(row.subject !== null && { subject: row.subject }),
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
