/** Links to figures over HTTP (metrics-logs.md section 7, decision 235). */
import { createCache } from '../../../base/flow/cache.ts'
import { BadRequest, NotFound } from '../../../base/process/errors.ts'
import type { Of } from '../../../base/shape.ts'
import { formatRfc3339 } from '../../../base/time/dates.ts'
import { DAY_MS } from '../../../base/time/durations.ts'
import { isPlainObject } from '../../../base/values.ts'
import { htmlReply, textReply } from '../../../platform/http/answer/reply.ts'
import { createClientLimit } from '../../../platform/http/limits/client-limit.ts'
import { type Operation, operationsOf } from '../../../platform/http/operation.ts'
import { otherParam } from '../../../platform/http/request/inputs.ts'
import type { SharedFigureRow } from '../../../platform/store/schema.ts'
import { ACCOUNT_METRICS } from '../figures.ts'
import { after } from '../intervals.ts'
import { type MetricsRequest, readMetricsRequest } from '../request.ts'
import { type MetricsParts, readMetricsResult } from '../routes.ts'
import { SHARED_PAGE_POLICY, sharedPage } from './page.ts'
import { NEW_SHARED_FIGURE, NO_LINK, SHARED_FIGURE_MADE, SHARED_FIGURES, SHARED_PAGE } from './shapes.ts'
import type { SharedFigures } from './store.ts'

const api = operationsOf({ tag: 'Metrics', auth: { area: 'events' }, rateLimit: 'analytics' })

interface SharedRouteParts extends MetricsParts {
  shared: SharedFigures
  publicUrl: string
}

const PATH = '/sendwright/v1/shared-figures'
const TITLE_MAX = 100
export const DAYS = { default: 7, max: 90 }
const QUERY_BYTES_MAX = 4_096
const METRICS_MAX = 4
const ROWS_MAX = 400
/** A page may be opened by many at once; its figures are counted once a minute. */
const FIGURES_KEPT_MS = 60_000
const FIGURES_KEPT_MAX = 200
const OPENED_PER_MINUTE = 30

const HEADERS = {
  'referrer-policy': 'no-referrer',
  'x-robots-tag': 'noindex, nofollow',
  'x-frame-options': 'DENY',
  'cache-control': 'no-store',
}

export function sharedFigureRoutes(parts: SharedRouteParts): Operation[] {
  const { shared, clock, accounts } = parts
  const figures = createCache({
    clock,
    ttlMs: FIGURES_KEPT_MS,
    entriesMax: FIGURES_KEPT_MAX,
    load: async (key: string) => {
      const [accountId = '', ...text] = key.split(' ')
      try {
        const request = sharedRequest(JSON.parse(text.join(' ')), clock.now())
        const result = await readMetricsResult(parts, ACCOUNT_METRICS, request, accountId)
        return { at: clock.now(), result }
      } catch (error) {
        // It has more intervals by now, or reads more, than a query may.
        if (error instanceof BadRequest) return null
        throw error
      }
    },
  })
  return [
    api.post(PATH, {
      id: 'shareFigure',
      summary: 'Make a link that shows one figure to whoever has it',
      audit: { action: 'shared-figure.create', given: ['title', 'days'], made: ['id'] },
      body: NEW_SHARED_FIGURE,
      answers: { 200: SHARED_FIGURE_MADE, 400: 'No title, a bad query, a bad time, or too many links' },
      async handler({ params, caller }) {
        const body = params.json()
        const { title, days, query } = isPlainObject(body) ? body : {}
        const queryJson = JSON.stringify(query ?? {})
        if (queryJson.length > QUERY_BYTES_MAX)
          throw new BadRequest(`query must not exceed ${QUERY_BYTES_MAX} bytes`)
        sharedRequest(query, clock.now())
        const { row, token } = await shared.create({
          ...{
            accountId: caller.accountId,
            keyId: caller.sessionKeyId ?? caller.keyId,
            userId: caller.userId ?? null,
          },
          ...{ title: titleOf(title), queryJson, expiresAt: clock.now() + daysOf(days) * DAY_MS },
        })
        return { ...view(row), url: `${parts.publicUrl}/shared/${token}` }
      },
    }),
    api.get(PATH, {
      id: 'listSharedFigures',
      summary: 'List links to figures that are valid, newest first',
      answers: { 200: SHARED_FIGURES },
      handler: async ({ caller }) => ({ items: (await shared.list(caller.accountId)).map(view) }),
    }),
    api.delete(`${PATH}/{figure_id}`, {
      id: 'revokeSharedFigure',
      summary: 'Revoke a link to a figure',
      audit: { action: 'shared-figure.revoke' },
      answers: { 200: SHARED_FIGURES, 404: 'No such link' },
      async handler({ path, caller }) {
        if (!(await shared.revoke(caller.accountId, path.figure_id))) throw new NotFound('No such link')
        return { items: (await shared.list(caller.accountId)).map(view) }
      },
    }),
    api.get('/shared/{token}', {
      rateLimit: 'default',
      id: 'openSharedFigure',
      summary: 'The page of a shared figure',
      auth: 'public',
      opensByLink: true,
      clientLimit: createClientLimit(clock, OPENED_PER_MINUTE),
      params: { token: otherParam('From the link') },
      answers: { 200: SHARED_PAGE, 404: NO_LINK, 429: 'Too many pages were opened' },
      async handler({ path }) {
        const row = await shared.find(path.token)
        const account = row && (await accounts.byId(row.account_id))
        if (row === null || account?.status !== 'open')
          return textReply(GONE, { status: 404, headers: HEADERS })
        const found = await figures.get(`${row.account_id} ${row.query_json}`)
        if (found === null) return textReply(TOO_MUCH, { status: 404, headers: HEADERS })
        const html = sharedPage(row.title, found.result, found.at, row.expires_at)
        return htmlReply(html, { headers: { ...HEADERS, 'content-security-policy': SHARED_PAGE_POLICY } })
      },
    }),
  ]
}

