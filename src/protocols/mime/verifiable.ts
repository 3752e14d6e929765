/** Messages whose signatures would take a verifier too long to check. */
import { type Chunk, scanChunks } from '../message/mime-message.ts'
import type { RawHeader } from './split.ts'

/**
 * Limit on the lines of a header block that is verified: mailauth's time grows with the square of the lines that one
 * field is folded into (9 s for 40,000). A To with a thousand recipients has a thousand.
 */
const HEADER_LINES_MAX = 4_000
/** Its time also grows with the square of a line's length: 6 s for one of 20 MB, 40 ms for each of 1 MB. */
const LINE_BYTES_MAX = 1_048_576
/** And with the square of the fields that it parses, in characters: of one field, and of all of a kind. */
const PARSED: readonly { name: RegExp; eachMax: number; allMax: number }[] = [
  { name: /^(?:from|return-path)$/i, eachMax: 8_192, allMax: 8_192 },
  { name: /^received$/i, eachMax: 2_048, allMax: 65_536 },
  { name: /^(?:dkim-signature$|arc-)/i, eachMax: 8_192, allMax: 65_536 },
]
/** Likewise with a run of blanks in them. Folds are indented by fewer. */
const BLANKS = /[ \t\r\n]{200}/

const LF = 0x0a
const CR = 0x0d

/**
 * Why the signatures of a message are not to be verified; null: they may be.
 * @param headers as `splitMessage` found them
 */
export async function unverifiableReason(message: Chunk, headers: readonly RawHeader[]) {
  return fieldFault(headers) ?? (await lineFault(message))
}

function fieldFault(headers: readonly RawHeader[]): string | null {
  // Its first line would be read as a field whose name is as long as the line.
  if (headers.length === 0) return 'there is no header to verify'
  for (const { name, eachMax, allMax } of PARSED) {
    const fields = headers.filter((header) => name.test(header.name))
    const length = fields.reduce((sum, { raw }) => sum + raw.length, 0)
    if (length > allMax || fields.some(({ raw }) => raw.length > eachMax || BLANKS.test(raw)))
      return 'a field is too long to verify'
  }
  return null
}

async function lineFault(message: Chunk): Promise<string | null> {
  let lineBytes = 0
  let headerLines = 0
  let isHeader = true
  let last = 0
  let isFirst = true
  for await (const bytes of scanChunks([message])) {
    // `splitMessage` skips it, mailauth takes it for a field.
    if (isFirst && /^>?From /.test(Buffer.from(bytes.subarray(0, 6)).toString('latin1')))
      return 'it begins with an mbox line'
    isFirst = false
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
