/**
 * Greylisting (RFC 6647): the first mail of an unknown network has to be sent again after a minute, which programs that
 * send spam from other people's machines often do not do. A network that came back once is known from then on.
 */

import { createHash } from 'node:crypto'
import { isIPv4 } from 'node:net'
import { networksOf } from '../../base/net/ip.ts'
import type { Clock } from '../../base/time/clock.ts'
import { DAY_MS, MINUTE_MS } from '../../base/time/durations.ts'
import {
  createRateLimiter,
  DEFAULT_LIMITS,
  type LimitSetting,
} from '../../platform/http/limits/rate-limit.ts'
import { createJob } from '../../platform/jobs/job.ts'
import { removeRows } from '../../platform/store/commits.ts'
import type { Store } from '../../platform/store/store.ts'
import type { Mailbox } from '../../protocols/mime/address.ts'
import { Refusal } from '../sessions/replies.ts'

export interface GreylistAttempt {
  remoteAddress: string
  /** Envelope sender; '' is `<>`. */
  sender: string
  recipient: Pick<Mailbox, 'domain'>
}

export type Greylist = ReturnType<typeof createGreylist>

const WAIT_MS = MINUTE_MS
/** Servers give up after some days, but nearly all have come back within one. */
const REPEATED_WITHIN_MS = DAY_MS
/** Longer than a monthly mailing needs. */
const KNOWN_FOR_MS = 36 * DAY_MS
/** A known network is noted again after that, not with each mail. */
const RENEWED_AFTER_MS = DAY_MS
/** Attempts of one network that are noted in a minute: what a flood leaves in the table. */
const NOTED: LimitSetting = { count: 20, windowMs: MINUTE_MS }

const FIND = 'SELECT key, since_at, expires_at FROM greylist WHERE key IN (?, ?) AND expires_at > ?'
const PUT = `INSERT INTO greylist (key, since_at, expires_at) VALUES (?, ?, ?)
  ON CONFLICT (key) DO UPDATE SET since_at = excluded.since_at, expires_at = excluded.expires_at`
const REMOVE = 'DELETE FROM greylist WHERE key = ?'

export function createGreylist(store: Store, clock: Clock) {
  const limiter = createRateLimiter({ limits: { ...DEFAULT_LIMITS, default: NOTED }, clock })

  /** @throws Refusal when the client has to try again later */
  async function check(attempt: GreylistAttempt): Promise<void> {
    const now = Math.floor(clock.now())
    const network = networkKey(attempt.remoteAddress)
    const first = attemptKey(network, attempt)
    const rows = await store.read({ sql: FIND, values: [network, first, now] })
    const found = (key: string) => rows.find((row) => row['key'] === key)
    const known = found(network)
    if (known) {
      if (Number(known['expires_at']) < now + KNOWN_FOR_MS - RENEWED_AFTER_MS)
        await store.commit([{ sql: PUT, values: [network, now, now + KNOWN_FOR_MS] }])
      return
    }
    const pending = found(first)
    if (pending && Number(pending['since_at']) <= now - WAIT_MS) {
      await store.commit([
        { sql: PUT, values: [network, now, now + KNOWN_FOR_MS] },
        { sql: REMOVE, values: [first] },
      ])
      return
    }
    if (!pending && (limiter.take('default', network)?.allowed ?? true))
      await store.commit([{ sql: PUT, values: [first, now, now + REPEATED_WITHIN_MS] }])
    throw new Refusal('451 4.7.1 Greylisted, try again in a minute')
  }

  return {
    check,
    job: createJob({
      name: 'greylist-retention',
      everyMs: 60 * MINUTE_MS,
      scope: 'database',
      work(signal) {
        const over = { where: 'expires_at <= ? ORDER BY expires_at', values: [Math.floor(clock.now())] }
        return removeRows(store, { from: 'greylist', key: 'key', ...over }, signal)
      },
    }),
  }
}

/** Large senders repeat from another address of the same network: /24 of IPv4, /64 of IPv6. */
function networkKey(address: string): string {
  const [own, around] = networksOf(address)
  return isIPv4(address) ? around : own
}

/** Recipients of one domain count together: a server may repeat one of several. */
function attemptKey(network: string, { sender, recipient }: GreylistAttempt): string {
  const senderDomain = sender.slice(sender.lastIndexOf('@') + 1).toLowerCase()
  return createHash('sha256').update(`${network} ${senderDomain} ${recipient.domain}`).digest('base64url')
}
