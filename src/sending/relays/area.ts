/** Relays: servers that take mail from us for others, and the rules that choose them. */
import type { Area } from '../../area.ts'
import type { Core } from '../../core.ts'
import { createDayLimits } from '../../mail/deliver/attempt/day-limits.ts'
import type { Overrides } from '../../mail/deliver/overrides/overrides.ts'
import type { Blocks } from '../ips/blocks/blocks.ts'
import { createEngineRelays, type EngineRelays } from './engine-relays.ts'
import { type KnownRelays, openRelays } from './known-relays.ts'
import { createAccessTokens } from './oauth/access-tokens.ts'
import { relayOfSetting } from './relay.ts'
import { createRelayStates, type RelayStates } from './relay-states.ts'
import { relayRoutes } from './routes.ts'

interface FailingLogin {
  relay: string
  failure: string
  /** Unix milliseconds. */
  failedAt: number
  /** When the access token ends that it still has; null: it has none. */
  expiresAt: number | null
}

export interface RelaysArea extends Area {
  relays: KnownRelays
  states: RelayStates
  engineRelays: EngineRelays
  /** Relays whose login got no access token last time, by name. */
  failingLogins(): Promise<FailingLogin[]>
}

interface RelaysUses {
  blocks: Blocks
  overrides: Overrides
}

export async function relaysArea(core: Core, { blocks, overrides }: RelaysUses): Promise<RelaysArea> {
  const { store, config, clock, sealer, httpClient, leaseOwner } = core
  const tokens = createAccessTokens({ ...core, client: httpClient, owner: leaseOwner })
  const days = createDayLimits(store, clock, 'relay_days')
  const fixed = relayOfSetting(config.delivery, sealer)
  const known = await openRelays(store, fixed, () => Math.floor(clock.now()), days)
  const engineRelays = createEngineRelays({
    ...core,
    ...{ known, days, blocks, tokens, connections: config.relayConnections },
    isPaused: (site) => overrides.pauseOf(site, '') !== null,
  })
  const states = createRelayStates({ known, blocks, overrides, days, tokens, engineRelays })
  return {
    ...{ relays: known, states, engineRelays },
    async failingLogins() {
      const found = await Promise.all(
        [...known.book().relays.values()].map(async (relay) => {
          const { failure, failedAt, expiresAt } = await tokens.stateOf(relay)
          return failure === null ? [] : [{ relay: relay.name, failure, failedAt: failedAt ?? 0, expiresAt }]
        }),
      )
      return found.flat()
    },
    operations: relayRoutes({
      ...{ known, states, overrides, engineRelays, blocks, sealer, clock },
      hostname: config.hostname,
    }),
    jobs: [known.job],
    async stop() {
      await tokens.close()
      await days.close()
    },
  }
}
