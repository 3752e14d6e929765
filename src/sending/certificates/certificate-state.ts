/** When a tracking host's certificate is ordered, and its state. Pure. */
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../base/time/durations.ts'
import type { CertificateRow } from '../../platform/store/schema.ts'

type CertificateStatus = 'processing' | 'active' | 'expired' | 'error'

/** tracking.md rule 23. */
const RENEW_BEFORE_MS = 30 * DAY_MS
/** Certificates that live shorter than 90 days are renewed when a third of their life is left. */
const RENEW_SHARE = 1 / 3
/** Renewals of certificates issued on one day are spread over this share of the remaining time. */
const RENEW_SPREAD = 1 / 30
const RETRY_MIN_MS = 10 * MINUTE_MS
const RETRY_MAX_MS = DAY_MS
/** For the service's own names: without a certificate nobody can use it, and an hour is within every authority's limits. */
const OWN_RETRY_MAX_MS = HOUR_MS
/**
 * A wait is randomised by this much around its middle, so that hosts that failed together are not retried together.
 */
const RETRY_JITTER = 0.2
/** An authority may ask for any wait; more than a week would be an error of its clock. */
const RETRY_AFTER_MAX_MS = 7 * DAY_MS
/** About four days: a first order that fails for longer waits for a new request of its owner. */
const FIRST_ATTEMPTS_MAX = 10
/** After this the host is considered unused. */
const GIVE_UP_AFTER_EXPIRY_MS = 30 * DAY_MS
/** Let's Encrypt allows five failed validations an hour per host; one is left for the owner's own attempts. */
export const ORDERS_PER_HOUR_MAX = 4

/** A background renewal does not change the state: the certificate stays active until it expires. */
export function statusOf(
  row: Pick<CertificateRow, 'requested' | 'chain' | 'expires_at'>,
  now: number,
): CertificateStatus {
  if (row.requested === 1) return 'processing'
  if (row.chain === null) return 'error'
  return isValid(row, now) ? 'active' : 'expired'
}

export const isValid = (row: Pick<CertificateRow, 'chain' | 'expires_at'>, now: number): boolean =>
  row.chain !== null && row.expires_at !== null && row.expires_at > now

export const isClaimed = (row: Pick<CertificateRow, 'claimed_until'>, now: number): boolean =>
  row.claimed_until !== null && row.claimed_until > now

/** When a new certificate is renewed. `random` in [0, 1). */
export function renewAt(issuedAt: number, expiresAt: number, random: number): number {
  const lead = Math.min(RENEW_BEFORE_MS, (expiresAt - issuedAt) * RENEW_SHARE)
  return Math.floor(expiresAt - lead + lead * RENEW_SPREAD * random)
}

/**
 * When to retry after `attempts` consecutive failures, or null: not automatically. `retryAfterMs`: what the
 * authority asked for, 0 if nothing. `isOwn`: a name of the service itself, which is never given up.
 */
export function retryAt(
  row: Pick<CertificateRow, 'chain' | 'expires_at'>,
  failure: { attempts: number; retryAfterMs: number; now: number; random: number; isOwn?: boolean },
): number | null {
  const { attempts, retryAfterMs, now, random, isOwn = false } = failure
  if (!isOwn && row.chain === null && attempts >= FIRST_ATTEMPTS_MAX) return null
  if (!isOwn && row.expires_at !== null && now > row.expires_at + GIVE_UP_AFTER_EXPIRY_MS) return null
  const waitMax = isOwn && !isValid(row, now) ? OWN_RETRY_MAX_MS : RETRY_MAX_MS
  const backOff = Math.min(RETRY_MIN_MS * 2 ** (attempts - 1), waitMax)
  const asked = Math.min(retryAfterMs, RETRY_AFTER_MAX_MS)
  const jittered = backOff * (1 - RETRY_JITTER + 2 * RETRY_JITTER * random)
  // What the authority asked for is a minimum: the jitter only adds to it.
  const wait = asked > jittered ? asked + backOff * RETRY_JITTER * random : jittered
  return Math.floor(now + wait)
}

/** The times of orders in the last hour, with `now` added; null: the limit is reached. */
export function recordOrder(times: readonly number[], now: number): number[] | null {
  const recent = times.filter((time) => time > now - HOUR_MS)
  return recent.length < ORDERS_PER_HOUR_MAX ? [...recent, now] : null
}

/** When the next order is allowed after `recordOrder` returned null. */
export const nextOrderAt = (times: readonly number[], now: number): number =>
  Math.min(...times.filter((time) => time > now - HOUR_MS)) + HOUR_MS
