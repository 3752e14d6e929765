/**
 * Token buckets per (limit, subject): a bucket holds `count` tokens and refills evenly over `windowMs`.
 * A refused request takes no token. Buckets of `createRateLimiter` are in the memory of this process;
 * shared-rate-limit.ts has those that several processes share.
 */

import { type MaybePromise, whenKnown } from '../../../base/flow/cache.ts'
import { BadRequest, TooManyRequests } from '../../../base/process/errors.ts'
import type { Clock } from '../../../base/time/clock.ts'
import { createJob } from '../../jobs/job.ts'
import type { Store } from '../../store/store.ts'

export interface LimitSetting {
  /** Tokens per window; 0 switches the limit off. */
  count: number
  windowMs: number
}

/** The limits of the contract (auth-limits.md section 6). */
export type LimitName =
  | 'sending'
  | 'sending-recipients'
  | 'sending-bytes'
  | 'domains'
  | 'domain-verify'
  | 'analytics'
  | 'alert-tests'
  | 'inbox-releases'
  | 'lists'
  | 'default'

export const DEFAULT_LIMITS: Readonly<Record<LimitName, LimitSetting>> = {
  sending: { count: 100, windowMs: 1_000 },
  'sending-recipients': { count: 0, windowMs: 60_000 },
  'sending-bytes': { count: 0, windowMs: 60_000 },
  domains: { count: 300, windowMs: 60_000 },
  'domain-verify': { count: 10, windowMs: 60_000 },
  analytics: { count: 500, windowMs: 10_000 },
  // Each is mail or a request to somebody.
  'alert-tests': { count: 10, windowMs: 3_600_000 },
  'inbox-releases': { count: 20, windowMs: 60_000 },
  lists: { count: 300, windowMs: 60_000 },
  default: { count: 1_000, windowMs: 60_000 },
}

/** The limits as configured. `rateLimit`: requests to send per second; null: no limits at all. */
export const limitsOf = (config: {
  rateLimit: number | null
  recipientsPerMinute: number
  bytesPerMinute: number
}): Record<LimitName, LimitSetting> => ({
  ...DEFAULT_LIMITS,
  sending: { ...DEFAULT_LIMITS.sending, count: config.rateLimit ?? 0 },
  'sending-recipients': { ...DEFAULT_LIMITS['sending-recipients'], count: config.recipientsPerMinute },
  'sending-bytes': { ...DEFAULT_LIMITS['sending-bytes'], count: config.bytesPerMinute },
})

/** About 10 MB. Beyond it the bucket that was idle longest is forgotten, that is, full again. */
const BUCKETS_MAX = 100_000

export interface Grant {
  allowed: boolean
  limit: number
  /** Whole tokens left after this request. */
  remaining: number
  /** Unix seconds at which the bucket is full again; for a refusal, at which the request would pass. */
  resetAt: number
  /** Whole seconds, at least 1, after which a refused request would pass; 0 if it was allowed. */
  retrySeconds: number
}

interface Bucket {
  tokens: number
  filledAtMs: number
}

export interface Limiter {
  /**
   * Takes `cost` tokens (default 1). Undefined: this limit is off. A cost above the whole bucket passes when
   * the bucket is full and leaves a debt, otherwise it could never pass.
   */
  take(limit: LimitName, subject: string, cost?: number): MaybePromise<Grant | undefined>
  /** Puts back what an allowed `take` took, for a request that another limit then refused. */
  giveBack(limit: LimitName, subject: string, cost: number): void
}

/** One whose buckets are in this process. */
export interface RateLimiter extends Limiter {
  take(limit: LimitName, subject: string, cost?: number): Grant | undefined
}

export interface RateLimiterOptions {
  clock: Clock
  limits?: Readonly<Record<LimitName, LimitSetting>>
  /** True: no limit of any kind (`SENDWRIGHT_RATE_LIMIT=off`). */
  off?: boolean
  /** Counts of one account that differ from the general ones. */
  countOf?: AccountLimits['countOf']
}

export function createRateLimiter(options: RateLimiterOptions): RateLimiter {
  const { clock, off = false } = options
  const buckets = new Map<string, Bucket>()

  function bucketOf(key: string, setting: LimitSetting): Bucket {
    const nowMs = clock.monotonic()
    const kept = buckets.get(key)
    buckets.delete(key)
    if (buckets.size >= BUCKETS_MAX) buckets.delete(buckets.keys().next().value as string)
    const refill = kept === undefined ? 0 : ((nowMs - kept.filledAtMs) * setting.count) / setting.windowMs
    const tokens = kept === undefined ? setting.count : Math.min(setting.count, kept.tokens + refill)
    const bucket = { tokens, filledAtMs: nowMs }
    buckets.set(key, bucket) // re-inserted last: the map's order is the order of use
    return bucket
  }

  return {
    take(limit, subject, cost = 1) {
      if (off) return undefined
      const setting = settingOf(options, limit, subject)
      if (setting.count <= 0) return undefined
      const bucket = bucketOf(`${limit} ${subject}`, setting)
      const needed = Math.min(cost, setting.count)
      const allowed = bucket.tokens >= needed
      if (allowed) bucket.tokens -= cost
      return grantOf(clock, setting, { available: bucket.tokens, needed, allowed })
    },
    giveBack(limit, subject, cost) {
      const bucket = buckets.get(`${limit} ${subject}`)
      if (bucket) bucket.tokens += cost // cut to the bucket's size at its next use
    },
  }
}

/** The setting that holds for one account or key. */
export function settingOf(
  { limits = DEFAULT_LIMITS, countOf }: RateLimiterOptions,
  limit: LimitName,
  subject: string,
): LimitSetting {
  const count = countOf?.(limit, subject)
  return count === undefined ? limits[limit] : { ...limits[limit], count }
}

