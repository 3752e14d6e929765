/** The rows of jobs and their addresses. */
import { createHash } from 'node:crypto'
import { type RowParts, removeIndexedRows } from '../../../platform/store/account-rows.ts'
import { countOf } from '../../../platform/store/count.ts'
import type { ValidationAddressRow, ValidationJobRow } from '../../../platform/store/schema.ts'
import {
  insertMany,
  type SqlValue,
  StaleWrite,
  type Statement,
  type Store,
} from '../../../platform/store/store.ts'
import type { ValidationResult } from '../shapes.ts'

export type JobKind = 'bulk' | 'preview'

export const RUNNING = ['created', 'processing'] as const
/** validation.md section 3 rule 4. */
const RUNNING_MAX = 10
/** Jobs of an account, in any state: the disk holds their results for 30 days. */
const JOBS_MAX = 1_000
const ADDRESSES_MAX = 10_000_000

/** `changed`: a statement of `also` did not find its row as expected. */
type Creation = 'created' | 'taken' | 'changed' | 'too-many-running' | 'too-many'

/** Inserts the job unless its name is taken or the account has enough. `also`: in the same transaction, before it. */
export async function createJobRow(
  store: Store,
  row: ValidationJobRow,
  also: readonly Statement[] = [],
): Promise<Creation> {
  const { account_id: account } = row
  const running = RUNNING.map((status) => `'${status}'`).join(', ')
  // PostgreSQL takes values in a SELECT for text.
  const isNumber = ([name, value]: [string, unknown]) => typeof value === 'number' || name === 'ended_at'
  const marks = Object.entries(row).map((entry) => `CAST(? AS ${isNumber(entry) ? 'BIGINT' : 'TEXT'})`)
  const statement: Statement = {
    sql: `INSERT INTO validation_jobs (${Object.keys(row).join(', ')}) SELECT ${marks.join(', ')}
      WHERE (SELECT count(*) FROM validation_jobs WHERE account_id = ? AND status IN (${running})) < ${RUNNING_MAX}
        AND (SELECT count(*) FROM validation_jobs WHERE account_id = ?) < ${JOBS_MAX}
        AND (SELECT COALESCE(sum(addresses), 0) FROM validation_jobs WHERE account_id = ?) < ${ADDRESSES_MAX}
      ON CONFLICT (account_id, kind, list_id) DO NOTHING`,
    values: [...(Object.values(row) as SqlValue[]), account, account, account],
    expectRows: 1,
  }
  let stale: StaleWrite
  try {
    await store.commit([...also, statement])
    return 'created'
  } catch (error) {
    if (!(error instanceof StaleWrite)) throw error
    stale = error
  }
  if (await findJob(store, account, row.kind as JobKind, row.list_id)) return 'taken'
  if (stale.statement !== statement) return 'changed'
  const busy = await store.db
    .selectFrom('validation_jobs')
    .select('id')
    .where('account_id', '=', account)
    .where('status', 'in', [...RUNNING])
    .limit(RUNNING_MAX)
    .execute()
  return busy.length >= RUNNING_MAX ? 'too-many-running' : 'too-many'
}

export function findJob(
  store: Store,
  accountId: string,
  kind: JobKind,
  listId: string,
): Promise<ValidationJobRow | undefined> {
  return store.db
    .selectFrom('validation_jobs')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('kind', '=', kind)
    .where('list_id', '=', listId)
    .executeTakeFirst()
}

export type JobPage = { name: 'first' | 'last' } | { name: 'next' | 'previous'; pivot: string }

/** Newest first. `pivot`: a list id; one that is gone ends the list. */
export async function listJobs(
  store: Store,
  accountId: string,
  kind: JobKind,
  page: JobPage,
  limit: number,
): Promise<ValidationJobRow[]> {
  const ascending = page.name === 'last' || page.name === 'previous'
  let query = store.db
    .selectFrom('validation_jobs')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('kind', '=', kind)
    .where('status', '<>', 'deleted')
  if ('pivot' in page) {
    const pivot = await findJob(store, accountId, kind, page.pivot)
    if (!pivot) return []
    query = query.where('id', page.name === 'next' ? '<' : '>', pivot.id)
  }
  const rows = await query
    .orderBy('id', ascending ? 'asc' : 'desc')
    .limit(limit)
    .execute()
  return ascending ? rows.reverse() : rows
}

export async function countJobs(store: Store, accountId: string, kind: JobKind): Promise<number> {
  return countOf(
    store.db
      .selectFrom('validation_jobs')
      .where('account_id', '=', accountId)
      .where('kind', '=', kind)
      .where('status', '<>', 'deleted'),
  )
}

/** Frees the name of a job and has its rows removed. */
export const deletedStatement = (id: string, now: number): Statement => ({
  sql: `UPDATE validation_jobs SET status = 'deleted', list_id = '@' || id, dropping = 1, lease_token = NULL,
      ended_at = ? WHERE id = ? AND status NOT IN ('created', 'processing', 'deleted')`,
  values: [now, id],
  expectRows: 1,
})

/** Ends a running job without results. */
export const canceledStatement = (id: string, now: number): Statement => ({
  sql: `UPDATE validation_jobs SET status = 'canceled', dropping = 1, lease_token = NULL, ended_at = ?
    WHERE id = ? AND status IN ('created', 'processing')`,
  values: [now, id],
  expectRows: 1,
})

/** 96 bits. */
export const hashOf = (address: string): string =>
  createHash('sha256')
    .update(address.normalize('NFC').toLowerCase())
    .digest()
    .subarray(0, 12)
    .toString('base64url')

export async function knownHashes(
  store: Store,
  jobId: string,
  hashes: readonly string[],
): Promise<Set<string>> {
  if (hashes.length === 0) return new Set()
  const rows = await store.db
    .selectFrom('validation_addresses')
    .select('hash')
    .where('job_id', '=', jobId)
    .where('hash', 'in', hashes)
    .execute()
  return new Set(rows.map(({ hash }) => hash))
}

/** The next addresses of a job that are not done. */
export const nextAddresses = (store: Store, jobId: string, after: number, limit: number) =>
  store.db
    .selectFrom('validation_addresses')
    .selectAll()
    .where('job_id', '=', jobId)
    .where('no', '>', after)
    .orderBy('no')
    .limit(limit)
    .execute()

/** Sets the results of addresses that are rows already. */
export function resultStatements(
  rows: readonly ValidationAddressRow[],
  results: readonly ValidationResult[],
): Statement[] {
  const done = results.map((result, at) => ({
    ...(rows[at] as ValidationAddressRow),
    result_json: JSON.stringify(result),
  }))
  return insertMany('validation_addresses', done).map(({ sql, values }) => ({
    sql: `${sql} ON CONFLICT (job_id, no) DO UPDATE SET result_json = excluded.result_json`,
    values,
  }))
}

const RESULTS_PER_READ = 500

/** The results of a job in the order of the addresses' first appearance. */
export async function* resultsOf(store: Store, jobId: string): AsyncGenerator<ValidationResult> {
  for (let after = -1; ; ) {
    const rows = await nextAddresses(store, jobId, after, RESULTS_PER_READ)
    for (const { result_json: text } of rows) if (text !== null) yield JSON.parse(text) as ValidationResult
    const last = rows.at(-1)
    if (!last || rows.length < RESULTS_PER_READ) return
    after = Number(last.no)
  }
}

/** Removes the addresses of a job, some at a time. */
export const removeAddresses = (parts: RowParts, jobId: string, signal: AbortSignal): Promise<void> =>
  removeIndexedRows(parts, 'validation_addresses', ['job_id', 'no'], 'job_id', jobId, signal)
