/** Limits of a query of figures, and of each of its reads. */
import { BadRequest } from '../../../base/process/errors.ts'
import { COUNTERS } from '../counters.ts'
import { after, type RowUnit, startOf } from '../intervals.ts'

/**
 * Rows of figures per read: 20 to 40 ms. With fewer the groups of each read, which are transferred, are as many as its
 * rows: at 10,000 all pairs of domain and provider in 30 days took four times as long.
 */
const ROWS_PER_READ = 40_000
/** Domains in the first read of a query that is read by domains. */
const SCOPES_FIRST = 16
/** Rows of figures per query: a second or two in all. */
export const ROWS_MAX = 1_000_000
/** Rows of an answer, which are held in memory: up to 40 MB. */
const ANSWER_ROWS_MAX = 100_000

/** What a query may read. */
export class Budget {
  readonly rowsMax: number
  #read = 0

  constructor(rowsMax: number) {
    this.rowsMax = rowsMax
  }

  /** @throws BadRequest if these rows are more than the query may read */
  spend(rows: number): void {
    this.#read += rows
    if (this.#read > this.rowsMax) throw tooMuch('the query reads too many counters')
  }
}

/** The most items that a statement has to return for an answer that begins with `wanted` of them. */
export const itemsWanted = (wanted: number): number => Math.min(wanted, ANSWER_ROWS_MAX + 1)

/** @throws BadRequest if so many items cannot be held */
export function checkItems(items: number): void {
  if (items > ANSWER_ROWS_MAX) throw tooMuch(`more than ${ANSWER_ROWS_MAX} items`)
}

const tooMuch = (what: string) =>
  new BadRequest(`${what}: ask for fewer dimensions, a shorter time or a domain`)

/** Reads intervals from `start` to `end`, several at a time. `read` resolves to the rows that it has read. */
export async function byTime(
  unit: RowUnit,
  start: number,
  end: number,
  read: (from: number, to: number) => Promise<number>,
): Promise<void> {
  let width = 1
  for (let from = start; from < end; ) {
    const to = Math.min(after(unit, startOf(unit, from), width), end)
    const rows = await read(from, to)
    from = to
    width = nextWidth(width, rows)
  }
}

/** Reads these scopes, in ascending order, several at a time. `read` resolves to the rows that it has read. */
export async function byScopes(
  scopes: readonly number[],
  read: (some: readonly number[]) => Promise<number>,
): Promise<void> {
  let width = SCOPES_FIRST
  for (let at = 0; at < scopes.length; ) {
    const some = scopes.slice(at, at + width)
    const rows = await read(some)
    at += some.length
    width = nextWidth(width, rows)
  }
}

/** The first and the last number. */
export const endsOf = (scopes: readonly number[]) => [scopes[0], scopes.at(-1)] as [number, number]

/** So that the next read has about ROWS_PER_READ rows. */
function nextWidth(width: number, read: number): number {
  const fitting = Math.floor((width * ROWS_PER_READ) / Math.max(1, read))
  return Math.max(1, Math.min(fitting, width * 8))
}

/** Counters of an item by address: mail is accepted before it has one, and alone makes no item there. */
export const ATTEMPTED = COUNTERS.filter((name) => !name.startsWith('accepted_'))
