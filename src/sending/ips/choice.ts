/**
 * Which addresses mail may leave from, and which of them one delivery does (ips-pools.md section 1). Pure.
 *
 * 1. The set: the requested address; the requested pool; the domain's dynamic pool; its linked pool; its own addresses;
 *    the dedicated addresses of the account; the shared ones. The first that exists is the set, even if nothing in it can
 *    be used now: mail never leaves from an address that its sender did not choose.
 * 2. Addresses that are switched off, of another machine, or of a family that the destination does not have are left out;
 *    so are IPv6 ones without a confirmed name, and those of the family that the provider's `prefer` does not name, if others
 *    are left.
 * 3. A delivery has a share of the set. An address on warm-up whose allowance is used, one that the provider blocks, and one on
 *    a blocklist that the provider uses give their shares to the others. The shares of the others stay where they are. Where
 *    no other is open, one on a blocklist is used.
 */
import type { Reach } from '../../mail/deliver/connect/routing.ts'
import { type Address, type AddressBook, dedicatedTo, mayUse, poolFor, sharedFor } from './address-book.ts'

/** What a domain says of its addresses; null: nothing. */
export interface SenderSettings {
  accountId: string
  sendingIps: readonly string[] | null
  sendingPoolId: string | null
  dynamicPoolId: string | null
}

/** What a message requested; both null: nothing. */
export interface Requested {
  ip: string | null
  pool: string | null
}

/** The set of a domain without a request, in the order of the text. */
export function ownSet(book: AddressBook, sender: SenderSettings): readonly Address[] {
  const { accountId, sendingIps, sendingPoolId, dynamicPoolId } = sender
  // A subaccount's domain sends from a pool of its parent.
  const dynamic = dynamicPoolId === null ? undefined : book.dynamicPools.get(dynamicPoolId)
  if (dynamic !== undefined && dynamic.addresses.length > 0) return dynamic.addresses
  const linked = sendingPoolId === null ? null : poolFor(book, accountId, sendingPoolId)
  if (linked !== null) return linked
  if (sendingIps !== null) {
    const own = new Set(sendingIps)
    return book.addresses.filter(({ ip }) => own.has(ip) && mayUse(book, accountId, ip))
  }
  const dedicated = dedicatedTo(book, accountId)
  return dedicated.length > 0 ? dedicated : sharedFor(book, accountId)
}

/** A request for what is gone, or another account's by now, does not count. */
export function setFor(book: AddressBook, sender: SenderSettings, requested: Requested): readonly Address[] {
  const { accountId } = sender
  if (requested.ip !== null && mayUse(book, accountId, requested.ip))
    return [book.byIp.get(requested.ip) as Address]
  const pool = requested.pool === null ? null : poolFor(book, accountId, requested.pool)
  return pool ?? ownSet(book, sender)
}

export const isUsable = ({ isEnabled, isLocal }: Address): boolean => isEnabled && isLocal

/** What the choice depends on besides the set. */
interface Conditions {
  /** Whether the destination can be reached from an address. */
  reaches(ip: string): Reach
  /** Whether an address on warm-up may send the destination more in this hour. */
  hasRoom(ip: string): boolean
  /** Whether the provider does not block an address, and its proxy works. */
  isOpen(ip: string): boolean
  /** Whether this delivery may try if an address is open again. */
  mayProbe(ip: string): boolean
  /** Whether an address that is not open is used rather than none: one on a blocklist. */
  isLastResort(ip: string): boolean
}

/**
 * The address for a share of the set; null: none can be used. `spread`: a number that differs between deliveries, for what
 * others take over. A blocked one, or one without room, is the choice only where no other is better. `mayChoose`: default,
 * those of this process.
 */
export function choose(
  set: readonly Address[],
  share: number,
  spread: number,
  { reaches, hasRoom, isOpen, mayProbe, isLastResort }: Conditions,
  mayChoose: (address: Address) => boolean = isUsable,
): Address | null {
  const usable = bestOf(set, reaches, mayChoose)
  const first = usable[share % usable.length]
  if (first === undefined) return null
  const isFirstOpen = isOpen(first.ip) || mayProbe(first.ip)
  if (isFirstOpen && (!first.isWarming || hasRoom(first.ip))) return first
  const open = usable.filter(({ ip }) => isOpen(ip))
  const warm = open.filter(({ isWarming }) => !isWarming)
  const others = warm.length > 0 ? warm : open.filter(({ ip }) => hasRoom(ip))
  const other = others[spread % others.length]
  if (other !== undefined || isFirstOpen) return other ?? first
  const resorts = open.length > 0 ? open : usable.filter(({ ip }) => isLastResort(ip))
  return resorts[spread % resorts.length] ?? first
}

/** Addresses that reach the destination: confirmed ones before doubtful ones, then those of the preferred family; only the best kind. */
function bestOf(
  set: readonly Address[],
  reaches: Conditions['reaches'],
  mayChoose: (address: Address) => boolean,
): Address[] {
  let best = -1
  let found: Address[] = []
  for (const address of set) {
    const reach = mayChoose(address) && reaches(address.ip)
    if (!reach) continue
    const rank = (address.isDoubtful ? 0 : 2) + (reach === 'preferred' ? 1 : 0)
    if (rank > best) [best, found] = [rank, []]
    if (rank === best) found.push(address)
  }
  return found
}
