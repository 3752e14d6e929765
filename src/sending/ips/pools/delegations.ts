/** Pools that a parent lets its subaccounts use (ips-pools.md section 3 rules 7 and 8). */

import { NotFound, parentsOnly } from '../../../base/process/errors.ts'
import type { Core } from '../../../core.ts'
import { ACCOUNT_ID } from '../../../people/accounts/account-directory.ts'
import type { Tx } from '../../../platform/store/store.ts'
import type { KnownAddresses } from '../known-addresses.ts'
import { inherited, poolNotFound } from '../rules.ts'
import { type IpTasks, newReference } from '../tasks/tasks.ts'
import { poolOf } from './pool-store.ts'

interface Delegation {
  poolId: string
  subaccountId: string
}

/** All throw Forbidden for a subaccount, NotFound for a pool or subaccount that is not the caller's. */
export type Delegations = ReturnType<typeof createDelegations>

interface DelegationParts extends Pick<Core, 'store' | 'clock' | 'accounts'> {
  known: KnownAddresses
  tasks: IpTasks
}

/** As many subaccounts with a pool as one answer names. */
const LIST_MAX = 10_000

export function createDelegations(parts: DelegationParts) {
  const { store, clock, known, accounts, tasks } = parts

  async function checkParent(accountId: string): Promise<void> {
    const account = await accounts.byId(accountId)
    if (account === null || account.parentId !== null) throw parentsOnly()
  }

  async function check(tx: Tx, accountId: string, given: Delegation): Promise<void> {
    const pool = await poolOf(tx, accountId, given.poolId, undefined)
    if (pool === null) throw poolNotFound()
    if (pool.isInherited) throw inherited()
    const child = ACCOUNT_ID.test(given.subaccountId) ? await accounts.byId(given.subaccountId) : null
    if (child === null || child.parentId !== accountId || child.status === 'closed')
      throw new NotFound('subaccount not found')
  }

  /** The domains of the subaccount leave a pool that it has no more. */
  const leave = (accountId: string, { poolId, subaccountId }: Delegation): Promise<string> =>
    tasks.add(accountId, {
      ...{ kind: 'unlink', poolId, accountId: subaccountId, to: 'shared', deletesPool: false },
    } as const)

  return {
    /** Resolves a reference id. */
    async add(accountId: string, given: Delegation): Promise<string> {
      await checkParent(accountId)
      const { poolId, subaccountId } = given
      const former = await known.change(async (tx) => {
        await check(tx, accountId, given)
        const before = known.book().inherited.get(subaccountId)
        await tx.deleteFrom('ip_pool_delegations').where('subaccount_id', '=', subaccountId).execute()
        await tx
          .insertInto('ip_pool_delegations')
          .values({ subaccount_id: subaccountId, pool_id: poolId, created_at: Math.floor(clock.now()) })
          .execute()
        return before
      })
      if (former === undefined || former === poolId) return newReference(clock)
      return leave(accountId, { poolId: former, subaccountId })
    },
    async remove(accountId: string, given: Delegation): Promise<string> {
      await checkParent(accountId)
      const { poolId, subaccountId } = given
      await known.change(async (tx) => {
        await check(tx, accountId, given)
        await tx
          .deleteFrom('ip_pool_delegations')
          .where('subaccount_id', '=', subaccountId)
          .where('pool_id', '=', poolId)
          .execute()
      })
      return leave(accountId, given)
    },
    async list(accountId: string): Promise<Delegation[]> {
      await checkParent(accountId)
      const rows = await store.db
        .selectFrom('ip_pool_delegations')
        .innerJoin('ip_pools', 'ip_pools.id', 'ip_pool_delegations.pool_id')
        .select(['pool_id', 'subaccount_id'])
        .where('ip_pools.account_id', '=', accountId)
        .orderBy('pool_id')
        .orderBy('subaccount_id')
        .limit(LIST_MAX)
        .execute()
      return rows.map((row) => ({ poolId: row.pool_id, subaccountId: row.subaccount_id }))
    },
  }
}
