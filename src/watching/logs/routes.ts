/** Logs over HTTP (metrics-logs.md section 5). */

import { BadRequest } from '../../base/process/errors.ts'
import type { Of } from '../../base/shape.ts'
import { isPlainObject } from '../../base/values.ts'
import type { Core } from '../../core.ts'
import { csvReply, eventStream, prefersCsv, type Reply } from '../../platform/http/answer/reply.ts'
import { createStreamPlaces } from '../../platform/http/answer/stream-places.ts'
import { type Operation, operation } from '../../platform/http/operation.ts'
import { parsedParam, textParam } from '../../platform/http/request/inputs.ts'
import type { Params } from '../../platform/http/request/params.ts'
import { CSV_HEADER, csvRow, type LogItem } from './log-item.ts'
import {
  type Given,
  LIMIT_DEFAULT,
  LIMIT_MAX,
  LOG_EVENTS,
  type LogQuery,
  limitOf,
  objectOf,
  readLogQuery,
  tokenOf,
} from './log-query.ts'
import type { LogPage, LogReader, LogTail } from './log-reader.ts'
import { type LogPageRequest, type LogPosition, openLogPage, sealLogPage, TOKEN_MAX } from './log-token.ts'
import { METRIC_EVENT_NAMES } from './metric-events.ts'
import { CSV, LOG_QUERY, LOG_STREAM, LOGS } from './shapes.ts'

interface LogRouteParts extends Pick<Core, 'clock' | 'sealer'> {
  logs: LogReader
}

/** Items of a CSV file. */
const CSV_LIMIT = { default: 100_000, max: 100_000 }
const PAGE_LIMIT = { default: LIMIT_DEFAULT, max: LIMIT_MAX }

export function logRoutes(parts: LogRouteParts): Operation[] {
  const { logs, clock } = parts
  const streams = createStreamPlaces(STREAMS_MAX, STREAMS_PER_ACCOUNT, 'read POST /v1/analytics/logs')
  return [
    operation({
      method: 'POST',
      path: '/v1/analytics/logs',
      id: 'listLogs',
      tag: 'Logs',
      summary: 'List events of the account',
      description:
        'With `Accept: text/csv` the whole list as a file, up to `pagination.limit` (100,000) events without a token.',
      auth: { area: 'events', access: 'read' },
      rateLimit: 'analytics',
      body: LOG_QUERY,
      answers: { 200: [LOGS, CSV], 400: 'A bad date, name, filter, sort, limit or token' },
      handler: ({ params, caller, headers, signal }) =>
        prefersCsv(headers.accept)
          ? file(parts, params, caller.accountId, signal)
          : page(parts, params, caller.accountId, signal),
    }),
    operation({
      method: 'GET',
      path: '/sendwright/v1/events/stream',
      id: 'streamEvents',
      tag: 'Logs',
      summary: 'Events of the account as they happen, as server-sent events',
      description:
        'One `events` event for up to 100 of them, every two seconds at most; its `id` is that of the last one. With more than can be read, some are left out and `skipped` is true. With the id of an event in the header `Last-Event-ID`, or in `after`, it goes on after that event and leaves nothing out.',
      auth: { area: 'events', access: 'read' },
      rateLimit: 'none',
      params: {
        events: parsedParam('Types of events; default all', textsOf, { repeated: true, values: LOG_EVENTS }),
        metric_events: parsedParam('The events that a metric counts', textsOf, {
          repeated: true,
          values: METRIC_EVENT_NAMES,
        }),
        filter: textParam('JSON of the filter of `POST /v1/analytics/logs`'),
        after: textParam('Id of the event that it goes on after, unless there is the header `Last-Event-ID`'),
      },
      answers: {
        200: LOG_STREAM,
        400: 'A bad name or filter, or an event that is not kept',
        429: 'Too many streams are open',
      },
      async handler({ input, caller, headers, signal }) {
        const { after, ...given }: Record<string, unknown> = input()
        const query = readLogQuery((name) => given[name], clock.now())
        // A browser that connects again repeats the address as it was, and has the header from what it got since.
        const last = headers['last-event-id'] || after
        const place = streams.enter(caller, signal)
        const found = await logs
          .tail({
            accountId: caller.accountId,
            query: { ...query, ascending: true, lowUs: 0, highUs: null, limit: LIMIT_MAX },
            after: last === undefined ? null : String(last),
            ...{ clock, signal: place.signal },
          })
          .catch((error: unknown) => {
            place.leave()
            throw error
          })
        return eventStream(tailEvents(found, place.leave))
      },
    }),
  ]
}

