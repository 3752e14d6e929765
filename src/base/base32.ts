/** Base 32 in lower case without padding (RFC 4648 section 6): for tokens that may lose their letter case. */

const DIGITS = 'abcdefghijklmnopqrstuvwxyz234567'
const DIGIT_CODES = Buffer.from(DIGITS)
const PATTERN = /^[a-z2-7]*$/

export function toBase32(bytes: Uint8Array): string {
  const digits = Buffer.allocUnsafe(Math.ceil((bytes.length * 8) / 5))
  let length = 0
  let bits = 0
  let held = 0
  for (let at = 0; at < bytes.length; at++) {
    held = ((held << 8) | (bytes[at] as number)) & 0xffff
    bits += 8
    for (; bits >= 5; bits -= 5) digits[length++] = DIGIT_CODES[(held >> (bits - 5)) & 31] as number
  }
  if (bits > 0) digits[length++] = DIGIT_CODES[(held << (5 - bits)) & 31] as number
  return digits.toString('latin1', 0, length)
}

/** The bytes of a text in either letter case; null for a text that `toBase32` never returns. */
export function fromBase32(text: string): Buffer | null {
  const folded = text.toLowerCase()
  if (!PATTERN.test(folded)) return null
  const bytes = Buffer.alloc(Math.floor((folded.length * 5) / 8))
  let at = 0
  let bits = 0
  let held = 0
  for (const digit of folded) {
    held = ((held << 5) | DIGITS.indexOf(digit)) & 0xffff
    bits += 5
    if (bits >= 8) {
      bits -= 8
      bytes[at++] = (held >> bits) & 0xff
    }
  }
  // The remaining bits, fewer than a digit has, must be zero: otherwise the same bytes would have two forms.
  return bits < 5 && (held & ((1 << bits) - 1)) === 0 ? bytes : null
}
