/** Character sets of received text: the WHATWG Encoding Standard, which is what mail programs use. */
import { TextDecoder } from 'node:util'

/** Labels in mail that the standard does not list, without separators. */
const ALIASES: Readonly<Record<string, string>> = {
  iso88598i: 'iso-8859-8-i',
  iso88598e: 'iso-8859-8',
  cp932: 'shift_jis',
  windows31j: 'shift_jis',
  eucjp: 'euc-jp',
  iso2022jp1: 'iso-2022-jp',
  iso2022jp2: 'iso-2022-jp',
  cp50220: 'iso-2022-jp',
  cp936: 'gbk',
  cp949: 'euc-kr',
  uhc: 'euc-kr',
  cp950: 'big5',
  tis620: 'windows-874',
  utf8mb4: 'utf-8',
}
/** Decoders by label; senders choose the labels, so their number is limited. */
const DECODERS_MAX = 100
const UTF_8 = new TextDecoder()
const WINDOWS_1252 = new TextDecoder('windows-1252')
const decoders = new Map<string, TextDecoder | null>()

/**
 * Decodes bytes of the named character set. An unknown or empty one is taken for UTF-8, and bytes that are
 * not UTF-8 then for windows-1252, which maps every byte to some character. Never throws.
 */
export function decodeCharset(bytes: Uint8Array, label = ''): string {
  const name = label.trim().toLowerCase()
  if (UTF_7.test(name)) return decodeUtf7(bytes)
  const decoder = decoderFor(name)
  if (decoder) return decoder.decode(bytes)
  const text = UTF_8.decode(bytes)
  return text.includes('\ufffd') ? WINDOWS_1252.decode(bytes) : text
}

/** Not in the standard, since browsers were tricked with it; text from here is checked and escaped after it was decoded. */
const UTF_7 = /^(?:x-)?(?:unicode-[12]-[01]-)?utf-?7$|^csunicode11utf7$/

const [PLUS, HYPHEN] = [0x2b, 0x2d]
const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
const BASE64_VALUES = new Map([...BASE64].map((character, value) => [character.charCodeAt(0), value]))

/** RFC 2152: UTF-16 in base64 between "+" and "-" or any character that is no base64; all else as it is. */
function decodeUtf7(bytes: Uint8Array): string {
  const text = decodeCharset(bytes)
  const units = new Uint16Array(text.length)
  let size = 0
  /** Where base64 begins; -1: this is none. */
  let start = -1
  let held = 0
  let bits = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    const value = start < 0 ? undefined : BASE64_VALUES.get(code)
    if (value !== undefined) {
      held = ((held << 6) | value) & 0x3fffff
      bits += 6
      if (bits < 16) continue
      bits -= 16
      units[size++] = held >> bits
    } else if (start < 0 && code === PLUS) {
      start = at + 1
      bits = 0
    } else {
      if (start === at) units[size++] = PLUS
      if (start < 0 || code !== HYPHEN) units[size++] = code
      start = -1
    }
  }
  if (start === text.length) units[size++] = PLUS
  return Buffer.from(units.buffer, 0, 2 * size)
    .toString('utf16le')
    .toWellFormed()
}

/**
 * The same for bytes that are read in pieces, twice if the character set is unknown. Each piece of text is of whole
 * characters.
 */
export async function* decodePieces(
  open: () => AsyncIterable<Uint8Array>,
  label = '',
): AsyncGenerator<string> {
  const known = decoderFor(label.trim().toLowerCase())?.encoding
  const encoding = known ?? ((await isUtf8(open())) ? 'utf-8' : 'windows-1252')
  yield* textOf(open(), new TextDecoder(encoding))
}

/** As `decodeCharset` judges it. */
async function isUtf8(pieces: AsyncIterable<Uint8Array>): Promise<boolean> {
  for await (const text of textOf(pieces, new TextDecoder())) if (text.includes('\ufffd')) return false
  return true
}

/** The text of a decoder, in pieces of whole characters. */
export async function* textOf(
  pieces: AsyncIterable<Uint8Array>,
  decoder: TextDecoder,
): AsyncGenerator<string> {
  for await (const bytes of pieces) {
    const text = decoder.decode(bytes, { stream: true })
    if (text !== '') yield text
  }
  const rest = decoder.decode()
  if (rest !== '') yield rest
}

function decoderFor(label: string): TextDecoder | null {
  // US-ASCII is claimed by many that send UTF-8; for what is really ASCII there is no difference.
  if (label === '' || label === 'us-ascii' || label === 'ascii') return null
  const known = decoders.get(label)
  if (known !== undefined) return known
  const decoder = makeDecoder(label)
  if (decoders.size < DECODERS_MAX) decoders.set(label, decoder)
  return decoder
}

/** A decoder for text in pieces, of UTF-8 if the character set is unknown. */
export function streamDecoder(label: string): TextDecoder {
  return makeDecoder(label.toLowerCase()) ?? new TextDecoder()
}

function makeDecoder(label: string): TextDecoder | null {
  const alias = ALIASES[label.replace(/^x-|[\s._-]/g, '')]
  return decoderOf(label) ?? (alias === undefined ? null : decoderOf(alias))
}

function decoderOf(label: string): TextDecoder | null {
  try {
    return new TextDecoder(label)
  } catch {
    return null
  }
}