const textsOf = (params: Params, name: string): string[] => params.texts(name)

/** Ends with the stream: `leave` is called also by one that was never read. */
async function* tailEvents(found: AsyncIterable<LogTail>, leave: () => void) {
  try {
    for await (const data of found) {
      const id = data.items.at(-1)?.['id']
      yield { event: 'events', ...(typeof id === 'string' && { id }), data }
    }
  } finally {
    leave()
  }
}

/** One per open tab: some for each person of an account. */
const STREAMS_PER_ACCOUNT = 20
/** Each looks at the new events every two seconds; all together keep one reader busy for a tenth of the time. */
const STREAMS_MAX = 50

/** Members of a JSON document, or fields of a form. */
function givenBy(params: Params): Given {
  const document = params.json()
  if (isPlainObject(document)) return (name) => document[name]
  return (name) => {
    const texts = params.texts(name)
    return texts.length > 1 ? texts : texts[0]
  }
}

async function file(
  { logs, clock }: LogRouteParts,
  params: Params,
  accountId: string,
  signal: AbortSignal,
): Promise<Reply> {
  const given = givenBy(params)
  if (tokenOf(given)) throw new BadRequest('a CSV file has no pagination token')
  const query = readLogQuery(given, clock.now(), CSV_LIMIT)
  // A file ends: it does not wait for later events.
  const whole = { ...query, highUs: query.highUs ?? Math.floor(clock.now() * 1000) }
  const items = await logs.items(accountId, whole, clock.now(), signal)
  return csvReply('logs.csv', CSV_HEADER, rowsOf(items))
}

async function* rowsOf(items: AsyncIterable<LogItem>) {
  for await (const item of items) yield csvRow(item)
}

async function page(
  parts: LogRouteParts,
  params: Params,
  accountId: string,
  signal: AbortSignal,
): Promise<Of<typeof LOGS>> {
  const { logs, clock, sealer } = parts
  const now = clock.now()
  const given = givenBy(params)
  const token = tokenOf(given)
  const request = token ? tokenRequest(parts, token, given, accountId) : firstRequest(given, accountId, now)
  const found = await logs.page(request, now, signal)
  const { query } = request
  const seal = (position: LogPosition) =>
    sealLogPage(sealer, { accountId, query, totals: found.totals, ...position }, now)
  if (!token) assertShort(seal({ gap: { in: 'settled', ...LONG }, up: true, start: LONG }))
  return resultOf(query, found, seal)
}

/** A position as long as any. */
const LONG = { us: Number.MAX_SAFE_INTEGER, tx: Number.MAX_SAFE_INTEGER, seq: Number.MAX_SAFE_INTEGER }

/** Before there are further pages, so that a query does not fail on some days only. */
function assertShort(token: string): void {
  if (token.length > TOKEN_MAX) throw new BadRequest('the filter is too long: name fewer or shorter values')
}

function firstRequest(given: Given, accountId: string, now: number): LogPageRequest {
  const query = readLogQuery(given, now)
  return { accountId, query, gap: null, up: query.ascending, start: null, totals: null }
}

/** Rule 4: everything is the token's but the limit. */
function tokenRequest(
  { sealer, clock }: LogRouteParts,
  token: string,
  given: Given,
  accountId: string,
): LogPageRequest {
  const request = openLogPage(sealer, token, accountId, clock.now())
  if (!request) throw new BadRequest('invalid pagination token')
  const { limit } = request.query
  const asked = limitOf(objectOf(given('pagination'))['limit'], { ...PAGE_LIMIT, default: limit })
  return { ...request, query: { ...request.query, limit: asked } }
}

function resultOf(
  { start, end }: LogQuery,
  { items, totals, links }: LogPage,
  seal: (at: LogPosition) => string,
): Of<typeof LOGS> {
  const tokens = Object.entries(links).map(([name, position]) => [name, seal(position)])
  return {
    start,
    end,
    items,
    pagination: { ...Object.fromEntries(tokens), ...(totals && { total: totals.all }) },
    aggregates: totals ?? {},
  }
}
