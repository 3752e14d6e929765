/** The state of a message per recipient, and the dialogues of its attempts (own-operations.md section 2). */

import { NotFound } from '../../base/process/errors.ts'
import type { Core } from '../../core.ts'
import type { PageName } from '../../platform/http/request/paging.ts'
import type { DeliveryRow } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'
import type { Delivery, LaneState } from '../deliver/contract.ts'
import { reasonOf } from './reasons.ts'
import type { DeliveryView, Transcript } from './shapes.ts'
import { sharedLane } from './shared-lanes.ts'

interface DeliveryViewParts extends Pick<Core, 'clock' | 'firstAccountId'> {
  delivery: Delivery
}

type Line = Transcript['lines'][number]

const MESSAGE_NOT_FOUND = 'Message not found'

/** A page of a message's deliveries in the order of its recipients. @throws NotFound */
export async function listDeliveries(
  parts: DeliveryViewParts & { store: Store },
  accountId: string,
  messageId: string,
  page: { name: PageName; pivot: string | undefined; limit: number },
) {
  const messages = await parts.store.db
    .selectFrom('messages')
    .select('id')
    .where('message_id', '=', messageId.replace(/^<|>$/g, ''))
    .where('account_id', '=', accountId)
    .execute()
  if (messages.length === 0) throw new NotFound(MESSAGE_NOT_FOUND)
  const backwards = page.name === 'previous' || page.name === 'last'
  let query = parts.store.db
    .selectFrom('deliveries')
    .selectAll()
    .where(
      'message_pk',
      'in',
      messages.map(({ id }) => id),
    )
    .orderBy('id', backwards ? 'desc' : 'asc')
    .limit(page.limit)
  if (page.pivot !== undefined && (page.name === 'next' || page.name === 'previous'))
    query = query.where('id', backwards ? '<' : '>', page.pivot)
  const rows = await query.execute()
  if (backwards) rows.reverse()
  return rows.map((row) => viewOf(parts, row))
}

export function viewOf(
  { delivery, clock, firstAccountId }: DeliveryViewParts,
  row: DeliveryRow,
): DeliveryView {
  const now = clock.now()
  const seen = (lane: LaneState | null) =>
    lane === null || row.account_id === firstAccountId ? lane : sharedLane(lane)
  const known = delivery.progressOf(row.id)
  const progress = known && { ...known, lane: seen(known.lane) }
  const lane = progress?.lane ?? seen(delivery.laneOfGroup(row))
  const waits = row.state === 'queued' || row.state === 'scheduled'
  return {
    id: row.id,
    recipient: row.recipient,
    state: row.state,
    attempts: row.attempts,
    created_at: new Date(row.created_at).toISOString(),
    updated_at: new Date(row.updated_at).toISOString(),
    next_attempt_at: waits ? new Date(row.due_at).toISOString() : null,
    expires_at: new Date(row.expires_at).toISOString(),
    reason: reasonOf(row, progress, lane, now),
    lane: lane?.info.name ?? null,
    last_reply: row.last_code === null ? null : { code: row.last_code, text: row.last_reply ?? '' },
  }
}

/** The dialogues that were kept, first attempt first. @throws NotFound */
export async function readTranscripts(store: Store, accountId: string, deliveryId: string) {
  const known = await store.db
    .selectFrom('deliveries')
    .select('id')
    .where('id', '=', deliveryId)
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  if (!known) throw new NotFound('Delivery not found')
  const rows = await store.db
    .selectFrom('transcripts')
    .selectAll()
    .where('delivery_id', '=', deliveryId)
    .orderBy('attempt')
    .execute()
  return rows.map((row) => ({
    attempt: row.attempt,
    started_at: new Date(row.started_at).toISOString(),
    mx_host: row.mx_host || null,
    lines: (JSON.parse(row.lines_json) as [number, Line['direction'], string][]).map(
      ([ms, direction, line]) => ({ ms, direction, line }),
    ),
  }))
}
