/** Removes expired counters (tags-stats.md section 6), and those of deleted domains and accounts. */

import { DAY_MS } from '../../../base/time/durations.ts'
import { commitInChunks, removeRows } from '../../../platform/store/commits.ts'
import type { Store } from '../../../platform/store/store.ts'
import { followedPosition } from '../../events/follower.ts'
import { UNIQUE_FOR_MS } from '../unique-visits.ts'
import { ROW_KEY, WAIT_FOR_COUNTING } from './figure-rows.ts'
import { placesOf } from './places.ts'
import { SPLIT_NUMBERS, SPLITS, UNIT_NUMBERS } from './splits.ts'

/** Months are kept as long as the domain. */
export const KEPT_MS = { hour: 60 * DAY_MS, day: 366 * DAY_MS, week: 366 * DAY_MS } as const

/** A day longer than they are needed: events are not counted in order of time. */
const VISITS_KEPT_MS = UNIQUE_FOR_MS + DAY_MS
const NEXT_EVENT = 'SELECT timestamp_us FROM events'

/** Rows per transaction: the writer is blocked for a few milliseconds. */
const CHUNK = 1_000

/** Takes the scopes from one number to another, so that each table is read where its key begins. */
const OLD_FIGURES = `DELETE FROM figures WHERE (${ROW_KEY}) IN
  (SELECT ${ROW_KEY} FROM figure_scopes CROSS JOIN figures
   WHERE no > ? AND no <= ? AND scope = no AND split = ? AND unit = ? AND start_at < ? LIMIT ${CHUNK})`
const SCOPES = 200
const ROWS_OF_SCOPE = [
  { from: 'figures', key: ROW_KEY },
  { from: 'figure_packs', key: 'scope, unit, start_at, part' },
] as const

/** Stops early when `signal` aborts; the next run continues. `now`: Unix milliseconds. */
export async function removeOldCounters(store: Store, now: number, signal?: AbortSignal): Promise<void> {
  const { until } = await placesOf(store)
  // Rows of which longer ones are to be made are kept.
  const before = {
    hour: Math.min(now - KEPT_MS.hour, until.day),
    day: Math.min(now - KEPT_MS.day, until.week, until.month),
    week: now - KEPT_MS.week,
  }
  const [last] = await store.read({ sql: 'SELECT max(no) AS no FROM figure_scopes', values: [] })
  for (let scope = 0; scope < Number(last?.['no'] ?? 0); scope += SCOPES)
    for (const { name } of SPLITS.filter((split) => split.name !== 'all'))
      for (const unit of ['hour', 'day', 'week'] as const) {
        const limits = [scope, scope + SCOPES, SPLIT_NUMBERS[name], UNIT_NUMBERS[unit]]
        const values = [...limits, Math.floor(before[unit])]
        await commitInChunks(store, { sql: OLD_FIGURES, values }, CHUNK, signal)
      }
  const counted = Math.min(now, await countedUpTo(store))
  const old = { where: 'counted_at < ?', values: [Math.floor(counted - VISITS_KEPT_MS)] }
  await removeRows(store, { from: 'counted_visits', key: 'visit', ...old }, signal)
}

/** The approximate time up to which events are counted, in Unix milliseconds; with a backlog it may be long ago. */
async function countedUpTo(store: Store): Promise<number> {
  const cursor = await followedPosition(store)
  const [next] = await store.read(
    store.kind === 'sqlite'
      ? { sql: `${NEXT_EVENT} WHERE seq > ? ORDER BY seq LIMIT 1`, values: [cursor.seq] }
      : {
          sql: `${NEXT_EVENT} WHERE (tx, seq) > (?, ?) ORDER BY tx, seq LIMIT 1`,
          values: [cursor.tx, cursor.seq],
        },
  )
  return next ? Number(next['timestamp_us']) / 1000 : Number.POSITIVE_INFINITY
}

/**
 * Removes the figures of a domain; without a name those of the account as a whole. The scope goes last, so that it can be
 * repeated; in that transaction no counting is in progress, and later ones find that the domain no longer exists.
 */
export async function removeFiguresOf(
  store: Store,
  { accountId, name = '' }: { accountId: string; name?: string },
): Promise<void> {
  const sql = 'SELECT no FROM figure_scopes WHERE account_id = ? AND domain_name = ?'
  const [found] = await store.read({ sql, values: [accountId, name] })
  if (!found) return
  const scope = Number(found['no'])
  for (const rows of ROWS_OF_SCOPE) await removeRows(store, { ...rows, where: 'scope = ?', values: [scope] })
  await store.commit([
    { sql: WAIT_FOR_COUNTING, values: [] },
    { sql: 'DELETE FROM figures WHERE scope = ?', values: [scope] },
    { sql: 'DELETE FROM figure_packs WHERE scope = ?', values: [scope] },
    { sql: 'DELETE FROM figure_scopes WHERE no = ?', values: [scope] },
  ])
}
