/** The plan of a warm-up (ips-pools.md section 4). Pure; times are Unix milliseconds. */
import { DAY_MS, HOUR_MS } from '../../../base/time/durations.ts'
import type { IpWarmupProviderRow, IpWarmupRow } from '../../../platform/store/schema.ts'

/** A stage lasts at least this long, and its limit counts in windows of it. */
export const WINDOW_MS = DAY_MS

/** Figures of an address over the last 24 hours. */
export interface Reputation {
  processed: number
  bounceRate: number
  complainedRate: number
}

/** Rule 7. */
const JUDGED_FROM = 200
const BOUNCE_RATE_MAX = 0.05
const COMPLAINED_RATE_MAX = 0.001

export const hourOf = (now: number): number => Math.floor(now / HOUR_MS) * HOUR_MS

/** Undefined: the plan has no such stage. */
export const limitOf = (plan: readonly number[], stage: number): number | undefined => plan[stage - 1]

/** Rule 2. */
export const hourlyLimit = (limit: number): number => Math.ceil(limit / 24)

/** At the end of a window: the stage goes on with its limit counted anew, or is completed (rules 1 and 7). */
export const isCompleted = (limit: number, used: number, reputation: Reputation): boolean =>
  !isBad(reputation) && used >= limit / 2

const isBad = ({ processed, bounceRate, complainedRate }: Reputation) =>
  processed >= JUDGED_FROM && (bounceRate > BOUNCE_RATE_MAX || complainedRate > COMPLAINED_RATE_MAX)

interface Completed {
  first_updated_at: string
  completed_at: string
  limit: number
}

/** The next window of the same stage. */
export const repeated = (row: IpWarmupRow, now: number): Partial<IpWarmupRow> => ({
  window_started_at: now,
  window_used: 0,
  stage_used: Number(row.stage_used) + Number(row.window_used),
  updated_at: now,
})

/** The first window of the next stage. */
export function advanced(row: IpWarmupRow, limit: number, now: number): Partial<IpWarmupRow> {
  const sent = Number(row.stage_used) + Number(row.window_used)
  const completed: Completed = {
    first_updated_at: new Date(Number(row.stage_started_at)).toISOString(),
    completed_at: new Date(now).toISOString(),
    limit,
  }
  return {
    stage: Number(row.stage) + 1,
    stage_started_at: now,
    window_started_at: now,
    window_used: 0,
    stage_used: 0,
    start_volume: Number(row.start_volume) + sent,
    history_json: JSON.stringify([...historyOf(row), completed]),
    updated_at: now,
  }
}

export const historyOf = (row: IpWarmupRow): Completed[] => JSON.parse(row.history_json) as Completed[]

export const newWarmup = (ip: string, accountId: string, startVolume: number, now: number): IpWarmupRow => ({
  ...{ ip, account_id: accountId, stage: 1, start_volume: startVolume },
  ...{ plan_started_at: now, stage_started_at: now, window_started_at: now, updated_at: now },
  ...{ window_used: 0, stage_used: 0, hour_started_at: hourOf(now), hour_used: 0, hour_diverted: 0 },
  history_json: '[]',
  paused_at: null,
})

/** State of an address that has sent nothing to the provider. */
export const newProvider = (ip: string, provider: string, now: number): IpWarmupProviderRow => ({
  ...{ ip, provider, stage: 1, stage_started_at: now },
  ...{ window_used: 0, window_diverted: 0, wanted_before: 0, sent_before: 0 },
  ...{ hour_started_at: 0, hour_used: 0, hour_diverted: 0 },
})

/** The next 24 hours with a provider, after those of the address were judged. */
export function nextOfProvider(
  row: IpWarmupProviderRow,
  isCompleted: boolean,
  now: number,
): Partial<IpWarmupProviderRow> {
  const used = Number(row.window_used)
  return {
    window_used: 0,
    window_diverted: 0,
    wanted_before: used + Number(row.window_diverted),
    sent_before: Number(row.sent_before) + used,
    ...(isCompleted && { stage: Number(row.stage) + 1, stage_started_at: now }),
  }
}
