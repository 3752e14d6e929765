/** What the service asks of a database; `openStore` gives it over SQLite or PostgreSQL. */
import type { Compilable, Kysely, Transaction } from 'kysely'
import { InsufficientStorage, Unavailable } from '../base/errors.ts'
import type { LeaseTimes } from './lease-times.ts'
import type { Schema } from './schema.ts'

export type SqlValue = string | number | null | Uint8Array

/** One statement with its values; `?` marks them in both databases. */
export interface Statement {
  sql: string
  values: readonly SqlValue[]
  /** Rows that it must touch; another number undoes the whole unit. */
  expectRows?: number
}

export interface StatementResult {
  rows: Record<string, unknown>[]
  affected: number
}

/** A unit was undone because one of its statements touched another number of rows than it had to. */
export class StaleWrite extends Error {
  constructor(statement: Statement, affected: number) {
    super(`Expected ${statement.expectRows} row(s), touched ${affected}: ${statement.sql.slice(0, 80)}`)
    this.name = 'StaleWrite'
  }
}

/** The database has no room for more. A caller of the API gets 507; the cause is for the log. */
export class StoreFull extends InsufficientStorage {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super(undefined, { cause: new Error(message, options) })
  }
}

/** The database cannot be reached or refuses writes. A caller of the API gets 503. */
export class StoreUnavailable extends Unavailable {
  /** For the command line, where the contract's short text would say too little. */
  readonly detail: string

  constructor(message: string, options: { cause?: unknown } = {}) {
    super(undefined, { cause: new Error(message, options) })
    this.detail = message
  }
}

/**
 * The database takes no new work until a restart: its file is damaged, or its disk failed. `detail` is for the operator,
 * with the file and what to do.
 */
export class StoreFault extends StoreUnavailable {
  readonly kind: 'damaged' | 'disk'

  constructor(kind: 'damaged' | 'disk', detail: string, options: { cause?: unknown } = {}) {
    super(detail, options)
    this.kind = kind
  }
}

/** Room within SQLite's own files, and ways to give some of it back to the disk. */
export interface DatabaseFiles {
  measure(): Promise<{ pageBytes: number; pages: number; freePages: number; logBytes: number }>
  /** False for a database made before free pages could be cut off; `sendwright restore` makes one that can. */
  readonly shrinks: boolean
  /** While the disk is short of space the log is kept to a few megabytes. */
  setShort(short: boolean): void
  /** Empties the log and cuts its file off. Does nothing while a reader still needs it. */
  trimLog(): Promise<void>
  /** Takes so many free pages off the end of the file, in one short transaction; the next checkpoint cuts it. */
  shrink(pages: number): Promise<void>
}

export interface Store {
  readonly kind: 'sqlite' | 'postgres'
  readonly leaseTimes: LeaseTimes
  /** Queries outside a transaction. On SQLite reads run beside the writer. */
  readonly db: Kysely<Schema>
  /**
   * Runs the statements as one transaction and resolves once they are on disk. Units that wait at the same
   * time share one sync (group commit); each is undone alone if it fails.
   * `first`: ahead of all other units that wait, for what another host knows already.
   * @throws StaleWrite, StoreFull, StoreUnavailable
   */
  commit(unit: readonly Statement[], order?: 'first'): Promise<StatementResult[]>
  /** The rows of one SELECT (or WITH ... SELECT) in plain SQL, read beside the writer; for hot paths. */
  read(statement: Statement): Promise<Record<string, unknown>[]>
  /** A transaction with reads in between. Holds SQLite's only writer meanwhile: not for hot paths. */
  transaction<T>(run: (tx: Transaction<Schema>) => Promise<T>): Promise<T>
  /** Turns a Kysely query into a statement for `commit`. */
  statement(query: Compilable, expectRows?: number): Statement
  /** True while the database answers; used by /health/ready. */
  ping(): Promise<boolean>
  /** Why no new work is taken until a restart; null: nothing is known to be wrong. Outcomes are still written if they can be. */
  fault(): StoreFault | null
  /** SQLite only. */
  readonly files?: DatabaseFiles
  close(): Promise<void>
}

/** Columns of the rows that a table was last given, and the texts of its statements by number of rows. */
interface InsertTexts {
  columns: readonly string[]
  leaseMark: string
  texts: Map<number, string>
}

/** Tables get rows of one shape each, or of very few: a text is put together, and hashed by whoever keeps it, once. */
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

/**
 * `INSERT INTO table (columns) VALUES (?, ...)` for rows of one shape; hot paths call it instead of the query
 * builder, which costs about 20 µs a statement.
 */
export function insert<Row extends object>(table: string, row: Row): Statement {
  return { sql: insertText(table, row, 1), values: Object.values(row) as SqlValue[] }
}

/** Rows of one statement at the most: 20 columns of 128 rows stay far below what both databases take as values. */
const INSERT_ROWS_MAX = 128

/**
 * The same for many rows of one shape, in as few statements as it takes: a thousand deliveries cost a tenth
 * of a thousand single statements. Statements hold a power of two of rows, so that few texts are prepared.
 * `leaseTimes`: of the store, for rows whose column `lease_until` holds what it gave.
 */
export function insertMany(table: string, rows: readonly object[], leaseTimes?: LeaseTimes): Statement[] {
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

/** The newest migration this program knows is older than the one the database was last used with. */
export class UnknownSchema extends Error {}
