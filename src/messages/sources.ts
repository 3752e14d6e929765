/** Addresses that messages are sent from, as far as the configuration of this node names them. */
import { BadRequest, Forbidden } from '../base/errors.ts'
import type { SourceAddress } from '../config.ts'
import { quotable } from '../http/params.ts'
import type { SourceChooser } from './collaborators.ts'

/** What the contract calls the shared addresses wherever a pool or an address may stand (ips-pools.md section 2). */
const SHARED_POOL = 'shared'

/**
 * Without configured addresses the host's own may be asked for, and the system chooses for all other mail.
 * Addresses that are not shared are the first account's. Of pools there is one: `shared`, the shared addresses, which
 * are everybody's.
 */
export function createSources(parts: {
  configured: readonly SourceAddress[]
  hostAddresses: readonly string[]
  firstAccountId: string
}): SourceChooser {
  const { configured, firstAccountId } = parts
  const host = parts.hostAddresses.map((ip): SourceAddress => ({ ip, shared: false, helo: null }))
  const known = configured.length > 0 ? configured : host
  const poolNamed = (id: string) => (id === SHARED_POOL ? configured.filter(({ shared }) => shared) : [])
  const usableBy = (accountId: string, list: readonly SourceAddress[]) =>
    list.filter(({ shared }) => shared || accountId === firstAccountId)
  const hasPool = (id: string) => poolNamed(id).length > 0
  return {
    hasPool,
    async check(domain, { sendingIp, sendingIpPool }) {
      if (sendingIp !== null && !usableBy(domain.accountId, known).some(({ ip }) => ip === sendingIp)) {
        throw new Forbidden(`Rejected: IP ${quotable(sendingIp)} can't be used to send the message`)
      }
      if (sendingIpPool === null || hasPool(sendingIpPool)) return
      throw new BadRequest(`${quotable(sendingIpPool)} is not a valid IP pool (value of 'o:sending-ip-pool')`)
    },
    async choose(domain, { sendingIp, sendingIpPool }, deliveryId) {
      if (sendingIp !== null) return known.find(({ ip }) => ip === sendingIp) ?? null
      const pool = sendingIpPool === null ? [] : poolNamed(sendingIpPool)
      const own = pool.length > 0 ? pool : usableBy(domain.accountId, configured)
      const dedicated = own.filter(({ shared }) => !shared)
      const choice = dedicated.length > 0 ? dedicated : own
      return choice[deliveryId.charCodeAt(deliveryId.length - 2) % Math.max(choice.length, 1)] ?? null
    },
  }
}
