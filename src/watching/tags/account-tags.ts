/** Pages of an account's tags, and their figures (tags-stats.md section 2). */

import { BadRequest } from '../../base/process/errors.ts'
import type { Of } from '../../base/shape.ts'
import { formatRfc2822 } from '../../base/time/dates.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import type { AccountDirectory } from '../../people/accounts/account-directory.ts'
import type { AccountTagRow } from '../../platform/store/schema.ts'
import { type Counts, noCounts } from '../metrics/counters.ts'
import {
  type FigureQuery,
  type Figures,
  METRICS,
  type Metric,
  metricValue,
  numberOf,
} from '../metrics/figures.ts'
import type { ACCOUNT_TAG, ACCOUNT_TAG_PAGE } from './shapes.ts'
import type { AccountTagOrder, TagStore } from './tag-store.ts'

export interface AccountTagQuery {
  accountId: string
  includeSubaccounts: boolean
  includeMetrics: boolean
  includeTotal: boolean
  prefix: string | null
  /** As asked or by default; repeated in the answer. */
  sort: string
  column: AccountTagOrder | Metric
  descending: boolean
  skip: number
  limit: number
}

export interface AccountTagParts {
  tags: TagStore
  figures: Figures
  accounts: Pick<AccountDirectory, 'byId' | 'childrenOf'>
}

/** Figures of a tag are of so many days (rule 4). */
const FIGURES_MS = 30 * DAY_MS
/** Tags of several accounts are sorted for each page: 0.1 s. */
const SORTED_MAX = 200_000
const ORDERS: readonly string[] = ['last_seen', 'first_seen', 'tag_key'] satisfies AccountTagOrder[]

type AccountTagItem = Of<typeof ACCOUNT_TAG>
export type AccountTagPage = Of<typeof ACCOUNT_TAG_PAGE>

/** @throws BadRequest where the subaccounts have too many tags to sort */
export async function accountTagPage(
  parts: AccountTagParts,
  query: AccountTagQuery,
  now: number,
): Promise<AccountTagPage> {
  const { tags, accounts } = parts
  const { accountId, prefix, includeSubaccounts, includeTotal, sort, skip, limit } = query
  const children = includeSubaccounts ? await accounts.childrenOf(accountId) : []
  const accountIds = [accountId, ...children]
  const total =
    includeTotal || children.length > 0 ? await tags.countIn(accountIds, prefix, SORTED_MAX + 1) : 0
  if (children.length > 0 && total > SORTED_MAX) {
    throw new BadRequest(`include_subaccounts: there are more than ${SORTED_MAX} tags`)
  }
  const metric = isMetric(query.column) ? query.column : null
  const { rows, counts } = metric
    ? await byMetric(parts, { ...query, column: metric }, accountIds, now)
    : await byColumn(parts, query, accountIds, now)
  const items: AccountTagItem[] = []
  for (const row of rows) items.push(await itemOf(parts, row, counts?.get(keyOf(row)) ?? null, query))
  return { items, pagination: { sort, skip, limit, ...(includeTotal && { total }) } }
}

const isMetric = (column: string): column is Metric => !ORDERS.includes(column)

type CountsByTag = ReadonlyMap<string, Counts>
const keyOf = ({ account_id, tag_key }: { account_id: string; tag_key: string }) => `${account_id} ${tag_key}`

async function byColumn(
  { tags, figures }: AccountTagParts,
  { prefix, column, descending, skip, limit, includeMetrics }: AccountTagQuery,
  accountIds: readonly string[],
  now: number,
): Promise<{ rows: AccountTagRow[]; counts: CountsByTag | null }> {
  const order = column as AccountTagOrder
  const rows = await tags.accountPage({ accountIds, prefix, order, descending, skip, limit })
  if (!includeMetrics || rows.length === 0) return { rows, counts: null }
  const values = [...new Set(rows.map(({ tag_key }) => tag_key))]
  const ids = [...new Set(rows.map(({ account_id }) => account_id))]
  const filter: FigureQuery['filter'] = [{ attribute: 'tag', comparator: '=', values }]
  return { rows, counts: await countsOf(figures, ids, filter, now) }
}

/** Tags with figures in the order of one; those without follow, by name. */
async function byMetric(
  { tags, figures }: AccountTagParts,
  { prefix, column, descending, skip, limit }: AccountTagQuery & { column: Metric },
  accountIds: readonly string[],
  now: number,
): Promise<{ rows: AccountTagRow[]; counts: CountsByTag }> {
  const filter: FigureQuery['filter'] =
    prefix === null ? [] : [{ attribute: 'tag', comparator: 'contains', values: [prefix] }]
  const counts = await countsOf(figures, accountIds, filter, now)
  const sign = descending ? -1 : 1
  const figureOf = (row: AccountTagRow) => numberOf(column, counts.get(keyOf(row)) ?? noCounts())
  const max = SORTED_MAX + 1
  const all = await tags.accountPage({
    accountIds,
    prefix,
    order: 'tag_key',
    descending: false,
    skip: 0,
    limit: max,
  })
  if (all.length === max) throw new BadRequest(`sort: there are more than ${SORTED_MAX} tags`)
  const sorted = all.sort((a, b) => sign * (figureOf(a) - figureOf(b)) || (a.tag_key < b.tag_key ? -1 : 1))
  return { rows: sorted.slice(skip, skip + limit), counts }
}

async function countsOf(
  figures: Figures,
  accountIds: readonly string[],
  filter: FigureQuery['filter'],
  now: number,
): Promise<CountsByTag> {
  const found = await figures.read({
    accountIds,
    startMs: now - FIGURES_MS,
    endMs: now,
    resolution: 'day',
    dimensions: ['subaccount', 'tag'],
    filter,
  })
  return new Map(
    found.map(({ values: [account, tag], counts }) => [`${account} ${tag?.toLowerCase()}`, counts]),
  )
}

const NAMED: readonly Metric[] = METRICS

async function itemOf(
  { accounts }: AccountTagParts,
  row: AccountTagRow,
  counts: Counts | null,
  { includeMetrics }: AccountTagQuery,
): Promise<AccountTagItem> {
  const account = await accounts.byId(row.account_id)
  const figureOf = (name: Metric) => metricValue(name, counts ?? noCounts(), ['tag'])
  return {
    account_id: row.account_id,
    parent_account_id: account?.parentId ?? '',
    account_name: account?.name ?? '',
    tag: row.tag,
    description: row.description,
    ...(row.first_seen > 0 && { first_seen: formatRfc2822(new Date(row.first_seen)) }),
    ...(row.last_seen > 0 && { last_seen: formatRfc2822(new Date(row.last_seen)) }),
    metrics: includeMetrics ? Object.fromEntries(NAMED.map((name) => [name, figureOf(name)])) : {},
  }
}
