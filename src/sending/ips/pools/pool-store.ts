/** Rows of pools of dedicated addresses. */

import type { IpPoolRow } from '../../../platform/store/schema.ts'
import type { Db } from '../../../platform/store/store.ts'

/** A pool as its owner or an heir sees it. */
export interface PoolRow extends IpPoolRow {
  /** By the time they were added. */
  members: { ip: string; linkedAt: number }[]
  isLinked: boolean
  isInherited: boolean
}

/** Own pools by age, then the inherited one. There are at most POOLS_MAX of them. */
export async function poolsOf(
  db: Db,
  accountId: string,
  inheritedId: string | undefined,
): Promise<PoolRow[]> {
  const own = await db
    .selectFrom('ip_pools')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('created_at')
    .orderBy('id')
    .execute()
  const inherited =
    inheritedId === undefined
      ? []
      : await db.selectFrom('ip_pools').selectAll().where('id', '=', inheritedId).execute()
  return withMembers(db, accountId, [...own, ...inherited])
}

/** Null: the account has no such pool. */
export async function poolOf(
  db: Db,
  accountId: string,
  id: string,
  inheritedId: string | undefined,
): Promise<PoolRow | null> {
  const row = await db.selectFrom('ip_pools').selectAll().where('id', '=', id).executeTakeFirst()
  if (row === undefined || (row.account_id !== accountId && inheritedId !== id)) return null
  return (await withMembers(db, accountId, [row]))[0] ?? null
}

async function withMembers(db: Db, accountId: string, rows: readonly IpPoolRow[]): Promise<PoolRow[]> {
  if (rows.length === 0) return []
  const ids = rows.map(({ id }) => id)
  const members = await db
    .selectFrom('ip_pool_members')
    .selectAll()
    .where('pool_id', 'in', ids)
    .orderBy('linked_at')
    .orderBy('ip')
    .execute()
  const byPool = Map.groupBy(members, (member) => member.pool_id)
  return Promise.all(
    rows.map(async (row) => {
      const isInherited = row.account_id !== accountId
      return {
        ...row,
        members: (byPool.get(row.id) ?? []).map(({ ip, linked_at }) => ({ ip, linkedAt: Number(linked_at) })),
        isLinked: (await linkedDomains(db, row.id, isInherited ? accountId : null, '', 1)).length > 0,
        isInherited,
      }
    }),
  )
}

/** Domains linked to a pool by id, after `after`. `accountId` null: of all accounts that use it. */
export function linkedDomains(
  db: Db,
  poolId: string,
  accountId: string | null,
  after: string,
  limit: number,
): Promise<{ id: string; name: string }[]> {
  let query = db
    .selectFrom('domains')
    .select(['id', 'name'])
    .where('sending_pool_id', '=', poolId)
    .where('id', '>', after)
  if (accountId !== null) query = query.where('account_id', '=', accountId)
  return query.orderBy('id').limit(limit).execute()
}
