/** Records of changes of bands (dynamic-pools.md section 1, HistoryRecord). */
import { newId } from '../../base/ids.ts'
import type { Of } from '../../base/shape.ts'
import { formatRfc3339 } from '../../base/time/dates.ts'
import { removeRows } from '../../platform/store/commits.ts'
import type { DynamicPoolHistoryRow } from '../../platform/store/schema.ts'
import type { SqlValue, Store, Tx } from '../../platform/store/store.ts'
import { type Band, fractionOf } from './bands.ts'
import { type Page, type PageOrder, type PagePlace, readPage } from './pages.ts'
import type { HISTORY_RECORD } from './shapes.ts'

/** Checks, in place of the id of a user or key. */
export const SYSTEM = 'system'
/** In place of a band: not enrolled. */
export const NO_BAND = ''

export type FiguresOfRow = Pick<DynamicPoolHistoryRow, 'processed' | 'bounce_ppm' | 'complaint_ppm'>

interface Change {
  domainId: string
  domainName: string
  accountId: string
  accountName: string
  ownerId: string
  from: Band | typeof NO_BAND
  to: Band | typeof NO_BAND
  reason: string
  figures: FiguresOfRow
  initiatedBy: string
}

export async function recordChange(tx: Tx, change: Change, now: number): Promise<void> {
  const at = Math.floor(now)
  await tx
    .insertInto('dynamic_pool_history')
    .values({
      ...{ id: newId(at), at, owner_id: change.ownerId, account_id: change.accountId },
      ...{ account_name: change.accountName, domain_id: change.domainId, domain_name: change.domainName },
      ...{ new_band: change.to, prev_band: change.from, reason: change.reason },
      ...{ processed: change.figures.processed, bounce_ppm: change.figures.bounce_ppm },
      ...{ complaint_ppm: change.figures.complaint_ppm, initiated_by: change.initiatedBy },
    })
    .execute()
}

export interface HistoryQuery {
  ownerId: string
  /** Null: of all accounts whose domains are in the owner's pools. */
  accountId: string | null
  domainName: string | undefined
  /** Unix milliseconds, exclusive. */
  before: number | undefined
  after: number | undefined
  movedTo: Band | undefined
  movedFrom: Band | undefined
  limit: number
  place: PagePlace
}

/** Newest first. */
export const HISTORY_ORDER: PageOrder = {
  keys: [
    { sql: 'at', type: 'number' },
    { sql: 'id', type: 'string' },
  ],
  descending: true,
}

export function readHistory(store: Store, query: HistoryQuery): Promise<Page> {
  const given: [string, SqlValue | undefined][] = [
    ['owner_id = ?', query.ownerId],
    ['account_id = ?', query.accountId ?? undefined],
    ['domain_name = ?', query.domainName],
    ['at < ?', query.before],
    ['at > ?', query.after],
    ['new_band = ?', query.movedTo],
    ['prev_band = ?', query.movedFrom],
  ]
  const conditions = given.filter((one): one is [string, SqlValue] => one[1] !== undefined)
  return readPage(store, {
    from: 'dynamic_pool_history',
    where: conditions.map(([sql]) => sql),
    values: conditions.map(([, value]) => value),
    columns: '*',
    order: HISTORY_ORDER,
    place: query.place,
    limit: query.limit,
  })
}

type Moved = { new_band: Change['to']; prev_band: Change['from'] }

export function recordView(found: Record<string, unknown>): Of<typeof HISTORY_RECORD> {
  const row = found as unknown as DynamicPoolHistoryRow & Moved
  return {
    id: row.id,
    owning_account_id: row.owner_id,
    account_id: row.account_id,
    account_name: row.account_name,
    domain_id: row.domain_id,
    domain_name: row.domain_name,
    new_band: row.new_band,
    prev_band: row.prev_band,
    reason: row.reason,
    bounce_rate: fractionOf(row.bounce_ppm),
    complaint_rate: fractionOf(row.complaint_ppm),
    processed_count: row.processed === null ? null : Number(row.processed),
    initiated_by: row.initiated_by,
    timestamp: formatRfc3339(new Date(Number(row.at))),
  }
}

export function removeOldRecords(store: Store, before: number, signal: AbortSignal): Promise<void> {
  const old = { where: 'at < ? ORDER BY at', values: [Math.floor(before)] }
  return removeRows(store, { from: 'dynamic_pool_history', key: 'id', ...old }, signal)
}
