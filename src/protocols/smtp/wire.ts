/**
 * Message content as it is written to the wire, in any pieces (RFC 5321 §2.3.8, §4.5.2):
 *
 * - every line ends in CRLF: a bare CR or a bare LF becomes one, so that all readers downstream see the same lines and
 *   the same "end of data" (no SMTP smuggling);
 * - NUL is left out (RFC 2045 §2.7 has no use for it, and some readers drop it, which could join a dot to a line end);
 * - a dot at the start of a line is doubled;
 * - the content ends with CRLF, followed by the one final dot.
 *
 * After BDAT, which states the number of bytes (RFC 3030), dots mean nothing: the last two steps are skipped.
 *
 * The DKIM signer hashes bodies by the same rules.
 */

const NUL = 0
const LF = 10
const CR = 13
const DOT = 46
const CRLF = Buffer.from('\r\n')
const EXTRA_DOT = Buffer.from('.')
const FINAL_DOT = Buffer.from('.\r\n')

export class ContentLines {
  readonly #dots: boolean
  #lineStart = true
  /** The last byte was CR, and its line end has been emitted: an LF now belongs to it. */
  #afterCr = false

  /** @param end What marks the end of the content. */
  constructor(end: 'dot' | 'size') {
    this.#dots = end === 'dot'
  }

  /**
   * Emits what `bytes` becomes, as pieces in order: slices of `bytes` where nothing has to change.
   * The inner loop looks at every byte once: 10 KB of text take 7 us; with the state updated per byte it was 20 us.
   */
  push(bytes: Uint8Array, out: (piece: Uint8Array) => void): void {
    const { length } = bytes
    let clean = 0
    const flush = (end: number) => {
      if (end > clean) out(bytes.subarray(clean, end))
      clean = end
    }
    for (let index = 0; index < length; index++) {
      if (this.#dots && this.#lineStart && bytes[index] === DOT) {
        flush(index)
        out(EXTRA_DOT)
      }
      const from = index
      while (index < length && (bytes[index] as number) > CR) index++
      if (index > from) {
        this.#lineStart = false
        this.#afterCr = false
      }
      if (index === length) break
      const byte = bytes[index] as number
      if (byte === CR && bytes[index + 1] === LF) {
        index++
        this.#lineStart = true
        this.#afterCr = false
      } else if (byte === CR || byte === LF || byte === NUL) {
        flush(index)
        clean = index + 1
        if (byte !== NUL) this.#bareLineEnd(byte, out)
      } else {
        this.#lineStart = false
        this.#afterCr = false
      }
    }
    flush(length)
  }

  #bareLineEnd(byte: number, out: (piece: Uint8Array) => void): void {
    if (!(byte === LF && this.#afterCr)) out(CRLF)
    this.#afterCr = byte === CR
    this.#lineStart = true
  }

  /** Ends an open line, then emits the final dot if that marks the end. */
  end(out: (piece: Uint8Array) => void): void {
    if (!this.#lineStart) out(CRLF)
    if (this.#dots) out(FINAL_DOT)
  }
}
