/**
 * Bots by what they do (tracking.md rule 22): machines that check the links of a mail ask for the head before the
 * whole, take several links at once, and come as soon as the mail has been delivered.
 *
 * What was seen lies in this process's memory, for seconds: events are written at once and never changed, so the
 * first of several links taken together is not yet known to be one of several.
 */
import type { Clock } from '../base/clock.ts'
import type { DeliveryState } from '../store/schema.ts'

export interface Behaviour {
  /** A HEAD for this token. */
  asked(token: string): void
  /** Whether a GET for this token, of this delivery, looks like a machine's. */
  isMachine(visit: { kind: 'open' | 'click'; token: string; deliveryId: string }): boolean
}

/** Between the first and the next link of one mail: nobody reads and clicks that fast. */
const LINKS_WITHIN_MS = 2_000
/** From the delivery to the visit: nobody opens that fast. */
export const AFTER_DELIVERY_MS = 2_000
/** From HEAD to GET: a checker goes through all links by HEAD first. */
const HEAD_BEFORE_MS = 60_000
/** Tokens and deliveries remembered; some 200 bytes each. */
const REMEMBERED_MAX = 20_000

export function createBehaviour(clock: Clock): Behaviour {
  const heads = new Map<string, number>()
  const clicks = new Map<string, { token: string; at: number }>()

  return {
    asked(token) {
      put(heads, token, clock.monotonic())
    },
    isMachine({ kind, token, deliveryId }) {
      const now = clock.monotonic()
      const askedAt = heads.get(token)
      const askedBefore = askedAt !== undefined && now - askedAt <= HEAD_BEFORE_MS
      if (kind === 'open') return askedBefore
      const last = clicks.get(deliveryId)
      put(clicks, deliveryId, { token, at: now })
      const another = last !== undefined && last.token !== token && now - last.at <= LINKS_WITHIN_MS
      return askedBefore || another
    },
  }
}

/** Came with the delivery: while its outcome was being written, or within two seconds. All in Unix milliseconds. */
export function cameWithDelivery(
  delivery: { state: DeliveryState; deliveredAt: number | null },
  visitedAt: number,
): boolean {
  if (delivery.deliveredAt === null) return delivery.state === 'sending'
  return visitedAt - delivery.deliveredAt < AFTER_DELIVERY_MS
}

/** Puts at the end; what was put first goes first. */
function put<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key)
  map.set(key, value)
  const oldest = map.keys().next()
  if (map.size > REMEMBERED_MAX && !oldest.done) map.delete(oldest.value)
}
