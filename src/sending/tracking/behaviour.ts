/**
 * Detects bots by behaviour (tracking.md rule 22): link scanners send HEAD before GET, follow several links at
 * once, and arrive as soon as the message has been delivered.
 *
 * Observations stay in this process's memory for seconds. Events are written at once and never changed, so the
 * first of several links followed together is not yet recognised.
 */

import type { Clock } from '../../base/time/clock.ts'
import { MINUTE_MS } from '../../base/time/durations.ts'
import type { DeliveryState } from '../../platform/store/schema.ts'

export type Behaviour = ReturnType<typeof createBehaviour>

/** Between two different links of one message: no person reads and clicks that fast. */
const LINKS_WITHIN_MS = 2_000
/** Between delivery and visit: no person opens that fast. */
const AFTER_DELIVERY_MS = 2_000
/** Between HEAD and GET: a scanner sends HEAD to all links first. */
const HEAD_BEFORE_MS = MINUTE_MS
/** Tokens and deliveries in memory; about 200 bytes each. */
const REMEMBERED_MAX = 20_000

export function createBehaviour(clock: Clock) {
  const heads = new Map<string, number>()
  const clicks = new Map<string, { token: string; at: number }>()

  return {
    /** Records a HEAD for this token. */
    headRequested(token: string) {
      put(heads, token, clock.monotonic())
    },
    /** Whether a GET for this token, of this delivery, looks automated. */
    isMachine({ kind, token, deliveryId }: { kind: 'open' | 'click'; token: string; deliveryId: string }) {
      const now = clock.monotonic()
      const headAt = heads.get(token)
      const hadHead = headAt !== undefined && now - headAt <= HEAD_BEFORE_MS
      if (kind === 'open') return hadHead
      const last = clicks.get(deliveryId)
      put(clicks, deliveryId, { token, at: now })
      const isAnotherLink = last !== undefined && last.token !== token && now - last.at <= LINKS_WITHIN_MS
      return hadHead || isAnotherLink
    },
  }
}

/**
 * Whether a visit arrived with the delivery: while its outcome was being written, or within two seconds. All in
 * Unix milliseconds.
 */
export function arrivedWithDelivery(
  delivery: { state: DeliveryState; deliveredAt: number | null },
  visitedAt: number,
): boolean {
  if (delivery.deliveredAt === null) return delivery.state === 'sending'
  return visitedAt - delivery.deliveredAt < AFTER_DELIVERY_MS
}

/** Inserts at the end and evicts the oldest entry. */
function put<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key)
  map.set(key, value)
  const oldest = map.keys().next()
  if (map.size > REMEMBERED_MAX && !oldest.done) map.delete(oldest.value)
}
