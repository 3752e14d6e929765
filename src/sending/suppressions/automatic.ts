/**
 * Records added automatically: bounces, complaints, unsubscribes (suppressions.md section 6). Each is a list of
 * statements for the transaction of its event, so that no record exists without its event. Nothing is read
 * beforehand: the statements themselves check allowlist and policy.
 */

import type { Clock } from '../../base/time/clock.ts'
import { DAY_MS, HOUR_MS } from '../../base/time/durations.ts'
import { CODE_UNPREPARED, type Outcome } from '../../mail/deliver/attempt/outcome.ts'
import type { ClaimedDelivery } from '../../mail/deliver/claim/queue.ts'
import { createJob, type Job } from '../../platform/jobs/job.ts'
import { removeRows } from '../../platform/store/commits.ts'
import { insert, type Statement, type Store } from '../../platform/store/store.ts'
import { addressKey } from '../../protocols/mime/address.ts'
import type { EventRecord } from '../../watching/events/event.ts'
import { DETAIL_LENGTH_MAX, type NewRecord } from './given-records.ts'
import { WINDOW_DAYS_MAX } from './policy.ts'
import { addStatements, type ListOwner } from './store.ts'

export interface Bounce {
  owner: ListOwner
  recipient: string
  /** `hard`: the mailbox does not exist or is permanently closed. `soft`: permanently refused for another reason. */
  severity: 'hard' | 'soft'
  code: string
  error: string
  /** The failed event, written in the same transaction. */
  eventId: string
  /** Unix milliseconds. */
  now: number
}

/**
 * What the outcome of an attempt adds to the lists; `severity` is that of its failure (receiving/bounces/classify.ts). Test-mode
 * messages never reach this with a bounce.
 */
export function bounceConsequences(
  delivery: ClaimedDelivery,
  events: readonly EventRecord[],
  outcome: Outcome,
  severity: Bounce['severity'] | null,
): Statement[] {
  const event = events.find(({ event: name }) => name === 'failed')
  if (!event || severity === null || !('failure' in outcome)) return []
  const { code, message, description } = outcome.failure
  // The message could not be prepared; no server has refused the recipient.
  if (code === CODE_UNPREPARED) return []
  return addBounce({
    owner: { id: delivery.domain_id, accountId: delivery.account_id },
    recipient: delivery.recipient,
    severity,
    code: String(code),
    error: message || description,
    eventId: event.id,
    now: event.timestampUs / 1000,
  })
}

/**
 * Counts a bounce if the domain has a policy, and adds the record when the policy (without one: the first hard
 * bounce) requires it, unless the allowlist has the address or its exact domain. An existing record that has not
 * expired is unchanged.
 */
export function addBounce({ owner, recipient, severity, code, error, eventId, now }: Bounce): Statement[] {
  const at = Math.floor(now)
  const address = addressKey(recipient)
  const domain = address.slice(address.lastIndexOf('@') + 1)
  const detail = error.replaceAll('\0', '').slice(0, DETAIL_LENGTH_MAX)
  return [
    {
      sql: `INSERT INTO counted_bounces (event_id, domain_id, address, severity, bounced_at)
        SELECT ?, domain_id, ?, ?, CAST(? AS BIGINT) FROM suppression_policies WHERE domain_id = ?`,
      values: [eventId, address, severity, at, owner.id],
    },
    {
      sql: `DELETE FROM counted_bounces WHERE domain_id = ? AND address = ? AND bounced_at <= CAST(? AS BIGINT) -
        (SELECT window_days FROM suppression_policies WHERE domain_id = ?) * ${DAY_MS}`,
      values: [owner.id, address, at, owner.id],
    },
    {
      sql: ADD_BOUNCE[severity],
      values: [
        ...[owner.id, address, owner.accountId, code, detail, eventId],
        ...[at, owner.id, at],
        ...[owner.id, address, domain],
        ...(severity === 'hard' ? [owner.id] : []),
        ...[owner.id, address],
      ],
    },
  ]
}

