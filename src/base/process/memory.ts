/** How much memory there is, and how much of it large bodies may use. */
import { totalmem } from 'node:os'

const MB = 1_048_576

/** Memory of the service under load without large bodies, rounded up. */
const REST_BYTES = 320 * MB
/** A body of 18 MB takes less than its own size in flight, garbage included. */
const SHARE = 1 / 4
/** Two bodies of 18 MB, even where memory is tight. */
const BODIES_BYTES_MIN = 40 * MB
/** More at a time is no faster. */
const BODIES_BYTES_MAX = 1_024 * MB

/** Of the machine, or of the control group that the process is in. */
export function memoryBytes(): number {
  const total = totalmem()
  const group = process.constrainedMemory()
  return group > 0 && group < total ? group : total
}

/** Bytes of large bodies that may be in flight at a time, in either direction, with that much memory. */
export const bodiesBytes = (memory: number): number =>
  Math.min(BODIES_BYTES_MAX, Math.max(BODIES_BYTES_MIN, (memory - REST_BYTES) * SHARE))
