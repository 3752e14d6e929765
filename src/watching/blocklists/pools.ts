/**
 * Which addresses are left for which destinations because of what is listed, and where an address stays in use because no other is left. Pure.
 */
import type { BlocklistCheckRow, BlocklistUserRow } from '../../platform/store/schema.ts'
import { type Address, type AddressBook, dedicatedTo } from '../../sending/ips/address-book.ts'
import type { ListedAddress } from '../../sending/ips/blocks/listed.ts'
import type { Blocklist } from './lists.ts'

/** One entry for each address and destination. `rows`: those that are listed. */
export function addressesToLeave(
  rows: readonly BlocklistCheckRow[],
  lists: readonly Blocklist[],
  users: ReadonlyMap<string, readonly BlocklistUserRow[]>,
): ListedAddress[] {
  const names = new Map(lists.map(({ zone, name }) => [zone, name]))
  const left = new Map<string, ListedAddress>()
  for (const { list, subject: ip, listed_since } of rows) {
    const by = names.get(list)
    if (by === undefined) continue
    for (const { site, provider } of users.get(list) ?? []) {
      const before = left.get(`${ip} ${site}`)
      const names = before === undefined ? by : `${before.by}, ${by}`
      const since = Math.max(before?.since ?? 0, Number(listed_since))
      left.set(`${ip} ${site}`, { ip, site, provider, by: names, since })
    }
  }
  return [...left.values()]
}

/** Whether no other address of the set that an address is in takes its mail for a site, as long as it is not open there. */
export function isLastOfSet(book: AddressBook, ip: string, isOpen: (other: string) => boolean): boolean {
  const address = book.byIp.get(ip)
  if (address === undefined) return true
  const isV6 = ip.includes(':')
  return !setOf(book, address).some(
    (other) => other.ip !== ip && other.isEnabled && other.ip.includes(':') === isV6 && isOpen(other.ip),
  )
}

/** The set that domains without addresses of their own send from. */
function setOf(book: AddressBook, { poolId, isDedicated, accountId }: Address): readonly Address[] {
  if (poolId !== null) return (book.pools.get(poolId) ?? book.dynamicPools.get(poolId))?.addresses ?? []
  return isDedicated && accountId !== null ? dedicatedTo(book, accountId) : book.shared
}
