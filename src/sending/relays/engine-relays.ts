/**
 * Relays as the engine and acceptance use them: in memory, asked for each delivery.
 *
 * A relay that fails is closed as an address that a provider blocks is (sending/ips/blocks/blocks.ts), for all addresses: the
 * pair of `*` and its site. So the state outlives a restart, reaches the other processes, and single messages find out whether
 * it has ended. A pause is that of its site (mail/deliver/overrides).
 */
import { type MaybePromise, whenKnown } from '../../base/flow/cache.ts'
import { spread } from '../../base/flow/spread.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import { type DayLimits, startOfDay } from '../../mail/deliver/attempt/day-limits.ts'
import {
  addressPart,
  RELAY_MARK,
  RELAY_SHARES,
  type RelayRequest,
  relayRequestOf,
  withRelayRequest,
} from '../../mail/deliver/claim/source-key.ts'
import { linkRules, type RelayHop } from '../../mail/deliver/connect/relay.ts'
import type { ProviderOf, Relays, Routed } from '../../mail/deliver/contract.ts'
import type { LaneLimits } from '../../mail/deliver/shaping/shaping-table.ts'
import { backOffOf } from '../../mail/deliver/shaping/shaping-table.ts'
import type { Sealer } from '../../platform/store/secrets/sealing.ts'
import type { DomainDirectory } from '../domains/names/directory.ts'
import type { Blocks } from '../ips/blocks/blocks.ts'
import { requestedPool } from '../ips/source-addresses.ts'
import { chosenOf, compileRules, type Facts, isDirect, levelsFor, type Rules, withoutAnd } from './choice.ts'
import type { KnownRelays, RelayBook } from './known-relays.ts'
import type { AccessTokens } from './oauth/access-tokens.ts'
import { DEFAULT_RELAY, openSecret, type Relay } from './relay.ts'
import { DIRECT } from './shapes.ts'

/** Stands for every address in the pairs of the breaker. */
export const ANY_ADDRESS = '*'
/** As in the names of lanes. */
export const RELAY_SITES = 'relay:'
export const siteOfRelay = (name: string): string => RELAY_SITES + name

const MESSAGES_PER_CONNECTION = 100
/** A relay is tried again after a minute, then after twice as long each time. */
const CLOSED_MS = MINUTE_MS
const CLOSED_MAX_MS = 30 * MINUTE_MS
/** What waits is looked at again within this time: rules or relay may be others by then. Not all at the same time. */
const LOOK_AGAIN_MS = 10 * MINUTE_MS
const SPREAD = 0.1

/** What this process has sent through a relay since its start. */
export interface RelayCounts {
  accepted: number
  /** Attempts that the relay failed, not the message. */
  failed: number
}

export interface EngineRelays extends Relays {
  /** Whether messages of the account may ask for the relay. */
  mayAsk(accountId: string, name: string): boolean
  /** Source keys with what they say of relays. `asked`: the relay that the message asks for; null: none. */
  keysFor(keyOf: (deliveryId: string) => string, asked: string | null): (deliveryId: string) => string
  countsOf(name: string): RelayCounts
}

interface EngineRelayParts extends Pick<Core, 'clock' | 'firstAccountId'> {
  known: KnownRelays
  days: DayLimits
  blocks: Blocks
  tokens: Pick<AccessTokens, 'of'>
  /** The pause of a site. */
  isPaused(site: string): boolean
  domains: Pick<DomainDirectory, 'byId'>
  sealer: Pick<Sealer, 'open'>
  random(): number
  /** Connections of a relay that has no limit of its own. */
  connections: number
}

