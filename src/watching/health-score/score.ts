/** The health score of mail: 100 without a fault, less what each of five signals costs (health-score.md section 2). */

/** Counts of a time, for one group. */
export interface Signals {
  delivered: number
  /** Deliveries and final failures that a server decided. */
  processed: number
  /** Final failures, suppressed ones left out. */
  bounced: number
  /** Addresses among these that do not exist. */
  hardBounces: number
  complaints: number
  /** Messages to spam traps, as far as somebody tells. */
  traps: number
  /** Attempts that a full mailbox refused. */
  fullMailboxes: number
}

export const NO_SIGNALS: Signals = {
  ...{ delivered: 0, processed: 0, bounced: 0, hardBounces: 0, complaints: 0, traps: 0, fullMailboxes: 0 },
}

export const RATES = [
  'bounce_rate',
  'complaint_rate',
  'trap_rate',
  'full_mailbox_rate',
  'bad_failure_rate',
] as const
export type Rates = Record<(typeof RATES)[number], number>

/**
 * Points that a signal costs at most, and the share from which on it does. Complaints are measured at the limit of Gmail
 * and Yahoo, 0.3 %; bounces and hard bounces at what providers call a bad list.
 */
const COSTS: Readonly<Record<keyof Rates, { points: number; share: number; of(signals: Signals): number }>> =
  {
    bounce_rate: { points: 25, share: 0.1, of: (s) => ratio(s.bounced, s.processed) },
    complaint_rate: { points: 30, share: 0.003, of: (s) => ratio(s.complaints, s.delivered) },
    trap_rate: { points: 20, share: 0.001, of: (s) => ratio(s.traps, s.delivered) },
    full_mailbox_rate: { points: 10, share: 0.05, of: (s) => ratio(s.fullMailboxes, s.processed) },
    bad_failure_rate: { points: 15, share: 0.05, of: (s) => ratio(s.hardBounces, s.processed) },
  }

/** What happened without mail is as bad as it can be. */
const ratio = (part: number, whole: number) => (part === 0 ? 0 : part / Math.max(whole, 1))

/** Whole points; the score and the rates add up to 100. */
export function scoreOf(signals: Signals): { score: number; rates: Rates } {
  const rates = Object.fromEntries(
    RATES.map((name) => {
      const { points, share, of } = COSTS[name]
      return [name, Math.round(points * Math.min(1, of(signals) / share))]
    }),
  ) as Rates
  const cost = RATES.reduce((sum, name) => sum + rates[name], 0)
  return { score: 100 - cost, rates }
}

export const sumOf = (one: Signals, other: Partial<Signals>): Signals => {
  const entries = Object.entries(one).map(([name, count]) => [
    name,
    count + (other[name as keyof Signals] ?? 0),
  ])
  return Object.fromEntries(entries) as unknown as Signals
}
