/**
 * One SQLite connection in a thread of its own. The store runs two: the writer, and a reader that sees
 * committed data only. Work arrives as batches; a batch of units is one transaction with one sync (group
 * commit). If one of them fails the batch is run again with every unit under a savepoint of its own.
 */
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { createUnpacker, type PackedUnits } from './packed-units.ts'
import type { Statement } from './store.ts'

export type WorkerRequest =
  | { kind: 'units'; units: PackedUnits }
  | { kind: 'single'; statement: Statement }
  | { kind: 'script'; sql: string }
  | { kind: 'close' }

export type WorkerError = {
  message: string
  code: number | null
  stale?: { statement: number; affected: number }
}
/** Rows as one flat array: as objects, each would carry the names of its columns across. */
export interface PackedResult {
  columns: string[]
  values: unknown[]
  affected: number
}
export type UnitReply = { results: PackedResult[] } | { error: WorkerError }
export type WorkerReply = { id: number; units: UnitReply[] } | { id: number; error: WorkerError }

/** Prepared statements kept per connection; Kysely and the hot paths together use a few hundred texts. */
const STATEMENTS_MAX = 1000

/**
 * Pages in memory; beyond them the system's own file cache serves. With 32 MB each, memory went on growing by 40 MB
 * while the caches filled, and a batch of 1,000 went out no faster (decision on memory).
 */
const WRITER_CACHE_KB = 16_000
const READER_CACHE_KB = 8_000

const { file, readonly } = workerData as { file: string; readonly: boolean }
const database = new DatabaseSync(file, { readOnly: readonly, timeout: 5000 })
if (!readonly) {
  database.exec('PRAGMA journal_mode = WAL')
  database.exec('PRAGMA synchronous = FULL')
  database.exec('PRAGMA foreign_keys = ON')
  database.exec('PRAGMA wal_autocheckpoint = 4000')
}
database.exec(`PRAGMA cache_size = -${readonly ? READER_CACHE_KB : WRITER_CACHE_KB}`)
database.exec('PRAGMA temp_store = MEMORY')

/** Prepared: parsing the words costs more than running them. */
const begin = database.prepare('BEGIN IMMEDIATE')
const commit = database.prepare('COMMIT')
const unpack = createUnpacker()

type Prepared = { statement: StatementSync; columns: string[] }
const prepared = new Map<string, Prepared>()

function prepare(sql: string): Prepared {
  const known = prepared.get(sql)
  if (known) return known
  if (prepared.size >= STATEMENTS_MAX) prepared.clear()
  const statement = database.prepare(sql)
  const entry = { statement, columns: statement.columns().map(({ name }) => name) }
  statement.setReturnArrays(true)
  prepared.set(sql, entry)
  return entry
}

function run({ sql, values }: Statement): PackedResult {
  const { statement, columns } = prepare(sql)
  if (columns.length === 0) {
    return { columns, values: [], affected: Number(statement.run(...values).changes) }
  }
  const rows = statement.all(...values) as unknown as unknown[][]
  return { columns: rows.length > 0 ? columns : [], values: rows.flat(), affected: rows.length }
}

const SQLITE_IOERR = 10

const isIoError = (error: unknown) => ((describe(error).code ?? 0) & 0xff) === SQLITE_IOERR

function describe(error: unknown): WorkerError {
  const { message, errcode } = error as Error & { errcode?: number }
  return { message, code: errcode ?? null }
}

/** One unit under its savepoint; its failure undoes it alone. */
function runUnit(unit: Statement[]): UnitReply {
  database.exec('SAVEPOINT unit')
  try {
    const results: PackedResult[] = []
    for (const [index, statement] of unit.entries()) {
      const result = run(statement)
      if (statement.expectRows !== undefined && result.affected !== statement.expectRows) {
        database.exec('ROLLBACK TO unit')
        database.exec('RELEASE unit')
        const stale = { statement: index, affected: result.affected }
        return { error: { message: 'stale', code: null, stale } }
      }
      results.push(result)
    }
    database.exec('RELEASE unit')
    return { results }
  } catch (error) {
    // A full disk may have ended the whole transaction, and after an I/O error nothing of it can be trusted:
    // then the batch fails below.
    if (!database.isTransaction || isIoError(error)) throw error
    database.exec('ROLLBACK TO unit')
    database.exec('RELEASE unit')
    return { error: describe(error) }
  }
}

function runUnits(units: Statement[][]): UnitReply[] {
  return runTogether(units) ?? runApart(units)
}

/** All units without savepoints, which is how nearly every batch ends; null, and nothing done, if any of them failed. */
function runTogether(units: Statement[][]): UnitReply[] | null {
  begin.run()
  try {
    const replies = units.map((unit) => ({ results: unit.map(runExactly) }))
    commit.run()
    return replies
  } catch (error) {
    rollBack()
    if (isIoError(error)) throw error
    return null
  }
}

function runExactly(statement: Statement): PackedResult {
  const result = run(statement)
  if (statement.expectRows !== undefined && result.affected !== statement.expectRows) throw new Error('stale')
  return result
}

function runApart(units: Statement[][]): UnitReply[] {
  begin.run()
  try {
    const replies = units.map(runUnit)
    commit.run()
    return replies
  } catch (error) {
    rollBack()
    throw error
  }
}

/** What it was rolled back for is told, not that rolling back failed too. */
function rollBack(): void {
  try {
    if (database.isTransaction) database.exec('ROLLBACK')
  } catch {
    // The disk is failing; the error that led here says so.
  }
}

function answer(request: WorkerRequest): UnitReply[] {
  switch (request.kind) {
    case 'units':
      return runUnits(unpack(request.units))
    case 'single':
      return [{ results: [run(request.statement)] }]
    case 'script':
      // A full disk may have ended the transaction before: its own error is what is told.
      if (request.sql === 'ROLLBACK' && !database.isTransaction) return []
      try {
        database.exec(request.sql)
      } catch (error) {
        rollBack()
        throw error
      }
      return []
    case 'close':
      database.close()
      return []
  }
}

parentPort?.on('message', ({ id, request }: { id: number; request: WorkerRequest }) => {
  let reply: WorkerReply
  try {
    reply = { id, units: answer(request) }
  } catch (error) {
    reply = { id, error: describe(error) }
  }
  parentPort?.postMessage(reply)
  if (request.kind === 'close') parentPort?.close()
})
