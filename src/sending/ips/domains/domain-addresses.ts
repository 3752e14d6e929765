/** Changes of the addresses of one domain (ips-pools.md section 2 rules 4 to 8). */

import { BadRequest } from '../../../base/process/errors.ts'
import type { Tx } from '../../../platform/store/store.ts'
import type { Domain } from '../../domains/domain.ts'
import type { DomainDirectory } from '../../domains/names/directory.ts'
import { type AddressBook, poolFor, SHARED, sharedFor } from '../address-book.ts'
import { ownSet } from '../choice.ts'
import type { KnownAddresses } from '../known-addresses.ts'
import {
  checkLinkable,
  isEnrolled,
  isLinked,
  leastUsedShared,
  ownAddress,
  replacementAddress,
  visibleAddress,
} from '../rules.ts'
import { type DomainAddresses, presentDomain, setDomainAddresses } from './domain-settings.ts'

interface DomainAddressParts {
  known: KnownAddresses
  domains: DomainDirectory
  /** Addresses are used by a domain or pool now; may start their warm-up. */
  assigned(tx: Tx, accountId: string, ips: readonly string[]): Promise<void>
}

/** What takes the place of a linked pool; exactly one is given. */
interface PoolReplacement {
  ip: string | undefined
  poolId: string | undefined
}

export type DomainAddressChanges = ReturnType<typeof createDomainAddresses>

export const ALL = 'all'

/** The texts of what a domain sends from. */
export const addressesOf = (book: AddressBook, domain: Domain): string[] =>
  ownSet(book, domain).map(({ ip }) => ip)

export const linkedPool = (book: AddressBook, domain: Domain): string | null => {
  const { accountId, sendingPoolId: id } = domain
  return id !== null && poolFor(book, accountId, id) !== null ? id : null
}

export function createDomainAddresses(parts: DomainAddressParts) {
  const { known, domains } = parts

  async function change(
    domain: Domain,
    settingsFor: (tx: Tx, present: Domain, book: AddressBook) => Promise<DomainAddresses | null>,
  ): Promise<void> {
    // A new warm-up changes the book.
    await known.change(async (tx) => {
      const present = await presentDomain(tx, domain)
      if (present.dynamicPoolId !== null) throw isEnrolled()
      const settings = await settingsFor(tx, present, known.book())
      if (settings === null) return
      await setDomainAddresses(tx, present, settings)
      await parts.assigned(tx, present.accountId, settings.ips ?? [])
    })
    domains.changed(domain)
  }

  return {
    assign: (domain: Domain, text: string) =>
      change(domain, async (tx, present, book) => {
        if (linkedPool(book, present) !== null) throw isLinked()
        const { accountId } = present
        const ip =
          text === SHARED ? await leastUsedShared(tx, book, accountId) : ownAddress(book, accountId, text).ip
        return withAddress(book, present, ip)
      }),
    /** An address, whose place another one may take, or `all`. */
    remove: (domain: Domain, text: string, replacement: string | undefined) =>
      change(domain, async (tx, present, book) => {
        if (linkedPool(book, present) !== null) throw isLinked()
        if (text === ALL) return { ips: [], poolId: null }
        const { ip } = visibleAddress(book, present.accountId, text)
        const ips = addressesOf(book, present)
        if (!ips.includes(ip)) return null
        const left = ips.filter((one) => one !== ip)
        const { accountId } = present
        const added =
          replacement === undefined ? [] : [await replacementAddress(tx, book, accountId, replacement)]
        const all = [...new Set([...left, ...added])]
        if (all.includes(ip)) throw new BadRequest('replacement must be another IP')
        return { ips: await completed(tx, book, accountId, all), poolId: null }
      }),
    link: (domain: Domain, poolId: string) =>
      change(domain, async (tx, { accountId }, book) => {
        await checkLinkable(tx, book, accountId, poolId)
        return { ips: null, poolId }
      }),
    unlink: (domain: Domain, { ip, poolId }: PoolReplacement) =>
      change(domain, async (tx, present, book) => {
        if ((ip === undefined) === (poolId === undefined))
          throw new BadRequest('exactly one of ip and pool_id must be provided')
        const { accountId } = present
        if (linkedPool(book, present) === null) throw new BadRequest('domain has no linked IP pool')
        if (ip !== undefined)
          return { ips: [await replacementAddress(tx, book, accountId, ip)], poolId: null }
        await checkLinkable(tx, book, accountId, poolId as string)
        return { ips: null, poolId: poolId as string }
      }),
  }
}

/** The settings of a domain with one address more; null: it has it already. */
export function withAddress(book: AddressBook, domain: Domain, ip: string): DomainAddresses | null {
  const ips = addressesOf(book, domain)
  return ips.includes(ip) ? null : { ips: [...ips, ip], poolId: null }
}

/**
 * What a domain keeps when an address is removed: never nothing, and something that is not on warm-up where a shared
 * address can be added (rule 7). @throws BadRequest for the last address of an account without shared ones
 */
export async function completed(
  tx: Tx,
  book: AddressBook,
  accountId: string,
  left: readonly string[],
): Promise<string[]> {
  if (left.some((ip) => book.byIp.get(ip)?.isWarming === false)) return [...left]
  const hasShared = sharedFor(book, accountId).some(({ isEnabled }) => isEnabled)
  if (hasShared) return [...new Set([...left, await leastUsedShared(tx, book, accountId)])]
  if (left.length === 0) throw new BadRequest('the last IP of a domain cannot be removed')
  return [...left]
}
