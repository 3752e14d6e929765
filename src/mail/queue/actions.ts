/**
 * Actions on the queue: pause, resume, retry, expire, drop and move to a pool what a filter matches, or list it. Attempts in progress are not
 * changed; deliveries that wait in the engine are given back to the database first, so that none is missed.
 *
 * A paused delivery is due when its window ends, so that even a forgotten one ends.
 */

import { pause } from '../../base/flow/pause.ts'
import { BadRequest } from '../../base/process/errors.ts'
import { quotable } from '../../base/values.ts'
import { commitUnlessStale } from '../../platform/store/commits.ts'
import type { DeliveryRow } from '../../platform/store/schema.ts'
import type { SqlValue, Statement, Store } from '../../platform/store/store.ts'
import type { Sources } from '../../sending/ips/source-addresses.ts'
import { type EventMessage, type EventRecorder, rejectedEvent } from '../../watching/events/event.ts'
import { REASON_ACCOUNT_HELD, REASON_CONTENT_HELD, REASON_EXPIRE_ASKED } from '../deliver/attempt/outcome.ts'
import { STATE_OF_ID } from '../deliver/claim/queue.ts'
import { relayRequestOf, withRelayRequest } from '../deliver/claim/source-key.ts'
import { viewOf } from './deliveries.ts'
import type { ACTIONS, ActionResult, QueuedDelivery } from './shapes.ts'
import type { QueueTotals } from './totals.ts'
import {
  CHUNK,
  type Chunk,
  type Place,
  type QueueFilter,
  type Waiting,
  type WaitingParts,
  waitingRows,
} from './waiting-rows.ts'

type QueueAction = (typeof ACTIONS)[number]

export interface ActionParts extends WaitingParts {
  totals: QueueTotals
  recorder: EventRecorder
  /** The message as its events name it; null when it is gone. */
  messageOf(id: string): Promise<EventMessage | null>
  sources: Pick<Sources, 'hasPool' | 'keysFor'>
}

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
  const chunks = waitingRows(parts, accountId, filter, STATES[order.action])
  const result: Counts = { matched: 0, changed: 0 }
  if (dryRun) {
    for await (const { matching } of chunks) result.matched += matching.length
    return result
  }
  const { clock, delivery, totals } = parts
  for (let isDone = false; !isDone; ) {
    const startedAt = clock.monotonic()
    const endsAt = accountId === null ? Number.POSITIVE_INFINITY : startedAt + SLICE_MS
    await delivery.whileIdle(async () => {
      // The engine has just given back what it held, and then the action changes it: older counts are wrong.
      totals.forget()
      try {
        isDone = await runChunks(parts, order, chunks, result, endsAt)
      } finally {
        totals.forget()
      }
    })
    // As long as the mail of all has waited, it goes on.
    if (accountId !== null) await pause(clock, clock.monotonic() - startedAt)
  }
  return result
}

/**
 * While an action of a tenant runs, the mail of all waits: so it runs for so long at a time. Each time the engine gives back what it
 * has begun to hold meanwhile, so that none is missed.
 */
const SLICE_MS = 300

interface Counts {
  matched: number
  changed: number
}

/** Adds to `result`. Resolves whether that was all; at least one chunk is read. */
async function runChunks(
  parts: ActionParts,
  order: Order,
  chunks: AsyncGenerator<Chunk, void>,
  result: Counts,
  endsAt: number,
): Promise<boolean> {
  do {
    const { value: chunk } = await chunks.next()
    if (!chunk) return true
    result.matched += chunk.matching.length
    result.changed += await change(parts, order, chunk.matching)
  } while (parts.clock.monotonic() < endsAt)
  return false
}

export interface QueuePage {
  items: QueuedDelivery[]
  /** What was read for it; null: nothing waits there. */
  first: Place | null
  last: Place | null
}

/** Rows that are read for a page, in chunks: of ten million that wait no page may read all. */
const READ_MAX = 10 * CHUNK
/** What it costs to look into an account, in rows. */
const SECTION_COST = 50

/**
 * What waits and matches, up to `limit`, by account and id from a place that is not included. A page that has read READ_MAX
 * rows ends with what it has found, and the next one goes on from there. `accountId` null: of all accounts.
 */
