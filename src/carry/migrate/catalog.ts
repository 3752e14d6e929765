/**
 * Which tables are copied, with which columns, in which order. All of it comes from the catalogs of the two databases, so
 * a table that a later migration adds is copied without being named anywhere. One that only one of the databases has, or
 * whose columns differ, has to be explained in `MADE_ANEW`; else nothing is copied, and a test fails.
 */
import { type ColumnType, MigrationError } from './values.ts'

export interface Column {
  name: string
  type: ColumnType
}

export interface Table {
  name: string
  columns: readonly Column[]
  /** Columns of the primary key in its order; empty: it has none. */
  key: readonly string[]
  /** Tables that its rows refer to. */
  refersTo: readonly string[]
  /** The column that the database numbers by itself, on PostgreSQL. */
  identity: string | null
}

export type Catalog = ReadonlyMap<string, Table>

/** Not copied, and why. */
export const MADE_ANEW: Readonly<Record<string, string>> = {
  schema_versions: 'each database says itself which migrations it ran',
  event_tags: 'written by triggers on PostgreSQL and with the index on SQLite, from the rows of events',
  event_index: "SQLite's index of the events, made from them",
  event_segments: "SQLite's index of the events, made from them",
  event_index_place: "SQLite's index of the events, made from them",
  rate_buckets: 'tokens of running processes, full again after a minute without any',
}

/** Rows that belong to the copy, not to what is copied. */
export const MARK_TABLE = 'installation'

export interface TablePlan {
  name: string
  columns: readonly Column[]
  /** Columns that give its rows an order; all of them if it has no key. */
  order: readonly string[]
  /** Their places among the columns. */
  orderAt: readonly number[]
  /** False: rows may be equal, and are read by their number. */
  hasKey: boolean
  /** As in the target. */
  identity: string | null
}

/**
 * Every table of both databases, those that others refer to first.
 * @throws MigrationError if their tables or columns differ
 */
export function planOf(source: Catalog, target: Catalog): TablePlan[] {
  const faults: string[] = []
  for (const name of new Set([...source.keys(), ...target.keys()])) {
    if (Object.hasOwn(MADE_ANEW, name)) continue
    const [from, to] = [source.get(name), target.get(name)]
    if (!from || !to) faults.push(`Table ${name} is only in the ${from ? 'source' : 'target'}.`)
    else faults.push(...differences(from, to))
  }
  if (faults.length > 0) throw new MigrationError(`Cannot copy: ${faults.join(' ')}`)
  return inOrder([...target.values()].filter(({ name }) => !Object.hasOwn(MADE_ANEW, name))).map(planTable)
}

function differences(from: Table, to: Table): string[] {
  const faults: string[] = []
  const types = new Map(from.columns.map(({ name, type }) => [name, type]))
  for (const { name, type } of to.columns) {
    if (type === 'other') faults.push(`The type of column ${to.name}.${name} is not known to the copy.`)
    else if (types.get(name) !== type)
      faults.push(`Column ${to.name}.${name} is ${types.get(name) ?? 'absent'} in the source, not ${type}.`)
    types.delete(name)
  }
  for (const name of types.keys()) faults.push(`Column ${to.name}.${name} is absent in the target.`)
  if (from.key.join() !== to.key.join()) faults.push(`The keys of table ${to.name} differ.`)
  return faults
}

function planTable({ name, columns, key, identity }: Table): TablePlan {
  const order = key.length > 0 ? key : columns.map((column) => column.name)
  const orderAt = order.map((part) => columns.findIndex((column) => column.name === part))
  return { name, columns, order, orderAt, hasKey: key.length > 0, identity }
}

/** By name, but after all tables that it refers to. @throws MigrationError if tables refer to each other in a circle */
function inOrder(tables: readonly Table[]): Table[] {
  const waiting = new Map(
    tables.toSorted((a, b) => (a.name < b.name ? -1 : 1)).map((table) => [table.name, table]),
  )
  const ordered: Table[] = []
  while (waiting.size > 0) {
    const next = [...waiting.values()].find(({ refersTo }) => !refersTo.some((name) => waiting.has(name)))
    if (!next) throw new MigrationError(`Tables refer to each other: ${[...waiting.keys()].join(', ')}.`)
    waiting.delete(next.name)
    ordered.push(next)
  }
  return ordered
}
