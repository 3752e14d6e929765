/**
 * Token buckets that the processes over one database share (decision 64). Each process leases tokens of a bucket and spends
 * them without a round trip:
 *
 * 1. While a lease has tokens they are spent. When half are gone, the next ones are leased in the background.
 * 2. Without a lease, one percent of the bucket may be spent at once; the next exchange pays that back.
 * 3. Otherwise the request waits for an exchange, unless the last one shows that too few tokens are free.
 * 4. Leases that are not used for a second are returned.
 *
 * What processes hold is part of the bucket's size, so together they never have more than one bucket.
 */

import type { MaybePromise } from '../../../base/flow/cache.ts'
import type { Clock, Timer } from '../../../base/time/clock.ts'
import { HOUR_MS } from '../../../base/time/durations.ts'
import { createJob, type Job } from '../../jobs/job.ts'
import type { Store } from '../../store/store.ts'
import {
  type Grant,
  grantOf,
  type Limiter,
  type LimitSetting,
  type RateLimiterOptions,
  settingOf,
} from './rate-limit.ts'

/** One bucket's part of an exchange. */
interface LeaseRequest {
  /** Number of the request, for its result: an idle bucket may be returned while it is used again. */
  id: number
  bucket: string
  /** Tokens of a full bucket. */
  size: number
  /** Tokens per millisecond. */
  per_ms: number
  /** What was leased before and is given up, spent or not. */
  held: number
  /** The part of it that was not spent; negative if more was. */
  unspent: number
  /** Nothing is granted unless so many are free. */
  needed: number
  /** Granted at least, also beyond what is free. */
  cost: number
  /** Granted at most; 0: nothing. */
  wanted: number
}

interface Leased {
  id: number
  granted: number
  /** In the shared bucket after the grant. */
  free: number
}

type ExchangeLeases = (requests: readonly LeaseRequest[]) => Promise<Leased[]>

export interface SharedLimiter extends Limiter {
  /** Returns all leases. */
  close(): Promise<void>
}

/** Shares of a bucket: of one lease, and of what may be spent before a lease is there. */
const LEASE_SHARE = 0.05
const CREDIT_SHARE = 0.01
/** Exchanges that nobody waits for are collected so long. */
const BACKGROUND_MS = 50
const IDLE_MS = 1_000
/** Buckets in one exchange. */
const REQUESTS_MAX = 500
/** About 20 MB. Beyond it the bucket that was idle longest is forgotten. */
const BUCKETS_MAX = 100_000
/** Exchanges that one request waits for: other requests may spend what the first ones brought. */
const TRIES_MAX = 5

class Bucket {
  readonly name: string
  setting: LimitSetting
  /** Unspent tokens of `lease`; below 0 they are spent on credit. */
  tokens = 0
  /** What the shared bucket counts as held by this process. */
  lease = 0
  /** Free in the shared bucket at `knownAt`; null: unknown. */
  free: number | null = null
  knownAt = 0
  usedAt = 0
  /** Since the last exchange. */
  spent = 0
  /** What requests wait for. */
  waiting: { needed: number; cost: number }[] = []

  constructor(name: string, setting: LimitSetting) {
    this.name = name
    this.setting = setting
  }

  /** At most so many are free now, those leased here included. */
  available(now: number): number {
    const { count, windowMs } = this.setting
    if (this.free === null) return count + Math.min(0, this.tokens)
    return Math.min(count, this.free + ((now - this.knownAt) * count) / windowMs) + this.tokens
  }
}

