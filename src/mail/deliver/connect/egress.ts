/**
 * How connections leave from a source address: bound to it, bound to the address of this machine that NAT makes it of, or through
 * a proxy. A proxy that does not work is this machine's fault, not the receiver's: for a while its addresses are not used, and
 * nothing is counted (decision 189).
 */
import { ProxyDown } from '../../../base/process/shortage.ts'
import type { Clock } from '../../../base/time/clock.ts'
import { SECOND_MS } from '../../../base/time/durations.ts'
import type { SourceAddress } from '../../../platform/config/sending.ts'
import { dialThrough } from '../../../protocols/proxy/dialling.ts'
import type { ConnectOptions, Dial } from '../../../protocols/smtp/client.ts'

/** How long mail stays away from an address whose proxy has failed, before some of it tries again. */
const DOWN_MS = 30 * SECOND_MS

type Way = Pick<ConnectOptions, 'localAddress' | 'dial'>

export type Egress = ReturnType<typeof createEgress>

export function createEgress(
  addresses: readonly Pick<SourceAddress, 'ip' | 'localIp' | 'proxy'>[],
  clock: Clock,
) {
  /** In monotonic time, by address. */
  const downUntil = new Map<string, number>()

  function throughProxy({ ip, proxy }: Pick<SourceAddress, 'ip' | 'proxy'>): Dial | undefined {
    if (proxy === undefined) return undefined
    return async (target, limits) => {
      try {
        const socket = await dialThrough(proxy, ip, target, limits)
        downUntil.delete(ip)
        return socket
      } catch (error) {
        if (error instanceof ProxyDown) downUntil.set(ip, clock.monotonic() + DOWN_MS)
        throw error
      }
    }
  }

  const ways = new Map<string, Way>()
  for (const address of addresses) {
    const dial = throughProxy(address)
    if (dial !== undefined) ways.set(address.ip, { dial })
    else if (address.localIp !== undefined) ways.set(address.ip, { localAddress: address.localIp })
  }
  const leftMs = (ip: string) => (downUntil.get(ip) ?? 0) - clock.monotonic()
  return {
    /** For connections from the address. `isHere`: to a relay on this machine, whose address would be the proxy's own machine. */
    wayFrom(ip: string, isHere: boolean): Way {
      const way = ways.get(ip)
      if (way === undefined) return { localAddress: ip }
      return way.dial !== undefined && isHere ? {} : way
    },
    /** Whether its proxy has failed lately. In memory: asked for each attempt. */
    isDown: (ip: string) => downUntil.size > 0 && leftMs(ip) > 0,
    /** When mail that waits for the address is to be looked at again, in Unix milliseconds. */
    nextTry: (ip: string): number => clock.now() + Math.max(0, leftMs(ip)),
  }
}
