/**
 * Actions on the queue: pause, resume, retry, drop and move to a pool what a filter matches. Attempts in progress are not
 * changed; deliveries that wait in the engine are given back to the database first, so that none is missed.
 *
 * A paused delivery is due when its window ends, so that even a forgotten one ends.
 */

import { BadRequest } from '../../base/process/errors.ts'
import type { Clock } from '../../base/time/clock.ts'
import { quotable } from '../../base/values.ts'
import { type SqlValue, StaleWrite, type Statement, type Store } from '../../platform/store/store.ts'
import type { Sources } from '../../sending/ips/source-addresses.ts'
import { type EventMessage, type EventRecorder, rejectedEvent } from '../../watching/events/event.ts'
import { REASON_CONTENT_HELD } from '../deliver/attempt/outcome.ts'
import { STATE_OF_ID } from '../deliver/claim/queue.ts'
import { relayRequestOf, withRelayRequest } from '../deliver/claim/source-key.ts'
import type { Delivery } from '../deliver/contract.ts'
import type { ACTIONS, ActionResult } from './shapes.ts'
import { laneNames, type QueueTotals } from './totals.ts'

type QueueAction = (typeof ACTIONS)[number]

export interface QueueFilter {
  domain: string | undefined
  recipientDomain: string | undefined
  provider: string | undefined
  lane: string | undefined
  tag: string | undefined
  messageId: string | undefined
  olderThanMs: number | undefined
}

export interface ActionParts {
  store: Store
  delivery: Delivery
  totals: QueueTotals
  clock: Clock
  recorder: EventRecorder
  /** The message as its events name it; null when it is gone. */
  messageOf(id: string): Promise<EventMessage | null>
  sources: Pick<Sources, 'hasPool' | 'keysFor'>
  firstAccountId: string
}

/** Deliveries in one transaction. */
const CHUNK = 500

/** `release`: what the content check keeps may go. */
type Change = QueueAction | 'release'

/** What to do; `move` with its target. */
type Order = { action: Exclude<Change, 'move'> } | { action: 'move'; pool: string }

/** `accountId` null: of all accounts. @throws BadRequest for `move` to a pool that is not there */
export async function runAction(
  parts: ActionParts,
  accountId: string | null,
  order: Order,
  filter: QueueFilter,
  dryRun: boolean,
): Promise<ActionResult> {
  if (order.action === 'move' && !parts.sources.hasPool(accountId ?? parts.firstAccountId, order.pool))
    throw new BadRequest(`${quotable(order.pool)} is not a valid IP pool (value of 'pool')`)
  if (dryRun) return runChunks(parts, accountId, order, filter, true)
  return parts.delivery.whileIdle(async () => {
    // The engine has just given back what it held, and then the action changes it: older counts are wrong.
    parts.totals.forget()
    try {
      return await runChunks(parts, accountId, order, filter, false)
    } finally {
      parts.totals.forget()
    }
  })
}

/** In the order of ids, CHUNK at a time. */
async function runChunks(
  parts: ActionParts,
  accountId: string | null,
  order: Order,
  filter: QueueFilter,
  dryRun: boolean,
): Promise<ActionResult> {
  const groups = await groupsOf(parts, accountId, filter)
  const { sql, values } = selection(accountId, order.action, filter, parts.clock.now())
  const result = { matched: 0, changed: 0 }
  for (let after = ''; ; ) {
    const rows = (await parts.store.read({
      sql,
      values: [...values, after, CHUNK],
    })) as unknown as Candidate[]
    const matching = rows.filter(
      (row) =>
        (!groups || groups.has(`${row.domain_id} ${row.recipient_domain} ${row.source_key}`)) &&
        hasTag(row, filter.tag),
    )
    result.matched += matching.length
    if (!dryRun) result.changed += await change(parts, order, matching)
    const last = rows.at(-1)
    if (!last || rows.length < CHUNK) return result
    after = last.id
  }
}

export interface Candidate {
  id: string
  account_id: string
  domain_id: string
  recipient_domain: string
  source_key: string
  message_pk: string
  summary_json?: string
}

/** Which (sending domain, recipient domain, source) belong to the lane or provider; null: the filter names neither. */
async function groupsOf(
  { delivery, totals }: ActionParts,
  accountId: string | null,
  { lane, provider }: QueueFilter,
): Promise<Set<string> | null> {
  if (lane === undefined && provider === undefined) return null
  const names = await laneNames(delivery, await totals.groups(accountId))
  const matching = [...names].filter(
    ([, name]) =>
      (lane === undefined || name.lane === lane) &&
      (provider === undefined || name.provider.toLowerCase() === provider.toLowerCase()),
  )
  return new Set(matching.map(([group]) => `${group.domainId} ${group.recipientDomain} ${group.sourceKey}`))
}