export function createSharedRateLimiter(
  options: RateLimiterOptions & { exchange: ExchangeLeases },
): SharedLimiter {
  const { clock, exchange, off = false } = options
  const buckets = new Map<string, Bucket>()
  const exchanges = createExchanges(clock, exchange)
  let sweep: Timer | null = null
  let closed = false

  function bucketOf(name: string, setting: LimitSetting): Bucket {
    const bucket = buckets.get(name) ?? new Bucket(name, setting)
    bucket.setting = setting
    bucket.usedAt = clock.monotonic()
    buckets.delete(name)
    if (buckets.size >= BUCKETS_MAX) buckets.delete(buckets.keys().next().value as string)
    buckets.set(name, bucket) // re-inserted last: the map's order is the order of use
    if (!closed) sweep ??= clock.setTimer(IDLE_MS, returnIdle)
    return bucket
  }

  /** Undefined: an exchange decides. */
  function decide(bucket: Bucket, cost: number): Grant | undefined {
    const { count } = bucket.setting
    const needed = Math.min(cost, count)
    if (bucket.available(clock.monotonic()) < needed) return answer(bucket, needed, false)
    const credit = Math.floor(count * CREDIT_SHARE)
    if (bucket.tokens < cost && bucket.tokens - cost < -credit) return undefined
    bucket.tokens -= cost
    bucket.spent += cost
    if (bucket.tokens < bucket.lease / 2 || bucket.tokens < 0) exchanges.later(bucket)
    return answer(bucket, needed, true)
  }

  const answer = (bucket: Bucket, needed: number, allowed: boolean) =>
    grantOf(clock, bucket.setting, { available: bucket.available(clock.monotonic()), needed, allowed })

  async function decideAfterExchange(bucket: Bucket, cost: number): Promise<Grant> {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      await exchanges.now(bucket, cost)
      const grant = decide(bucket, cost)
      if (grant) return grant
    }
    return answer(bucket, Math.min(cost, bucket.setting.count), false)
  }

  /** From the longest idle on. */
  function returnIdle(): void {
    sweep = null
    const until = clock.monotonic() - IDLE_MS
    for (const bucket of buckets.values()) {
      if (bucket.usedAt > until) break
      buckets.delete(bucket.name)
      if (bucket.lease !== 0 || bucket.tokens !== 0) void exchanges.giveUp(bucket)
    }
    if (buckets.size > 0 && !closed) sweep = clock.setTimer(IDLE_MS, returnIdle)
  }

  return {
    take(limit, subject, cost = 1): MaybePromise<Grant | undefined> {
      if (off) return undefined
      const setting = settingOf(options, limit, subject)
      if (setting.count <= 0) return undefined
      const bucket = bucketOf(`${limit} ${subject}`, setting)
      return decide(bucket, cost) ?? decideAfterExchange(bucket, cost)
    },
    giveBack(limit, subject, cost) {
      const bucket = buckets.get(`${limit} ${subject}`)
      if (bucket) bucket.tokens += cost
    },
    async close() {
      closed = true
      sweep?.cancel()
      await Promise.all([...buckets.values()].map((bucket) => exchanges.giveUp(bucket)))
      buckets.clear()
    },
  }
}

