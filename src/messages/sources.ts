/**
 * Addresses that messages are sent from, as far as the configuration of this node names them.
 *
 * What a delivery leaves from is settled in two steps. Its row gets a *source key* at acceptance, which names a set of
 * addresses and a share of it; which address that is, the configuration says anew at each attempt (ips-pools.md
 * section 3 rule 10). All deliveries of one key leave from one address, so a key names a lane without a look at the
 * message. Keys:
 *
 * - `''`: the account's own addresses, where there was none or one to choose from
 * - `#2`: the third share of the account's own
 * - `shared#2`: the third share of a pool
 * - `ip:192.0.2.1`: the address that the message asked for
 */
import { BadRequest, Forbidden } from '../base/errors.ts'
import type { SourceAddress } from '../config.ts'
import type { Routed } from '../delivery/contract.ts'
import type { Source } from '../delivery/lanes.ts'
import { quotable } from '../http/params.ts'
import type { SourceChooser } from './collaborators.ts'

/** What the contract calls the shared addresses wherever a pool or an address may stand (ips-pools.md section 2). */
const SHARED_POOL = 'shared'

export interface Sources extends SourceChooser {
  /**
   * The address that deliveries of this account and source key leave from; null leaves it to the system. `reaches`:
   * whether the destination can be reached from an address; those that cannot are used only where nothing else is left.
   */
  sourceOf(
    delivery: Pick<Routed, 'account_id' | 'recipient_domain' | 'source_key'>,
    reaches: (ip: string) => boolean,
  ): Source | null
}

/**
 * Without configured addresses the host's own may be asked for, and the system chooses for all other mail.
 * Addresses that are not shared are the first account's. Of pools there is one: `shared`, the shared addresses, which
 * are everybody's.
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
  /** A pool that is gone falls back to the account's own: dedicated addresses if it has any, else shared ones. */
  const setOf = (accountId: string, poolId: string | null) => {
    const pool = poolId === null ? [] : poolNamed(poolId)
    if (pool.length > 0) return pool
    const own = usableBy(accountId, configured)
    const dedicated = own.filter(({ shared }) => !shared)
    return dedicated.length > 0 ? dedicated : own
  }
  return {
    hasPool,
    check(domain, { sendingIp, sendingIpPool }) {
      if (sendingIp !== null && !usableBy(domain.accountId, known).some(({ ip }) => ip === sendingIp)) {
        throw new Forbidden(`Rejected: IP ${quotable(sendingIp)} can't be used to send the message`)
      }
      if (sendingIpPool === null || hasPool(sendingIpPool)) return
      throw new BadRequest(`${quotable(sendingIpPool)} is not a valid IP pool (value of 'o:sending-ip-pool')`)
    },
    keyOf(accountId, { sendingIp, sendingIpPool }, deliveryId) {
      if (sendingIp !== null) return `${ASKED}${sendingIp}`
      const { length } = setOf(accountId, sendingIpPool)
      if (sendingIpPool === null && length < 2) return ''
      return `${sendingIpPool ?? ''}#${length < 2 ? 0 : spread(deliveryId) % length}`
    },
    sourceOf({ account_id: accountId, recipient_domain: recipientDomain, source_key: key = '' }, reaches) {
      const asked = key.startsWith(ASKED) ? key.slice(ASKED.length) : null
      const found = asked === null ? null : usableBy(accountId, known).find(({ ip }) => ip === asked)
      if (found) return found
      const [, pool, share] = SHARE.exec(key) ?? []
      const set = setOf(accountId, pool || null)
      if (set.length < 2) return set[0] ?? null
      const reaching = set.filter(({ ip }) => reaches(ip))
      const choice = reaching.length > 0 ? reaching : set
      // Without a share: accepted when there was no choice, or what was asked for is gone.
      return choice[(share ? Number(share) : spread(recipientDomain)) % choice.length] ?? null
    },
  }
}

const ASKED = 'ip:'
const SHARE = /^([^#]*)#(\d+)$/

/** An even number for any text (FNV-1a): the same for the same text, so that a retry leaves as before. */
function spread(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return hash >>> 0
}
