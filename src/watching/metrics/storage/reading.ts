/** Limits of a query of figures, and of each of its reads. */
import { BadRequest } from '../../../base/process/errors.ts'
import { COUNTERS } from '../counters.ts'

/**
 * Rows of figures per read: 20 to 40 ms. With fewer the groups of each read, which are transferred, are as many as its
 * rows: at 10,000 all pairs of domain and provider in 30 days took four times as long.
 */
const ROWS_PER_READ = 40_000
/** Domains in the first read of a query that is read by domains. */
export const SCOPES_FIRST = 16
/** Rows of figures per query: a second or two in all. */
export const ROWS_MAX = 1_000_000
/** Rows of an answer, which are held in memory: up to 40 MB. */
export const ANSWER_ROWS_MAX = 100_000

/** @throws BadRequest if these are more than a query may read */
export function checkRowsRead(rows: number, rowsMax: number): void {
  if (rows > rowsMax) throw tooMuch('the query reads too many counters')
}

export const tooMuch = (what: string) =>
  new BadRequest(`${what}: ask for fewer dimensions, a shorter time or a domain`)

/** So that the next read has about ROWS_PER_READ rows. */
export function nextWidth(width: number, read: number): number {
  const fitting = Math.floor((width * ROWS_PER_READ) / Math.max(1, read))
  return Math.max(1, Math.min(fitting, width * 8))
}

/** Counters of an item by address: mail is accepted before it has one, and alone makes no item there. */
export const ATTEMPTED = COUNTERS.filter((name) => !name.startsWith('accepted_'))
