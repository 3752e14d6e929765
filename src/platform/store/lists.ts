/**
 * Lists of any length in statements. Databases bound the values of a statement (SQLite takes 32,766, PostgreSQL 65,535), and
 * an operator may have more subaccounts: a longer list is one value, a JSON text.
 */
import { type RawBuilder, sql } from 'kysely'
import type { Statement, Store } from './store.ts'

/** Longer ones are one value. Short ones are not: databases estimate their length better. */
const VALUES_MAX = 1_000

const SELECTED: Record<Store['kind'], string> = {
  sqlite: 'SELECT value FROM json_each(?)',
  postgres: 'SELECT json_array_elements_text(?::json)',
}

/** What follows `IN`, with parentheses. */
export const listOf = (kind: Store['kind'], texts: readonly string[]): Statement =>
  texts.length <= VALUES_MAX
    ? { sql: `(${texts.map(() => '?')})`, values: texts }
    : { sql: `(${SELECTED[kind]})`, values: [JSON.stringify(texts)] }

/** The same for Kysely. */
export function inList({ kind }: Pick<Store, 'kind'>, texts: readonly string[]): RawBuilder<string> {
  if (texts.length <= VALUES_MAX) return sql`(${sql.join(texts)})`
  const json = JSON.stringify(texts)
  return kind === 'sqlite'
    ? sql`(SELECT value FROM json_each(${json}))`
    : sql`(SELECT json_array_elements_text(${json}::json))`
}
