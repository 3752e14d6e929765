/**
 * The steps of an import in the database. One process holds an import under a lease, and each step commits its
 * records together with the number of rows done, so that a repeated step fails or writes the same.
 */

import { readCsv, withoutGuard } from '../../base/csv.ts'
import { newId } from '../../base/ids.ts'
import { BadRequest } from '../../base/process/errors.ts'
import type { Clock } from '../../base/time/clock.ts'
import type { BlobStore } from '../../platform/store/blobs/blobs.ts'
import type { SuppressionImportRow } from '../../platform/store/schema.ts'
import type { Statement, Store } from '../../platform/store/store.ts'
import { type GivenRecord, type NewRecord, readRecord } from './given-records.ts'
import { type Columns, columnsOf, unpacked } from './import-file.ts'
import { traitsOf } from './kinds.ts'
import { addStatements, overTagLimit } from './store.ts'

/** An import claimed by this process. */
export type Task = SuppressionImportRow & { lease_token: string }

export interface StepParts {
  store: Store
  blobs: BlobStore
  clock: Clock
  unpackedBytesMax: number
}

const ROWS_PER_STEP = 1000
/** Characters per step: a row may have 256 KiB, so a thousand rows could need too much memory. */
const STEP_LENGTH_MAX = 4 * 1024 * 1024
/** A step takes some seconds at most; after this another process may continue. */
const LEASE_MS = 60_000

/**
 * Claims an import that is due, or null. On SQLite no other process can hold a lease, so those of an earlier run
 * are void at once.
 */
export async function claimImport({ store, clock }: StepParts, owner: string): Promise<Task | null> {
  const times = store.leaseTimes
  const now = clock.now()
  const foreign = store.kind === 'sqlite' ? ' OR lease_owner <> ?' : ''
  const lock = store.kind === 'postgres' ? 'FOR UPDATE SKIP LOCKED' : ''
  const sql = `UPDATE suppression_imports
    SET lease_token = ?, lease_owner = ?, lease_until = ${times.sql}, attempts = attempts + 1
    WHERE id = (SELECT id FROM suppression_imports WHERE lease_until <= ${times.sql}${foreign} ORDER BY id LIMIT 1 ${lock})
    RETURNING *`
  const values = [
    ...[newId(), owner, times.value(now, LEASE_MS), times.value(now, 0)],
    ...(foreign ? [owner] : []),
  ]
  const [result] = await store.commit([{ sql, values }])
  return (result?.rows[0] as unknown as Task | undefined) ?? null
}

/** Adds the remaining rows. False if stopped in between; a later run continues after the last step. */
export async function importRows(parts: StepParts, task: Task, signal: AbortSignal): Promise<boolean> {
  const { blobs, unpackedBytesMax } = parts
  const traits = traitsOf(task.kind)
  const file = await blobs.read(task.blob)
  let columns: Columns | null = null
  let seen = 0
  let rows: string[][] = []
  let length = 0
  for await (const row of readCsv(unpacked(file.open(), unpackedBytesMax))) {
    if (!columns) {
      columns = columnsOf(traits, row)
      continue
    }
    seen++
    if (seen <= task.rows_done) continue
    // Exports are read again: an address may begin with a character of formulas.
    rows.push(row.map(withoutGuard))
    for (const cell of row) length += cell.length
    if (rows.length < ROWS_PER_STEP && length < STEP_LENGTH_MAX) continue
    await importStep(parts, task, columns, rows)
    rows = []
    length = 0
    if (signal.aborted) return false
  }
  if (columns && rows.length > 0) await importStep(parts, task, columns, rows)
  return true
}

/** Dates and texts depend on the time of the upload, so that a repeated step writes the same. */
async function importStep(
  { store, clock }: StepParts,
  task: Task,
  columns: Columns,
  rows: readonly string[][],
): Promise<void> {
  const times = store.leaseTimes
  const read = rows.map((row) => readRow(task, columns, row)).filter((record) => record !== null)
  const over = await overTagLimit(store, task.domain_id, read)
  const records = read.filter(({ address }) => !over.has(address))
  const owned = { id: task.domain_id, accountId: task.account_id }
  const done = { rows: task.rows_done + rows.length, bad: task.rows_bad + rows.length - records.length }
  const progress: Statement = {
    sql: `UPDATE suppression_imports SET rows_done = ?, rows_bad = ?, lease_until = ${times.sql}, attempts = 0
      WHERE id = ? AND lease_token = ?`,
    values: [done.rows, done.bad, times.value(clock.now(), LEASE_MS), task.id, task.lease_token],
    expectRows: 1,
  }
  const added = addStatements(owned, task.kind, records, task.created_at, { keepTimes: true })
  await store.commit([progress, ...added])
  task.rows_done = done.rows
  task.rows_bad = done.bad
  task.attempts = 0
}

/** Removes a finished import, or one that failed for good. */
export async function endImport({ store, blobs }: StepParts, task: Task): Promise<void> {
  const sql = 'DELETE FROM suppression_imports WHERE id = ? AND lease_token = ?'
  await store.commit([{ sql, values: [task.id, task.lease_token], expectRows: 1 }])
  await blobs.remove(task.blob)
}

/** Null for an invalid row. */
function readRow(task: Task, columns: Columns, row: readonly string[]): NewRecord | null {
  const cell = (name: string) => row[columns.get(name) ?? -1] ?? ''
  const given: GivenRecord = Object.fromEntries([...columns.keys()].map((name) => [name, cell(name)]))
  const key = `${cell('address')}${cell('domain')}`
  // Not UTF-8; or an allowlist row with both an address and a domain.
  if (key.includes('\ufffd') || (cell('address').trim() !== '' && cell('domain').trim() !== '')) return null
  const tags = `${cell('tags')},${cell('tag')}`.split(',')
  try {
    return readRecord(task.kind, { ...given, tag: undefined, tags }, task.created_at)
  } catch (error) {
    if (error instanceof BadRequest) return null
    throw error
  }
}
