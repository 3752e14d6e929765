/** What the address book says of an account's dynamic pools, and the texts of dynamic-pools.md. */

import { BadRequest, parentsOnly } from '../../base/process/errors.ts'
import type { AccountDirectory } from '../../people/accounts/account-directory.ts'
import type { AddressBook, Pool } from '../ips/address-book.ts'
import { BANDS, type Band } from './bands.ts'

const notConfigured = () => new BadRequest('dynamic IP pools are not configured')
export const notEnrolled = () => new BadRequest('domain is not enrolled in dynamic IP pools')
export const alreadyEnrolled = () => new BadRequest('domain is already enrolled in dynamic IP pools')

/** The pools of an account; all three or none. @throws BadRequest when it has none */
export function poolsOf(book: AddressBook, accountId: string): ReadonlyMap<Band, Pool> {
  const pools = presentPools(book, accountId)
  if (pools.size < BANDS.length) throw notConfigured()
  return pools
}

/** The same, or an empty map. */
export function presentPools(book: AddressBook, accountId: string): ReadonlyMap<Band, Pool> {
  const own = [...book.dynamicPools.values()].filter((pool) => pool.accountId === accountId)
  return new Map(own.map((pool) => [pool.name as Band, pool]))
}

/** The account whose pools the domains of an account are enrolled in: itself, or its parent. */
export async function ownerOf(accounts: AccountDirectory, accountId: string): Promise<string> {
  return (await accounts.byId(accountId))?.parentId ?? accountId
}

/** @throws Forbidden for a subaccount */
export async function checkParent(accounts: AccountDirectory, accountId: string): Promise<void> {
  const account = await accounts.byId(accountId)
  if (account === null || account.parentId !== null) throw parentsOnly()
}
