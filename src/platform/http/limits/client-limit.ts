/**
 * How often a client without a login may call, by its address and the networks around it: in memory, so a restart forgets it.
 * A call that is refused is not remembered, so that one network cannot push others out.
 */
import { networksOf } from '../../../base/net/ip.ts'
import { TooManyRequests } from '../../../base/process/errors.ts'
import type { Clock } from '../../../base/time/clock.ts'
import { MINUTE_MS, SECOND_MS } from '../../../base/time/durations.ts'

export type ClientLimit = ReturnType<typeof createClientLimit>

interface Minute {
  endsAt: number
  calls: number
}

/** What the networks of `networksOf` may do, as multiples of the limit. */
const FACTORS = [1, 3, 9] as const
/** Networks of each width that are remembered, some 200 bytes each; beyond it the one whose minute began longest ago is forgotten. */
const NETWORKS_MAX = 5_000

export function createClientLimit(clock: Clock, perMinute: number) {
  const levels = FACTORS.map((factor) => ({ max: factor * perMinute, minutes: new Map<string, Minute>() }))
  return {
    /** Counts a call. @throws TooManyRequests over the limit of the address or of a network around it */
    take(address: string): void {
      const networks = networksOf(address)
      const now = clock.monotonic()
      const counted = levels.map(({ max, minutes }, level) => {
        const network = networks[level] as string
        const known = minutes.get(network)
        const minute = known && known.endsAt > now ? known : { endsAt: now + MINUTE_MS, calls: 0 }
        if (minute.calls >= max) throw new TooManyRequests((minute.endsAt - now) / SECOND_MS)
        return { minutes, network, minute }
      })
      for (const { minutes, network, minute } of counted) {
        if (minute.calls++ > 0) continue
        minutes.delete(network)
        const [oldest] = minutes.keys()
        if (minutes.size >= NETWORKS_MAX && oldest !== undefined) minutes.delete(oldest)
        minutes.set(network, minute)
      }
    },
  }
}
