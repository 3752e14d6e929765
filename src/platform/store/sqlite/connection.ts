/**
 * One SQLite connection, which runs the requests of a port. The store has two, each in a thread of its own
 * (sqlite-worker.ts): the writer, and a reader, which sees only committed data and also checkpoints (writer.ts). A group of
 * units is one transaction with one sync (group commit). If a unit fails, the group is run again with each unit in its own
 * savepoint.
 */
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import type { MessagePort } from 'node:worker_threads'
import { remember } from '../../../base/flow/cache.ts'
import type { Statement } from '../store.ts'
import { AUTOCHECKPOINT_PAGES, createUnpacker, type PackedUnits } from './writer.ts'

export type WorkerRequest =
  | { kind: 'units'; units: PackedUnits }
  | { kind: 'single'; statement: Statement }
  | { kind: 'script'; sql: string }
  | { kind: 'checkpoint' }
  | { kind: 'trim' }
  | { kind: 'shrink'; pages: number }
  | { kind: 'close' }

export type WorkerError = {
  message: string
  code: number | null
  /** The database file, with errors of SQLite. */
  file?: string
  stale?: { statement: number; affected: number }
}
/** Rows as one flat array: as objects, each would be cloned with its column names. */
export interface PackedResult {
  columns: string[]
  values: unknown[]
  affected: number
}
export type UnitReply = { results: PackedResult[] } | { error: WorkerError }
/** `affected`: all units succeeded and returned no rows; affected rows per statement, unit by unit. */
export type WorkerReply =
  | { id: number; affected: number[] }
  | { id: number; units: UnitReply[] }
  | { id: number; error: WorkerError }

/** Prepared statements kept per connection; Kysely and the hot paths together use a few hundred texts. */
const STATEMENTS_MAX = 1000

export type Role = 'writer' | 'reader'

/** What a connection is to; `cacheKb`: of pages. */
export interface ConnectionOptions {
  file: string
  role: Role
  cacheKb: number
}

const BUSY_MS = 5000

function open({ file, role, cacheKb }: ConnectionOptions): DatabaseSync {
  const database = new DatabaseSync(file, { timeout: BUSY_MS })
  if (role === 'reader') {
    // Not opened read-only: a checkpoint writes.
    database.exec('PRAGMA query_only = ON')
    database.exec('PRAGMA wal_autocheckpoint = 0')
  } else {
    // Applies to a new database only, and only before its first page is written (decision 53).
    database.exec('PRAGMA auto_vacuum = INCREMENTAL')
    database.exec('PRAGMA journal_mode = WAL')
    database.exec('PRAGMA synchronous = FULL')
    database.exec('PRAGMA foreign_keys = ON')
    database.exec(`PRAGMA wal_autocheckpoint = ${AUTOCHECKPOINT_PAGES.ample}`)
  }
  database.exec(`PRAGMA cache_size = -${cacheKb}`)
  database.exec('PRAGMA temp_store = MEMORY')
  return database
}

/**
 * Opens the file and answers the requests of `port` in order, until one closes it or the port is closed. `letGo` drops its
 * cached pages and prepared statements, for a thread at rest.
 */
export function serveConnection(port: MessagePort, options: ConnectionOptions): { letGo(): void } {
  const { file, role } = options
  /** The answer to every request, once the file could not be opened or the writer had an I/O error. */
  let broken: WorkerError | null = null

  function openOrMarkBroken(): DatabaseSync {
    try {
      return open(options)
    } catch (error) {
      broken = describe(error, file)
      return new DatabaseSync(':memory:')
    }
  }

  const database = openOrMarkBroken()
  /** Neither waits for nor blocks other connections; returns (busy, pages in the log, checkpointed pages). */
  const checkpoint = database.prepare('PRAGMA wal_checkpoint(PASSIVE)')
  const unpack = createUnpacker()
  const { run, rollBack, answerUnits, forget } = createUnitRunner(database, file)

  function answer(id: number, request: WorkerRequest): WorkerReply {
    switch (request.kind) {
      case 'units':
        return answerUnits(id, unpack(request.units))
      case 'single':
        return { id, units: [{ results: [run(request.statement)] }] }
      case 'script':
        // A full disk may have rolled back already; its own error was reported.
        if (request.sql === 'ROLLBACK' && !database.isTransaction) return { id, units: [] }
        try {
          database.exec(request.sql)
        } catch (error) {
          rollBack()
          throw error
        }
        return { id, units: [] }
      case 'checkpoint':
        return { id, affected: [Number(checkpoint.get()?.['log'] ?? 0)] }
      case 'trim':
        // With a timeout it would wait for readers, and all writers with it.
        database.exec('PRAGMA busy_timeout = 0')
        try {
          database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
        } finally {
          database.exec(`PRAGMA busy_timeout = ${BUSY_MS}`)
        }
        return { id, units: [] }
      case 'shrink':
        database.exec(`PRAGMA incremental_vacuum(${request.pages})`)
        return { id, units: [] }
      case 'close':
        database.close()
        return { id, units: [] }
    }
  }

  port.on('message', ({ id, request }: { id: number; request: WorkerRequest }) => {
    let reply: WorkerReply
    try {
      reply = broken && request.kind !== 'close' ? { id, error: broken } : answer(id, request)
    } catch (error) {
      reply = { id, error: describe(error, file) }
      // Units posted meanwhile must not be written after it (sqlite.ts, `createConnection`).
      if (role === 'writer' && isIoError(error)) broken = reply.error
    }
    port.postMessage(reply)
    if (request.kind === 'close') port.close()
  })
  // The other side has broken off.
  port.on('close', () => {
    if (database.isOpen) database.close()
  })
  return {
    letGo() {
      forget()
      if (database.isOpen) database.exec('PRAGMA shrink_memory')
    },
  }
}

