/**
 * The addresses that messages are sent from.
 *
 * A delivery's address is chosen in two steps. At acceptance its row gets a *source key*, which names a request of the
 * message and a share. At each attempt the address book of that time maps key and domain to an address (ips-pools.md
 * section 3 rule 10). All deliveries of one domain and key leave from one address, so the key names a lane without reading
 * the message; only what an address on warm-up or a blocked one gives away goes to others. Keys:
 *
 * - `''`: the addresses of the domain, where there are fewer than two
 * - `#2`: the third share of them
 * - `<pool id>#2`: the third share of a pool
 * - `ip:192.0.2.1`: the address that the message requested
 *
 * What follows a `|` is about relays (mail/deliver/claim/source-key.ts).
 */
import { type MaybePromise, whenKnown } from '../../base/flow/cache.ts'
import { spread } from '../../base/flow/spread.ts'
import { canonicalIp } from '../../base/net/ip.ts'
import { addressPart } from '../../mail/deliver/claim/source-key.ts'
import type { Reach } from '../../mail/deliver/connect/routing.ts'
import type { Routed } from '../../mail/deliver/contract.ts'
import { NO_SOURCE, type Source } from '../../mail/deliver/lanes/lanes.ts'
import { SYSTEM_ACCOUNT_ID } from '../../platform/store/account-rows.ts'
import type { DomainDirectory } from '../domains/names/directory.ts'
import { type Address, type AddressBook, mayUse, poolFor } from './address-book.ts'
import type { BlockStates } from './blocks/blocks.ts'
import { choose, isUsable, type Requested, type SenderSettings, setFor } from './choice.ts'
import type { WarmupAllowances } from './warmup/allowances.ts'

export type Sources = ReturnType<typeof createSources>

interface SourceParts {
  book(): AddressBook
  domains: Pick<DomainDirectory, 'byId'>
  /** Without configured addresses the system chooses, and a message may request one of these. */
  hostAddresses: readonly string[]
  isConfigured: boolean
  firstAccountId: string
  /** Whether another live process that delivers has the address. Default: none has. */
  othersHave?(ip: string): boolean
  /** Whether this host could bind the address. Default: it could. */
  isBound?(ip: string): boolean
  /** Whether the proxy of an address has failed lately. Default: of none. */
  isDown?(ip: string): boolean
  /** Addresses on warm-up. */
  allowance: Pick<WarmupAllowances, 'hasRoom' | 'diverted'>
  blocks: BlockStates
}

