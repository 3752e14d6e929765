/** What a closed subaccount had: the history of its domains, and pools of its own if it was no subaccount before. */

import { type RowParts, removeIndexedRows } from '../../platform/store/account-rows.ts'
import type { KnownAddresses } from '../ips/known-addresses.ts'

export function accountRemoval(
  parts: RowParts,
  known: KnownAddresses,
): (accountId: string, signal: AbortSignal) => Promise<void> {
  return async (accountId, signal) => {
    await known.change(async (tx) => {
      const pools = tx.selectFrom('dynamic_pools').select('id').where('account_id', '=', accountId)
      await tx.deleteFrom('dynamic_pool_members').where('pool_id', 'in', pools).execute()
      await tx.deleteFrom('dynamic_pools').where('account_id', '=', accountId).execute()
      await tx.deleteFrom('dynamic_pool_tasks').where('account_id', '=', accountId).execute()
    })
    await removeIndexedRows(parts, 'dynamic_pool_domains', ['domain_id'], 'account_id', accountId, signal)
    await removeIndexedRows(parts, 'dynamic_pool_history', ['id'], 'account_id', accountId, signal)
  }
}
