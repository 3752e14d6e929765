/** The service's interface to its database; `openStore` provides it for SQLite and PostgreSQL. */
import { type Compilable, type Insertable, type Kysely, type RawBuilder, sql, type Transaction } from 'kysely'
import type { ChangeHub } from '../../base/changes.ts'
import { InsufficientStorage, Unavailable } from '../../base/process/errors.ts'
import type { EventBounds } from './event-bounds.ts'
import type { Schema } from './schema.ts'

export type SqlValue = string | number | null | Uint8Array

/** One statement with its values; their placeholder is `?` in both databases. */
export interface Statement {
  sql: string
  values: readonly SqlValue[]
  /** Rows that it must affect; any other number rolls back the whole unit. */
  expectRows?: number
  /**
   * Sort key of the row that it updates, if many units update that row: a group runs such statements last and in the
   * order of their keys, so that groups hold the rows briefly and cannot deadlock. Such a statement must not depend on its
   * place in the unit; a unit with several has them sorted at its end.
   */
  lockKey?: string
}

export interface StatementResult {
  rows: Record<string, unknown>[]
  affected: number
}

/** A unit that waits for its results. */
export interface WaitingUnit {
  unit: readonly Statement[]
  resolve(results: StatementResult[]): void
  reject(error: unknown): void
}

/** A unit was rolled back because one of its statements affected another number of rows than expected. */
export class StaleWrite extends Error {
  /** The one of the unit, as it was passed. */
  readonly statement: Statement

  constructor(statement: Statement, affected: number) {
    super(`Expected ${statement.expectRows} row(s), touched ${affected}: ${statement.sql.slice(0, 80)}`)
    this.name = 'StaleWrite'
    this.statement = statement
  }
}

/** The database is full. API callers get 507; the cause is for the log. */
export class StoreFull extends InsufficientStorage {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super(undefined, { cause: new Error(message, options) })
  }
}

/** The database cannot be reached or refuses writes. API callers get 503. */
export class StoreUnavailable extends Unavailable {
  /** For the command line; the text of the API's response is too short there. */
  readonly detail: string

  constructor(message: string, options: { cause?: unknown } = {}) {
    super(undefined, { cause: new Error(message, options) })
    this.detail = message
  }
}

/** The database is there, but could not do this now: a time limit for statements or locks, a conflict, a shortage. */
export class StoreBusy extends StoreUnavailable {}

/**
 * The database accepts no new work until a restart: its file is damaged, or its disk failed. `detail` tells the operator
 * which file it is and what to do.
 */
export class StoreFault extends StoreUnavailable {
  readonly kind: 'damaged' | 'disk'

  constructor(kind: 'damaged' | 'disk', detail: string, options: { cause?: unknown } = {}) {
    super(detail, options)
    this.kind = kind
  }
}

/** Space usage of SQLite's files, and ways to release some of it to the disk. */
export interface DatabaseFiles {
  measure(): Promise<{ pageBytes: number; pages: number; freePages: number; logBytes: number }>
  /** False for a database that was created without incremental vacuum; `sendwright restore` makes one that has it. */
  readonly shrinks: boolean
  /** While the disk is short of space the log is kept to a few megabytes. */
  setShort(short: boolean): void
  /** Checkpoints the log and truncates its file. Does nothing while a reader still needs the log. */
  trimLog(): Promise<void>
  /** Removes that many free pages from the end of the file, in one short transaction; the next checkpoint truncates it. */
  shrink(pages: number): Promise<void>
}

export type Db = Kysely<Schema>
/** Also taken where a `Db` is. */
export type Tx = Transaction<Schema>

export interface Store {
  readonly kind: 'sqlite' | 'postgres'
  /** The pod that it is (pods/pod.ts); null: it shares the database with no other installation. */
  readonly pod: string | null
  readonly leaseTimes: LeaseTimes
  /** Tells the other processes on this database. */
  readonly changes: ChangeHub
  /** Queries outside a transaction. On SQLite reads do not wait for the writer. */
  readonly db: Db
  /**
   * Runs the statements as one transaction and resolves once they are on disk. Units that wait at the same
   * time share one sync (group commit); a failing one is rolled back alone.
   * `first`: before all other waiting units, for outcomes that another host already knows.
   * @throws StaleWrite, StoreFull, StoreUnavailable
   */
  commit(unit: readonly Statement[], order?: 'first'): Promise<StatementResult[]>
  /** The rows of one SELECT (or WITH ... SELECT) in plain SQL, without waiting for the writer; for hot paths. */
  read(statement: Statement): Promise<Record<string, unknown>[]>
  /** An interactive transaction. Occupies SQLite's only writer: not for hot paths. */
  transaction<T>(run: (tx: Tx) => Promise<T>): Promise<T>
  /** Turns a Kysely query into a statement for `commit`. */
  statement(query: Compilable, expectRows?: number): Statement
  /** True while the database answers; used by /health/ready. */
  ping(): Promise<boolean>
  /** Why no new work is accepted until a restart; null: no known fault. Outcomes are still written if possible. */
  fault(): StoreFault | null
  /** SQLite only. */
  readonly files?: DatabaseFiles
  /** PostgreSQL only. */
  readonly eventBounds?: EventBounds
  /**
   * PostgreSQL only. Called while the server does not answer, with null, and when it does again, with what tells it from
   * other servers: ends the connections that wait for one that is gone.
   */
  endUnanswered?(server: string | null): void
  close(): Promise<void>
}

/** As `Store.statement`. */
export function statementOf(query: Compilable, expectRows?: number): Statement {
  const { sql, parameters } = query.compile()
  const statement: Statement = { sql, values: parameters as readonly SqlValue[] }
  return expectRows === undefined ? statement : { ...statement, expectRows }
}