export function createSources(parts: SourceParts) {
  const { book, isConfigured, firstAccountId, allowance, blocks } = parts
  const host = new Set(parts.hostAddresses)
  /** Mail of the service itself is the operator's. */
  const ownerOf = (accountId: string) => (accountId === SYSTEM_ACCOUNT_ID ? firstAccountId : accountId)

  const isDown = (ip: string) => parts.isDown?.(ip) === true
  const othersHave = (ip: string) => parts.othersHave?.(ip) === true
  const isLive = ({ ip, isEnabled, isLocal }: Address) => isEnabled && (isLocal || othersHave(ip))
  /** One that no process could bind is tried here: that says what is wrong with it. */
  const isOwn = (address: Address) =>
    isUsable(address) && (parts.isBound?.(address.ip) !== false || !othersHave(address.ip))

  /** Addresses of all processes, so that each has the same choice; else of this one. `site` null: any. */
  function addressOf(
    delivery: Routed,
    sender: SenderSettings,
    reaches: (ip: string) => Reach,
    site: string | null,
  ) {
    const { source_key: whole = '', recipient_domain: recipientDomain } = delivery
    const key = addressPart(whole)
    const { requested, share } = readKey(key)
    const set = setFor(book(), sender, requested)
    const other = spread(`${recipientDomain} ${key}`)
    let refused: string | null = null
    const hasRoom = (ip: string) => {
      if (allowance.hasRoom(ip, site)) return true
      refused ??= ip
      return false
    }
    // Without a share: accepted when there was no choice, or the requested address is gone.
    const conditions = {
      reaches,
      hasRoom,
      isOpen: (ip: string) => !isDown(ip) && (site === null || blocks.stateOf(ip, site) === 'open'),
      mayProbe: (ip: string) => !isDown(ip) && site !== null && blocks.mayProbe(ip, site),
      isLastResort: (ip: string) => !isDown(ip) && site !== null && blocks.stateOf(ip, site) === 'listed',
    }
    const pick = (mayChoose: (address: Address) => boolean) =>
      choose(set, share ?? other, other, conditions, mayChoose)
    const best = pick(isLive)
    const own = best === null || isOwn(best) ? best : pick(isOwn)
    return { best, own, refused }
  }

  function chosen(delivery: Routed, sender: SenderSettings, reaches: (ip: string) => Reach, site: string) {
    const { own, refused } = addressOf(delivery, sender, reaches, site)
    if (refused !== null) allowance.diverted(refused, site)
    return own === null ? NO_SOURCE : { ip: own.ip, helo: own.helo }
  }

  function withSender<T>(delivery: Routed, use: (sender: SenderSettings) => MaybePromise<T>) {
    const accountId = ownerOf(delivery.account_id)
    return whenKnown(parts.domains.byId(delivery.domain_id), (domain) => {
      const { sendingIps = null, sendingPoolId = null, dynamicPoolId = null } = domain ?? {}
      return use({ accountId, sendingIps, sendingPoolId, dynamicPoolId })
    })
  }

  function hostSource({ account_id: accountId, source_key: key = '' }: Routed): Source | null {
    if (!key.startsWith(REQUESTED)) return null
    const { ip } = readKey(addressPart(key)).requested
    return ip !== null && ownerOf(accountId) === firstAccountId && host.has(ip) ? { ip, helo: null } : null
  }

  return {
    /** Whether the account may send from the address now. */
    mayUse(accountId: string, ip: string): boolean {
      if (!isConfigured) return ownerOf(accountId) === firstAccountId && host.has(ip)
      const address = book().byIp.get(canonicalIp(ip) ?? '')
      return address !== undefined && isLive(address) && mayUse(book(), ownerOf(accountId), address.ip)
    },
    /** Whether the account may send from a pool of that id, and it has an address. */
    hasPool: (accountId: string, id: string) => (poolFor(book(), ownerOf(accountId), id) ?? []).length > 0,
    /** Gives the deliveries of a message their source keys, by the id of each. */
    keysFor(sender: SenderSettings, requested: Requested): (deliveryId: string) => string {
      if (requested.ip !== null) {
        const key = `${REQUESTED}${canonicalIp(requested.ip) ?? requested.ip}`
        return () => key
      }
      // No process has an address to choose.
      if (!isConfigured && parts.othersHave === undefined && requested.pool === null) return () => ''
      const own = { ...sender, accountId: ownerOf(sender.accountId) }
      const { length } = setFor(book(), own, requested).filter(isLive)
      if (requested.pool === null && length < 2) return () => ''
      const pool = requested.pool ?? ''
      return (deliveryId) => `${pool}#${length < 2 ? 0 : spread(deliveryId) % length}`
    },
    /**
     * What a delivery leaves from now; null leaves it to the system. `reaches`: whether the destination can be reached from
     * an address. `site`: of the destination, as in the names of lanes.
     */
    sourceOf(
      delivery: Routed,
      reaches: (ip: string) => Reach,
      site: string,
    ): MaybePromise<Source | null | typeof NO_SOURCE> {
      if (!isConfigured) return hostSource(delivery)
      return withSender(delivery, (sender) => chosen(delivery, sender, reaches, site))
    },
    /**
     * Whether another process has the address that a delivery leaves from, so that one should send it. Destinations that
     * cannot be reached from it, or block it, are not considered.
     */
    isElsewhere(delivery: Routed): MaybePromise<boolean> {
      if (!isConfigured || parts.othersHave === undefined) return false
      return withSender(delivery, (sender) => {
        const { best } = addressOf(delivery, sender, () => true, null)
        return best !== null && !isOwn(best)
      })
    },
    /** The pool that an address is in, as events name it. */
    poolOf(ip: string): { id: string; name: string } | null {
      const { byIp, pools, dynamicPools } = book()
      const poolId = byIp.get(ip)?.poolId ?? ''
      const pool = pools.get(poolId) ?? dynamicPools.get(poolId)
      return pool ? { id: pool.id, name: pool.name } : null
    },
  }
}

const REQUESTED = 'ip:'
const SHARE = /^([^#]*)#(\d+)$/

/** Id of the pool that a message with this source key requested; null: none. */
export const requestedPool = (key: string): string | null => readKey(addressPart(key)).requested.pool

function readKey(key: string): { requested: Requested; share: number | null } {
  if (key.startsWith(REQUESTED))
    return { requested: { ip: key.slice(REQUESTED.length), pool: null }, share: null }
  const [, pool, share] = SHARE.exec(key) ?? []
  return { requested: { ip: null, pool: pool || null }, share: share === undefined ? null : Number(share) }
}
