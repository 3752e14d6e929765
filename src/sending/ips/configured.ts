/** Takes the addresses of the configuration into the table (ips-pools.md section 1 rule 1). */

import type { SourceAddress } from '../../platform/config/sending.ts'
import type { IpRow } from '../../platform/store/schema.ts'
import type { Tx } from '../../platform/store/store.ts'
import { removeWarmups } from './warmup/removal.ts'

type Change = (run: (tx: Tx) => Promise<void>) => Promise<void>

/**
 * New addresses get a row; one whose kind has changed begins anew, out of its pool. What accounts were given since stays
 * theirs.
 */
export async function noteConfigured(
  change: Change,
  configured: readonly SourceAddress[],
  firstAccountId: string,
  nowMs: number,
): Promise<void> {
  if (configured.length === 0) return
  const now = Math.floor(nowMs)
  await change(async (tx) => {
    for (const address of configured) await noteOne(tx, address, firstAccountId, now)
  })
}

async function noteOne(tx: Tx, address: SourceAddress, firstAccountId: string, now: number) {
  const { ip } = address
  const row = await tx.selectFrom('ips').selectAll().where('ip', '=', ip).executeTakeFirst()
  if (row === undefined) {
    await tx
      .insertInto('ips')
      .values(newRow(address, firstAccountId, now))
      .execute()
    return
  }
  const isDedicated = address.shared ? 0 : 1
  const isChanged = Number(row.is_dedicated) !== isDedicated
  await tx
    .updateTable('ips')
    .set({
      seen_at: now,
      ...(isChanged && { is_dedicated: isDedicated, account_id: ownerOf(address, firstAccountId) }),
    })
    .where('ip', '=', ip)
    .execute()
  if (!isChanged) return
  await tx.deleteFrom('ip_pool_members').where('ip', '=', ip).execute()
  await tx.deleteFrom('dynamic_pool_members').where('ip', '=', ip).execute()
  await removeWarmups(tx, { ip })
}

const ownerOf = ({ shared, spare }: SourceAddress, firstAccountId: string) =>
  shared || spare ? null : firstAccountId

const newRow = (address: SourceAddress, firstAccountId: string, now: number): IpRow => ({
  ip: address.ip,
  is_dedicated: address.shared ? 0 : 1,
  account_id: ownerOf(address, firstAccountId),
  is_enabled: 1,
  warms_when_assigned: 0,
  rdns: '',
  is_bound: null,
  is_confirmed: null,
  fault: '',
  checked_at: null,
  seen_at: now,
  created_at: now,
})
