/** For tests of the bench itself. */
import { connect } from 'node:net'
import { within } from './rig.ts'

const DIALOGUE_LIMIT_MS = 10_000

/** Writes each piece after the reply to the previous one; resolves all reply lines. The last piece is QUIT. */
export function talkSmtp(port: number, pieces: readonly string[]): Promise<string[]> {
  const waiting = [...pieces]
  let text = ''
  const dialogue = new Promise<string[]>((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      if (!text.endsWith('\r\n')) return
      const piece = waiting.shift()
      if (piece !== undefined) socket.write(piece)
      // A piece that ends within content gets no reply: the next one follows at once.
      if (piece?.endsWith('\r\n.')) setImmediate(() => socket.write(waiting.shift() ?? ''))
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(text.split('\r\n').slice(0, -1)))
  })
  return within(DIALOGUE_LIMIT_MS, 'the dialogue', dialogue)
}
