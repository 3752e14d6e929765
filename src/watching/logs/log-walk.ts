/** The walk of `watching/events/search/walk.ts` through a list of logs: which keys it reads, and which of their events belong to the list. */

import { DAY_MS } from '../../base/time/durations.ts'
import type { Store } from '../../platform/store/store.ts'
import { SAME_TIME } from '../events/kept/time-parts.ts'
import { recipientKeys, settledKeys } from '../events/search/event-keys.ts'
import type { CommitPosition, Gap } from '../events/search/page-request.ts'
import type { KeySearch } from '../events/search/plan.ts'
import { type KeyPage, keyPage, type ReadRow, settledPosition, type Walk } from '../events/search/walk.ts'
import { type LogRow, passesAll, textConditions } from './log-filter.ts'
import type { LogPlan } from './log-plan.ts'
import type { LogQuery } from './log-query.ts'
import { canScan, FOUND_COST, nextSinceKeys, scannedKeys } from './log-scan.ts'
import { isCounted, isUniqueMetric, type MetricFacts } from './metric-events.ts'

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

const UNIQUE_FOR_US = 7 * DAY_MS * 1000

const BOT = {
  sqlite: `json_extract(payload_json, '$."client-info".bot')`,
  postgres: `payload_json::json -> 'client-info' ->> 'bot'`,
} as const

interface Visit {
  seq: number
  us: number
  key: string
}

/**
 * The `seq` of the opens and clicks that are unique: one per message, recipient and bot class within seven days, starting
 * with the one that counts (tags-stats.md section 5). Found from the events themselves, so it holds for any time that they
 * are kept; in the first seven of these days an earlier visit may be gone.
 */
export async function uniqueAmong(store: Store, visits: readonly ReadRow[]): Promise<ReadonlySet<number>> {
  const messages = [...new Set(visits.flatMap(({ payload }) => messageIdOf(payload) ?? []))]
  if (messages.length === 0) return new Set()
  const list = store.kind === 'sqlite' ? 'json_each(?)' : 'json_array_elements_text(?::json)'
  const rows = await store.read({
    // `|| ''` leaves only the index by message id.
    sql: `SELECT events.seq, events.timestamp_us, events.account_id, events.domain_name, events.event,
        events.message_id, events.recipient, ${BOT[store.kind]} AS bot
      FROM event_keys CROSS JOIN events
      WHERE event_keys.message_id IN (SELECT value FROM ${list}) AND event_keys.event || '' IN ('opened', 'clicked')
        AND events.seq = event_keys.seq ${SAME_TIME[store.kind]} AND events.recipient IN (SELECT value FROM ${list})
      ORDER BY event_keys.timestamp_us, event_keys.seq`,
    values: [
      JSON.stringify(messages),
      JSON.stringify([...new Set(visits.map(({ row }) => row.recipient ?? ''))]),
    ],
  })
  return firstOfEach(rows.map(visitOf))
}

const messageIdOf = (payload: Readonly<Record<string, unknown>>): string | null => {
  const { message } = payload as { message?: { headers?: { 'message-id'?: unknown } } }
  const id = message?.headers?.['message-id']
  return typeof id === 'string' ? id : null
}

const visitOf = (row: Record<string, unknown>): Visit => ({
  seq: Number(row['seq']),
  us: Number(row['timestamp_us']),
  key: JSON.stringify(
    ['account_id', 'domain_name', 'event', 'message_id', 'recipient', 'bot'].map((name) => row[name]),
  ),
})

/** `visits`: in order of time. */
function firstOfEach(visits: readonly Visit[]): Set<number> {
  const counted = new Map<string, number>()
  const firsts = new Set<number>()
  for (const { seq, us, key } of visits) {
    const before = counted.get(key)
    if (before !== undefined && us < before + UNIQUE_FOR_US) continue
    counted.set(key, us)
    firsts.add(seq)
  }
  return firsts
}
