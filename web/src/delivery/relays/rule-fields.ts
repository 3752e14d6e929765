/** The fields of the form of a relay rule, and the rule that they are. Pure. */
import type { RelayRule } from './relays-api.ts'

export const CONDITIONS = ['domain', 'recipient_domain', 'provider', 'pool', 'account_id'] as const
type Condition = (typeof CONDITIONS)[number]

/** As the service allows. */
export const TURNS_MAX = 5

export interface RuleFields extends Record<Condition, string> {
  /** `turn`: from 1; the next one is used while no relay of this one is. */
  choices: { relay: string; weight: string; turn: string }[]
}

/** `first`: the relay of a new rule. */
export function ruleFields(rule: RelayRule | undefined, first: string): RuleFields {
  const { match = {}, levels = [[{ relay: first }]] } = rule ?? {}
  const given = (name: Condition) => match[name] ?? ''
  return {
    ...{ domain: given('domain'), recipient_domain: given('recipient_domain') },
    ...{ provider: given('provider'), pool: given('pool'), account_id: given('account_id') },
    choices: levels.flatMap((level, at) =>
      level.map(({ relay, weight = 1 }) => ({ relay, weight: String(weight), turn: String(at + 1) })),
    ),
  }
}

export function matchOf(fields: RuleFields): RelayRule['match'] {
  const given = CONDITIONS.map((name) => [name, fields[name].trim()] as const)
  return Object.fromEntries(given.filter(([, value]) => value !== ''))
}

/** Turns without a relay are left out. */
export function levelsOf({ choices }: RuleFields): RelayRule['levels'] {
  const turns = Map.groupBy(choices, ({ turn }) => Number(turn))
  return [...turns]
    .sort(([one], [other]) => one - other)
    .map(([, level]) => level.map(({ relay, weight }) => ({ relay, weight: Number(weight) })))
}

/** The list with the rule at `from` moved to `to`. */
export function moved(rules: readonly RelayRule[], from: number, to: number): RelayRule[] {
  const left = rules.filter((_, at) => at !== from)
  const rule = rules[from]
  return rule === undefined ? [...rules] : [...left.slice(0, to), rule, ...left.slice(to)]
}
