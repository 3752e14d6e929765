/** ClamAV's clamd: INSTREAM and PING, one command per connection; clamd(8). */
import { exchange, type ScannerServer } from './exchange.ts'

/** The answer is a line. */
const ANSWER_CHARS_MAX = 1_000
/** clamd refuses longer pieces than its StreamMaxLength, which is 25 MB or more. */
const PIECE_BYTES_MAX = 1024 * 1024

/**
 * The name of the virus found in the bytes; null: none was.
 * @throws Error when clamd cannot be reached, takes no stream of this size, or does not answer as its protocol says
 */
export async function scanForVirus(
  server: ScannerServer,
  pieces: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<string | null> {
  const answer = await exchange(server, stream(pieces), ANSWER_CHARS_MAX, signal)
  const [, verdict] = /^stream: ([\x20-\x7e]{1,200})\0?$/.exec(answer) ?? []
  if (verdict === 'OK') return null
  const [, name] = /^(.+) FOUND$/.exec(verdict ?? '') ?? []
  if (name === undefined) throw new Error(notUnderstood(answer))
  return name
}

/** @throws Error when it does not answer as its protocol says */
export async function pingClamd(server: ScannerServer, signal: AbortSignal): Promise<void> {
  const answer = await exchange(server, [Buffer.from('zPING\0')], ANSWER_CHARS_MAX, signal)
  if (answer !== 'PONG\0') throw new Error(notUnderstood(answer))
}

/** Each piece after its length; a length of 0 ends the stream. */
async function* stream(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield Buffer.from('zINSTREAM\0')
  for await (const whole of pieces) {
    for (let at = 0; at < whole.byteLength; at += PIECE_BYTES_MAX) {
      const piece = whole.subarray(at, at + PIECE_BYTES_MAX)
      yield lengthOf(piece.byteLength)
      // Of its own: the pieces of a scan share their memory, and a socket may write it later.
      yield Buffer.from(piece)
    }
  }
  yield lengthOf(0)
}

function lengthOf(bytes: number): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(bytes)
  return length
}

const notUnderstood = (answer: string) =>
  `clamd answered "${answer.slice(0, 100).replaceAll(/[^\x20-\x7e]/g, '')}"`
