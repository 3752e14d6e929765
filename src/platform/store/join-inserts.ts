/**
 * Joins single-row inserts into multi-row ones. On PostgreSQL every statement of a unit is a round trip, so
 * a batch of 1,000 rows is about ten times faster this way.
 */
import type { SqlValue, Statement } from './store.ts'

/** Rows per statement: few texts in the statement cache, and far below either database's limit of values. */
const ROWS_MAX = 100

const SINGLE_ROW = /^INSERT INTO \w+ \([\w, ]+\) VALUES (\((?:\?, )*\?\))$/

/**
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
