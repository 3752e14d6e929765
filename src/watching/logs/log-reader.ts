/**
 * Reads logs: pages in either direction, whole lists for files, and counts. The walk, and why it misses nothing while
 * events are written, is that of the event pages (`watching/events/search/walk.ts`).
 */

import { pause } from '../../base/flow/pause.ts'
import { BadRequest } from '../../base/process/errors.ts'
import type { Clock } from '../../base/time/clock.ts'
import type { AccountDirectory } from '../../people/accounts/account-directory.ts'
import type { Store } from '../../platform/store/store.ts'
import type { CommitPosition, Gap } from '../events/search/page-request.ts'
import {
  createSearches,
  inOrder,
  type Match,
  readPage,
  settledPosition,
  type Walk,
  type WalkedPage,
} from '../events/search/walk.ts'
import { type LogItem, logItem } from './log-item.ts'
import { type LogPlan, planLogs } from './log-plan.ts'
import type { LogQuery } from './log-query.ts'
import type { LogPageRequest, LogPosition } from './log-token.ts'
import { countExact, countFound, type LogTotals } from './log-totals.ts'
import { ROWS_PER_PAGE, rowOf, type Search, searchOf, walkOf } from './log-walk.ts'
import type { MetricFacts } from './metric-events.ts'

export interface LogPage {
  items: LogItem[]
  totals: LogTotals | null
  /** The positions of the pages around it; left out where there is none. */
  links: Partial<Record<'previous' | 'first' | 'next' | 'last', LogPosition>>
}

export type LogReader = ReturnType<typeof createLogReader>

interface LogReaderParts {
  store: Store
  accounts: Pick<AccountDirectory, 'byId' | 'childrenOf'>
  facts: MetricFacts
  /** Older events are not shown, even if they are not deleted yet. */
  retentionMs: number
}

/** A page with `include_subaccounts` takes a step in the index for each account and kind of event. */
const ACCOUNTS_MAX = 2_000
/** Events that a file reads for such a filter. */
const SCANNED_MAX = 1_000_000
/** Items that a file reads at once. */
const ITEMS_PER_READ = 500
/** Reads after which a search counts as long. */
const SHORT_SEARCH_READS = 2

/** A look reads the keys of all new events, of other accounts too: some milliseconds after 2,000 of them. */
const TAIL_EVERY_MS = 2_000
/** So many full pages one after the other are more than a person can read: the rest is left out. */
const TAIL_PAGES_MAX = 5

/** Between full pages of a tail that goes on after an event: all of them are read, 2,000 events a second at most. */
const CATCH_UP_EVERY_MS = 50

/** What a tail found. `skipped`: there was more, which is left out. */
export interface LogTail {
  items: LogItem[]
  skipped: boolean
}

interface Tail {
  accountId: string
  query: LogQuery
  /** Id of the event that it goes on after; null: it begins now. */
  after: string | null
  clock: Clock
  signal: AbortSignal
}

/** A file is incomplete: its transfer breaks off. */
class SearchTooLong extends Error {}

