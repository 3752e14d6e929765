/** How often a client without a login may call, by its network: in memory, so a restart forgets it. */
import { networkOf } from '../../../base/net/ip.ts'
import { TooManyRequests } from '../../../base/process/errors.ts'
import type { Clock } from '../../../base/time/clock.ts'
import { MINUTE_MS, SECOND_MS } from '../../../base/time/durations.ts'

export interface ClientLimit {
  /** Counts a call. @throws TooManyRequests over the limit */
  take(address: string): void
}

/** Networks that are remembered, some 200 bytes each; beyond it the one whose minute began longest ago is forgotten. */
const NETWORKS_MAX = 5_000

export function createClientLimit(clock: Clock, perMinute: number): ClientLimit {
  const minutes = new Map<string, { endsAt: number; calls: number }>()
  return {
    take(address) {
      const network = networkOf(address)
      const now = clock.monotonic()
      const known = minutes.get(network)
      if (known && known.endsAt > now) {
        if (known.calls >= perMinute) throw new TooManyRequests((known.endsAt - now) / SECOND_MS)
        known.calls++
        return
      }
      minutes.delete(network)
      const [oldest] = minutes.keys()
      if (minutes.size >= NETWORKS_MAX && oldest !== undefined) minutes.delete(oldest)
      minutes.set(network, { endsAt: now + MINUTE_MS, calls: 1 })
    },
  }
}
