/** The walk of `watching/events/search/walk.ts` through a list of logs: which keys it reads, and which of their events belong to the list. */

import type { Store } from '../../platform/store/store.ts'
import { recipientKeys, settledKeys } from '../events/search/event-keys.ts'
import type { KeySearch } from '../events/search/key-search.ts'
import type { CommitPosition, Gap } from '../events/search/page-request.ts'
import { type KeyPage, keyPage, type ReadRow, settledPosition, type Walk } from '../events/search/walk.ts'
import { type LogRow, passesAll } from './log-filter.ts'
import type { LogPlan } from './log-plan.ts'
import type { LogQuery } from './log-query.ts'
import { canScan, FOUND_COST, scannedKeys } from './log-scan.ts'
import { nextSinceKeys } from './log-since.ts'
import { textConditions } from './log-texts.ts'
import { isCounted, isUniqueMetric, type MetricFacts } from './metric-events.ts'
import { uniqueAmong } from './unique-visits.ts'

/**
 * Events that a page looks at to find matches of a filter without an index, about 20 ms. One that is read and parsed
 * counts as several.
 */
export const ROWS_PER_PAGE = 3_000
const PARSED_MIN = 50

export interface Search {
  query: LogQuery
  plan: LogPlan
  lowUs: number
  highUs: number
  start: CommitPosition
  settled: CommitPosition
}

export async function searchOf(
  store: Store,
  query: LogQuery,
  plan: LogPlan,
  start: CommitPosition | null,
  oldestMs: number,
): Promise<Search> {
  const settled = await settledPosition(store)
  return {
    query,
    plan,
    lowUs: Math.max(query.lowUs, Math.floor(oldestMs * 1000)),
    highUs: query.highUs ?? Number.MAX_SAFE_INTEGER,
    start: start ?? settled,
    settled,
  }
}

export function walkOf(
  store: Store,
  facts: MetricFacts,
  search: Search,
  request: Walk['request'],
  pause: Walk['pause'],
): Walk {
  const { plan, lowUs, highUs, start, settled } = search
  const scope = { accountIds: plan.accountIds, domainNames: plan.domainNames }
  const keySearch = { scope, request, plan, lowUs, highUs, start }
  const texts = textConditions(search.query.filter)
  const isScan = texts.length > 0 && canScan(plan.branches)
  let reads = 0
  let spent = 0
  return {
    request,
    start,
    settled,
    pause,
    rowsMax: ROWS_PER_PAGE,
    looksAhead: true,
    select: selecting(store, facts, search.query),
    async keys(area, gap, size) {
      if (plan.branches.length === 0 || lowUs > highUs) return { keys: [], rest: null, read: 0 }
      if (area === 'since') return nextSinceKeys(store, { ...keySearch, settled, gap, size })
      if (isScan) return scannedKeys(store, { ...keySearch, texts, gap, size }, reads++ === 0)
      const most = plan.isExact || reads++ === 0 ? size : Math.min(size, affordable(spent))
      const page = await settledPage(store, keySearch, gap, most)
      if (plan.isExact) return page
      const read = page.read * FOUND_COST
      spent += read
      return { ...page, read }
    },
  }
}

/** On SQLite recipients are searched in a bounded part of the time; where that ends, the page ends too. */
async function settledPage(store: Store, search: KeySearch, gap: Gap | null, size: number): Promise<KeyPage> {
  const { up } = search.request
  if (store.kind === 'postgres' || search.plan.branches[0]?.by !== 'recipient') {
    return keyPage(await settledKeys(store, search, gap, size), 'settled', up, size)
  }
  const { keys, restUs } = await recipientKeys(store, search, gap, size)
  if (restUs === null || keys.length === size) return keyPage(keys, 'settled', up, size)
  return { keys, rest: { in: 'settled', us: up ? restUs : restUs + 1, seq: 0 }, read: ROWS_PER_PAGE }
}

/** Events that may still be parsed for the page; a few are not worth a statement. */
const affordable = (spent: number) => Math.max(PARSED_MIN, Math.ceil((ROWS_PER_PAGE - spent) / FOUND_COST))

export const rowOf = (row: ReadRow['row'], payload: ReadRow['payload']): LogRow => ({
  id: row.id,
  event: row.event,
  accountId: row.account_id,
  domainName: row.domain_name,
  payload,
})

/** Applies the query to rows that were read. */
function selecting(store: Store, facts: MetricFacts, { filter, events, metrics }: LogQuery): Walk['select'] {
  const passes = passesAll(filter)
  const names = metrics ?? []
  const countedBy = (isUnique: boolean) => names.filter((name) => isUniqueMetric(name) === isUnique)
  const [plain, unique] = [countedBy(false), countedBy(true)]
  const isAny = (among: typeof names, { row, payload }: ReadRow) =>
    among.some((name) => isCounted(name, row.event, payload, facts))
  const isSelected = (read: ReadRow) => events?.includes(read.row.event) === true || isAny(plain, read)
  return async (rows) => {
    const passing = rows.filter(({ row, payload }) => passes(rowOf(row, payload)))
    if (events === null && metrics === null) return passing
    const visits = passing.filter((read) => !isSelected(read) && isAny(unique, read))
    const firsts = visits.length > 0 ? await uniqueAmong(store, visits) : null
    return passing.filter((read) => isSelected(read) || (firsts?.has(read.row.seq) && isAny(unique, read)))
  }
}