export function createLogReader({ store, accounts, facts, retentionMs }: LogReaderParts) {
  const searching = createSearches(SHORT_SEARCH_READS)
  const catchingUp = createSearches(0)

  async function planOf(accountId: string, query: LogQuery): Promise<LogPlan> {
    const children = query.subaccounts ? await accounts.childrenOf(accountId) : []
    if (children.length >= ACCOUNTS_MAX) {
      throw new BadRequest(`include_subaccounts: there are more than ${ACCOUNTS_MAX - 1} subaccounts`)
    }
    return planLogs(store, query, [accountId, ...children])
  }

  async function* itemsOfList(search: Search, signal: AbortSignal): AsyncGenerator<LogItem> {
    const { ascending } = search.query
    let left = search.query.limit
    let gap: Gap | null = null
    for (let scanned = 0; left > 0; ) {
      if (scanned >= SCANNED_MAX) throw new SearchTooLong('a list of logs for a file reads too many events')
      const request: Walk['request'] = {
        ascending,
        up: ascending,
        gap,
        limit: Math.min(left, ITEMS_PER_READ),
      }
      const page: WalkedPage = await searching(signal, (pause) =>
        readPage(store, walkOf(store, facts, search, request, pause)),
      )
      scanned += page.rows
      yield* await itemsOf(accounts, inOrder(page.found, ascending))
      left -= page.found.length
      if (!page.more) return
      gap = ascending ? page.high : page.low
    }
  }

  async function* tailOf({ accountId, query, after, clock, signal }: Tail, start: CommitPosition) {
    let gap: Gap = { in: 'since', ...start }
    let pages = 0
    while (!signal.aborted) {
      // Made anew: a domain or tag that the filter names may have come since.
      const plan = await planOf(accountId, query)
      const search = await searchOf(store, query, plan, start, clock.now() - retentionMs)
      const request = { ascending: true, up: true, gap, limit: query.limit }
      const read = (pause: Walk['pause']): Promise<WalkedPage> =>
        readPage(store, walkOf(store, facts, search, request, pause))
      const page: WalkedPage = await (after === null ? read(async () => {}) : catchingUp(signal, read))
      gap = page.high ?? gap
      pages = page.more ? pages + 1 : 0
      const skipped = after === null && pages >= TAIL_PAGES_MAX
      if (skipped) {
        gap = { in: 'since', ...search.settled }
        pages = 0
      }
      if (page.found.length > 0 || skipped) yield { items: await itemsOf(accounts, page.found), skipped }
      await pause(clock, after !== null && page.more ? CATCH_UP_EVERY_MS : TAIL_EVERY_MS, signal)
    }
  }

  function totalsOf(search: Search, pause: Walk['pause']): Promise<LogTotals> {
    const { plan, lowUs, highUs } = search
    if (plan.isExact) return countExact(store, plan, lowUs, highUs)
    const whole = { ascending: false, up: false, gap: null, limit: ROWS_PER_PAGE }
    return readPage(store, walkOf(store, facts, search, whole, pause)).then(({ found, more }) =>
      countFound(
        found.map(({ row }) => row.event),
        more,
      ),
    )
  }

  return {
    /** @throws BadRequest over ACCOUNTS_MAX accounts; the signal's reason when the client has gone */
    async page(request: LogPageRequest, now: number, signal: AbortSignal): Promise<LogPage> {
      const { query, accountId } = request
      const search = await searchOf(
        store,
        query,
        await planOf(accountId, query),
        request.start,
        now - retentionMs,
      )
      const [page, totals] = await searching(signal, async (pause) => [
        await readPage(store, walkOf(store, facts, search, { ...query, ...request }, pause)),
        query.totals ? (request.totals ?? (await totalsOf(search, pause))) : null,
      ])
      const items = await itemsOf(accounts, inOrder(page.found, query.ascending))
      return { items, totals, links: linksOf(request, search, page) }
    },
    /**
     * Items that are committed from now on, and on PostgreSQL those that were while an older transaction was open, a page at a time
     * and in commit order, until `signal` aborts. With `after`: all items behind that event, none left out. A page is read when the one
     * before was taken, so a slow reader holds one page.
     * @throws BadRequest over ACCOUNTS_MAX accounts, or for an event that is not kept
     */
    async tail(tail: Tail): Promise<AsyncGenerator<LogTail>> {
      const { accountId, query, after } = tail
      await planOf(accountId, query)
      return tailOf(
        tail,
        after === null ? await settledPosition(store) : await positionAfter(store, accountId, after),
      )
    },
    /**
     * The items of a list in order, at most `query.limit`. The generator throws SearchTooLong after SCANNED_MAX events.
     * @throws BadRequest over ACCOUNTS_MAX accounts
     */
    async items(
      accountId: string,
      query: LogQuery,
      now: number,
      signal: AbortSignal,
    ): Promise<AsyncGenerator<LogItem>> {
      const plan = await planOf(accountId, query)
      return itemsOfList(await searchOf(store, query, plan, null, now - retentionMs), signal)
    },
  }
}

async function itemsOf(accounts: LogReaderParts['accounts'], found: readonly Match[]): Promise<LogItem[]> {
  const parents = new Map<string, string | null>()
  for (const { row } of found) {
    if (parents.has(row.account_id)) continue
    parents.set(row.account_id, (await accounts.byId(row.account_id))?.parentId ?? null)
  }
  return found.map(({ row, payload }) =>
    logItem({
      ...rowOf(row, payload),
      timestampUs: row.timestamp_us,
      parentId: parents.get(row.account_id) ?? null,
    }),
  )
}

/** Behind an event of the account. @throws BadRequest when there is none, or none any more */
async function positionAfter(store: Store, accountId: string, id: string): Promise<CommitPosition> {
  const sql = `SELECT ${store.kind === 'sqlite' ? '0 AS tx' : 'tx'}, seq FROM events WHERE id = ? AND account_id = ?`
  const [row] = await store.read({ sql, values: [id, accountId] })
  if (!row) throw new BadRequest('after: no event with this id is kept')
  return { tx: Number(row['tx']), seq: Number(row['seq']) + 1 }
}

/**
 * Rule 5. A page that was reached from its far end (`previous`, `last`) was read against the order of the list: what may
 * follow in that direction is before it.
 */
function linksOf(
  { query, gap, up }: LogPageRequest,
  search: Search,
  page: { low: Gap | null; high: Gap | null; more: boolean },
): LogPage['links'] {
  const start = query.ascending ? search.start : null
  const isForward = up === query.ascending
  const hasNext = isForward ? page.more : gap !== null
  const hasPrevious = isForward ? gap !== null : page.more
  const [above, below] = [
    { gap: page.high, up: true, start },
    { gap: page.low, up: false, start },
  ]
  return {
    ...(hasNext && { next: query.ascending ? above : below }),
    ...(hasPrevious && { previous: query.ascending ? below : above }),
    ...((hasNext || hasPrevious) && {
      first: { gap: null, up: query.ascending, start: null },
      last: { gap: null, up: !query.ascending, start: null },
    }),
  }
}