const GONE = 'This link is not valid, or not any more. Ask who gave it to you for another.\n'

const TOO_MUCH = 'This figure has become too large to be shown.\n'

/**
 * The request of a shared query, which counts by one dimension at most and for the account alone.
 * @throws BadRequest
 */
function sharedRequest(query: unknown, now: number): MetricsRequest {
  if (!isPlainObject(query)) throw new BadRequest('query must be an object, as of POST /v1/analytics/metrics')
  const request = readMetricsRequest(
    { ...query, pagination: pageOf(query['pagination']) },
    now,
    ACCOUNT_METRICS,
  )
  const { dimensions, metrics, start, end, resolution } = request
  if (request.includeSubaccounts) throw new BadRequest('a shared figure has no subaccounts')
  if (dimensions.length > 1 || dimensions.includes('subaccount'))
    throw new BadRequest('a shared figure has one dimension at most, which is not subaccount')
  if (metrics.length > METRICS_MAX)
    throw new BadRequest(`a shared figure has ${METRICS_MAX} metrics at most, and names them`)
  let points = 0
  if (dimensions.includes('time'))
    for (let at = start; at <= end && points <= ROWS_MAX; at = after(resolution, at)) points++
  if (points > ROWS_MAX) throw new BadRequest(`a shared figure has ${ROWS_MAX} intervals at most`)
  return request
}

const pageOf = (given: unknown) => ({
  limit: ROWS_MAX,
  ...(isPlainObject(given) && typeof given['sort'] === 'string' && { sort: given['sort'] }),
})

function titleOf(value: unknown): string {
  const title = typeof value === 'string' ? value.replace(/\p{Cc}/gu, ' ').trim() : ''
  if (title === '' || title.length > TITLE_MAX)
    throw new BadRequest(`title must have 1 to ${TITLE_MAX} characters`)
  return title
}

function daysOf(value: unknown): number {
  const days = value === undefined || value === null || value === '' ? DAYS.default : Number(value)
  if (!Number.isSafeInteger(days) || days < 1 || days > DAYS.max)
    throw new BadRequest(`days must be 1 to ${DAYS.max}`)
  return days
}

const view = (row: SharedFigureRow): Of<typeof SHARED_FIGURES>['items'][number] => ({
  id: row.id,
  title: row.title,
  key_id: row.key_id,
  user_id: row.user_id,
  query: JSON.parse(row.query_json) as Record<string, unknown>,
  created_at: formatRfc3339(new Date(row.created_at)),
  expires_at: formatRfc3339(new Date(row.expires_at)),
})
