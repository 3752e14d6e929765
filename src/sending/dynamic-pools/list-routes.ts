/** Enrolled domains and the history of bands over HTTP (dynamic-pools.md section 2, operations 10, 12 and 15). */

import { BadRequest } from '../../base/process/errors.ts'
import type { Of } from '../../base/shape.ts'
import { formatRfc3339 } from '../../base/time/dates.ts'
import { invalidChoice, invalidFormat } from '../../base/values.ts'
import { ACCOUNT_ID } from '../../people/accounts/account-directory.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import {
  choiceParam,
  dateParam,
  flagParam,
  type InputOf,
  otherParam,
  parsedParam,
  wordParam,
} from '../../platform/http/request/inputs.ts'
import type { Params } from '../../platform/http/request/params.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import type { DynamicPoolDomainRow } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'
import { storedName } from '../domains/names/directory.ts'
import { BANDS, type Band, fractionOf, isBand } from './bands.ts'
import { type LookupParts, reachableDomain } from './domain-lookup.ts'
import { HISTORY_ORDER, type HistoryQuery, readHistory, recordView } from './history.ts'
import { listOf, type PageLinks, type PageOrder, pagePlace, readPage } from './pages.ts'
import { ownerOf } from './pool-rules.ts'
import { DOMAIN_HISTORY, type ENROLLED_DOMAIN, ENROLLED_DOMAINS, HISTORY as HISTORY_PAGE } from './shapes.ts'

const api = operationsOf({ tag: 'Dynamic IP pools', auth: { area: 'ips' } })

const DOMAINS = '/v1/dynamic_pools/domains' as const
const HISTORY = '/v1/dynamic_pools/history' as const
const SORTS = ['name', 'bounce_rate', 'complaint_rate'] as const
const DIRECTIONS = ['ascending', 'descending'] as const
/** Accounts named by one call. */
const ACCOUNTS_MAX = 1_000
/** In place of a rate that is not known: last in both directions. A rate is at most that of all mail ever sent. */
const BEYOND = 1_000_000_000_000_000

interface ListRouteParts extends LookupParts {
  store: Store
  baseUrl: string
}

const LIMIT_DOC = { type: 'integer', default: 10 } as const
const LIMIT = parsedParam('1 to 100', (params) => readLimit(params, ['limit']), LIMIT_DOC)
const ANY_LIMIT = parsedParam(
  '1 to 100; `limit` is accepted too',
  (params) => readLimit(params, ['Limit', 'limit']),
  LIMIT_DOC,
)
const PAGE = 'Token of a page'
const HISTORY_PAGE_PARAM = parsedParam(PAGE, (params) => pagePlace(params, HISTORY_ORDER))
const TIMES = {
  before: dateParam('Only records before this time'),
  after: dateParam('Only records after this time'),
}

export function listRoutes(parts: ListRouteParts): Operation[] {
  return [domainList(parts), ...historyRoutes(parts)]
}

/** @throws BadRequest in the form of section 6 */
function readLimit(params: Params, names: readonly string[]): number {
  const name = names.find((one) => params.text(one) !== undefined) ?? 'limit'
  const tooLarge = invalidFormat(name, params.text(name) ?? '').message
  return params.integer(name, { min: 1, max: 100, default: 10, tooLarge })
}

/** Domains of a list that a caller sees: a parent sees the domains of its subaccounts. */
async function scopeOf({ accounts }: ListRouteParts, { accountId }: Caller) {
  const ownerId = await ownerOf(accounts, accountId)
  return { ownerId, accountId: ownerId === accountId ? null : accountId }
}

function domainOrder(sort: (typeof SORTS)[number], descending: boolean): PageOrder {
  const name = { sql: 'e.name', type: 'string' } as const
  if (sort === 'name') return { keys: [name], descending }
  const column = sort === 'bounce_rate' ? 'e.bounce_ppm' : 'e.complaint_ppm'
  const rate = { sql: `coalesce(${column}, ${descending ? -1 : BEYOND})`, type: 'number' } as const
  return { keys: [rate, name], descending }
}

function domainList(parts: ListRouteParts): Operation {
  return api.get(DOMAINS, {
    id: 'listEnrolledDomains',
    summary: 'List domains in dynamic pools, those of subaccounts as well',
    params: {
      limit: LIMIT,
      page: otherParam(PAGE),
      sort_by: choiceParam('What to sort by', SORTS, { default: 'name' }),
      sort_order: choiceParam('Direction; domains without the rate are last in both', DIRECTIONS, {
        default: 'ascending',
      }),
      account: parsedParam('Only domains of these accounts', readAccounts, { repeated: true }),
      pool: parsedParam('Only these bands', readBands, { repeated: true, values: BANDS }),
    },
    answers: { 200: ENROLLED_DOMAINS },
    async handler({ input, params, caller }) {
      const { limit, sort_by: sort, sort_order: direction, account: accountIds, pool: bands } = input()
      const order = domainOrder(sort, direction === 'descending')
      const scope = await scopeOf(parts, caller)
      const oneOf = (column: string, values: readonly string[]) =>
        values.length === 0 ? [] : [`${column} IN (${values.map(() => '?').join(', ')})`]
      const page = await readPage(parts.store, {
        from: `dynamic_pool_domains e INNER JOIN domains d ON d.id = e.domain_id
          LEFT JOIN accounts a ON a.id = e.account_id`,
        where: [
          'e.owner_id = ?',
          ...(scope.accountId === null ? [] : ['e.account_id = ?']),
          ...oneOf('e.account_id', accountIds),
          ...oneOf('e.band', bands),
        ],
        values: [
          scope.ownerId,
          ...(scope.accountId === null ? [] : [scope.accountId]),
          ...accountIds,
          ...bands,
        ],
        columns: 'e.*, a.name AS account_name',
        ...{ order, place: pagePlace(params, order), limit },
      })
      return listOf(page.rows.map(domainView), page, {
        ...{ baseUrl: parts.baseUrl, path: DOMAINS },
        carry: [
          ['limit', limit],
          ...accountIds.map((id) => ['account', id] as const),
          ...bands.map((band) => ['pool', band] as const),
          ['sort_by', sort],
          ['sort_order', direction],
        ],
      })
    },
  })
}