export function createEngineRelays(parts: EngineRelayParts): EngineRelays {
  const { known, days, blocks, isPaused, domains, clock, random, firstAccountId } = parts
  const counts = new Map<string, RelayCounts>()
  let relays: RelayBook['relays'] = new Map()
  let hops: ReadonlyMap<string, RelayHop> = new Map()
  const isKnown = (name: string) => isDirect(name) || hops.has(name)
  let rules: Rules = compileRules([], DIRECT, isKnown)

  function build(): void {
    const book = known.book()
    relays = book.relays
    hops = new Map([...relays].map(([name, relay]) => [name, hopOf(relay, hops.get(name), parts)]))
    rules = compileRules(book.rules, hops.has(DEFAULT_RELAY) ? DEFAULT_RELAY : DIRECT, isKnown)
    for (const name of counts.keys()) if (!relays.has(name)) counts.delete(name)
  }
  build()
  known.onChange(build)

  const countsOf = (name: string): RelayCounts => {
    const found = counts.get(name) ?? { accepted: 0, failed: 0 }
    counts.set(name, found)
    return found
  }

  /** Messages; null: the relay has no limit, or was removed. */
  const dayLimitOf = (name: string) => relays.get(name)?.limits.messages_per_day ?? null
  const isUsedUp = (name: string) => {
    const limit = dayLimitOf(name)
    return limit !== null && days.isUsedUp(name, limit)
  }

  function canUse(name: string): boolean {
    if (isDirect(name)) return true
    const site = siteOfRelay(name)
    if (!relays.has(name) || isPaused(site) || isUsedUp(name)) return false
    return blocks.stateOf(ANY_ADDRESS, site) === 'open' || blocks.mayProbe(ANY_ADDRESS, site)
  }

  const keyOf = ({ source_key: key = '' }: Routed) => key

  function levelsOf(delivery: Routed, request: RelayRequest, providerOf: ProviderOf) {
    if ((request.asked !== null && isKnown(request.asked)) || rules.list.length === 0)
      return levelsFor(rules, request, NO_FACTS, isKnown)
    const { domain_id, recipient_domain: recipientDomain, account_id: accountId } = delivery
    const provider = rules.needProvider ? providerOf(recipientDomain) : ''
    return whenKnown(provider, (known) =>
      whenKnown(domains.byId(domain_id), (domain) => {
        const pool = requestedPool(keyOf(delivery)) ?? domain?.dynamicPoolId ?? domain?.sendingPoolId ?? null
        const facts: Facts = { domain: domain?.name ?? '', pool, accountId, recipientDomain, provider: known }
        return levelsFor(rules, request, () => facts, isKnown)
      }),
    )
  }

  return {
    inUse: () => hops.size > 0,
    choose(delivery, providerOf) {
      const key = keyOf(delivery)
      // Nothing to choose among.
      if (rules.list.length === 0 && !key.includes(RELAY_MARK)) return hops.get(DEFAULT_RELAY) ?? null
      const request = relayRequestOf(key)
      return whenKnown(levelsOf(delivery, request, providerOf), (levels) => {
        const spreadBy = `${delivery.recipient_domain} ${addressPart(key)}`
        return hops.get(chosenOf(levels, request, spreadBy, canUse)) ?? null
      })
    },
    byName: (name) => hops.get(name) ?? null,
    isClosed: (name) => !hops.has(name) || blocks.isClosed(ANY_ADDRESS, siteOfRelay(name)),
    nextFree(name) {
      const now = clock.now()
      if (isUsedUp(name)) {
        const tomorrow = startOfDay(now) + DAY_MS
        // The limit may have been raised by then.
        return Math.min(tomorrow, now + HOUR_MS) + random() * LOOK_AGAIN_MS
      }
      return Math.min(
        blocks.nextFree(ANY_ADDRESS, siteOfRelay(name)),
        now + LOOK_AGAIN_MS * (1 - SPREAD * random()),
      )
    },
    take(name) {
      const limit = dayLimitOf(name)
      return limit === null ? undefined : days.take(name, limit)
    },
    answered({ relay, site, limits }, answer) {
      // What was under way to one that was removed says nothing of another of its name.
      if (relay === null || !hops.has(relay)) return
      const count = countsOf(relay)
      if (answer.kind === 'accepted') count.accepted++
      if (answer.kind === 'blocked') count.failed++
      // One domain, so that failures count whatever the recipients.
      blocks.answered(ANY_ADDRESS, { site, provider: relay, limits }, relay, answer)
    },
    without(delivery, relay, sizeBytes, providerOf): MaybePromise<string | null> {
      const key = keyOf(delivery)
      const request = relayRequestOf(key)
      return whenKnown(levelsOf(delivery, request, providerOf), (levels) => {
        const fits = (name: string) =>
          sizeBytes === null || sizeBytes <= (hops.get(name)?.sizeMax ?? sizeBytes)
        // Those that have failed it may be back: better than to give it up.
        const failed =
          withoutAnd(levels, request, relay, fits) ??
          (sizeBytes === null ? null : withoutAnd(levels, { ...request, without: [] }, relay, fits))
        return failed === null ? null : withRelayRequest(key, { ...request, without: failed })
      })
    },
    mayAsk(accountId, name) {
      if (accountId === firstAccountId) return isKnown(name)
      const relay = relays.get(name)
      return relay !== undefined && (relay.offeredTo === null || relay.offeredTo.includes(accountId))
    },
    keysFor(keyOf, asked) {
      if (asked !== null) {
        const request = { asked, share: null, without: [] }
        return (deliveryId) => withRelayRequest(keyOf(deliveryId), request)
      }
      if (!rules.needShares) return keyOf
      return (deliveryId) => {
        const share = spread(`relay ${deliveryId}`) % RELAY_SHARES
        return withRelayRequest(keyOf(deliveryId), { asked: null, share, without: [] })
      }
    },
    countsOf,
  }
}

const NO_FACTS = (): Facts => {
  throw new Error('no rule is asked')
}

/** The same object as long as the relay does not change: limits are compared by it. */
function hopOf(
  relay: Relay,
  before: RelayHop | undefined,
  { tokens, sealer, connections }: Pick<EngineRelayParts, 'tokens' | 'sealer' | 'connections'>,
): RelayHop {
  if (before?.revision === relay.revision) return before
  const { name, host, port, limits, login } = relay
  const isOpen = relay.createdAt === null && login === null
  return {
    ...{ name, host, port, revision: relay.revision, site: siteOfRelay(name) },
    ...linkRules(relay, { isOpen, allowUnverified: relay.allowUnverified }),
    auth: login && {
      mechanism: login.mechanism,
      user: login.username,
      secret: login.oauth ? tokens.of(relay) : () => openSecret(sealer, relay, 'password') ?? '',
      allowUnverified: relay.allowUnverified,
    },
    limits: laneLimitsOf(limits, connections),
    sizeMax: limits.max_message_size,
    returnPath: relay.returnPath,
    losesReturnPath: relay.alters.return_path,
  }
}

/** Null: that of a relay without limits. A pause of the breaker is short: a relay is the operator's own. */
function laneLimitsOf(
  { connections, messages_per_connection, messages_per_second }: Relay['limits'],
  preset: number,
): LaneLimits {
  const limits = {
    connections: connections ?? preset,
    messagesPerConnection: messages_per_connection ?? MESSAGES_PER_CONNECTION,
    messagesPerSecond: messages_per_second,
  }
  const backOff = { ...backOffOf({}), blockedPauseMs: CLOSED_MS, blockedPauseMaxMs: CLOSED_MAX_MS }
  return { ...limits, backOff }
}
