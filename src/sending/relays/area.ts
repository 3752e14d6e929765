/** Relays: servers that take mail from us for others, and the rules that choose them. */
import type { Area } from '../../area.ts'
import type { Core } from '../../core.ts'
import type { Overrides } from '../../mail/deliver/overrides/overrides.ts'
import type { Blocks } from '../ips/blocks/blocks.ts'
import { createDayLimits } from './day-limits.ts'
import { createEngineRelays, type EngineRelays } from './engine-relays.ts'
import { type KnownRelays, openRelays } from './known-relays.ts'
import { relayOfSetting } from './relay.ts'
import { createRelayStates, type RelayStates } from './relay-states.ts'
import { relayRoutes } from './routes.ts'

export interface RelaysArea extends Area {
  states: RelayStates
  /** Limits or servers of relays have changed. */
  onChange: KnownRelays['onChange']
  engineRelays: EngineRelays
}

interface RelaysUses {
  blocks: Blocks
  overrides: Overrides
}

export async function relaysArea(core: Core, { blocks, overrides }: RelaysUses): Promise<RelaysArea> {
  const { store, config, clock, sealer, firstAccountId } = core
  const days = createDayLimits(store, clock)
  const fixed = relayOfSetting(config.delivery, sealer)
  const known = await openRelays(store, fixed, () => Math.floor(clock.now()), days)
  const engineRelays = createEngineRelays({
    ...core,
    ...{ known, days, blocks, connections: config.relayConnections },
    isPaused: (site) => overrides.pauseOf(site, '') !== null,
  })
  const states = createRelayStates({ known, blocks, overrides, days, engineRelays })
  return {
    states,
    engineRelays,
    operations: relayRoutes({
      ...{ known, states, overrides, engineRelays, blocks, sealer, clock, firstAccountId },
      hostname: config.hostname,
    }),
    onChange: known.onChange,
    jobs: [known.job],
    stop: () => days.close(),
  }
}