const RETENTION_EVERY_MS = 6 * HOUR_MS

/** Removes counted bounces of addresses that no longer bounce: those older than any policy's window. */
export function countedBounceRetention(store: Store, clock: Clock): Job {
  return createJob({
    name: 'counted-bounce-retention',
    everyMs: RETENTION_EVERY_MS,
    scope: 'database',
    work(signal) {
      const values = [Math.floor(clock.now() - WINDOW_DAYS_MAX * DAY_MS)]
      const old = { key: 'event_id', where: 'bounced_at < ? ORDER BY bounced_at', values }
      return removeRows(store, { from: 'counted_bounces', ...old }, signal)
    },
  })
}

const ADD_BOUNCE = { hard: addBounceSql('hard'), soft: addBounceSql('soft') }

function addBounceSql(severity: 'hard' | 'soft'): string {
  const isOverThreshold = `EXISTS (SELECT 1 FROM suppression_policies AS policy WHERE policy.domain_id = ?
      AND policy.${severity}_bounces_to_suppress > 0
      AND policy.${severity}_bounces_to_suppress <= (SELECT count(*) FROM counted_bounces AS counted
        WHERE counted.domain_id = policy.domain_id AND counted.address = ? AND counted.severity = '${severity}'))`
  const hasNoPolicy = 'NOT EXISTS (SELECT 1 FROM suppression_policies WHERE domain_id = ?)'
  return `INSERT INTO suppressions
      (domain_id, kind, address, account_id, code, detail, event_id, expires_at, created_at)
    SELECT ?, 'bounces', ?, ?, ?, ?, ?, (SELECT CAST(? AS BIGINT) + lifetime_days * ${DAY_MS}
        FROM suppression_policies WHERE domain_id = ? AND lifetime_days > 0), CAST(? AS BIGINT)
    WHERE NOT EXISTS (SELECT 1 FROM suppressions WHERE domain_id = ? AND kind = 'whitelists' AND address IN (?, ?))
      AND (${severity === 'hard' ? `${hasNoPolicy} OR ${isOverThreshold}` : isOverThreshold})
    ON CONFLICT (domain_id, kind, address) DO UPDATE SET code = excluded.code, detail = excluded.detail,
      event_id = excluded.event_id, expires_at = excluded.expires_at, created_at = excluded.created_at
      WHERE suppressions.expires_at <= excluded.created_at`
}

/** A complaint of the recipient; the record keeps the time of the first one. `now`: Unix milliseconds. */
export function addComplaint(owner: ListOwner, recipient: string, eventId: string, now: number): Statement[] {
  return [insertOnce(owner, 'complaints', recipient, eventId, now)]
}

/**
 * An unsubscribe by the recipient: adds `tags` to the existing ones (none: all mail of the domain), as a call
 * would. `now`: Unix milliseconds.
 */
export function addUnsubscribe(
  owner: ListOwner,
  recipient: string,
  tags: readonly string[],
  eventId: string,
  now: number,
): Statement[] {
  const record: NewRecord = {
    address: addressKey(recipient),
    code: '',
    detail: '',
    tags: tags.length > 0 ? tags : ['*'],
    createdAt: null,
  }
  const [, ...rest] = addStatements(owner, 'unsubscribes', [record], now)
  // Locks the record if it exists, as the first statement of every change of an unsubscribe does.
  return [insertOnce(owner, 'unsubscribes', recipient, eventId, now), ...rest]
}

function insertOnce(
  owner: ListOwner,
  kind: 'complaints' | 'unsubscribes',
  recipient: string,
  eventId: string,
  now: number,
): Statement {
  const row = insert('suppressions', {
    domain_id: owner.id,
    kind,
    address: addressKey(recipient),
    account_id: owner.accountId,
    code: '',
    detail: '',
    event_id: eventId,
    created_at: Math.floor(now),
  })
  const onConflict = 'ON CONFLICT (domain_id, kind, address) DO UPDATE SET code = excluded.code'
  return { ...row, sql: `${row.sql} ${onConflict}` }
}
