/** The SQL of the addresses that an account may be called from. */
import { BadRequest } from '../../base/process/errors.ts'
import { lockedAccount } from '../../platform/store/account-rows.ts'
import type { CallerAddressRow } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'

/** An address or CIDR network in canonical form. */
export interface CallerAddress {
  address: string
  description: string
}

const CALLER_ADDRESSES_MAX = 200

export type CallerAddressStore = ReturnType<typeof createCallerAddressStore>

const notFound = () => new BadRequest('IP not found')

export function createCallerAddressStore(store: Store) {
  const rowsOf = (db: Pick<Store['db'], 'selectFrom'>, accountId: string) =>
    db
      .selectFrom('caller_addresses')
      .select(['address', 'description'])
      .where('account_id', '=', accountId)
      .orderBy('created_at')
      .orderBy('address')
      .execute()

  return {
    /** Oldest first. */
    list: (accountId: string): Promise<CallerAddress[]> => rowsOf(store.db, accountId),
    /** @throws BadRequest for an address that is there, or one too many */
    add: (accountId: string, { address, description }: CallerAddress, now: number): Promise<void> =>
      lockedAccount(store, accountId, async (tx) => {
        const known = await rowsOf(tx, accountId)
        if (known.some((entry) => entry.address === address))
          throw new BadRequest('IP address already exists')
        if (known.length >= CALLER_ADDRESSES_MAX)
          throw new BadRequest(`The list may have ${CALLER_ADDRESSES_MAX} addresses at most`)
        const row: CallerAddressRow = { account_id: accountId, address, description, created_at: now }
        await tx.insertInto('caller_addresses').values(row).execute()
      }),
    /** @throws BadRequest for an address that is not there */
    async describe(accountId: string, { address, description }: CallerAddress): Promise<void> {
      const changed = await store.db
        .updateTable('caller_addresses')
        .set({ description })
        .where('account_id', '=', accountId)
        .where('address', '=', address)
        .returning('address')
        .executeTakeFirst()
      if (changed === undefined) throw notFound()
    },
    /** @throws BadRequest for an address that is not there */
    async remove(accountId: string, address: string): Promise<void> {
      const removed = await store.db
        .deleteFrom('caller_addresses')
        .where('account_id', '=', accountId)
        .where('address', '=', address)
        .returning('address')
        .executeTakeFirst()
      if (removed === undefined) throw notFound()
    },
  }
}
