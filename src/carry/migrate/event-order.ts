/**
 * The order of events on PostgreSQL is (tx, seq), and tx is a transaction of that server, which means nothing to another
 * database (decision 7). A copy has tx 0 everywhere, so its order is that of seq alone: where transactions committed in
 * another order than they took their numbers, the events exchange these. Positions of followers move with them.
 */
import type { TablePlan } from './catalog.ts'
import { createReader, type Reader } from './reading.ts'
import type { Side } from './side.ts'
import type { Row, Value } from './values.ts'

/** As `createReader`, with rows as the copy is to have them. */
export async function createSourceReader(side: Side, table: TablePlan): Promise<Reader> {
  const isOrdered = table.name === 'events' || table.name === 'event_followers'
  if (!isOrdered || !(await hasTransactions(side))) return createReader(side, table)
  return table.name === 'events' ? orderedEvents(side, table) : movedFollowers(side, table)
}

async function hasTransactions(side: Side): Promise<boolean> {
  if (side.kind === 'sqlite') return false
  const [row] = await side.query(
    `SELECT (EXISTS (SELECT 1 FROM events WHERE (tx, seq) > (0, ${MAX}))
      OR EXISTS (SELECT 1 FROM event_followers WHERE tx <> 0))::int`,
  )
  return row?.[0] === 1n
}

const MAX = 9_223_372_036_854_775_807n

const placeOf = (table: TablePlan, column: string) => table.columns.findIndex(({ name }) => name === column)

function orderedEvents(side: Side, table: TablePlan): Reader {
  const [txAt, seqAt] = [placeOf(table, 'tx'), placeOf(table, 'seq')]
  const columns = table.columns.map(({ name }) => name).join(', ')
  return async (place, rowsMax) => {
    // The first so many by commits, and as many numbers in their own order.
    const found = await side.query(
      `SELECT ${columns} FROM events ${place ? 'WHERE (tx, seq) > (?, ?)' : ''} ORDER BY tx, seq LIMIT ${rowsMax}`,
      place?.slice(0, 2),
    )
    const numbers = await side.query(
      `SELECT seq FROM events ${place ? 'WHERE seq > ?' : ''} ORDER BY seq LIMIT ${rowsMax}`,
      place?.slice(2),
    )
    const rows = found.map((row, index): Row => {
      const moved = [...row]
      moved[txAt] = 0n
      moved[seqAt] = numbers[index]?.[0] as Value
      return moved
    })
    const last = found.at(-1)
    const isLast = found.length < rowsMax || !last
    return {
      rows,
      place: isLast ? null : [last[txAt] as Value, last[seqAt] as Value, numbers.at(-1)?.[0] as Value],
    }
  }
}

function movedFollowers(side: Side, table: TablePlan): Reader {
  const read = createReader(side, table)
  const [txAt, seqAt] = [placeOf(table, 'tx'), placeOf(table, 'seq')]
  const move = async (row: Row): Promise<Row> => {
    const [passed] = await side.query('SELECT count(*) FROM events WHERE (tx, seq) <= (?, ?)', [
      row[txAt] as Value,
      row[seqAt] as Value,
    ])
    const count = passed?.[0] as bigint
    const [last] =
      count > 0n ? await side.query(`SELECT seq FROM events ORDER BY seq LIMIT 1 OFFSET ${count - 1n}`) : []
    const moved = [...row]
    moved[txAt] = 0n
    moved[seqAt] = last?.[0] ?? 0n
    return moved
  }
  return async (place, rowsMax) => {
    const batch = await read(place, rowsMax)
    const rows: Row[] = []
    for (const row of batch.rows) rows.push(await move(row))
    return { ...batch, rows }
  }
}