/** Which deliveries an action applies to; `state`: the expression for it (see `STATE_OF_ID`). */
const STATES: Record<Change, (state: string) => string> = {
  // A resumed one would be due when its window ends.
  pause: (state) =>
    `${state} IN ('scheduled', 'queued') AND reason NOT IN ('paused', '${REASON_CONTENT_HELD}')`,
  resume: (state) => `${state} IN ('scheduled', 'queued') AND reason = 'paused'`,
  retry: (state) => `${state} = 'queued'`,
  drop: (state) => `${state} IN ('scheduled', 'queued')`,
  move: (state) => `${state} IN ('scheduled', 'queued')`,
  release: (state) => `${state} IN ('scheduled', 'queued') AND reason = '${REASON_CONTENT_HELD}'`,
}

function selection(accountId: string | null, action: Change, filter: QueueFilter, now: number) {
  const conditions: string[] = [STATES[action]('d.state')]
  const values: SqlValue[] = []
  const add = (condition: string, value: SqlValue | undefined | null) => {
    if (value === undefined || value === null) return
    conditions.push(condition)
    values.push(value)
  }
  add('d.account_id = ?', accountId)
  add('d.domain_id IN (SELECT id FROM domains WHERE name = ?)', filter.domain?.toLowerCase())
  add('d.recipient_domain = ?', filter.recipientDomain?.toLowerCase())
  add(
    'd.message_pk IN (SELECT id FROM messages WHERE message_id = ?)',
    filter.messageId?.replace(/^<|>$/g, ''),
  )
  const { olderThanMs } = filter
  add('d.created_at < ?', olderThanMs === undefined ? undefined : Math.round(now - olderThanMs))
  const withTags = filter.tag !== undefined
  const columns = `d.id, d.account_id, d.domain_id, d.recipient_domain, d.source_key, d.message_pk${withTags ? ', m.summary_json' : ''}`
  const join = withTags ? ' JOIN messages m ON m.id = d.message_pk' : ''
  const sql = `SELECT ${columns} FROM deliveries d${join}
    WHERE ${conditions.join(' AND ')} AND d.id > ? ORDER BY d.id LIMIT ?`
  return { sql, values }
}

/** Tags are compared without letter case (messages.md rule 32). */
function hasTag(row: Candidate, tag: string | undefined): boolean {
  if (tag === undefined) return true
  const { tags } = JSON.parse(row.summary_json ?? '{}') as { tags?: string[] }
  return (tags ?? []).some((other) => other.toLowerCase() === tag.toLowerCase())
}

/** The last value of each is `updated_at`. */
const SET: Record<Change, string> = {
  pause: `paused_due_at = COALESCE(paused_due_at, due_at), due_at = expires_at, reason = 'paused', updated_at = ?`,
  resume: `due_at = COALESCE(paused_due_at, due_at), paused_due_at = NULL, reason = 'resumed', updated_at = ?`,
  retry: `due_at = ?, paused_due_at = NULL, reason = 'retry-asked', updated_at = ?`,
  drop: `state = 'cancelled', due_at = ?, reason = 'dropped', updated_at = ?`,
  move: `source_key = ?, updated_at = ?`,
  release: `due_at = ?, reason = 'released', updated_at = ?`,
}

/** Changes those that are still in a state for it; returns how many. */
export async function change(parts: ActionParts, order: Order, rows: readonly Candidate[]): Promise<number> {
  const { action } = order
  const now = Math.round(parts.clock.now())
  const sql = `UPDATE deliveries SET ${SET[action]} WHERE id = ? AND ${STATES[action](STATE_OF_ID)}`
  const results = await Promise.all(
    rows.map(async (row) => {
      const unit: Statement[] = [
        { sql, values: [...valuesOf(parts, order, row, now), row.id], expectRows: 1 },
      ]
      const about = action === 'drop' ? await parts.messageOf(row.message_pk) : null
      if (about)
        unit.push(...parts.recorder.statements([rejectedEvent(about, 'cancelled', '', parts.clock.now())]))
      return commitOne(parts.store, unit)
    }),
  )
  return results.filter(Boolean).length
}

function valuesOf(
  { sources }: ActionParts,
  order: Order,
  { account_id: accountId, id, source_key: before }: Candidate,
  now: number,
): SqlValue[] {
  if (order.action === 'move') {
    const sender = { accountId, sendingIps: null, sendingPoolId: null, dynamicPoolId: null }
    const key = sources.keysFor(sender, { ip: null, pool: order.pool })(id)
    return [withRelayRequest(key, relayRequestOf(before)), now]
  }
  return order.action === 'pause' || order.action === 'resume' ? [now] : [now, now]
}

/** False when the delivery has been claimed or has ended meanwhile. */
async function commitOne(store: Store, unit: readonly Statement[]): Promise<boolean> {
  try {
    await store.commit(unit)
    return true
  } catch (error) {
    if (error instanceof StaleWrite) return false
    throw error
  }
}
