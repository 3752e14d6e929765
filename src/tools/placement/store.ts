/** The rows of seed lists, tests and seeds. */
import { randomHex } from '../../base/ids.ts'
import { countOf } from '../../platform/store/count.ts'
import { withPod } from '../../platform/store/pods/pod.ts'
import type { PlacementSeedRow, PlacementTestRow, SeedListRow } from '../../platform/store/schema.ts'
import type { Statement, Store } from '../../platform/store/store.ts'

export interface Listing {
  limit: number
  offset: number
  ascending: boolean
  /** Unix milliseconds. */
  from: number
  to: number
}

interface ListFilter extends Listing {
  name: string | undefined
}

interface TestFilter extends Listing {
  sender: string | undefined
  subject: string | undefined
  /** Provider of a seed. */
  provider: string | undefined
  /** Address of a seed list. */
  targetEmail: string | undefined
}

interface Page<T> {
  rows: T[]
  total: number
}

export async function findLists(
  store: Store,
  accountId: string,
  filter: ListFilter,
): Promise<Page<SeedListRow>> {
  let query = store.db
    .selectFrom('seed_lists')
    .where('account_id', '=', accountId)
    .where('created_at', '>=', filter.from)
    .where('created_at', '<=', filter.to)
  if (filter.name !== undefined) query = query.where('name', '=', filter.name)
  const { ascending, limit, offset } = filter
  const direction = ascending ? 'asc' : 'desc'
  const page = query.selectAll().orderBy('created_at', direction).orderBy('id', direction)
  const [rows, total] = await Promise.all([page.limit(limit).offset(offset).execute(), countOf(query)])
  return { rows, total }
}

/** By its id or its address. */
export const findList = (store: Store, accountId: string, id: string): Promise<SeedListRow | undefined> =>
  store.db
    .selectFrom('seed_lists')
    .selectAll()
    .where('account_id', '=', accountId)
    .where((eb) => eb.or([eb('id', '=', id), eb('target_email', '=', id.toLowerCase())]))
    .executeTakeFirst()

/** Rolls its unit back unless the account has fewer; belongs behind `accountLockStatements`. */
export const fewerStatement = (
  what: 'lists' | 'tests' | 'open tests',
  accountId: string,
  max: number,
): Statement => ({
  sql: `SELECT 1 AS fewer WHERE (SELECT count(*) FROM ${COUNTED[what]} AND account_id = ?) < ${max}`,
  values: [accountId],
  expectRows: 1,
})
const COUNTED = {
  lists: 'seed_lists WHERE true',
  tests: 'placement_tests WHERE true',
  'open tests': "placement_tests WHERE status = 'processing'",
} as const

export async function findTests(
  store: Store,
  accountId: string,
  filter: TestFilter,
): Promise<Page<PlacementTestRow>> {
  let query = store.db
    .selectFrom('placement_tests')
    .where('account_id', '=', accountId)
    .where('created_at', '>=', filter.from)
    .where('created_at', '<=', filter.to)
  const { sender, subject, provider, targetEmail } = filter
  if (sender !== undefined) query = query.where('sender', '=', sender)
  if (subject !== undefined) query = query.where('subject', '=', subject)
  if (provider !== undefined)
    query = query.where(({ exists, selectFrom }) =>
      exists(
        selectFrom('placement_seeds')
          .select('address')
          .whereRef('placement_seeds.test_id', '=', 'placement_tests.id')
          .where('placement_seeds.provider', '=', provider.toLowerCase()),
      ),
    )
  if (targetEmail !== undefined)
    query = query.where('list_id', 'in', (of) =>
      of
        .selectFrom('seed_lists')
        .select('id')
        .where('account_id', '=', accountId)
        .where('target_email', '=', targetEmail.toLowerCase()),
    )
  const { ascending, limit, offset } = filter
  const direction = ascending ? 'asc' : 'desc'
  const page = query.selectAll().orderBy('created_at', direction).orderBy('id', direction)
  const [rows, total] = await Promise.all([page.limit(limit).offset(offset).execute(), countOf(query)])
  return { rows, total }
}

export const findTest = (
  store: Store,
  accountId: string,
  id: string,
): Promise<PlacementTestRow | undefined> =>
  store.db
    .selectFrom('placement_tests')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .executeTakeFirst()

export const newestTestOf = (store: Store, listId: string): Promise<PlacementTestRow | undefined> =>
  store.db
    .selectFrom('placement_tests')
    .selectAll()
    .where('list_id', '=', listId)
    .orderBy('created_at', 'desc')
    .limit(1)
    .executeTakeFirst()

export const sharedTest = (
  store: Store,
  shareId: string,
  now: number,
): Promise<PlacementTestRow | undefined> =>
  store.db
    .selectFrom('placement_tests')
    .selectAll()
    .where('share_id', '=', shareId)
    .where('shared', '=', 1)
    .where('share_until', '>', Math.floor(now))
    .executeTakeFirst()

/** From when a share is switched on. */
export const SHARE_MS = 30 * 86_400_000

/** Switches a share on or off. Whoever knows the link of a share that was switched off does not see the next one. */
export const sharingStatement = ({ pod }: Store, id: string, enabled: boolean, now: number): Statement => ({
  sql: `UPDATE placement_tests SET share_id = CASE WHEN ${enabled ? 'shared = 0' : '1 = 0'} THEN ? ELSE share_id END,
    shared = ?, share_until = ? WHERE id = ?`,
  values: [withPod(pod, randomHex(16)), enabled ? 1 : 0, Math.floor(now) + SHARE_MS, id],
})

/** In the order of their addresses. */
export async function seedsOf(
  store: Store,
  testIds: readonly string[],
): Promise<ReadonlyMap<string, PlacementSeedRow[]>> {
  if (testIds.length === 0) return new Map()
  const rows = await store.db
    .selectFrom('placement_seeds')
    .selectAll()
    .where('test_id', 'in', testIds)
    .orderBy('test_id')
    .orderBy('address')
    .execute()
  return Map.groupBy(rows, ({ test_id }) => test_id)
}

export const removeTestStatements = (id: string): Statement[] => [
  { sql: 'DELETE FROM placement_seeds WHERE test_id = ?', values: [id] },
  { sql: 'DELETE FROM placement_tests WHERE id = ?', values: [id] },
]

const CHUNK = 200

/** Removes tests that match, with their seeds, some at a time. Ends early when `signal` aborts. */
export async function removeTests(
  store: Store,
  condition: { sql: string; values: readonly (string | number)[] },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const rows = await store.read({
      sql: `SELECT id FROM placement_tests WHERE ${condition.sql} LIMIT ${CHUNK}`,
      values: condition.values,
    })
    if (rows.length === 0) return
    await store.commit(rows.flatMap(({ id }) => removeTestStatements(String(id))))
  }
}
