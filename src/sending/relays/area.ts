/** Relays: servers that take mail from us for others, and the rules that choose them. */
import type { Area } from '../../area.ts'
import type { Core } from '../../core.ts'
import { type KnownRelays, openRelays } from './known-relays.ts'
import { type AccessTokens, createAccessTokens } from './oauth/access-tokens.ts'
import { relayOfSetting } from './relay.ts'
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
  /** For the logins of relays that take them. */
  tokens: AccessTokens
  /** Relays whose login got no access token last time, by name. */
  failingLogins(): Promise<FailingLogin[]>
}

export async function relaysArea(core: Core): Promise<RelaysArea> {
  const { store, config, clock, sealer, httpClient, leaseOwner, firstAccountId } = core
  const tokens = createAccessTokens({ ...core, client: httpClient, owner: leaseOwner })
  const known = await openRelays(store, relayOfSetting(config.delivery, sealer), () =>
    Math.floor(clock.now()),
  )
  return {
    ...{ relays: known, tokens },
    async failingLogins() {
      const found = await Promise.all(
        [...known.book().relays.values()].map(async (relay) => {
          const { failure, failedAt, expiresAt } = await tokens.stateOf(relay)
          return failure === null ? [] : [{ relay: relay.name, failure, failedAt: failedAt ?? 0, expiresAt }]
        }),
      )
      return found.flat()
    },
    operations: relayRoutes({ known, tokens, sealer, firstAccountId }),
    jobs: [known.job],
    stop: () => tokens.close(),
  }
}
