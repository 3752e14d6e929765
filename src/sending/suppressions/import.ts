/**
 * CSV imports, processed in the background after the upload.
 *
 * 1. `submit` checks the header, puts the file into the blob store and a row into `suppression_imports`; then the
 *    call returns.
 * 2. The task (platform/jobs/stepped-task.ts) adds up to 1,000 rows at a time. Each step commits the records together
 *    with the number of rows done.
 *
 * An unreadable row is skipped and counted; the counts are logged at the end.
 */
import { CsvSyntaxError, readCsv, withoutGuard } from '../../base/csv.ts'
import { UnpackFailure, unpacked } from '../../base/flow/unpacked.ts'
import { newId } from '../../base/ids.ts'
import { BadRequest } from '../../base/process/errors.ts'
import type { Core } from '../../core.ts'
import { type Actor, auditStatement } from '../../people/accounts/audit-log.ts'
import {
  createTaskSteps,
  LEASE_MS,
  type TaskParts,
  type TaskTable,
  taskJob,
} from '../../platform/jobs/stepped-task.ts'
import type { SuppressionImportRow, SuppressionKind } from '../../platform/store/schema.ts'
import { insert } from '../../platform/store/store.ts'
import type { Chunk } from '../../protocols/message/mime-message.ts'
import type { Domain } from '../domains/domain.ts'
import { type GivenRecord, type NewRecord, readRecord } from './given-records.ts'
import { type Columns, checkHeader, columnsOf, storeFile } from './import-file.ts'
import { traitsOf } from './kinds.ts'
import { addStatements, overTagLimit } from './store.ts'

export type Imports = ReturnType<typeof createImports>

interface ImportParts extends TaskParts, Pick<Core, 'blobs' | 'log'> {
  unpackedBytesMax: number
}

const TABLE: TaskTable = {
  ...{ name: 'suppression_imports', key: 'id', open: 'TRUE', turn: null },
  lease: { ms: LEASE_MS, check: 'lease_token', tries: 'attempts' },
}
const ROWS_PER_STEP = 1000
/** Characters per step: a row may have 256 KiB, so a thousand rows could need too much memory. */
const STEP_LENGTH_MAX = 4 * 1024 * 1024
/** Attempts without one completed step, after which an import is dropped. */
const ATTEMPTS_MAX = 5

type Task = SuppressionImportRow

export function createImports(parts: ImportParts) {
  const { store, blobs, log, unpackedBytesMax } = parts
  const about = (task: Task) => ({
    ...{ import: task.id, domain: task.domain_id, list: task.kind },
    ...{ rows: task.rows_done, bad: task.rows_bad },
  })
  const tasks = createTaskSteps<Task>(parts, TABLE, run, async (task, error) => {
    const hopeless = error instanceof CsvSyntaxError || error instanceof UnpackFailure
    log.error({ err: error, ...about(task) }, 'import failed')
    if (!hopeless && task.attempts < ATTEMPTS_MAX) return false
    await end(task)
    return true
  })
  const job = taskJob('suppression-imports', tasks.runOne)

  /** Adds the remaining rows, in steps. */
  async function run(task: Task, signal: AbortSignal): Promise<void> {
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
      await add(task, columns, rows)
      rows = []
      length = 0
      if (signal.aborted) return
    }
    if (columns && rows.length > 0) await add(task, columns, rows)
    await end(task)
    log.info(about(task), 'import finished')
  }

  /** Dates and texts depend on the time of the upload, so that a repeated step writes the same. */
  async function add(task: Task, columns: Columns, rows: readonly string[][]): Promise<void> {
    const read = rows.map((row) => readRow(task, columns, row)).filter((record) => record !== null)
    const over = await overTagLimit(store, task.domain_id, read)
    const records = read.filter(({ address }) => !over.has(address))
    const owned = { id: task.domain_id, accountId: task.account_id }
    const change = {
      rows_done: task.rows_done + rows.length,
      rows_bad: task.rows_bad + rows.length - records.length,
    }
    const added = addStatements(owned, task.kind, records, task.created_at, { keepTimes: true })
    await tasks.commit(task, change, added, 'continue')
  }

  /** Removes a finished import, or one that failed for good. */
  async function end(task: Task): Promise<void> {
    const sql = 'DELETE FROM suppression_imports WHERE id = ? AND lease_token = ?'
    await store.commit([{ sql, values: [task.id, task.lease_token], expectRows: 1 }])
    await blobs.remove(task.blob)
  }

  return {
    /** Resolves once the file is on disk and its import is queued. @throws BadRequest `while reading csv header` */
    async submit(actor: Actor, domain: Domain, kind: SuppressionKind, file: Chunk): Promise<void> {
      await storeImport(parts, actor, domain, kind, file)
      job.wake()
    },
    /** Drops the pending imports of a domain; a step in progress rolls back. */
    async forgetDomain(domainId: string): Promise<void> {
      const rows = await store.db
        .deleteFrom('suppression_imports')
        .where('domain_id', '=', domainId)
        .returning('blob')
        .execute()
      for (const { blob } of rows) await blobs.remove(blob)
    },
    job,
  }
}

/** Checks the header and stores file, import and audit row. */
async function storeImport(
  { store, blobs, clock }: ImportParts,
  actor: Actor,
  domain: Domain,
  kind: SuppressionKind,
  file: Chunk,
): Promise<void> {
  await checkHeader(traitsOf(kind), file)
  const blob = await storeFile(blobs, file)
  const now = clock.now()
  const id = newId(now)
  const row: SuppressionImportRow = {
    id,
    account_id: domain.accountId,
    domain_id: domain.id,
    kind,
    blob,
    rows_done: 0,
    rows_bad: 0,
    attempts: 0,
    lease_token: null,
    lease_owner: null,
    lease_until: 0,
    created_at: Math.floor(now),
  }
  const change = { action: `${kind}.import`, subject: domain.name, detail: { import: id }, status: 202 }
  try {
    await store.commit([insert('suppression_imports', row), auditStatement(actor, change, now)])
  } catch (error) {
    await blobs.remove(blob)
    throw error
  }
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
