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

export interface CallerAddressStore {
  /** Oldest first. */
  list(accountId: string): Promise<CallerAddress[]>
  /** @throws BadRequest for an address that is there, or one too many */
  add(accountId: string, entry: CallerAddress, now: number): Promise<void>
  /** @throws BadRequest for an address that is not there */
  describe(accountId: string, entry: CallerAddress): Promise<void>
  /** @throws BadRequest for an address that is not there */
  remove(accountId: string, address: string): Promise<void>
}

const notFound = () => new BadRequest('IP not found')

export function createCallerAddressStore(store: Store): CallerAddressStore {
  const rowsOf = (db: Pick<Store['db'], 'selectFrom'>, accountId: string) =>
    db
      .selectFrom('caller_addresses')
      .select(['address', 'description'])
      .where('account_id', '=', accountId)
      .orderBy('created_at')
      .orderBy('address')
      .execute()

  return {
    list: (accountId) => rowsOf(store.db, accountId),
    add: (accountId, { address, description }, now) =>
      lockedAccount(store, accountId, async (tx) => {
        const known = await rowsOf(tx, accountId)
        if (known.some((entry) => entry.address === address))
          throw new BadRequest('IP address already exists')
        if (known.length >= CALLER_ADDRESSES_MAX)
          throw new BadRequest(`The list may have ${CALLER_ADDRESSES_MAX} addresses at most`)
        const row: CallerAddressRow = { account_id: accountId, address, description, created_at: now }
        await tx.insertInto('caller_addresses').values(row).execute()
      }),
    async describe(accountId, { address, description }) {
      const changed = await store.db
        .updateTable('caller_addresses')
        .set({ description })
        .where('account_id', '=', accountId)
        .where('address', '=', address)
        .returning('address')
        .executeTakeFirst()
      if (changed === undefined) throw notFound()
    },
    async remove(accountId, address) {
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