/** Runs statements and units of statements on one connection. */
function createUnitRunner(database: DatabaseSync, file: string) {
  /** Prepared: parsing costs more than running. */
  const begin = database.prepare('BEGIN IMMEDIATE')
  const commit = database.prepare('COMMIT')
  type Prepared = { statement: StatementSync; columns: string[] }
  const prepared = new Map<string, Prepared>()

  function prepare(sql: string): Prepared {
    const known = prepared.get(sql)
    if (known) return known
    const statement = database.prepare(sql)
    const entry = { statement, columns: statement.columns().map(({ name }) => name) }
    statement.setReturnArrays(true)
    return remember(prepared, STATEMENTS_MAX, sql, entry)
  }

  function run({ sql, values }: Statement): PackedResult {
    const { statement, columns } = prepare(sql)
    if (columns.length === 0) {
      return { columns, values: [], affected: Number(statement.run(...values).changes) }
    }
    const rows = statement.all(...values) as unknown as unknown[][]
    return { columns: rows.length > 0 ? columns : [], values: packed(rows), affected: rows.length }
  }

  /** Runs one unit in its savepoint; a failure rolls back only this unit. */
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
      // A full disk may have rolled back the whole transaction, and after an I/O error none of it can be trusted: then
      // `runApart` fails the group.
      if (!database.isTransaction || isIoError(error)) throw error
      database.exec('ROLLBACK TO unit')
      database.exec('RELEASE unit')
      return { error: describe(error, file) }
    }
  }

  /** Runs all units without savepoints, which nearly always succeeds; null, with everything rolled back, if any failed. */
  function runTogether(units: Statement[][]): PackedResult[][] | null {
    begin.run()
    try {
      const results = units.map((unit) => unit.map(runExactly))
      commit.run()
      return results
    } catch (error) {
      rollBack()
      if (isIoError(error)) throw error
      return null
    }
  }

  function runExactly(statement: Statement): PackedResult {
    const result = run(statement)
    if (statement.expectRows !== undefined && result.affected !== statement.expectRows)
      throw new Error('stale')
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

  /** Never throws: the caller reports the error that it rolls back for. */
  function rollBack(): void {
    try {
      if (database.isTransaction) database.exec('ROLLBACK')
    } catch {
      // The disk is failing, as the original error says.
    }
  }

  function answerUnits(id: number, units: Statement[][]): WorkerReply {
    const together = runTogether(units)
    if (together === null) return { id, units: runApart(units) }
    const hasRows = together.some((results) => results.some(({ columns }) => columns.length > 0))
    if (hasRows) return { id, units: together.map((results) => ({ results })) }
    return { id, affected: packed(together.map((results) => results.map(({ affected }) => affected))) }
  }

  return { run, rollBack, answerUnits, forget: () => prepared.clear() }
}

function describe(error: unknown, file: string): WorkerError {
  const { message, errcode } = error as Error & { errcode?: number }
  return { message, code: errcode ?? null, file }
}

/** `flat` and `flatMap` return a holey array, which the structured clone writes and reads like an object, key by key. */
function packed<T>(lists: readonly (readonly T[])[]): T[] {
  const values: T[] = []
  for (const list of lists) for (const value of list) values.push(value)
  return values
}

const SQLITE_IOERR = 10

const isIoError = (error: unknown) => (((error as { errcode?: number }).errcode ?? 0) & 0xff) === SQLITE_IOERR
