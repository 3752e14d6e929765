/**
 * Refusals that need the operator: an address of ours is on a blocklist, mail is not authenticated, a receiver blocks for
 * reputation. They are logged (once per hour and rule), reported by the checks of the machine, and alerted by provider.
 */
import type { Logger } from 'pino'
import type { Clock } from '../../base/time/clock.ts'
import { HOUR_MS } from '../../base/time/durations.ts'
import type { Store } from '../../platform/store/store.ts'
import type { EventRecord } from '../../watching/events/event.ts'
import type { Rule, RuleSet } from './rules.ts'

/** Categories that the checks report. */
export const REFUSALS_HOURS = 24
const REFUSALS_MAX = 5

/**
 * Rules whose replies say that the server takes nothing from the address: with another one the same message may be taken.
 * Not those about domains, content or rate, and not those that may mean either.
 */
const BLOCKS_THE_ADDRESS = new Set([
  'spamcop',
  'barracuda-list',
  'invaluement',
  'cloudmark',
  'proofpoint-list',
  'trendmicro-list',
  'abusix',
  'uceprotect',
  'cisco-reputation',
  'symantec-block',
  'outlook-blocklist',
  'outlook-policy',
  'm365-banned-ip',
  'm365-no-traffic',
  'yahoo-blocked',
  'att-blocked',
  'comcast-blocked',
  'tonline-block',
  'orange-refused',
  'generic-blocklist',
  'generic-reputation',
])

/** Spamhaus has lists of addresses and lists of domains; one rule knows both. */
const ABOUT_A_DOMAIN = /\bdbl\b|\bdomain|\burl/i

/** Whether a reply that the rule matches is about the address that a message comes from. */
export const blocksAddress = (ruleId: string, reply: string): boolean =>
  BLOCKS_THE_ADDRESS.has(ruleId) || (ruleId === 'spamhaus' && !ABOUT_A_DOMAIN.test(reply))

function isOperatorsMatter({ category, fault, critical }: Rule): boolean {
  return critical && (category === 'BLACKLISTED' || fault === 'sender' || fault === 'host')
}

export interface Refusal {
  ruleId: string
  count: number
  /** Addresses masked. */
  newestReply: string
  explanation: string
}

/** Refusals of the last 24 hours over all accounts, most first, at most five. `now`: Unix milliseconds. */
export async function recentRefusals(
  store: Store,
  { rules, byId }: RuleSet,
  now: number,
): Promise<Refusal[]> {
  const ids = rules.filter(isOperatorsMatter).map(({ id }) => id)
  if (ids.length === 0) return []
  const found = await store.db
    .selectFrom('classified_failures')
    .where('failed_at', '>', Math.floor(now) - REFUSALS_HOURS * HOUR_MS)
    .where('rule_id', 'in', ids)
    .select(['rule_id', (of) => of.fn.countAll<number>().as('count'), (of) => of.fn.max('id').as('newest')])
    .groupBy('rule_id')
    .orderBy('count', 'desc')
    .orderBy('rule_id')
    .limit(REFUSALS_MAX)
    .execute()
  if (found.length === 0) return []
  const newest = found.map((row) => row.newest)
  const samples = await store.db
    .selectFrom('classified_failures')
    .where('id', 'in', newest)
    .select(['rule_id', 'sample'])
    .execute()
  const sampleOf = new Map(samples.map(({ rule_id, sample }) => [rule_id, sample]))
  return found.map(({ rule_id, count }) => ({
    ruleId: rule_id,
    count: Number(count),
    newestReply: sampleOf.get(rule_id) ?? '',
    explanation: byId.get(rule_id)?.explanation ?? '',
  }))
}

interface ProviderRefusals {
  /** As events name it. */
  provider: string
  count: number
  /** Unix milliseconds of the first one. */
  firstAt: number
  /** What the most frequent rule says. */
  explanation: string
}

/** Refusals since a time (Unix milliseconds) over all accounts, by provider; most first. */
export async function refusalsByProvider(
  store: Store,
  { rules, byId }: RuleSet,
  since: number,
): Promise<ProviderRefusals[]> {
  const ids = rules.filter(isOperatorsMatter).map(({ id }) => id)
  if (ids.length === 0) return []
  // The condition on `critical` is a literal, so that the partial index is used.
  const sql = `SELECT provider, rule_id, count(*) AS count, min(failed_at) AS first_at FROM classified_failures
    WHERE critical = 1 AND failed_at > ? AND rule_id IN (${ids.map(() => '?').join(', ')})
    GROUP BY provider, rule_id ORDER BY count(*) DESC, rule_id`
  const rows = await store.read({ sql, values: [Math.floor(since), ...ids] })
  const byProvider = new Map<string, ProviderRefusals>()
  for (const row of rows) {
    const [provider, count, firstAt] = [
      String(row['provider']),
      Number(row['count']),
      Number(row['first_at']),
    ]
    const known = byProvider.get(provider)
    if (known) {
      known.count += count
      known.firstAt = Math.min(known.firstAt, firstAt)
    } else {
      const explanation = byId.get(String(row['rule_id']))?.explanation ?? ''
      byProvider.set(provider, { provider, count, firstAt, explanation })
    }
  }
  return [...byProvider.values()].sort((one, other) => other.count - one.count)
}

/** Checks events that are about to be written; logs at most one line per rule and hour. */
export function createRefusalLog(
  { byId }: RuleSet,
  clock: Clock,
  log: Logger,
): (events: readonly EventRecord[]) => void {
  /** When each rule was logged last, on the monotonic clock. */
  const loggedAt = new Map<string, number>()
  return (events) => {
    for (const { payload } of events) {
      const rule = byId.get(String(payload['i-classification-rule-id']))
      if (!rule || !isOperatorsMatter(rule)) continue
      const now = clock.monotonic()
      if (now - (loggedAt.get(rule.id) ?? Number.NEGATIVE_INFINITY) < HOUR_MS) continue
      loggedAt.set(rule.id, now)
      const status = payload['delivery-status'] as { code?: unknown; message?: unknown }
      const envelope = payload['envelope'] as { 'sending-ip'?: unknown } | undefined
      log.warn(
        {
          rule: rule.id,
          category: rule.category,
          sendingIp: envelope?.['sending-ip'],
          code: status.code,
          reply: status.message,
        },
        `mail is refused because of this host or its domains: ${rule.explanation}`,
      )
    }
  }
}
