/**
 * The addresses of this node that messages are sent from.
 *
 * A delivery's address is chosen in two steps. At acceptance its row gets a *source key*, which names a set of addresses
 * and a share of it. At each attempt the configuration of that time maps the key to an address (ips-pools.md section 3
 * rule 10). All deliveries of one key leave from one address, so a key names a lane without reading the message. Keys:
 *
 * - `''`: the account's own addresses, where there are fewer than two
 * - `#2`: the third share of the account's own
 * - `shared#2`: the third share of a pool
 * - `ip:192.0.2.1`: the address that the message requested
 */
import { BadRequest, Forbidden } from '../../base/errors.ts'
import { quotable } from '../../base/values.ts'
import type { SourceAddress } from '../../config.ts'
import type { Routed } from '../../delivery/contract.ts'
import type { Source } from '../../delivery/lanes.ts'
import type { SourceChooser } from './collaborators.ts'

/** The contract's name for the shared addresses, wherever it takes a pool or an address (ips-pools.md section 2). */
const SHARED_POOL = 'shared'

export interface Sources extends SourceChooser {
  /**
   * The address that deliveries of this account and source key leave from; null leaves it to the system. `reaches`:
   * whether the destination can be reached from an address; others are used only where none is left.
   */
  sourceOf(
    delivery: Pick<Routed, 'account_id' | 'recipient_domain' | 'source_key'>,
    reaches: (ip: string) => boolean,
  ): Source | null
}

/**
 * Without configured addresses a message may request one of the host's, and the system chooses for all other mail.
 * Addresses that are not shared are the operator's: the first account's. There is one pool: `shared`, the shared addresses, which
 * all accounts may use.
 */
export function createSources(parts: {
  configured: readonly SourceAddress[]
  hostAddresses: readonly string[]
  firstAccountId: string
}): Sources {
  const { configured, firstAccountId } = parts
  const host = parts.hostAddresses.map((ip): SourceAddress => ({ ip, shared: false, helo: null }))
  const known = configured.length > 0 ? configured : host
  const poolNamed = (id: string) => (id === SHARED_POOL ? configured.filter(({ shared }) => shared) : [])
  const usableBy = (accountId: string, list: readonly SourceAddress[]) =>
    list.filter(({ shared }) => shared || accountId === firstAccountId)
  const hasPool = (id: string) => poolNamed(id).length > 0
  /** Without the pool, the account's own addresses: dedicated ones if it has any, else shared ones. */
  const setOf = (accountId: string, poolId: string | null) => {
    const pool = poolId === null ? [] : poolNamed(poolId)
    if (pool.length > 0) return pool
    const own = usableBy(accountId, configured)
    const dedicated = own.filter(({ shared }) => !shared)
    return dedicated.length > 0 ? dedicated : own
  }
  return {
    hasPool,
    mayUse: (accountId, requested) => usableBy(accountId, known).some(({ ip }) => ip === requested),
    keyOf(accountId, { sendingIp, sendingIpPool }, deliveryId) {
      if (sendingIp !== null) return `${REQUESTED}${sendingIp}`
      const { length } = setOf(accountId, sendingIpPool)
      if (sendingIpPool === null && length < 2) return ''
      return `${sendingIpPool ?? ''}#${length < 2 ? 0 : spread(deliveryId) % length}`
    },
    sourceOf({ account_id: accountId, recipient_domain: recipientDomain, source_key: key = '' }, reaches) {
      const requested = key.startsWith(REQUESTED) ? key.slice(REQUESTED.length) : null
      const found = requested === null ? null : usableBy(accountId, known).find(({ ip }) => ip === requested)
      if (found) return found
      const [, pool, share] = SHARE.exec(key) ?? []
      const set = setOf(accountId, pool || null)
      if (set.length < 2) return set[0] ?? null
      const reaching = set.filter(({ ip }) => reaches(ip))
      const choice = reaching.length > 0 ? reaching : set
      // Without a share: accepted when there was no choice, or the requested address is gone.
      return choice[(share ? Number(share) : spread(recipientDomain)) % choice.length] ?? null
    },
  }
}

export const sendingIpNotAllowed = (ip: string) =>
  new Forbidden(`Rejected: IP ${quotable(ip)} can't be used to send the message`)

export const unknownPool = (id: string) =>
  new BadRequest(`${quotable(id)} is not a valid IP pool (value of 'o:sending-ip-pool')`)

const REQUESTED = 'ip:'
const SHARE = /^([^#]*)#(\d+)$/

/** Evenly distributed (FNV-1a), and the same for the same text: a retry leaves from the same address. */
function spread(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return hash >>> 0
}
