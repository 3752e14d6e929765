/** Room in the delivery engine for the deliveries of a message that is being accepted. */
import type { Delivery, Reservation } from '../delivery/contract.ts'
import type { DeliveryRow } from '../store/schema.ts'

/** Exactly one of the two must be called. */
export interface Places {
  /** The rows are on disk. */
  enter(): void
  /** They will not be. */
  cancel(): void
}

/** Makes claimed ones of the rows that are due now, as far as the engine has room. */
export function takePlaces(
  engine: Pick<Delivery, 'reserve' | 'inserted' | 'wakeAt'>,
  rows: readonly DeliveryRow[],
): Places {
  const taken: { row: DeliveryRow; place: Reservation }[] = []
  const queued: DeliveryRow[] = []
  let firstPlanned = Number.POSITIVE_INFINITY
  for (const row of rows) {
    if (row.state !== 'queued') {
      firstPlanned = Math.min(firstPlanned, row.due_at)
      continue
    }
    const place = engine.reserve(row)
    if (!place) {
      queued.push(row)
      continue
    }
    Object.assign(row, place.lease)
    row.state = 'sending'
    taken.push({ row, place })
  }
  return {
    enter() {
      for (const { row, place } of taken) place.enter(row)
      if (queued.length > 0) engine.inserted(queued)
      if (firstPlanned < Number.POSITIVE_INFINITY) engine.wakeAt(firstPlanned)
    },
    cancel() {
      for (const { place } of taken) place.cancel()
    },
  }
}
