/** Slots in the delivery engine for the deliveries of a message that is being accepted. */

import type { DeliveryRow } from '../../platform/store/schema.ts'
import type { Delivery, Reservation } from '../deliver/contract.ts'

/** Exactly one of the two must be called. */
export interface Reservations {
  /** The rows are on disk. */
  enter(): void
  /** They are not; `mayExist`: the database went away before it answered, so they may be there all the same. */
  cancel(mayExist: boolean): void
}

/** Turns rows that are due now into claimed ones, up to the slots that the engine has free. */
export function reserveSlots(
  engine: Pick<Delivery, 'reserve' | 'inserted' | 'wakeAt'>,
  rows: readonly DeliveryRow[],
): Reservations {
  const reserved: { row: DeliveryRow; reservation: Reservation }[] = []
  const queued: DeliveryRow[] = []
  let firstDueAt = Number.POSITIVE_INFINITY
  for (const row of rows) {
    if (row.state !== 'queued') {
      firstDueAt = Math.min(firstDueAt, row.due_at)
      continue
    }
    const reservation = engine.reserve(row)
    if (!reservation) {
      queued.push(row)
      continue
    }
    Object.assign(row, reservation.lease)
    row.state = 'sending'
    reserved.push({ row, reservation })
  }
  return {
    enter() {
      for (const { row, reservation } of reserved) reservation.enter(row)
      if (queued.length > 0) engine.inserted(queued)
      if (firstDueAt < Number.POSITIVE_INFINITY) engine.wakeAt(firstDueAt)
    },
    cancel(mayExist) {
      for (const { row, reservation } of reserved) reservation.cancel(mayExist ? row : undefined)
    },
  }
}