function readAccounts(params: Params): string[] {
  const ids = [...new Set(params.texts('account'))]
  if (ids.length > ACCOUNTS_MAX) throw new BadRequest(`at most ${ACCOUNTS_MAX} accounts may be given`)
  const wrong = ids.find((id) => !ACCOUNT_ID.test(id))
  if (wrong !== undefined) throw invalidFormat('account', wrong)
  return ids
}

/** As it is stored. @throws BadRequest if the text is no name */
function domainName(text: string, field: string): string {
  const name = storedName(text)
  if (name === null) throw invalidFormat(field, text)
  return name
}

function readBands(params: Params): Band[] {
  const bands = [...new Set(params.texts('pool'))]
  return bands.map((band) => {
    if (!isBand(band)) throw invalidChoice('pool', band)
    return band
  })
}

function domainView(found: Record<string, unknown>): Of<typeof ENROLLED_DOMAIN> {
  const row = found as unknown as DynamicPoolDomainRow & { band: Band; account_name: string | null }
  return {
    id: row.domain_id,
    account_id: row.account_id,
    account_name: row.account_name ?? '',
    name: row.name,
    registered_at: formatRfc3339(new Date(Number(row.registered_at))),
    pool: row.band,
    override: Number(row.is_pinned) === 1,
    bounce_rate: fractionOf(row.bounce_ppm),
    complaint_rate: fractionOf(row.complaint_ppm),
    processed_count: Number(row.processed),
  }
}

function historyRoutes(parts: ListRouteParts): Operation[] {
  return [
    api.get(`${DOMAINS}/{name}/history`, {
      id: 'listDomainBands',
      summary: 'List the changes of the band of a domain',
      params: { limit: LIMIT, ...TIMES, page: HISTORY_PAGE_PARAM },
      answers: { 200: DOMAIN_HISTORY },
      async handler({ input, params, path, caller }) {
        const { limit, page: place, ...times } = input()
        const { accountId, name } = await reachableDomain(parts, caller, path.name)
        const scope = { ownerId: await ownerOf(parts.accounts, accountId), accountId, domainName: name }
        const query: HistoryQuery = { ...inMs(times), ...scope, ...NO_MOVES, limit, place }
        const first = { ...query, place: { way: 'first' } as const, limit: 1 }
        const [newest, list] = await Promise.all([
          readHistory(parts.store, first),
          historyList(parts, query, {
            ...{ baseUrl: parts.baseUrl, path: `${DOMAINS}/${encodeURIComponent(name)}/history` },
            carry: carried(params, limit, TIME_NAMES),
          }),
        ])
        const [record] = newest.rows.map(recordView)
        return record === undefined ? list : { ...record, ...list }
      },
    }),
    api.get(HISTORY, {
      id: 'listBands',
      summary: 'List the changes of the bands of all domains',
      params: {
        Limit: ANY_LIMIT,
        limit: otherParam('The same as Limit', { type: 'integer' }),
        include_subaccounts: flagParam('Those of domains of subaccounts as well', { default: false }),
        domain: wordParam('Only those of this domain; it may be deleted', domainName),
        ...TIMES,
        moved_to: choiceParam('Only changes to this band', BANDS),
        moved_from: choiceParam('Only changes from this band', BANDS),
        page: HISTORY_PAGE_PARAM,
      },
      answers: { 200: HISTORY_PAGE },
      async handler({ input, params, caller }) {
        const { Limit: limit, include_subaccounts: includes, page: place, ...given } = input()
        const { ownerId, accountId } = await scopeOf(parts, caller)
        const query: HistoryQuery = {
          ...{ ownerId, accountId: includes ? accountId : caller.accountId },
          domainName: given.domain,
          ...inMs(given),
          ...{ movedTo: given.moved_to, movedFrom: given.moved_from, limit, place },
        }
        const names = [...TIME_NAMES, 'include_subaccounts', 'domain', 'moved_to', 'moved_from']
        return historyList(parts, query, {
          ...{ baseUrl: parts.baseUrl, path: HISTORY, carry: carried(params, limit, names, 'Limit') },
        })
      },
    }),
  ]
}

const NO_MOVES = { movedTo: undefined, movedFrom: undefined }
const TIME_NAMES = ['before', 'after']

const inMs = ({ before, after }: InputOf<typeof TIMES>) => ({
  before: before?.getTime(),
  after: after?.getTime(),
})

/** What links repeat, as it was given. */
const carried = (
  params: Params,
  limit: number,
  names: readonly string[],
  limitName = 'limit',
): PageLinks['carry'] => [[limitName, limit], ...names.map((name) => [name, params.text(name)] as const)]

async function historyList({ store }: ListRouteParts, query: HistoryQuery, links: PageLinks) {
  const page = await readHistory(store, query)
  return listOf(page.rows.map(recordView), page, links)
}
