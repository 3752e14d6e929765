/**
 * Many single-row inserts as few multi-row ones. On PostgreSQL every statement of a unit is a round trip, so
 * a bulk of 1,000 rows is some ten times quicker this way.
 */
import type { SqlValue, Statement } from './store.ts'

/** Rows of one statement: a few texts for the statement cache, and far below either database's value limit. */
const ROWS_MAX = 100

const SINGLE_ROW = /^INSERT INTO \w+ \([\w, ]+\) VALUES (\((?:\?, )*\?\))$/

/**
 * Joins statements of the same text that `insert` made; each joined statement stands where its first one
 * stood. All others stay as they are, so those must not depend on rows inserted before them.
 */
export function joinInserts(statements: readonly Statement[]): Statement[] {
  const joined: { sql: string; row: string | null; rows: number; values: SqlValue[]; whole: Statement }[] = []
  const open = new Map<string, (typeof joined)[number]>()
  for (const statement of statements) {
    const row = statement.expectRows === undefined ? (SINGLE_ROW.exec(statement.sql)?.[1] ?? null) : null
    const group = row === null ? undefined : open.get(statement.sql)
    if (group && group.rows < ROWS_MAX) {
      group.values.push(...statement.values)
      group.rows++
      continue
    }
    const next = { sql: statement.sql, row, rows: 1, values: [...statement.values], whole: statement }
    joined.push(next)
    if (row !== null) open.set(statement.sql, next)
  }
  return joined.map(({ sql, row, rows, values, whole }) =>
    row === null || rows === 1 ? whole : { sql: sql + `, ${row}`.repeat(rows - 1), values },
  )
}
