/** Messages whose signatures would take a verifier too long to check. */
import { type Chunk, readChunks } from '../base/mime-message.ts'

/**
 * Limit on the lines of a header block that is verified: mailauth's time grows with the square of the lines that one
 * field is folded into (9 s for 40,000). A To with a thousand recipients has a thousand.
 */
const HEADER_LINES_MAX = 4_000
/** Its time also grows with the square of a line's length: 6 s for one of 20 MB, 40 ms for each of 1 MB. */
const LINE_BYTES_MAX = 1_048_576

const LF = 0x0a
const CR = 0x0d

/** Why the signatures of a message are not to be verified; null: they may be. */
export async function unverifiableReason(message: Chunk): Promise<string | null> {
  let lineBytes = 0
  let headerLines = 0
  let isHeader = true
  let last = 0
  for await (const bytes of readChunks([message])) {
    for (let at = 0; at < bytes.length; ) {
      const end = bytes.indexOf(LF, at)
      const stop = end < 0 ? bytes.length : end
      lineBytes += stop - at
      if (lineBytes > LINE_BYTES_MAX) return 'a line is too long to verify'
      if (stop > at) last = bytes[stop - 1] as number
      if (end < 0) break
      if (isHeader) {
        isHeader = lineBytes > 1 || (lineBytes === 1 && last !== CR)
        headerLines += 1
        if (isHeader && headerLines > HEADER_LINES_MAX) return 'the header is too long to verify'
      }
      lineBytes = 0
      at = end + 1
    }
  }
  return null
}