/** `available`: tokens left; `needed`: tokens for which the request would have passed. */
export function grantOf(
  clock: Clock,
  { count, windowMs }: LimitSetting,
  { available, needed, allowed }: { available: number; needed: number; allowed: boolean },
): Grant {
  const missing = allowed ? count - available : needed - available
  const waitMs = (missing * windowMs) / count
  return {
    allowed,
    limit: count,
    remaining: Math.max(0, Math.floor(available)),
    resetAt: Math.ceil((clock.now() + waitMs) / 1000),
    retrySeconds: allowed ? 0 : Math.max(1, Math.ceil(waitMs / 1000)),
  }
}

/** The headers that every answer of a limited operation carries. */
export function rateLimitHeaders(grant: Grant): Record<string, string> {
  return {
    'x-ratelimit-limit': String(grant.limit),
    'x-ratelimit-remaining': String(grant.remaining),
    'x-ratelimit-reset': String(grant.resetAt),
  }
}

const SENDING_REASON: Partial<Record<LimitName, string>> = {
  sending: 'account-requests-per-sec',
  'sending-recipients': 'recipient',
  'sending-bytes': 'bytes',
}

/** The 429 of a refused grant in the form that the contract has for this limit: A, B or C. */
export function limitExceeded(limit: LimitName, retrySeconds: number, domain: string): TooManyRequests {
  const reason = SENDING_REASON[limit]
  if (reason !== undefined) {
    const why = `${reason} limit exceeded, try again after ${retrySeconds} seconds`
    return new TooManyRequests(retrySeconds, `Domain ${domain} is not allowed to send: ${why}`)
  }
  if (limit === 'domains' || limit === 'domain-verify') {
    return new TooManyRequests(retrySeconds, undefined, { extra: { 'retry-seconds': retrySeconds } })
  }
  return new TooManyRequests(retrySeconds)
}

/**
 * Takes a message from the account's limits of recipients and of bytes, both or neither. Returns the headers of the
 * recipient limit; none where that is off. @throws TooManyRequests in form A
 */
export function takeMessage(
  limiter: Limiter,
  domain: { accountId: string; name: string },
  message: { recipients: number; bytes: number },
): MaybePromise<Record<string, string>> {
  const { accountId, name } = domain
  return whenKnown(limiter.take('sending-recipients', accountId, message.recipients), (recipients) => {
    if (recipients?.allowed === false)
      throw limitExceeded('sending-recipients', recipients.retrySeconds, name)
    return whenKnown(limiter.take('sending-bytes', accountId, message.bytes), (bytes) => {
      if (bytes?.allowed === false) {
        if (recipients) limiter.giveBack('sending-recipients', accountId, message.recipients)
        throw limitExceeded('sending-bytes', bytes.retrySeconds, name)
      }
      return recipients ? recipientHeaders(recipients) : NO_HEADERS
    })
  })
}

const NO_HEADERS: Record<string, string> = {}

const recipientHeaders = (grant: Grant): Record<string, string> => ({
  'x-recipient-limit': String(grant.limit),
  'x-recipient-remaining': String(grant.remaining),
  'x-recipient-reset': String(grant.resetAt),
})

/** Limits whose subject is the account. */
export const ACCOUNT_LIMITS = [
  'sending',
  'sending-recipients',
  'sending-bytes',
  'domains',
  'analytics',
  'lists',
] as const satisfies readonly LimitName[]
export type AccountLimitName = (typeof ACCOUNT_LIMITS)[number]

/**
 * Rate limits of single accounts (auth-limits.md section 6): all of them are in memory, and read again every few seconds.
 */
export type AccountLimits = Awaited<ReturnType<typeof openAccountLimits>>

const REFRESH_MS = 5_000
const TOPIC = 'account-rate-limits'
/** 2 MB in memory. */
const LIMITS_MAX = 10_000

const keyOf = (name: LimitName, accountId: string) => `${name} ${accountId}`

export async function openAccountLimits(store: Store) {
  let counts: ReadonlyMap<string, number> = new Map()

  async function load(): Promise<void> {
    const rows = await store.db
      .selectFrom('account_rate_limits')
      .selectAll()
      .orderBy('account_id')
      .orderBy('name')
      .limit(LIMITS_MAX)
      .execute()
    counts = new Map(rows.map((row) => [keyOf(row.name as LimitName, row.account_id), Number(row.count)]))
  }

  store.changes.follow(TOPIC, load)
  await load()
  return {
    /** Undefined: the general limit. 0: off. */
    countOf: (name: LimitName, accountId: string): number | undefined => counts.get(keyOf(name, accountId)),
    /** Null: the general limit. In other processes after a few seconds. @throws BadRequest for too many */
    async set(name: AccountLimitName, accountId: string, count: number | null): Promise<void> {
      if (count !== null && counts.size >= LIMITS_MAX && !counts.has(keyOf(name, accountId)))
        throw new BadRequest(`Only ${LIMITS_MAX} limits of accounts are allowed`)
      await store.commit([
        count === null
          ? {
              sql: 'DELETE FROM account_rate_limits WHERE account_id = ? AND name = ?',
              values: [accountId, name],
            }
          : {
              sql: `INSERT INTO account_rate_limits (account_id, name, count) VALUES (?, ?, ?)
                ON CONFLICT (account_id, name) DO UPDATE SET count = excluded.count`,
              values: [accountId, name, count],
            },
      ])
      await load()
      void store.changes.announce(TOPIC, '')
    },
    refresh: createJob({ name: 'account-rate-limits', everyMs: REFRESH_MS, scope: 'process', work: load }),
  }
}
