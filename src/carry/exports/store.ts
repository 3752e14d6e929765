/** The rows of exports. */
import { BadRequest } from '../../base/process/errors.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import { piecesOf } from '../../platform/jobs/piece-steps.ts'
import { accountLockStatements, type RowParts } from '../../platform/store/account-rows.ts'
import type { BlobStore } from '../../platform/store/blobs/blobs.ts'
import type { ExportRow } from '../../platform/store/schema.ts'
import { insert, StaleWrite, type Statement, type Store } from '../../platform/store/store.ts'

/** From the request on. */
export const KEPT_MS = DAY_MS
/** Exports of an account, each a file on the disk. */
const EXPORTS_MAX = 10
/** Exports of an account that are not done. */
const OPEN_MAX = 2

const OPEN = "status IN ('requested', 'processing')"

/** Statement that rolls its unit back unless fewer than `max` rows match. */
const fewer = (where: string, values: readonly string[], max: number): Statement => ({
  sql: `SELECT 1 AS fewer WHERE (SELECT count(*) FROM exports WHERE ${where}) < ${max}`,
  values,
  expectRows: 1,
})

/** @throws BadRequest over a limit, or while the same list is being exported */
export async function insertExport(store: Store, row: ExportRow): Promise<void> {
  const id = row.account_id
  const same = fewer(`account_id = ? AND ${OPEN} AND url = ? AND body = ?`, [id, row.url, row.body], 1)
  const open = fewer(`account_id = ? AND ${OPEN}`, [id], OPEN_MAX)
  const all = fewer('account_id = ?', [id], EXPORTS_MAX)
  try {
    await store.commit([...accountLockStatements(store, id), same, open, all, insert('exports', row)])
  } catch (error) {
    const failed = error instanceof StaleWrite ? error.statement : null
    if (failed === same) throw new BadRequest('an export of this url is in progress')
    if (failed === open) throw new BadRequest(`an account has at most ${OPEN_MAX} exports in progress`)
    if (failed === all) throw new BadRequest(`an account has at most ${EXPORTS_MAX} exports in 24 hours`)
    throw error
  }
}

/** Newest first. `url`: only those of this list. */
export function listExports(store: Store, accountId: string, url: string | undefined): Promise<ExportRow[]> {
  let query = store.db.selectFrom('exports').selectAll().where('account_id', '=', accountId)
  if (url !== undefined) query = query.where('url', '=', url)
  return query.orderBy('created_at', 'desc').orderBy('id', 'desc').limit(EXPORTS_MAX).execute()
}

export const findExport = (store: Store, id: string): Promise<ExportRow | undefined> =>
  store.db.selectFrom('exports').selectAll().where('id', '=', id).executeTakeFirst()

const REMOVED_AT_A_TIME = 100

/**
 * Removes rows that match, with their files. The files go first, so that a crash leaves none without a row; a step may add
 * one meanwhile, which the removed row names. Ends early when `signal` aborts; may be called again.
 */
export async function removeExports(
  { store, blobs }: RowParts & { blobs: BlobStore },
  condition: { sql: string; values: readonly (string | number)[] },
  signal: AbortSignal,
): Promise<void> {
  const remove = async (rows: readonly Pick<ExportRow, 'blobs_json'>[]) => {
    for (const row of rows) for (const name of piecesOf(row)) await blobs.remove(name)
  }
  while (!signal.aborted) {
    const sql = `SELECT id, blobs_json FROM exports WHERE ${condition.sql} LIMIT ${REMOVED_AT_A_TIME}`
    const rows = (await store.read({ sql, values: condition.values })) as unknown as ExportRow[]
    if (rows.length === 0) return
    await remove(rows)
    const removed = await store.db
      .deleteFrom('exports')
      .where(
        'id',
        'in',
        rows.map(({ id }) => id),
      )
      .returning('blobs_json')
      .execute()
    await remove(removed)
  }
}
