/** One request and one answer over a connection of its own, as spamd and clamd speak. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { addAbortSignal } from 'node:stream'

/** Where a scanner listens: over TCP, or at a socket's path. */
export type ScannerServer = { host: string; port: number } | { path: string }

/**
 * The answer up to the end of the connection, each byte a character.
 * @throws Error when the server cannot be reached, or the answer has more than `answerMax` characters; the reason of `signal`
 */
export async function exchange(
  server: ScannerServer,
  request: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  answerMax: number,
  signal: AbortSignal,
): Promise<string> {
  const socket = addAbortSignal(signal, connect(server))
  try {
    const [answer] = await Promise.all([read(socket, answerMax), write(socket, request)])
    return answer
  } finally {
    socket.destroy()
  }
}

async function read(socket: Socket, answerMax: number): Promise<string> {
  let answer = ''
  for await (const piece of socket) {
    answer += (piece as Buffer).toString('latin1')
    if (answer.length > answerMax) throw new Error('the answer is too long')
  }
  return answer
}

/** Not half-closed at its end: spamd takes that for a client that has left. A server may answer before it has read all. */
async function write(socket: Socket, request: Iterable<Uint8Array> | AsyncIterable<Uint8Array>) {
  const ended = new AbortController()
  socket.once('close', () => ended.abort())
  try {
    for await (const piece of request) {
      if (!socket.write(piece)) await once(socket, 'drain', { signal: ended.signal })
      if (socket.destroyed || socket.readableEnded) return
    }
  } catch (error) {
    // `read` says why it has ended.
    if (!ended.signal.aborted) throw error
  }
}
