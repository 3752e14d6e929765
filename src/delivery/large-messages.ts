/** Large messages leave as there is memory for them; small ones never wait for it. */
import type { ByteBudget } from '../base/byte-budget.ts'
import type { Transport } from './contract.ts'

/** Up to this size a message is at hand as a whole; larger ones come from the disk, piece by piece. */
const SMALL_MAX_BYTES = 512 * 1024
/** What one takes on its way from the disk to a server, however large it is or slow the server. */
const STREAMED_BYTES = 3 * 1024 * 1024
/** The inbox holds the whole message, its pieces and its text, and takes it apart. */
const CAPTURE_FACTOR = 4

/** `isCaptured`: it goes to the inbox of this process. */
export function inTurns(memory: ByteBudget, isCaptured: boolean, transport: Transport): Transport {
  return {
    laneOf: (delivery) => transport.laneOf(delivery),
    close: () => transport.close(),
    async deliver(lane, delivery, prepared, stillOurs) {
      const { sizeBytes } = prepared
      if (sizeBytes <= SMALL_MAX_BYTES) return transport.deliver(lane, delivery, prepared, stillOurs)
      const release = await memory.take(isCaptured ? CAPTURE_FACTOR * sizeBytes : STREAMED_BYTES)
      try {
        return await transport.deliver(lane, delivery, prepared, stillOurs)
      } finally {
        release?.()
      }
    },
  }
}
