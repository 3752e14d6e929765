/** Relays: servers that take mail from us for others, and the rules that choose them. */
import type { Area } from '../../area.ts'
import type { Core } from '../../core.ts'
import { type KnownRelays, openRelays } from './known-relays.ts'
import { relayOfSetting } from './relay.ts'
import { relayRoutes } from './routes.ts'

export interface RelaysArea extends Area {
  relays: KnownRelays
}

export async function relaysArea({
  store,
  config,
  clock,
  sealer,
  firstAccountId,
}: Core): Promise<RelaysArea> {
  const known = await openRelays(store, relayOfSetting(config.delivery, sealer), () =>
    Math.floor(clock.now()),
  )
  return {
    relays: known,
    operations: relayRoutes({ known, sealer, firstAccountId }),
    jobs: [known.job],
  }
}
