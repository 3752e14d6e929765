/** Dedicated addresses that no account has, and how accounts get one (ips-pools.md section 2 rule 10). */

import { BadRequest } from '../../base/process/errors.ts'
import type { Tx } from '../../platform/store/store.ts'
import type { KnownAddresses } from './known-addresses.ts'

export type AddressRequests = ReturnType<typeof createAddressRequests>

interface RequestParts {
  known: KnownAddresses
  /** What is given is warmed up from its first use. */
  warms: boolean
  /** Addresses are used now; may start their warm-up. */
  assigned(tx: Tx, accountId: string, ips: readonly string[]): Promise<void>
}

export function createAddressRequests({ known, warms, assigned }: RequestParts) {
  const spare = () =>
    known
      .book()
      .addresses.filter(
        ({ isDedicated, accountId, isEnabled }) => isDedicated && accountId === null && isEnabled,
      )
  return {
    /** How many there are. */
    spare: (): number => spare().length,
    /** Gives one to the account. @throws BadRequest when there is none */
    take: (accountId: string): Promise<void> =>
      known.change(async (tx) => {
        const [first] = spare()
        if (first === undefined) throw new BadRequest('no dedicated IPs available')
        await tx
          .updateTable('ips')
          .set({ account_id: accountId, warms_when_assigned: warms ? 1 : 0 })
          .where('ip', '=', first.ip)
          .execute()
        // Domains without addresses of their own use it from now on.
        const user = await tx
          .selectFrom('domains')
          .select('id')
          .where('account_id', '=', accountId)
          .where('sending_pool_id', 'is', null)
          .where('sending_ips_json', 'is', null)
          .where('dynamic_pool_id', 'is', null)
          .limit(1)
          .executeTakeFirst()
        if (user !== undefined) await assigned(tx, accountId, [first.ip])
      }),
  }
}
