/** What a closed subaccount had: its pools go, and its addresses belong to nobody. */
import type { KnownAddresses } from '../known-addresses.ts'
import { removeWarmups } from '../warmup/removal.ts'

export function accountRemoval(known: KnownAddresses): (accountId: string) => Promise<void> {
  return (accountId) =>
    known.change(async (tx) => {
      const pools = tx.selectFrom('ip_pools').select('id').where('account_id', '=', accountId)
      await tx.deleteFrom('ip_pool_members').where('pool_id', 'in', pools).execute()
      await tx.deleteFrom('ip_pool_delegations').where('pool_id', 'in', pools).execute()
      await tx.deleteFrom('ip_pool_delegations').where('subaccount_id', '=', accountId).execute()
      await tx.deleteFrom('ip_pools').where('account_id', '=', accountId).execute()
      await removeWarmups(tx, { accountId })
      await tx.deleteFrom('ip_tasks').where('account_id', '=', accountId).execute()
      await tx.deleteFrom('shared_ip_exclusions').where('account_id', '=', accountId).execute()
      await tx
        .updateTable('ips')
        .set({ account_id: null, warms_when_assigned: 0 })
        .where('account_id', '=', accountId)
        .execute()
    })
}
