/** The protocol of SpamAssassin's spamd: one CHECK request per connection; spamd/PROTOCOL of its distribution. */
import { connect } from 'node:net'
import { addAbortSignal } from 'node:stream'
import type { AskScorer, SpamScore } from './spam-score.ts'

/** The answer is three lines. */
const ANSWER_CHARS_MAX = 10_000

/** SpamAssassin takes the client from the first Received field. */
export const askSpamd: AskScorer = async ({ host, port }, { received }, bytes, signal) => {
  const socket = addAbortSignal(signal, connect({ host, port }))
  try {
    const trace = Buffer.from(`${received}\r\n`, 'latin1')
    // The length ends the request: a half-closed connection ends a check that has not begun.
    socket.write(`CHECK SPAMC/1.5\r\nContent-length: ${trace.length + bytes.length}\r\n\r\n`)
    socket.write(trace)
    socket.write(bytes)
    let answer = ''
    for await (const piece of socket) {
      answer += (piece as Buffer).toString('latin1')
      if (answer.length > ANSWER_CHARS_MAX) throw new Error('the answer of spamd is too long')
    }
    return readAnswer(answer)
  } finally {
    socket.destroy()
  }
}

/** `Spam: True ; 15.0 / 5.0` after a status line with code 0. */
function readAnswer(answer: string): SpamScore {
  const status = /^SPAMD\/\d+\.\d+ (\d+)/.exec(answer)
  const result = /^Spam: *(True|False|Yes|No) *; *(-?\d+(?:\.\d+)?) *\/ *(-?\d+(?:\.\d+)?)/im.exec(answer)
  if (status?.[1] !== '0' || !result) throw new Error(`spamd answered "${answer.slice(0, 100).trim()}"`)
  return {
    score: Number(result[2]),
    isSpam: /^(?:true|yes)$/i.test(result[1] ?? ''),
    required: Number(result[3]),
  }
}
