/** Large messages are sent when there is memory for them; small ones never wait for it. */
import type { ByteBudget } from '../../../base/flow/byte-budget.ts'
import type { Transport } from '../contract.ts'

/** Up to this size a message is in memory as a whole; larger ones are read from the disk, piece by piece. */
const SMALL_MAX_BYTES = 512 * 1024
/** What a larger one takes while it is sent, however large it is or slow the server. */
const STREAMED_BYTES = 3 * 1024 * 1024
/** The inbox holds the whole message, its pieces and its text, and parses it. */
const CAPTURE_FACTOR = 4

/** The transport with a bound on memory. `isCaptured`: mail goes to the inbox of this process. */
export function withMemoryBound(memory: ByteBudget, isCaptured: boolean, transport: Transport): Transport {
  return {
    ...transport,
    async deliver(lane, delivery, prepared, beforeFinalDot) {
      const { sizeBytes } = prepared
      if (sizeBytes <= SMALL_MAX_BYTES) return transport.deliver(lane, delivery, prepared, beforeFinalDot)
      const release = await memory.take(isCaptured ? CAPTURE_FACTOR * sizeBytes : STREAMED_BYTES)
      try {
        return await transport.deliver(lane, delivery, prepared, beforeFinalDot)
      } finally {
        release?.()
      }
    },
  }
}
