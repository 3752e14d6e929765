/**
 * Reading a table in portions, in the order of its key: of each portion only the rows that may name the person. Tables that
 * are found by an address have an index for that on the way of mail; none has one for every text that may hold an address,
 * which all inserts would pay for. So each table is read once, however many rows name the person.
 */
import { listOf } from '../../platform/store/lists.ts'
import type { SqlValue, Statement, Store } from '../../platform/store/store.ts'
import type { StoreRule } from './stores.ts'

export type Row = Record<string, SqlValue>

/** A table as the database has it. */
export interface TableShape {
  name: string
  /** Columns of its key, in order. */
  key: readonly string[]
  /** Columns with text. */
  texts: readonly string[]
}

/** Whose rows: accounts by id; null: all. */
export type Scope = readonly string[] | null

export interface Portion {
  rows: Row[]
  /** Key of the last row that was looked at; null: that was the end of the table. */
  last: SqlValue[] | null
}

const PORTION = 1_000

/** Bytes that are searched like text. All others are sealed or digests. */
const TEXT_BYTES = new Set(['messages.content', 'inbox.raw'])
/** Bytes with texts in lower case between others, which end a text. */
const PACKED_BYTES = new Set(['figure_packs.packed'])
const IN_PACKED: Record<Store['kind'], (column: string) => string> = {
  sqlite: (column) => `instr(${column}, CAST(? AS BLOB)) > 0`,
  postgres: (column) => `position(convert_to(?, 'UTF8') IN ${column}) > 0`,
}

const columnsIn = (places: ReadonlySet<string>, table: string): string[] =>
  [...places].flatMap((place) => (place.startsWith(`${table}.`) ? [place.slice(table.length + 1)] : []))

const COLUMNS: Record<Store['kind'], string> = {
  sqlite: 'SELECT name, lower(type) AS type, pk - 1 AS place FROM pragma_table_info(?)',
  postgres: `SELECT a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type,
      coalesce(array_position(i.indkey::int2[], a.attnum), -1) AS place
    FROM pg_attribute a LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
    WHERE a.attrelid = to_regclass(?) AND a.attnum > 0 AND NOT a.attisdropped`,
}

export async function tableShape(store: Store, name: string, rule: StoreRule): Promise<TableShape> {
  const columns = await store.read({ sql: COLUMNS[store.kind], values: [name] })
  const own = columns.filter(({ place }) => Number(place) >= 0)
  const key = own
    .toSorted((a, b) => Number(a['place']) - Number(b['place']))
    .map((one) => String(one['name']))
  const texts = columns.filter((one) => one['type'] === 'text').map((one) => String(one['name']))
  return { name, key: rule.key ?? key, texts }
}

const marks = (count: number) => Array.from({ length: count }, () => '?').join(', ')

/** @param pattern for LIKE; null: every row is wanted */
export async function readPortion(
  store: Store,
  shape: TableShape,
  rule: StoreRule,
  { after, scope, pattern }: { after: readonly SqlValue[] | null; scope: Scope; pattern: string | null },
): Promise<Portion> {
  const { sql, values, bound } = portionStatements(store.kind, shape, rule, { after, scope, pattern })
  const [end] = await store.read(bound)
  const last = end ? shape.key.map((column) => end[column] as SqlValue) : null
  const to = last ? ` AND (${shape.key.join(', ')}) <= (${marks(shape.key.length)})` : ''
  const rows = await store.read({ sql: `${sql}${to}`, values: [...values, ...(last ?? [])] })
  return { rows: rows as Row[], last }
}

