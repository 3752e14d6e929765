/** Compares both sides row by row in the order of their keys, with a digest of each. */
import type { TablePlan } from './catalog.ts'
import { createSourceReader } from './event-order.ts'
import { batches, countRows, createReader, keyOfRow, newDigest, type Reader } from './reading.ts'
import type { Side } from './side.ts'
import { addRow, compareKeys, fitting, hasNul, isSameRow, type Row, withoutNul } from './values.ts'

export interface TableResult {
  name: string
  rows: { source: number; target: number }
  /** SHA-256 over all rows in the order of their keys, hexadecimal. */
  digest: { source: string; target: string }
}

export interface Comparison {
  result: TableResult
  /** One sentence each; empty: they are equal. */
  differences: string[]
  /** What the target cannot hold as it was. */
  notes: string[]
}

/** The row that the target is to have. `onNul`: called with the column of each text that is changed. @throws MigrationError */
export function expectedRow(
  table: TablePlan,
  row: Row,
  target: Side['kind'],
  onNul: (column: string) => void = () => {},
): Row {
  return row.map((value, at) => {
    const column = table.columns[at]
    if (!column) throw new RangeError('A row has more values than columns')
    const fit = fitting(value, column.type, `${table.name}.${column.name}`)
    if (target === 'sqlite' || !hasNul(fit)) return fit
    onNul(column.name)
    return withoutNul(fit)
  })
}

/** `onRows` is called with the number of compared rows. */
export async function compareTable(
  source: Side,
  target: Side,
  table: TablePlan,
  onRows: (rows: number) => void,
): Promise<Comparison> {
  const nuls = new Map<string, number>()
  const onNul = (column: string) => nuls.set(column, (nuls.get(column) ?? 0) + 1)
  const from = cursor(await createSourceReader(source, table), (row) =>
    expectedRow(table, row, target.kind, onNul),
  )
  const to = cursor(createReader(target, table), (row) => row)
  const found = { missing: new Found(), extra: new Found(), changed: new Found() }
  const [left, right] = [newDigest(), newDigest()]
  const rows = { source: 0, target: 0 }
  let [a, b] = [await from.next(), await to.next()]
  while (a || b) {
    const order = !a ? 1 : !b ? -1 : compareKeys(keyOfRow(table, a), keyOfRow(table, b))
    if (order < 0 && a) found.missing.add(() => describeKey(table, a as Row))
    if (order > 0 && b) found.extra.add(() => describeKey(table, b as Row))
    if (order === 0 && a && b && !isSameRow(a, b))
      found.changed.add(
        () => `${describeKey(table, a as Row)}, in ${changedColumns(table, a as Row, b as Row)}`,
      )
    if (order <= 0 && a) {
      addRow(left, a)
      rows.source++
      a = await from.next()
      if (rows.source % REPORT_ROWS === 0) onRows(REPORT_ROWS)
    }
    if (order >= 0 && b) {
      addRow(right, b)
      rows.target++
      b = await to.next()
    }
  }
  onRows(rows.source % REPORT_ROWS)
  // Counted by the databases themselves: nothing was left out in reading.
  const counted = { source: await countRows(source, table), target: await countRows(target, table) }
  return {
    result: { name: table.name, rows, digest: { source: left.digest('hex'), target: right.digest('hex') } },
    differences: [
      ...found.missing.sentences(table, 'missing in the target'),
      ...found.extra.sentences(table, 'only in the target'),
      ...found.changed.sentences(table, 'different'),
      ...(['source', 'target'] as const)
        .filter((side) => counted[side] !== rows[side])
        .map(
          (side) => `Table ${table.name}: ${rows[side]} of ${counted[side]} rows in the ${side} were read.`,
        ),
    ],
    notes: [...nuls].map(
      ([column, count]) =>
        `${count} texts in ${table.name}.${column} have a NUL, which PostgreSQL cannot store: U+FFFD is in its place.`,
    ),
  }
}

const REPORT_ROWS = 1_000

/** Rows with one kind of difference; the first is described. */
class Found {
  #count = 0
  #first = ''

  add(describe: () => string): void {
    if (this.#count++ === 0) this.#first = describe()
  }

  sentences({ name }: TablePlan, what: string): string[] {
    if (this.#count === 0) return []
    const rows = this.#count === 1 ? '1 row is' : `${this.#count} rows are`
    return [`Table ${name}: ${rows} ${what}; the first is ${this.#first}.`]
  }
}

const KEY_CHARS_MAX = 200

const describeKey = (table: TablePlan, row: Row): string =>
  table.order
    .map((name, at) => `${name} = ${String(row[table.orderAt[at] as number])}`)
    .join(', ')
    .slice(0, KEY_CHARS_MAX)

const changedColumns = ({ columns }: TablePlan, a: Row, b: Row): string =>
  columns
    .filter((_, at) => !isSameRow(a.slice(at, at + 1), b.slice(at, at + 1)))
    .map(({ name }) => name)
    .join(', ')

/** One row after the other; null after the last. */
function cursor(read: Reader, change: (row: Row) => Row) {
  const all = batches(read, null)
  let rows: Row[] = []
  let at = 0
  let isOver = false
  return {
    async next(): Promise<Row | null> {
      while (at >= rows.length) {
        if (isOver) return null
        const { value } = await all.next()
        rows = value?.rows ?? []
        at = 0
        isOver = !value || value.place === null
      }
      return change(rows[at++] as Row)
    },
  }
}

/** The tags of events are made anew in the copy; queries read them through this view on both databases. */
const TAGS: TablePlan = {
  name: 'event_tag_keys',
  columns: [
    { name: 'domain_name', type: 'text' },
    { name: 'tag', type: 'text' },
    { name: 'event', type: 'text' },
    { name: 'timestamp_us', type: 'integer' },
    { name: 'seq', type: 'integer' },
  ],
  order: ['domain_name', 'tag', 'event', 'timestamp_us', 'seq'],
  orderAt: [0, 1, 2, 3, 4],
  hasKey: true,
  identity: null,
}

/** Without `seq`, which events may exchange (event-order.ts). */
export async function compareTags(source: Side, target: Side): Promise<Comparison> {
  const sums = await Promise.all(
    [source, target].map(async (side) => {
      const digest = newDigest()
      let rows = 0
      for await (const batch of batches(createReader(side, TAGS), null)) {
        for (const row of batch.rows) addRow(digest, row.slice(0, -1))
        rows += batch.rows.length
      }
      return { rows, digest: digest.digest('hex') }
    }),
  )
  const [from, to] = sums as [(typeof sums)[0], (typeof sums)[0]]
  const isEqual = from.rows === to.rows && from.digest === to.digest
  return {
    result: {
      name: TAGS.name,
      rows: { source: from.rows, target: to.rows },
      digest: { source: from.digest, target: to.digest },
    },
    differences: isEqual
      ? []
      : [`The tags of events differ: ${from.rows} in the source, ${to.rows} in the target.`],
    notes: [],
  }
}