/** Columns of the rows last inserted into a table, and the texts of its statements by number of rows. */
interface InsertTexts {
  columns: readonly string[]
  leaseMark: string
  texts: Map<number, string>
}

/** Rows of a table have one shape, or very few: so each text is built, and hashed by caches further down, only once. */
const insertTexts = new Map<string, InsertTexts>()

function insertText(table: string, row: object, count: number, leaseMark = '?'): string {
  const columns = Object.keys(row)
  let known = insertTexts.get(table)
  const isKnown =
    known?.columns.length === columns.length &&
    known.leaseMark === leaseMark &&
    columns.every((name, at) => name === known?.columns[at])
  if (!known || !isKnown) {
    known = { columns, leaseMark, texts: new Map() }
    insertTexts.set(table, known)
  }
  let text = known.texts.get(count)
  if (text === undefined) {
    const oneRow = columns.map((name) => (name === 'lease_until' ? leaseMark : '?'))
    const marks = Array(count).fill(`(${oneRow.join(', ')})`)
    text = `INSERT INTO ${table} (${columns.join(', ')}) VALUES ${marks.join(', ')}`
    known.texts.set(count, text)
  }
  return text
}

type NewRow<Table extends keyof Schema> = Insertable<Schema[Table]>

/**
 * `INSERT INTO table (columns) VALUES (?, ...)` for one row. Hot paths use it instead of the query builder, which costs
 * about 20 µs per statement.
 */
export function insert<Table extends keyof Schema>(table: Table, row: NewRow<Table>): Statement {
  return { sql: insertText(table, row, 1), values: Object.values(row) as SqlValue[] }
}

/** Rows per statement: 20 columns of 128 rows stay far below the limit of values in both databases. */
const INSERT_ROWS_MAX = 128

/**
 * The same for many rows of one shape in few statements: a thousand deliveries cost a tenth of a thousand single
 * statements. Row counts are powers of two, so that few texts are prepared.
 * `leaseTimes`: the store's, for rows whose `lease_until` is a value from it.
 */
export function insertMany<Table extends keyof Schema>(
  table: Table,
  rows: readonly NewRow<Table>[],
  leaseTimes?: LeaseTimes,
): Statement[] {
  const [first] = rows
  if (!first) return []
  const mark = leaseTimes?.sql
  if (rows.length === 1)
    return [{ sql: insertText(table, first, 1, mark), values: Object.values(first) as SqlValue[] }]
  const statements: Statement[] = []
  for (let at = 0; at < rows.length; ) {
    let count = INSERT_ROWS_MAX
    while (count > rows.length - at) count /= 2
    const values = rows.slice(at, at + count).flatMap((row) => Object.values(row) as SqlValue[])
    statements.push({ sql: insertText(table, first, count, mark), values })
    at += count
  }
  return statements
}

/** The database has a schema version newer than this program knows. */
export class UnknownSchema extends Error {}

/**
 * The clock by which leases are set and compared. Processes that share a PostgreSQL database use the database's time:
 * with its own clock, a process whose clock is fast would take over leases that others still hold. On SQLite one process
 * owns the database and uses its own clock.
 *
 * Due times (mail, retries) use the clock of the process: a clock that is off loses nothing there.
 */
export interface LeaseTimes {
  /** SQL expression for a point in time, with one `?` for what `value` returns. */
  readonly sql: string
  /** The parameter for `afterMs` from now. `now`: the caller's clock, in Unix milliseconds. */
  value(now: number, afterMs: number): number
  /** The same for the query builder. */
  expression(now: number, afterMs: number): RawBuilder<number>
}

/** Uses the caller's clock. */
export const ownLeaseTimes: LeaseTimes = {
  sql: '?',
  value: (now, afterMs) => Math.round(now + afterMs),
  expression: (now, afterMs) => sql<number>`${Math.round(now + afterMs)}`,
}

/** Uses the database's clock, through a function that a migration creates. */
export const databaseLeaseTimes: LeaseTimes = {
  sql: 'time_from_now(?)',
  value: (_, afterMs) => Math.round(afterMs),
  expression: (_, afterMs) => sql<number>`time_from_now(${Math.round(afterMs)})`,
}

/** Rows per statement: few texts in the statement cache, and far below either database's limit of values. */
const ROWS_MAX = 100

const SINGLE_ROW = /^INSERT INTO \w+ \([\w, ]+\) VALUES (\((?:\?, )*\?\))$/

/**
 * Joins single-row inserts into multi-row ones. On PostgreSQL every statement of a unit is a round trip, so
 * a batch of 1,000 rows is about ten times faster this way.
 *
 * Joins statements of the same text that `insert` made; a joined statement takes the position of its first one.
 * The others are unchanged, so they must not depend on the order relative to joined rows.
 */
export function joinInserts(statements: readonly Statement[]): Statement[] {
  const joined: { sql: string; row: string | null; rows: number; values: SqlValue[]; first: Statement }[] = []
  const open = new Map<string, (typeof joined)[number]>()
  for (const statement of statements) {
    const row = statement.expectRows === undefined ? (SINGLE_ROW.exec(statement.sql)?.[1] ?? null) : null
    const group = row === null ? undefined : open.get(statement.sql)
    if (group && group.rows < ROWS_MAX) {
      group.values.push(...statement.values)
      group.rows++
      continue
    }
    const next = { sql: statement.sql, row, rows: 1, values: [...statement.values], first: statement }
    joined.push(next)
    if (row !== null) open.set(statement.sql, next)
  }
  return joined.map(({ sql, row, rows, values, first }) =>
    row === null || rows === 1 ? first : { sql: sql + `, ${row}`.repeat(rows - 1), values },
  )
}
