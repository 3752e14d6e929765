/** What was listed and delisted, kept for a year. */

import { DAY_MS } from '../../base/time/durations.ts'
import type { IdPage } from '../../platform/http/request/paging.ts'
import { inList } from '../../platform/store/lists.ts'
import type { BlocklistEventRow } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'

const KEPT_MS = 366 * DAY_MS
const REMOVED_AT_A_TIME = 1_000

/** A page of the history of domains, newest first; `domain`: of one. */
export async function readEvents(
  store: Store,
  asked: { accountIds: readonly string[]; domain?: string; page: IdPage; limit: number },
): Promise<BlocklistEventRow[]> {
  const { accountIds, domain, page, limit } = asked
  // From the oldest on; then turned around.
  const isUpwards = page.kind === 'last' || page.kind === 'previous'
  const rows = await store.db
    .selectFrom('blocklist_events')
    .selectAll()
    .where('account_id', 'in', inList(store, accountIds))
    .where('kind', '=', 'domain')
    .$if(domain !== undefined, (some) => some.where('subject', '=', domain ?? ''))
    .$if(page.kind === 'next', (some) => some.where('id', '<', 'pivot' in page ? page.pivot : ''))
    .$if(page.kind === 'previous', (some) => some.where('id', '>', 'pivot' in page ? page.pivot : ''))
    .orderBy('id', isUpwards ? 'asc' : 'desc')
    .limit(limit)
    .execute()
  return isUpwards ? rows.reverse() : rows
}

/** Resolves whether there is more. */
export async function removeOldEvents(store: Store, now: number): Promise<boolean> {
  const sql = `DELETE FROM blocklist_events WHERE id IN
    (SELECT id FROM blocklist_events WHERE created_at < ? LIMIT ${REMOVED_AT_A_TIME})`
  const [result] = await store.commit([{ sql, values: [Math.floor(now) - KEPT_MS] }])
  return result?.affected === REMOVED_AT_A_TIME
}
