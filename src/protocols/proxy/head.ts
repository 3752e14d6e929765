/** The first bytes of a connection, before its own protocol begins. */
import type { Socket } from 'node:net'

/**
 * Reads until `judge` has seen enough, and puts back what follows: whoever reads the socket next gets it.
 * @param judge gets all bytes so far; returns how many of them it has used, null for more. It may destroy the socket
 * @param done called once, right after that
 * @returns ends the reading
 */
export function readHead(
  socket: Socket,
  judge: (bytes: Buffer) => number | null,
  done: () => void,
): () => void {
  let held: Buffer = Buffer.alloc(0)
  const stop = () => void socket.off('readable', take)
  function take(): void {
    for (let piece: Buffer | null = socket.read(); piece !== null; piece = socket.read())
      held = Buffer.concat([held, piece])
    const used = judge(held)
    if (used === null || socket.destroyed) return
    stop()
    if (used < held.length) socket.unshift(held.subarray(used))
    done()
  }
  socket.on('readable', take)
  return stop
}
