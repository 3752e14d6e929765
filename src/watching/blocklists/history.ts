/** What was listed and delisted, kept for a year. */

import { DAY_MS } from '../../base/time/durations.ts'
import type { IdPage } from '../../platform/http/request/paging.ts'
import { removeRows } from '../../platform/store/commits.ts'
import { inList } from '../../platform/store/lists.ts'
import type { BlocklistEventRow } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'

const KEPT_MS = 366 * DAY_MS

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

export function removeOldEvents(store: Store, now: number, signal: AbortSignal): Promise<void> {
  const old = { where: 'created_at < ?', values: [Math.floor(now) - KEPT_MS] }
  return removeRows(store, { from: 'blocklist_events', key: 'id', ...old }, signal)
}
