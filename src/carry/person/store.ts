/** The rows of exports and erasures of a person. */
import { BadRequest } from '../../base/process/errors.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import { piecesOf } from '../../platform/jobs/piece-steps.ts'
import { accountLockStatements } from '../../platform/store/account-rows.ts'
import type { BlobStore } from '../../platform/store/blobs/blobs.ts'
import type { PersonTaskRow } from '../../platform/store/schema.ts'
import { insert, StaleWrite, type Store } from '../../platform/store/store.ts'

/** How long tasks and their reports are kept after their end. */
export const KEPT_MS = 90 * DAY_MS
/** How long archives are kept. */
export const ARCHIVE_KEPT_MS = 7 * DAY_MS
/** The newest archives of an account, each of up to 1 GB, and its newest tasks without a report of an erasure. */
const ARCHIVES_MAX = 20
export const TASKS_MAX = 1_000
/** Erasures of an account that are kept: their reports are proof, and some kilobytes each. */
export const ERASURES_MAX = 10_000
/** Tasks whose report is the proof of an erasure. */
const IS_PROOF = "kind = 'erase' AND dry_run = 0 AND state <> 'failed'"
/** Each reads every table once. */
const OPEN_MAX = 5
export const LIST_MAX = 100

/** @throws BadRequest while too many of the account wait or run, or when it has too many erasures of 90 days */
export async function insertTask(store: Store, row: PersonTaskRow): Promise<void> {
  const fewer = (condition: string, max: number) => ({
    sql: `SELECT 1 AS fewer WHERE (SELECT count(*) FROM person_tasks
      WHERE account_id = ? AND ${condition}) < ${max}`,
    values: [row.account_id],
    expectRows: 1,
  })
  const open = fewer("state IN ('queued', 'running')", OPEN_MAX)
  const proofs = row.kind === 'erase' && row.dry_run === 0 ? [fewer(IS_PROOF, ERASURES_MAX)] : []
  const lock = accountLockStatements(store, row.account_id)
  try {
    await store.commit([...lock, open, ...proofs, insert('person_tasks', row)])
  } catch (error) {
    if (!(error instanceof StaleWrite)) throw error
    if (error.statement === open) throw new BadRequest(`an account has at most ${OPEN_MAX} tasks in progress`)
    if (error.statement !== proofs[0]) throw error
    throw new BadRequest(`an account has at most ${ERASURES_MAX} erasures in 90 days`)
  }
}

/** Newest first. */
export const listTasks = (store: Store, accountId: string): Promise<PersonTaskRow[]> =>
  store.db
    .selectFrom('person_tasks')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(LIST_MAX)
    .execute()

export const findTask = (store: Store, id: string): Promise<PersonTaskRow | undefined> =>
  store.db.selectFrom('person_tasks').selectAll().where('id', '=', id).executeTakeFirst()

/** Removes the oldest archives of an account, and its oldest tasks that prove no erasure, beyond what is kept. */
export async function removeBeyond(
  parts: { store: Store; blobs: BlobStore },
  accountId: string,
  signal: AbortSignal,
): Promise<void> {
  const beyond = (condition: string, kept: number) => ({
    sql: `account_id = ? AND state IN ('done', 'failed') AND ${condition} AND id NOT IN (SELECT id FROM person_tasks
      WHERE account_id = ? AND ${condition} ORDER BY created_at DESC, id DESC LIMIT ${kept})`,
    values: [accountId, accountId],
  })
  await removeTasks(parts, beyond("blobs_json <> '[]'", ARCHIVES_MAX), 'archives', signal)
  await removeTasks(parts, beyond(`NOT (${IS_PROOF})`, TASKS_MAX), 'rows', signal)
}

const REMOVED_AT_A_TIME = 100

/** Removes archives that match, and with `rows` the tasks too. Files go first, so that a crash leaves none without a row. */
export async function removeTasks(
  { store, blobs }: { store: Store; blobs: BlobStore },
  condition: { sql: string; values: readonly (string | number)[] },
  rows: 'rows' | 'archives',
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const where = rows === 'rows' ? condition.sql : `${condition.sql} AND blobs_json <> '[]'`
    const sql = `SELECT id, blobs_json FROM person_tasks WHERE ${where} LIMIT ${REMOVED_AT_A_TIME}`
    const found = (await store.read({ sql, values: condition.values })) as unknown as PersonTaskRow[]
    if (found.length === 0) return
    for (const row of found) for (const name of piecesOf(row)) await blobs.remove(name)
    const change = rows === 'rows' ? 'DELETE FROM person_tasks' : "UPDATE person_tasks SET blobs_json = '[]'"
    await store.commit(found.map(({ id }) => ({ sql: `${change} WHERE id = ?`, values: [id] })))
  }
}
