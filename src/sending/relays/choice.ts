/**
 * Which relay takes a delivery, or none (relays.md section 2). Pure.
 *
 * 1. The relay that the message asked for is its only one. Else the first rule that matches decides; without one it is the
 *    relay of the setting, or direct delivery.
 * 2. Of a rule's levels the first counts in which one can be used; those that have failed the message are left out. Its relays
 *    share the mail by their weights: by the share that a message got when it was accepted, else by its destination.
 * 3. While none can be used, the mail waits for the one that it would go to.
 */
import { spread } from '../../base/flow/spread.ts'
import { RELAY_SHARES, type RelayRequest } from '../../mail/deliver/claim/source-key.ts'
import { DIRECT, type RelayRule } from './shapes.ts'

/** What rules ask of a delivery. */
export interface Facts {
  /** Sending domain; '': it was deleted. */
  domain: string
  /** Id; null: none. */
  pool: string | null
  accountId: string
  recipientDomain: string
  /** Display name; '': no rule asks for it. */
  provider: string
}

interface Choice {
  relay: string
  weight: number
}
type Levels = readonly (readonly Choice[])[]

/** A rule whose patterns are compiled. */
interface Rule {
  matches(facts: Facts): boolean
  levels: Levels
}

export interface Rules {
  list: readonly Rule[]
  /** Some rule asks for the provider, whose name needs DNS. */
  needProvider: boolean
  /** Some level has several relays: messages get shares. */
  needShares: boolean
  /** Where no rule matches. */
  otherwise: Levels
}

/**
 * Without choices of relays that there are not, such as that of a setting that has changed; a rule that is left with none takes
 * what no rule does. `otherwise`: name of a relay, or `direct`.
 */
export function compileRules(
  rules: readonly RelayRule[],
  otherwise: string,
  isKnown: (relay: string) => boolean,
): Rules {
  const list = rules.map(({ match, levels }) => {
    const known = levels.map((level) => level.filter(({ relay }) => isKnown(relay)).map(choiceOf))
    const left = known.filter(({ length }) => length > 0)
    return { matches: matcherOf(match), levels: left.length > 0 ? left : only(otherwise) }
  })
  return {
    list,
    needProvider: rules.some(({ match }) => match.provider !== undefined),
    needShares: list.some(({ levels }) => levels.some(({ length }) => length > 1)),
    otherwise: only(otherwise),
  }
}

const choiceOf = ({ relay, weight = 1 }: RelayRule['levels'][number][number]): Choice => ({ relay, weight })

const only = (relay: string): Levels => [[{ relay, weight: 1 }]]

function matcherOf({ domain, pool, account_id, provider, recipient_domain }: RelayRule['match']) {
  const isDomain = domain === undefined ? null : patternOf(domain)
  const isRecipient = recipient_domain === undefined ? null : patternOf(recipient_domain)
  return (facts: Facts) =>
    (isDomain === null || isDomain(facts.domain)) &&
    (pool === undefined || pool === facts.pool) &&
    (account_id === undefined || account_id === facts.accountId) &&
    (provider === undefined || provider.toLowerCase() === facts.provider.toLowerCase()) &&
    (isRecipient === null || isRecipient(facts.recipientDomain))
}

/** `*` stands for any characters. Without backtracking: a pattern with many stars costs no more than its length. */
function patternOf(pattern: string): (text: string) => boolean {
  const parts = pattern.toLowerCase().split('*')
  const [first = '', ...others] = parts
  const last = others.pop()
  if (last === undefined) return (text) => text.toLowerCase() === first
  return (text) => {
    const lower = text.toLowerCase()
    if (!lower.startsWith(first) || !lower.endsWith(last)) return false
    let at = first.length
    for (const part of others) {
      const found = lower.indexOf(part, at)
      if (found === -1) return false
      at = found + part.length
    }
    return at + last.length <= lower.length
  }
}

/** The levels of a delivery. `isKnown`: whether there is such a relay. */
export function levelsFor(
  { list, otherwise }: Rules,
  { asked }: RelayRequest,
  facts: () => Facts,
  isKnown: (relay: string) => boolean,
): Levels {
  if (asked !== null && isKnown(asked)) return only(asked)
  if (list.length === 0) return otherwise
  const known = facts()
  return list.find((rule) => rule.matches(known))?.levels ?? otherwise
}

/** `key`: what a delivery without a share is spread by. `canUse`: not closed, paused or used up, or its turn to try it. */
export function chosenOf(
  levels: Levels,
  { share, without }: RelayRequest,
  key: string,
  canUse: (relay: string) => boolean,
): string {
  const single = levels.length === 1 && levels[0]?.length === 1 ? levels[0][0] : undefined
  if (single !== undefined) return single.relay
  const point = share === null ? spread(key) / 2 ** 32 : (share + 0.5) / RELAY_SHARES
  const left = levels
    .map((level) => level.filter(({ relay }) => !without.includes(relay)))
    .filter(({ length }) => length > 0)
  const candidates = left.length > 0 ? left : levels
  for (const level of candidates) {
    const relay = usableOf(level, point, canUse)
    if (relay !== null) return relay
  }
  return weighted(candidates[0] as readonly Choice[], point).choice.relay
}

/** Asks only about the relay that the message would go to: to ask takes the turn of the single message that tries a closed one. */
function usableOf(level: readonly Choice[], point: number, canUse: (relay: string) => boolean) {
  let left = level
  let at = point
  while (left.length > 0) {
    const { choice, within } = weighted(left, at)
    if (canUse(choice.relay)) return choice.relay
    left = left.filter((other) => other !== choice)
    at = within
  }
  return null
}

/** `within`: how far the point is in the share of the choice, so that the others share that too. */
function weighted(level: readonly Choice[], point: number): { choice: Choice; within: number } {
  const total = level.reduce((sum, { weight }) => sum + weight, 0)
  let rest = point * total
  for (const choice of level) {
    if (rest < choice.weight) return { choice, within: rest / choice.weight }
    rest -= choice.weight
  }
  return { choice: level.at(-1) as Choice, within: 0 }
}

/**
 * The relays that a delivery must not use from now on, so that another takes it; null: no other can. `fits`: whether a relay takes a
 * message of its size.
 */
export function withoutAnd(
  levels: Levels,
  { without }: RelayRequest,
  relay: string,
  fits: (relay: string) => boolean,
): readonly string[] | null {
  const names = [...new Set(levels.flatMap((level) => level.map((choice) => choice.relay)))]
  const failed = names.filter((name) => name === relay || without.includes(name))
  return names.some((name) => !failed.includes(name) && fits(name)) ? failed : null
}

export const isDirect = (relay: string): boolean => relay === DIRECT
