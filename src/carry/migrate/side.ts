/** One of the two databases of a copy; sqlite-side.ts and postgres-side.ts open them. */
import type { Catalog, TablePlan } from './catalog.ts'
import type { Row, Value } from './values.ts'

export interface Side {
  readonly kind: 'sqlite' | 'postgres'
  /** For messages, without a password. */
  readonly name: string
  /** Null: it does not exist, or has no tables at all. */
  catalog(): Promise<Catalog | null>
  /** Rows of a query in plain SQL; the placeholder is `?`, and every column of the result is a table's or an integer. */
  query(sql: string, values?: Row): Promise<Value[][]>
  /** Why it cannot be copied now; null: nobody uses it. */
  usedBy(): Promise<string | null>
  close(): Promise<void>
}

/** What it returns belongs to one moment, up to the next call of `usedBy`. */
export type Source = Side

export interface Target extends Side {
  /** Creates it if need be, and brings it to the program's schema, or that of `only` these migrations. @throws UnknownSchema */
  prepare(only?: readonly number[]): Promise<void>
  /** Runs all as one transaction. */
  write(run: (writer: Writer) => Promise<void>): Promise<void>
  /** What the database keeps beside the rows: numbers for new rows, indexes, statistics. */
  finish(plan: readonly TablePlan[], onStep: (step: string) => void): Promise<void>
}

export interface Writer {
  run(sql: string, values?: Row): Promise<void>
  insert(table: TablePlan, rows: readonly Row[]): Promise<void>
}
