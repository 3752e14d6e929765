/** Events over HTTP (events.md V1, V2): turns queries into page requests, and adds links to their pages. */
import { domainToASCII } from 'node:url'
import type { MaybePromise } from '../../base/flow/cache.ts'
import { nearestName } from '../../base/nearest-name.ts'
import { BadRequest, NotFound } from '../../base/process/errors.ts'
import type { Of } from '../../base/shape.ts'
import { isGoZeroTime, parseDate } from '../../base/time/dates.ts'
import { quotable } from '../../base/values.ts'
import type { Core } from '../../core.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import {
  flagParam,
  integerParam,
  otherParam,
  parsedParam,
  readInputs,
} from '../../platform/http/request/inputs.ts'
import { tokenPaging } from '../../platform/http/request/paging.ts'
import type { Params } from '../../platform/http/request/params.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import type { Sealer } from '../../platform/store/secrets/sealing.ts'
import { EVENT_NAMES } from './event.ts'
import {
  exactWords,
  FIELD_NAMES,
  type FieldName,
  type Filter,
  fold,
  isFieldName,
  kindOf,
  parseFilter,
} from './search/filter.ts'
import { openPage, type PageRequest, sealPage } from './search/page-request.ts'
import type { EventReader } from './search/query.ts'
import { EVENTS } from './shapes.ts'

interface EventRouteParts extends Pick<Core, 'clock' | 'sealer'> {
  events: EventReader
  domains: { byName(name: string): MaybePromise<{ accountId: string; name: string } | null> }
  accounts: { byId(id: string): MaybePromise<{ parentId: string | null } | null> }
  baseUrl: string
}

const LIMIT_DEFAULT = 100
const LIMIT_MAX = 300
/** Filters as JSON in UTF-8: with base64 and the rest of a token they stay under the 4 KB of a path part. */
const FILTERS_MAX_BYTES = 2400
const api = operationsOf({
  tag: 'Events',
  auth: { area: 'events' },
  rateLimit: 'analytics',
  deprecated: true,
})
const ANSWERS = { 200: EVENTS, 404: 'Domain not found' }

const LIMIT_TEXT = `limit must be between 1 and ${LIMIT_MAX}`
const PARAMS = {
  limit: integerParam(`Events on a page, 1 to ${LIMIT_MAX}`, {
    ...{ min: 1, max: LIMIT_MAX, default: LIMIT_DEFAULT },
    ...{ invalid: LIMIT_TEXT, tooLarge: LIMIT_TEXT },
  }),
  begin: parsedParam('Where the list begins', microseconds, { type: 'date' }),
  end: parsedParam('Where it ends; before `begin`: newest first', microseconds, { type: 'date' }),
  ascending: flagParam('Oldest first; required with `begin` alone'),
  page: otherParam('A page token; everything else is ignored then'),
  pretty: otherParam('Without effect', { type: 'boolean' }),
}
const FILTERS = Object.fromEntries(
  FIELD_NAMES.map((name) => {
    const numbers = kindOf(name) === 'number' ? 'Numbers: `>n`, `<n`, `>=n`, `<=n`. ' : ''
    return [name, otherParam(`${numbers}Words, "phrases", AND, OR, NOT, parentheses`, { repeated: true })]
  }),
)

export function eventRoutes(parts: EventRouteParts): Operation[] {
  return [
    api.get('/v3/{domain_name}/events', {
      answers: ANSWERS,
      id: 'listEvents',
      summary: 'List events',
      params: { ...PARAMS, ...FILTERS },
      async handler({ params, path, caller, signal }) {
        const domainName = await knownDomain(parts, caller, path.domain_name)
        const token = params.text('page')
        const request = token
          ? requestOfToken(parts.sealer, token, caller.accountId, domainName)
          : requestOf(params, caller.accountId, domainName)
        return answer(parts, request, signal)
      },
    }),
    api.get('/v3/{domain_name}/events/{page_token}', {
      answers: ANSWERS,
      id: 'listEventsPage',
      summary: 'Read a page of events by its link',
      description: 'The link holds the query; the parameters have no effect.',
      params: { ...PARAMS, ...FILTERS },
      async handler({ path, caller, signal }) {
        const domainName = await knownDomain(parts, caller, path.domain_name)
        const request = requestOfToken(parts.sealer, path.page_token, caller.accountId, domainName)
        return answer(parts, request, signal)
      },
    }),
  ]
}

