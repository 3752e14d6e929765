/** The protocol of SpamAssassin's spamd: one request per connection; spamd/PROTOCOL of its distribution. */
import { exchange, type ScannerServer } from './exchange.ts'
import { type AskScorer, pointsOf, type SpamScore } from './spam-score.ts'

/** The answer is three lines. */
const ANSWER_CHARS_MAX = 10_000

/** SpamAssassin takes the client from the first Received field. */
export const askSpamd: AskScorer = async (server, { received }, bytes, signal) => {
  const trace = Buffer.from(`${received}\r\n`, 'latin1')
  // The length ends the request: a half-closed connection ends a check that has not begun.
  const head = Buffer.from(`CHECK SPAMC/1.5\r\nContent-length: ${trace.length + bytes.length}\r\n\r\n`)
  return readAnswer(await exchange(server, [Buffer.concat([head, trace, bytes])], ANSWER_CHARS_MAX, signal))
}

/** @throws Error when it does not answer as its protocol says */
export async function pingSpamd(server: ScannerServer, signal: AbortSignal): Promise<void> {
  const answer = await exchange(server, [Buffer.from('PING SPAMC/1.2\r\n\r\n')], ANSWER_CHARS_MAX, signal)
  if (!/^SPAMD\/\d+\.\d+ 0 PONG/.test(answer)) throw new Error(notUnderstood(answer))
}

const notUnderstood = (answer: string) => `spamd answered "${answer.slice(0, 100).trim()}"`

/** `Spam: True ; 15.0 / 5.0` after a status line with code 0. */
function readAnswer(answer: string): SpamScore {
  const status = /^SPAMD\/\d+\.\d+ (\d+)/.exec(answer)
  const result = /^Spam: *(True|False|Yes|No) *; *(-?\d+(?:\.\d+)?) *\/ *(-?\d+(?:\.\d+)?)/im.exec(answer)
  if (status?.[1] !== '0' || !result) throw new Error(notUnderstood(answer))
  return {
    score: pointsOf(result[2]),
    isSpam: /^(?:true|yes)$/i.test(result[1] ?? ''),
    required: pointsOf(result[3]),
  }
}
