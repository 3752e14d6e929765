/** What relays do now, for people, metrics and doctor: state of the breaker, pause, messages of the day. */

import type { DayLimits } from '../../mail/deliver/attempt/day-limits.ts'
import type { Overrides } from '../../mail/deliver/overrides/overrides.ts'
import type { Blocks } from '../ips/blocks/blocks.ts'
import { ANY_ADDRESS, type EngineRelays, siteOfRelay } from './engine-relays.ts'
import type { KnownRelays } from './known-relays.ts'
import type { AccessTokens } from './oauth/access-tokens.ts'
import { type Relay, type RelayNow, relayView } from './relay.ts'
import type { RelayView } from './shapes.ts'

export type RelayStates = ReturnType<typeof createRelayStates>

interface StateParts {
  known: KnownRelays
  blocks: Pick<Blocks, 'find'>
  overrides: Pick<Overrides, 'pauseOf'>
  days: DayLimits
  tokens: Pick<AccessTokens, 'stateOf'>
  engineRelays: EngineRelays
}

const isoTime = (time: number) => new Date(time).toISOString()
const OPEN: RelayView['state'] = { word: 'open', why: null, since: null, until: null, times: 0 }

export function createRelayStates({ known, blocks, overrides, days, tokens, engineRelays }: StateParts) {
  function stateOf(site: string): RelayView['state'] {
    const block = blocks.find(ANY_ADDRESS, site)
    // No blocklist has a relay's name.
    if (block === null || block.state === 'listed') return OPEN
    const { state: word, reply: why, since_at, until_at, times } = block
    return { word, why, since: isoTime(since_at), until: isoTime(until_at), times }
  }

  function nowOf({ name, limits }: Relay, used: ReadonlyMap<string, number>): RelayNow {
    const site = siteOfRelay(name)
    const pause = overrides.pauseOf(site, '')
    return {
      state: stateOf(site),
      pause: pause && {
        reason: pause.reason,
        since: isoTime(pause.since),
        until: pause.until === null ? null : isoTime(pause.until),
      },
      used_today: limits.messages_per_day === null ? null : (used.get(name) ?? 0),
      since_start: { ...engineRelays.countsOf(name) },
    }
  }

  const viewOf = async (relay: Relay, used: ReadonlyMap<string, number>) =>
    relayView(relay, await tokens.stateOf(relay), nowOf(relay, used))

  return {
    /** By name. */
    async list(): Promise<RelayView[]> {
      const used = await days.used()
      return Promise.all([...known.book().relays.values()].map((relay) => viewOf(relay, used)))
    },
    /** @throws NotFound */
    async one(name: string): Promise<RelayView> {
      return viewOf(known.find(name), await days.used())
    },
  }
}