/** `bound` finds the end of the portion; the other statement its rows up to the end of the table. */
export function portionStatements(
  kind: Store['kind'],
  { name, key, texts }: TableShape,
  rule: StoreRule,
  { after, scope, pattern }: { after: readonly SqlValue[] | null; scope: Scope; pattern: string | null },
): Statement & { bound: Statement } {
  const columns = key.join(', ')
  const from = after ? `(${columns}) > (${marks(key.length)})` : '1 = 1'
  const order = `ORDER BY ${columns} LIMIT 1 OFFSET ${(rule.portion ?? PORTION) - 1}`
  const bound = { sql: `SELECT ${columns} FROM ${name} WHERE ${from} ${order}`, values: after ?? [] }
  const conditions: Statement[] = [{ sql: from, values: after ?? [] }]
  if (scope) {
    const accounts = listOf(kind, scope)
    // In a form that no index matches: the range of the key is the smaller one.
    const condition = rule.scope ?? "account_id || '' IN ACCOUNTS"
    conditions.push({ sql: condition.replace('ACCOUNTS', accounts.sql), values: accounts.values })
  }
  if (pattern !== null) {
    const like = kind === 'sqlite' ? 'LIKE' : 'ILIKE'
    const bytes = columnsIn(TEXT_BYTES, name)
    const searched = [
      ...texts,
      ...bytes.map((column) => (kind === 'sqlite' ? column : `encode(${column}, 'escape')`)),
    ]
    const packed = columnsIn(PACKED_BYTES, name)
    const tests = [...searched.map((column) => `${column} ${like} ?`), ...packed.map(IN_PACKED[kind])]
    // Of a pattern the first part: the local part of the address.
    const [, local = ''] = pattern.split('%')
    conditions.push({
      sql: `(${tests.join(' OR ')})`,
      values: [...searched.map(() => pattern), ...packed.map(() => local)],
    })
  }
  return {
    sql: `SELECT * FROM ${name} WHERE ${conditions.map((one) => one.sql).join(' AND ')}`,
    values: conditions.flatMap((one) => one.values),
    bound,
  }
}

/** Rows at the end of a table that may be joined by others in between: commits are not in the order of keys. */
const UNSETTLED_ROWS = 10_000

/** Key of a row with so many behind it that all in front of it are there; null: the table is smaller. */
export async function keyBehind(store: Store, { name, key }: TableShape): Promise<SqlValue[] | null> {
  const order = key.map((column) => `${column} DESC`).join(', ')
  const sql = `SELECT ${key.join(', ')} FROM ${name} ORDER BY ${order} LIMIT 1 OFFSET ${UNSETTLED_ROWS}`
  const [row] = await store.read({ sql, values: [] })
  return row ? key.map((column) => row[column] as SqlValue) : null
}

const sameKey = (shape: TableShape) => `(${shape.key.join(', ')}) = (${marks(shape.key.length)})`
const keyOf = (shape: TableShape, row: Row): SqlValue[] => shape.key.map((column) => row[column] as SqlValue)

export const rowOf = (shape: TableShape, key: readonly SqlValue[]): Statement => ({
  sql: `SELECT * FROM ${shape.name} WHERE ${sameKey(shape)}`,
  values: [...key],
})

export const removal = (shape: TableShape, row: Row): Statement => ({
  sql: `DELETE FROM ${shape.name} WHERE ${sameKey(shape)}`,
  values: keyOf(shape, row),
})

/** Does nothing if one of these columns was changed meanwhile: the next pass sees what it has become. */
export function changing(shape: TableShape, row: Row, changes: Readonly<Row>): Statement[] {
  const columns = Object.keys(changes)
  const unchanged = columns.filter((column) => typeof row[column] === 'string')
  const update: Statement = {
    sql: `UPDATE ${shape.name} SET ${columns.map((column) => `${column} = ?`).join(', ')}
      WHERE ${[sameKey(shape), ...unchanged.map((column) => `${column} = ?`)].join(' AND ')}`,
    values: [
      ...Object.values(changes),
      ...keyOf(shape, row),
      ...unchanged.map((column) => row[column] as SqlValue),
    ],
  }
  // The same person may have been erased before.
  const isMoved = shape.key.some((column) => column in changes)
  return isMoved ? [removal(shape, { ...row, ...changes }), update] : [update]
}
