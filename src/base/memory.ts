/** How much memory there is, and how much of it large bodies may have. */
import { totalmem } from 'node:os'

const MB = 1_048_576

/** What the service takes under load without large bodies, or a little more. */
const REST_BYTES = 320 * MB
/** What a body of 18 MB takes on its way, with what of it is not collected yet, is less than its own size. */
const SHARE = 1 / 4
/** Two of 18 MB: also where that is tight. */
const BODIES_BYTES_MIN = 40 * MB
/** More at a time would not be quicker. */
const BODIES_BYTES_MAX = 1_024 * MB

/** Of the machine, or of the control group that the process is in. */
export function memoryBytes(): number {
  const total = totalmem()
  const group = process.constrainedMemory()
  return group > 0 && group < total ? group : total
}

/** Bytes of large bodies that may be on their way at a time, in either direction, with so much memory. */
export const bodiesBytes = (memory: number): number =>
  Math.min(BODIES_BYTES_MAX, Math.max(BODIES_BYTES_MIN, (memory - REST_BYTES) * SHARE))