export async function listQueue(
  parts: ActionParts,
  accountId: string | null,
  filter: QueueFilter,
  { from, backwards, limit }: { from: Place | null; backwards: boolean; limit: number },
): Promise<QueuePage> {
  const rows: Waiting[] = []
  let end: Place | null = null
  let read = 0
  for await (const chunk of waitingRows(parts, accountId, filter, STATES.drop, from, backwards)) {
    rows.push(...chunk.matching)
    end = chunk.end
    read += chunk.read + SECTION_COST
    if (rows.length >= limit || read >= READ_MAX) break
  }
  const found = rows.slice(0, limit)
  const placeOf = (row: Waiting | undefined) => (row ? { accountId: row.account_id, id: row.id } : null)
  const [head, tail] = [placeOf(found[0]), rows.length > limit ? placeOf(found.at(-1)) : end]
  if (backwards) found.reverse()
  const names = await namesOf(parts.store, found)
  // Its message or domain may be gone since it was read.
  const items = found.map((row) => ({
    ...viewOf(parts, row),
    account_id: row.account_id,
    domain: names.get(row.domain_id) ?? '',
    message_id: names.get(row.message_pk) ?? '',
  }))
  return backwards ? { items, first: tail, last: head ?? from } : { items, first: head ?? from, last: tail }
}

/** Names of domains and Message-Ids, by their ids. */
async function namesOf({ db }: Store, rows: readonly DeliveryRow[]): Promise<Map<string, string>> {
  if (rows.length === 0) return new Map()
  const domainIds = [...new Set(rows.map(({ domain_id: id }) => id))]
  const messageIds = [...new Set(rows.map(({ message_pk: id }) => id))]
  const [domains, messages] = await Promise.all([
    db.selectFrom('domains').select(['id', 'name']).where('id', 'in', domainIds).execute(),
    db.selectFrom('messages').select(['id', 'message_id as name']).where('id', 'in', messageIds).execute(),
  ])
  return new Map([...domains, ...messages].map(({ id, name }) => [id, name]))
}

/** What changing a delivery needs to know of it. */
export type Candidate = Pick<
  DeliveryRow,
  'id' | 'account_id' | 'domain_id' | 'recipient_domain' | 'source_key' | 'message_pk'
>

/** Which deliveries an action applies to; `state`: the expression for it (see `STATE_OF_ID`). */
const STATES: Record<Change, (state: string) => string> = {
  // A resumed one would be due when its window ends.
  pause: (state) =>
    `${state} IN ('scheduled', 'queued') AND reason NOT IN ('paused', '${REASON_CONTENT_HELD}')`,
  resume: (state) => `${state} IN ('scheduled', 'queued') AND reason = 'paused'`,
  // What waits for a decision on its content gets it from that alone.
  retry: (state) => `${state} = 'queued' AND reason <> '${REASON_CONTENT_HELD}'`,
  expire: (state) => `${state} IN ('scheduled', 'queued')`,
  drop: (state) => `${state} IN ('scheduled', 'queued')`,
  move: (state) => `${state} IN ('scheduled', 'queued')`,
  release: (state) => `${state} IN ('scheduled', 'queued') AND reason = '${REASON_CONTENT_HELD}'`,
}

/** The last value of each is `updated_at`. */
const SET: Record<Change, string> = {
  // What holds it may end meanwhile, so it is due when it is resumed.
  pause: `paused_due_at = COALESCE(paused_due_at, CASE WHEN reason = '${REASON_ACCOUNT_HELD}' THEN ? ELSE due_at END),
    due_at = expires_at, reason = 'paused', updated_at = ?`,
  resume: `due_at = COALESCE(paused_due_at, due_at), paused_due_at = NULL, reason = 'resumed', updated_at = ?`,
  retry: `due_at = ?, paused_due_at = NULL, reason = 'retry-asked', updated_at = ?`,
  // Its window is over, so the engine ends it without a further attempt.
  expire: `due_at = ?, expires_at = ?, paused_due_at = NULL, reason = '${REASON_EXPIRE_ASKED}', updated_at = ?`,
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
      // False when the delivery has been claimed or has ended meanwhile.
      return commitUnlessStale(parts.store, unit)
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
  return SET[order.action]
    .replace(/[^?]/g, '')
    .split('')
    .map(() => now)
}
