/** Encoded words: non-ASCII text inside header fields. RFC 2047, with the language tag of RFC 2231 §5. */
import { isUtf8 } from 'node:buffer'
import { decodeCharset } from './charset.ts'
import { blankControls } from './quoted/text-safety.ts'

/** Most characters of one encoded word, RFC 2047 §2. */
const ENCODED_WORD_MAX = 75
const PREFIX_Q = '=?utf-8?Q?'
const PREFIX_B = '=?utf-8?B?'
const OVERHEAD = PREFIX_Q.length + 2
/** Below this budget a word would carry hardly any text: start it on a line of its own. */
export const ENCODED_WORD_MIN = OVERHEAD + 12

/** Longer text is left as it is: 40,000 words in one field would hold the process for a tenth of a second. */
const DECODED_MAX = 131_072

/** The position of an encoded word decides which characters Q may keep, RFC 2047 §5. */
type WordContext = 'text' | 'phrase'

const SAFE_IN_PHRASE = asciiSet('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!*+-/')
const SAFE_IN_TEXT = asciiSet(
  '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!*+-/"#$%&\'(),.:;<>@[\\]^`{|}~',
)

function asciiSet(characters: string): ReadonlySet<string> {
  return new Set(characters)
}

/**
 * Decodes every encoded word in unfolded `text`; blanks between adjacent words vanish (RFC 2047 §6.2), a
 * character split over two words is put together again. Words may hold blanks and raw bytes, which some senders do not
 * encode. What does not decode stays, and so does all of a text of more than 128 K characters. The decoded text can hold no
 * control characters, whatever the words hid: they become spaces.
 */
export function decodeWords(text: string): string {
  const hasWords = text.length <= DECODED_MAX && text.includes('=?')
  return blankControls(hasWords ? decodeRuns(text) : text)
}

/** The same text with raw bytes of its encoded words encoded, so that it can be parsed: bytes of some charsets look like controls. */
export function withoutRawBytes(text: string): string {
  if (isAscii(text)) return text
  return text.replace(WORD, (word) =>
    isAscii(word) ? word : encodeWords(decodeWords(word), 'phrase').join(' '),
  )
}

const WORD = /=\?([^?\s*]{1,60})(?:\*[^?\s]{0,60})?\?([bq])\?([^?]*)\?=/gi
const BLANKS = /^[ \t\r\n]*$/

/** Character sets of one text; words of further ones are read as if theirs were unknown. To find that out takes 10 µs for each. */
const CHARSETS_MAX = 20

interface Word {
  charset: string
  bytes: Buffer
}

function decodeRuns(text: string): string {
  let decoded = ''
  let run: Word[] = []
  let at = 0
  const charsets = new Set<string>()
  for (const match of text.matchAll(WORD)) {
    const [whole, label = '', encoding = '', content = ''] = match
    const charset = label.toLowerCase()
    if (charsets.size < CHARSETS_MAX) charsets.add(charset)
    const word = wordOf(charsets.has(charset) ? charset : '', encoding.toLowerCase(), content)
    const between = text.slice(at, match.index)
    const isAdjacent = run.length > 0 && BLANKS.test(between)
    if (!isAdjacent || run[0]?.charset !== word.charset) {
      decoded += textOfRun(run)
      run = []
    }
    if (!isAdjacent) decoded += between
    run.push(word)
    at = match.index + whole.length
  }
  return decoded + textOfRun(run) + text.slice(at)
}

/** Raw bytes came into `content` as the field was decoded: as UTF-8, or else each as the character of Latin-1. */
function wordOf(charset: string, encoding: string, content: string): Word {
  const isPlain = isAscii(content)
  if (encoding === 'b' && isPlain) return { charset, bytes: Buffer.from(content, 'base64') }
  const decode = (from: 'latin1' | 'utf8') => {
    const bytes = Buffer.from(content, from)
    return encoding === 'b' ? bytes : unquoted(bytes)
  }
  if (/^[\0-\xff]*$/.test(content)) {
    const bytes = decode('latin1')
    if (isPlain || !/^utf-?8$/.test(charset) || isUtf8(bytes)) return { charset, bytes }
  }
  return { charset: 'utf-8', bytes: decode('utf8') }
}

const isAscii = (text: string) => !/[^\0-\x7f]/.test(text)

/** The Q encoding, RFC 2047 §4.2. Blanks after "=" are from lines that were folded inside of a word. */
function unquoted(bytes: Buffer): Buffer {
  const text = bytes.toString('latin1').replaceAll('_', ' ')
  return Buffer.from(
    text.replace(/=\s*([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  )
}

/** Words that do not decode together are decoded one by one. */
function textOfRun(run: readonly Word[]): string {
  const [first] = run
  if (first === undefined) return ''
  const text = decodeCharset(Buffer.concat(run.map(({ bytes }) => bytes)), first.charset)
  if (run.length === 1 || !text.includes('\ufffd')) return text
  return run.map(({ bytes }) => decodeCharset(bytes, first.charset)).join('')
}

/**
 * Encodes `text` (no controls in it) as one or more encoded words in UTF-8, B or Q whichever is shorter;
 * no word splits a character. The words are to be written with one blank or fold between them.
 * @param firstMax room for the first word, in characters; at least ENCODED_WORD_MIN.
 */
export function encodeWords(text: string, context: WordContext, firstMax = ENCODED_WORD_MAX): string[] {
  const safe = context === 'phrase' ? SAFE_IN_PHRASE : SAFE_IN_TEXT
  let lengthQ = 0
  for (const character of text)
    lengthQ += safe.has(character) || character === ' ' ? 1 : 3 * utf8Length(character)
  const lengthB = Math.ceil(Buffer.byteLength(text) / 3) * 4
  const first = Math.min(firstMax, ENCODED_WORD_MAX)
  return lengthQ <= lengthB ? wordsQ(text, safe, first) : wordsB(text, first)
}

function wordsQ(text: string, safe: ReadonlySet<string>, first: number): string[] {
  const words: string[] = []
  let room = first - OVERHEAD
  let held = ''
  for (const character of text) {
    const piece = safe.has(character) ? character : character === ' ' ? '_' : escapeQ(character)
    if (held.length + piece.length > room) {
      words.push(`${PREFIX_Q}${held}?=`)
      held = ''
      room = ENCODED_WORD_MAX - OVERHEAD
    }
    held += piece
  }
  if (held !== '') words.push(`${PREFIX_Q}${held}?=`)
  return words
}

function wordsB(text: string, first: number): string[] {
  const words: string[] = []
  let roomBytes = Math.floor((first - OVERHEAD) / 4) * 3
  let heldBytes = 0
  let start = 0
  let end = 0
  const close = () => words.push(`${PREFIX_B}${Buffer.from(text.slice(start, end)).toString('base64')}?=`)
  for (const character of text) {
    const bytes = utf8Length(character)
    if (heldBytes + bytes > roomBytes) {
      close()
      start = end
      heldBytes = 0
      roomBytes = Math.floor((ENCODED_WORD_MAX - OVERHEAD) / 4) * 3
    }
    heldBytes += bytes
    end += character.length
  }
  if (end > start) close()
  return words
}

function escapeQ(character: string): string {
  let escaped = ''
  for (const byte of Buffer.from(character)) escaped += `=${byte.toString(16).toUpperCase().padStart(2, '0')}`
  return escaped
}

/** Octets of one code point in UTF-8. */
export function utf8Length(character: string): number {
  const code = character.codePointAt(0) as number
  return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4
}
