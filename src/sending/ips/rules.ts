/** What may be assigned, with the texts of ips-pools.md. */

import { canonicalIp } from '../../base/net/ip.ts'
import { BadRequest, Forbidden, NotFound } from '../../base/process/errors.ts'
import type { Tx } from '../../platform/store/store.ts'
import { type Address, type AddressBook, mayUse, poolFor, SHARED, sharedFor } from './address-book.ts'

export const ipNotFound = () => new NotFound('ip not found')
export const poolNotFound = () => new NotFound('pool not found')
export const notOwned = () => new BadRequest('ip must be dedicated and belong to the account')
export const notEligible = () => new BadRequest('account is not eligible for shared IPs')
export const isLinked = () => new BadRequest('domain has a linked IP pool')
/** Its addresses are those of its band, until it leaves the dynamic pools. */
export const isEnrolled = () => new BadRequest('domain is enrolled in dynamic IP pools')
export const inherited = () => new Forbidden(undefined, { why: 'the pool belongs to the parent account' })

/** Mail of a band must not have to wait for the allowances of warm-ups. */
export const noWarmAddress = (band: string) =>
  new BadRequest(`${band} must have at least one IP that is not on warmup`)

/** An address that the account may send from. @throws NotFound, also for that of another account */
export function visibleAddress(book: AddressBook, accountId: string, text: string): Address {
  const address = book.byIp.get(canonicalIp(text) ?? '')
  if (address === undefined || !mayUse(book, accountId, address.ip)) throw ipNotFound()
  return address
}

/** @throws NotFound; BadRequest for one that is shared or inherited */
export function ownAddress(book: AddressBook, accountId: string, text: string): Address {
  const address = visibleAddress(book, accountId, text)
  if (!address.isDedicated || address.accountId !== accountId) throw notOwned()
  return address
}

/** @throws as `ownAddress`; BadRequest for one in a pool */
export function addressInNoPool(book: AddressBook, accountId: string, text: string): Address {
  const address = ownAddress(book, accountId, text)
  if (address.poolId !== null) throw new BadRequest('ip is already in an IP pool')
  return address
}

const POOL_ID = /^[0-9a-f]{24}$/

/** Checks that domains of an account can be linked to a pool. @throws NotFound; BadRequest for one without an address */
export async function checkLinkable(tx: Tx, book: AddressBook, accountId: string, id: string): Promise<void> {
  if (id !== SHARED && poolFor(book, accountId, id) !== null) return
  const inherited = book.inherited.get(accountId) === id
  if (!POOL_ID.test(id)) throw poolNotFound()
  const row = await tx.selectFrom('ip_pools').select('account_id').where('id', '=', id).executeTakeFirst()
  if (row === undefined || (row.account_id !== accountId && !inherited)) throw poolNotFound()
  throw new BadRequest('pool must have at least one IP')
}

/** The shared address with the fewest domains of its own. @throws BadRequest when the account has none */
export async function leastUsedShared(tx: Tx, book: AddressBook, accountId: string) {
  const ips = sharedFor(book, accountId).flatMap(({ isEnabled, ip }) => (isEnabled ? [ip] : []))
  if (ips.length === 0) throw notEligible()
  const rows = await tx
    .selectFrom('domain_ips')
    .select(['ip', (eb) => eb.fn.countAll<number>().as('count')])
    .where('ip', 'in', ips)
    .groupBy('ip')
    .execute()
  const counts = new Map(rows.map(({ ip, count }) => [ip, Number(count)]))
  return ips.reduce((best, ip) => ((counts.get(ip) ?? 0) < (counts.get(best) ?? 0) ? ip : best))
}

/** What takes the place of a pool or address: `shared`, or a dedicated one in no pool. @throws as these */
export async function replacementAddress(tx: Tx, book: AddressBook, accountId: string, text: string) {
  if (text === SHARED) return leastUsedShared(tx, book, accountId)
  return addressInNoPool(book, accountId, text).ip
}