/** Sends the exchanges of many buckets together, one batch at a time. */
function createExchanges(clock: Clock, exchange: ExchangeLeases) {
  const queue = new Map<Bucket, { returns: boolean; done: PromiseWithResolvers<void> }>()
  let timer: Timer | null = null
  let sending = false

  function enter(bucket: Bucket, returns: boolean): Promise<void> {
    const queued = queue.get(bucket)
    if (queued) {
      queued.returns ||= returns
      return queued.done.promise
    }
    const done = Promise.withResolvers<void>()
    done.promise.catch(() => {}) // those that wait get it
    queue.set(bucket, { returns, done })
    return done.promise
  }

  async function send(): Promise<void> {
    timer?.cancel()
    timer = null
    if (sending) return
    sending = true
    while (queue.size > 0) {
      const batch = [...queue].slice(0, REQUESTS_MAX)
      for (const [bucket] of batch) queue.delete(bucket)
      try {
        const requests = batch.map(([bucket, { returns }], id) => requestOf(bucket, id, returns))
        for (const leased of await exchange(requests)) take(batch[leased.id]?.[0], leased)
        for (const [, { done }] of batch) done.resolve()
      } catch (error) {
        for (const [bucket, { done }] of batch) {
          bucket.free = null
          done.reject(error)
        }
      }
    }
    sending = false
  }

  /** What the request gives up is gone from here on. */
  function requestOf(bucket: Bucket, id: number, returns: boolean): LeaseRequest {
    const { count, windowMs } = bucket.setting
    const keep = returns ? 0 : Math.max(0, bucket.tokens)
    const [first] = bucket.waiting
    const costs = bucket.waiting.reduce((sum, { cost }) => sum + cost, 0)
    const ahead = bucket.spent > count * CREDIT_SHARE ? Math.min(bucket.spent, count * LEASE_SHARE) : 0
    const request = {
      id,
      bucket: bucket.name,
      size: count,
      per_ms: count / windowMs,
      held: bucket.lease - keep,
      unspent: bucket.tokens - keep,
      needed: first?.needed ?? 1,
      cost: first?.cost ?? 0,
      wanted: returns ? 0 : costs + Math.floor(ahead),
    }
    bucket.lease = keep
    bucket.tokens = keep
    bucket.spent = 0
    bucket.waiting = []
    return request
  }

  function take(bucket: Bucket | undefined, leased: Leased): void {
    if (!bucket) return
    bucket.lease += leased.granted
    bucket.tokens += leased.granted
    bucket.free = leased.free
    bucket.knownAt = clock.monotonic()
  }

  return {
    /** Resolves after an exchange that asks for `cost` tokens. */
    now(bucket: Bucket, cost: number): Promise<void> {
      bucket.waiting.push({ needed: Math.min(cost, bucket.setting.count), cost })
      const done = enter(bucket, false)
      setImmediate(() => void send())
      return done
    },
    later(bucket: Bucket): void {
      enter(bucket, false)
      timer ??= clock.setTimer(BACKGROUND_MS, () => void send())
    },
    async giveUp(bucket: Bucket): Promise<void> {
      const done = enter(bucket, true)
      setImmediate(() => void send())
      await done.catch(() => {}) // it will be forgotten there
    },
  }
}

const COLUMNS = ['size', 'per_ms', 'held', 'unspent', 'needed', 'cost', 'wanted'] as const
const NUMBERS = COLUMNS.map((name) => `${name} float8`).join(', ')

/** In the order of their names, so that processes cannot deadlock. */
const sqlOf = (now: string) => `SELECT ask.id, leased.granted, leased.free
  FROM (SELECT * FROM json_to_recordset(?::json) AS given(id int, bucket text, ${NUMBERS}) ORDER BY bucket COLLATE "C") AS ask,
    LATERAL lease_tokens(ask.bucket, ${now}, ${COLUMNS.map((name) => `ask.${name}`).join(', ')}) AS leased`

/**
 * Exchanges leases of tokens in PostgreSQL, many buckets in one round trip, and without a sync: the table has no log.
 */
export function createTokenLeases(store: Store, clock: Clock): ExchangeLeases {
  const sql = sqlOf(store.leaseTimes.sql)
  return async (requests) => {
    const values = [JSON.stringify(requests), store.leaseTimes.value(clock.now(), 0)]
    return (await store.read({ sql, values })) as unknown as Leased[]
  }
}

const ROWS_PER_STEP = 5_000
const OLD_BUCKETS = `DELETE FROM rate_buckets WHERE bucket IN
  (SELECT bucket FROM rate_buckets WHERE filled_at < time_from_now(?) ORDER BY filled_at LIMIT ${ROWS_PER_STEP})`

/** Removes buckets that have been full for long. */
export const bucketRetention = (store: Store): Job =>
  createJob({
    name: 'rate-buckets',
    everyMs: HOUR_MS,
    scope: 'database',
    async work() {
      const [removed] = await store.commit([{ sql: OLD_BUCKETS, values: [-HOUR_MS] }])
      return (removed?.affected ?? 0) === ROWS_PER_STEP ? 'more' : undefined
    },
  })
