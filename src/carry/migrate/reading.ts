/** Reads a table from its start, or after a place, in batches that fit into memory. */
import { createHash, type Hash } from 'node:crypto'
import { COPY_MARK } from '../../platform/store/installation.ts'
import { MARK_TABLE, type TablePlan } from './catalog.ts'
import type { Side } from './side.ts'
import { type Row, sizeOf, type Value } from './values.ts'

interface Batch {
  rows: Row[]
  /** Where the next batch begins; null: this was the last one. */
  place: Value[] | null
}

/** The rows after a place, at most so many; null: from the start. */
export type Reader = (place: readonly Value[] | null, rowsMax: number) => Promise<Batch>

export const condition = ({ name }: Pick<TablePlan, 'name'>): string =>
  name === MARK_TABLE ? `name <> '${COPY_MARK}'` : '1 = 1'

export function createReader(side: Side, table: TablePlan): Reader {
  const columns = table.columns.map(({ name }) => name).join(', ')
  const from = `SELECT ${columns} FROM ${table.name} WHERE ${condition(table)}`
  if (!table.hasKey) {
    const order = table.order.map((name) => `${name} NULLS FIRST`).join(', ')
    return async (place, rowsMax) => {
      const start = (place?.[0] ?? 0n) as bigint
      const rows = await side.query(`${from} ORDER BY ${order} LIMIT ${rowsMax} OFFSET ${start}`)
      return { rows, place: rows.length < rowsMax ? null : [start + BigInt(rows.length)] }
    }
  }
  const order = table.order.join(', ')
  const after = `AND (${order}) > (${table.order.map(() => '?').join(', ')})`
  return async (place, rowsMax) => {
    const sql = `${from} ${place ? after : ''} ORDER BY ${order} LIMIT ${rowsMax}`
    const rows = await side.query(sql, place ?? [])
    const last = rows.at(-1)
    return { rows, place: rows.length < rowsMax || !last ? null : keyOfRow(table, last) }
  }
}

export const keyOfRow = ({ orderAt }: TablePlan, row: Row): Value[] => orderAt.map((at) => row[at] as Value)

export async function countRows(side: Side, table: TablePlan): Promise<number> {
  const [row] = await side.query(`SELECT count(*) FROM ${table.name} WHERE ${condition(table)}`)
  return Number(row?.[0])
}

/** Enough that a batch costs more than the round trips around it. */
const BATCH_BYTES = 2_000_000
const BATCH_ROWS_MAX = 2_000
/** A message takes up to half a megabyte. */
const BATCH_ROWS_FIRST = 50

/** All batches after `place`. Their sizes follow the size of the rows. */
export async function* batches(read: Reader, place: readonly Value[] | null): AsyncGenerator<Batch> {
  let rowsMax = BATCH_ROWS_FIRST
  for (;;) {
    const batch = await read(place, rowsMax)
    yield batch
    if (batch.place === null) return
    place = batch.place
    const bytes = batch.rows.reduce((sum, row) => sum + sizeOf(row), 0)
    const fitting = Math.floor((BATCH_BYTES * batch.rows.length) / Math.max(1, bytes))
    rowsMax = Math.max(1, Math.min(fitting, 2 * rowsMax, BATCH_ROWS_MAX))
  }
}

export const newDigest = (): Hash => createHash('sha256')
