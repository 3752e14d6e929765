/**
 * Pages of lists that grow while somebody reads them: a token names the item that a page begins after or ends before.
 * `paging` has only links to pages that exist (dynamic-pools.md section 1).
 */
import { invalidFormat } from '../../base/values.ts'
import { pageUrl } from '../../platform/http/request/paging.ts'
import type { Params } from '../../platform/http/request/params.ts'
import type { SqlValue, Store } from '../../platform/store/store.ts'

type Key = readonly (string | number)[]

export type PagePlace = { way: 'first' | 'last' } | { way: 'after' | 'before'; key: Key }

/** Columns or expressions that together order a table strictly, all in one direction. */
export interface PageOrder {
  keys: readonly { sql: string; type: 'number' | 'string' }[]
  descending: boolean
}

interface PageQuery {
  /** A table with its joins, and conditions with their values. */
  from: string
  where: readonly string[]
  values: readonly SqlValue[]
  /** Named in the result, separated by commas. */
  columns: string
  order: PageOrder
  place: PagePlace
  limit: number
}

export interface Page {
  rows: Record<string, unknown>[]
  total: number
  /** Tokens; undefined: there is no such page. */
  next: string | undefined
  previous: string | undefined
}

const TOKEN = /^[A-Za-z0-9_-]{1,800}$/
const WAYS = { n: 'after', p: 'before' } as const
const LAST = writeToken(['l'])

function writeToken(parts: readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify(parts)).toString('base64url')
}

/** @throws BadRequest for a token that this order has not made */
export function pagePlace(params: Params, { keys }: PageOrder): PagePlace {
  const token = params.text('page')
  if (token === undefined) return { way: 'first' }
  if (token === LAST) return { way: 'last' }
  const [way, ...key] = TOKEN.test(token) ? partsOf(token) : []
  const isFitting = key.length === keys.length && keys.every(({ type }, at) => isKey(type, key[at]))
  if ((way !== 'n' && way !== 'p') || !isFitting) throw invalidFormat('page', token)
  return { way: WAYS[way], key: key as Key }
}

/** Whatever else a token holds, the database must not have to refuse it. */
const isKey = (type: 'number' | 'string', value: unknown) =>
  type === 'number' ? Number.isSafeInteger(value) : typeof value === 'string' && /^[\x20-\x7e]+$/.test(value)

function partsOf(token: string): unknown[] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(token, 'base64url').toString())
    return Array.isArray(parts) ? parts : []
  } catch {
    return []
  }
}

/** One row more than the page says whether there is another page in the direction of reading. */
export async function readPage(store: Store, query: PageQuery): Promise<Page> {
  const { place, order, limit } = query
  const isBackward = place.way === 'before' || place.way === 'last'
  const [total, found] = await Promise.all([
    countOf(store, query),
    store.read(statementOf(query, isBackward)),
  ])
  const rows = found.slice(0, limit)
  if (isBackward) rows.reverse()
  const hasMore = found.length > limit
  const hasNext = rows.length > 0 && (isBackward ? place.way === 'before' : hasMore)
  const hasPrevious = rows.length > 0 && (isBackward ? hasMore : place.way === 'after')
  const token = (way: 'n' | 'p', row: Record<string, unknown> | undefined) =>
    writeToken([way, ...order.keys.map(({ type }, at) => keyValue(type, row?.[`k${at}`]))])
  return {
    rows,
    total,
    next: hasNext ? token('n', rows.at(-1)) : undefined,
    previous: hasPrevious ? token('p', rows[0]) : undefined,
  }
}

const keyValue = (type: 'number' | 'string', value: unknown) =>
  type === 'number' ? Number(value) : String(value)

async function countOf(store: Store, { from, where, values }: PageQuery): Promise<number> {
  const sql = `SELECT count(*) AS n FROM ${from} WHERE ${where.join(' AND ')}`
  const [row] = await store.read({ sql, values: [...values] })
  return Number(row?.['n'] ?? 0)
}

function statementOf(query: PageQuery, isBackward: boolean): { sql: string; values: SqlValue[] } {
  const { order, place, limit } = query
  const direction = order.descending !== isBackward ? 'DESC' : 'ASC'
  const keys = order.keys.map(({ sql }) => sql)
  const key = 'key' in place ? place.key : []
  const sign = direction === 'DESC' ? '<' : '>'
  const beyond = key.length === 0 ? [] : [`(${keys.join(', ')}) ${sign} (${keys.map(() => '?').join(', ')})`]
  const sql = `SELECT ${query.columns}, ${keys.map((one, at) => `${one} AS k${at}`).join(', ')}
    FROM ${query.from} WHERE ${[...query.where, ...beyond].join(' AND ')}
    ORDER BY ${keys.map((one) => `${one} ${direction}`).join(', ')} LIMIT ${limit + 1}`
  return { sql, values: [...query.values, ...key] }
}

export interface PageLinks {
  baseUrl: string
  path: string
  /** Parameters of the request that every link repeats. */
  carry: readonly (readonly [string, string | number | undefined])[]
}

/** The wrapper of a list. */
export function listOf<T>(items: readonly T[], page: Page, { baseUrl, path, carry }: PageLinks) {
  const url = (token?: string) => pageUrl(baseUrl, path, [...carry, ['page', token]])
  return {
    items,
    total_items: page.total,
    paging: {
      ...(page.next !== undefined && { Next: url(page.next) }),
      ...(page.previous !== undefined && { Previous: url(page.previous) }),
      ...(page.total > 0 && { First: url(), Last: url(LAST) }),
    },
  }
}
