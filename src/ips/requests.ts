/** Dedicated addresses that no account has, and how accounts get one (ips-pools.md section 2 rule 10). */
import { BadRequest } from '../base/errors.ts'
import type { KnownAddresses } from './known-addresses.ts'

export interface AddressRequests {
  /** How many there are. */
  spare(): number
  /** Gives one to the account. @throws BadRequest when there is none */
  take(accountId: string): Promise<void>
}

/** `warms`: what is given starts a warm-up when it is first assigned. */
export function createAddressRequests(known: KnownAddresses, warms: boolean): AddressRequests {
  const spare = () =>
    known
      .book()
      .addresses.filter(
        ({ isDedicated, accountId, isEnabled }) => isDedicated && accountId === null && isEnabled,
      )
  return {
    spare: () => spare().length,
    take: (accountId) =>
      known.change(async (tx) => {
        const [first] = spare()
        if (first === undefined) throw new BadRequest('no dedicated IPs available')
        await tx
          .updateTable('ips')
          .set({ account_id: accountId, warms_when_assigned: warms ? 1 : 0 })
          .where('ip', '=', first.ip)
          .execute()
      }),
  }
}
