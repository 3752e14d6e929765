/** Ends warm-ups without a trace. */
import type { Tx } from '../../../platform/store/store.ts'

/** Removes the warm-up of one address, or of all of an account. */
export async function removeWarmups(tx: Tx, of: { ip: string } | { accountId: string }) {
  const query = tx.deleteFrom('ip_warmups').returning('ip')
  // First: processes add rows of providers only while they hold the row of the address.
  const rows = await ('ip' in of
    ? query.where('ip', '=', of.ip)
    : query.where('account_id', '=', of.accountId)
  ).execute()
  const ips = rows.map(({ ip }) => ip)
  if (ips.length > 0) await tx.deleteFrom('ip_warmup_providers').where('ip', 'in', ips).execute()
}