/** The name of the caller's domain, or of a domain that it deleted and whose events still exist (rule 16). */
async function knownDomain(
  { domains, events }: EventRouteParts,
  { accountId }: Caller,
  given: string,
): Promise<string> {
  const name = domainToASCII(given) || given.toLowerCase()
  const domain = await domains.byName(name)
  if (domain?.accountId === accountId || (await events.hasEvents(accountId, name))) return name
  throw new NotFound('Domain not found')
}

async function answer(
  parts: EventRouteParts,
  request: PageRequest,
  signal: AbortSignal,
): Promise<Of<typeof EVENTS>> {
  const { items, links } = await parts.events.page(request, parts.clock.now(), signal)
  const parentId = (await parts.accounts.byId(request.accountId))?.parentId
  const seal = (link: PageRequest) => sealPage(parts.sealer, link)
  return {
    items: parentId
      ? items.map((item) => ({ ...item, account: { id: request.accountId, 'parent-id': parentId } }))
      : items,
    paging: tokenPaging({
      baseUrl: parts.baseUrl,
      path: `/v3/${encodeURIComponent(request.domainName)}/events`,
      place: 'path',
      tokens: {
        next: seal(links.next),
        previous: seal(links.previous),
        first: seal(links.first),
        last: seal(links.last),
      },
    }),
  }
}

/** A token is valid only for the account and domain that it was made for. */
function requestOfToken(sealer: Sealer, token: string, accountId: string, domainName: string): PageRequest {
  const request = openPage(sealer, token)
  if (request?.accountId !== accountId || request.domainName !== domainName) {
    throw new BadRequest('Invalid page token')
  }
  return request
}

/** The first page of the query in `params`. @throws BadRequest for everything section 4 of the contract lists */
function requestOf(params: Params, accountId: string, domainName: string): PageRequest {
  const filters = filtersOf(params)
  const { limit, begin, end, ascending } = readInputs(PARAMS, params)
  const range = rangeOf(begin, end, ascending)
  return { accountId, domainName, ...range, limit, filters, gap: null, up: range.ascending, start: null }
}

const OTHER_NAMES = new Set(['begin', 'end', 'ascending', 'limit', 'page', 'pretty'])

function filtersOf(params: Params): [FieldName, string][] {
  const filters: [FieldName, string][] = []
  for (const name of params.names()) {
    if (OTHER_NAMES.has(name)) continue
    if (!isFieldName(name)) {
      throw new BadRequest(`'${quotable(name)}' is not a valid filter predicate attribute`)
    }
    for (const text of params.texts(name)) {
      filters.push([name, text])
      const tooLong = Buffer.byteLength(JSON.stringify(filters)) > FILTERS_MAX_BYTES
      const filter = tooLong ? null : parseFilter(name, text)
      if (filter === null) throw new BadRequest(`invalid filter expression for ${name}`)
      if (name === 'event') refuseMisspelt(filter)
    }
  }
  return filters
}

/** A name of no event finds nothing; one that is nearly an event's is a mistake (rule 14). */
function refuseMisspelt({ expression }: Filter): void {
  const names: readonly string[] = EVENT_NAMES
  for (const word of exactWords(expression, () => true) ?? []) {
    const near = nearestName(word, names)
    if (near !== null && near !== fold(word))
      throw new BadRequest(`no event is named '${quotable(word)}' (did you mean ${near}?)`)
  }
}

/** Unix seconds keep their microseconds, so that the timestamp of an event selects exactly that event. */
function microseconds(params: Params, name: string): number | null {
  const text = params.text(name)
  if (text === undefined) return null
  const date = parseDate(text)
  if (date === undefined) throw new BadRequest(`${quotable(text)} is not an RFC-2822 compliant date`)
  if (isGoZeroTime(date)) return null
  const seconds = /^\s*[\d.]+\s*$/.test(text) ? Number(text) : date.getTime() / 1000
  return Math.round(seconds * 1_000_000)
}

type Range = Pick<PageRequest, 'lowUs' | 'highUs' | 'ascending'>

/** Rules 1 to 5: bounds and direction. `begin` is where the list begins, so it may be the later one. */
export function rangeOf(begin: number | null, end: number | null, ascending: boolean | undefined): Range {
  if (begin !== null && end !== null) {
    const direction = begin === end ? (ascending ?? true) : begin < end
    if (ascending !== undefined && ascending !== direction) {
      throw new BadRequest('ascending contradicts the time range')
    }
    return { lowUs: Math.min(begin, end), highUs: Math.max(begin, end), ascending: direction }
  }
  if (begin !== null && ascending === undefined) {
    throw new BadRequest('ascending is required when end is not given')
  }
  const direction = ascending ?? false
  const [low, high] = direction ? [begin, end] : [end, begin]
  return { lowUs: low, highUs: high, ascending: direction }
}
