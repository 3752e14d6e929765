/**
 * One header field, from Unicode text to what is sent.
 *
 * 1. Controls and line separators in the value become spaces, so a value can never begin another field.
 * 2. The name decides the kind: addresses, structured, or unstructured (RFC 5322 §3.6).
 * 3. The value becomes pieces that must not be broken; encoding happens there (RFC 2047, RFC 6532).
 * 4. The pieces are set in lines of at most 78 characters where that is possible, 998 octets always.
 */
import {
  type AddressGroup,
  bareAddress,
  formatPhrase,
  type Mailbox,
  needsSmtpUtf8,
  parseAddressItems,
  parsePlainMailbox,
  readOrNull,
} from './address.ts'
import { ENCODED_WORD_MIN, encodeWords, utf8Length } from './encoded-word.ts'
import { formatParameter, type Parameter } from './parameters.ts'
import { blankControls } from './quoted/text-safety.ts'

const UNIQUE = new Set('date from sender reply-to to cc message-id in-reply-to references subject'.split(' '))

/** Whether a message may have the field only once (RFC 5322 §3.6). `name` is in lower case. */
export const isUniqueField = (name: string): boolean => UNIQUE.has(name)

export class HeaderSyntaxError extends Error {
  override name = 'HeaderSyntaxError'
}

export type HeaderOptions = {
  /** Write UTF-8 as it is (RFC 6532), for messages that travel with SMTPUTF8. Default false: ASCII only. */
  utf8?: boolean
}

/** A line should have at most 78 characters (RFC 5322 §2.1.1), one with an encoded word must have at most 76 (RFC 2047 §2). */
const LINE_PREFERRED = 76
/** A field that needs no folding at all may fill the 78. */
const UNFOLDED_MAX = 78
/** Octets of an unbroken piece: with the longest name or the most blanks before it, it stays below the 998 of RFC 5322 §2.1.1. */
const PIECE_BYTES_MAX = 900
/** Header names leave room for a value on their line; the longest registered one has about 60. */
const NAME_MAX = 76
/** Bytes of a whole header block, and so of each field: 1,000 recipients with names take about half of it. */
export const HEADER_BYTES_MAX = 1_048_576
/** More blanks in a row than this are cut: a line must not consist of blanks alone (RFC 5322 §3.2.2). */
const BLANKS_MAX = 32

const ADDRESS_FIELDS = new Set(
  `from sender reply-to to cc bcc resent-from resent-sender resent-to resent-cc resent-bcc errors-to
  mail-followup-to mail-reply-to disposition-notification-to return-receipt-to`.split(/\s+/),
)
const STRUCTURED_FIELDS = new Set(
  `message-id in-reply-to references resent-message-id date resent-date mime-version content-type content-id
  content-transfer-encoding content-disposition received return-path dkim-signature authentication-results
  arc-seal arc-message-signature arc-authentication-results list-unsubscribe list-unsubscribe-post list-help
  list-subscribe list-post list-owner list-archive auto-submitted x-original-message-id`.split(/\s+/),
)

/** A piece that must not be broken; `blanks` precede it and move to the next line with it. */
type Piece = { text: string; blanks: number; encoded?: true }

/** True for a name of printable ASCII without colon, at most 76 characters. RFC 5322 §3.6.8 (ftext). */
export function isHeaderName(name: string): boolean {
  return name.length <= NAME_MAX && /^[\x21-\x39\x3b-\x7e]+$/.test(name)
}

/**
 * Builds the raw field `Name: value`, folded with CRLF, without final CRLF. `value` is Unicode text.
 *
 * Address fields that do not parse as such are written like text. Structured fields (Message-Id, Date,
 * List-Unsubscribe ...) are only folded; non-ASCII characters in them are percent-encoded, as encoded words
 * are not allowed there.
 * @throws HeaderSyntaxError for a bad name or a value over 1 MiB.
 */
export function headerField(name: string, value: string, options: HeaderOptions = {}): string {
  if (!isHeaderName(name))
    throw new HeaderSyntaxError(`Invalid header name: ${JSON.stringify(name.slice(0, 80))}`)
  if (value.length > HEADER_BYTES_MAX) {
    throw new HeaderSyntaxError(
      `Header ${name} has ${value.length} characters: at most ${HEADER_BYTES_MAX} are sent`,
    )
  }
  const utf8 = options.utf8 === true
  const clean = blankControls(value).trim()
  const key = name.toLowerCase()
  if (ADDRESS_FIELDS.has(key)) {
    if (name.length + 2 + clean.length <= LINE_PREFERRED && isCanonicalMailbox(clean))
      return `${name}: ${clean}`
    const items = tryParse(clean)
    if (items) return addressField(name, items, { utf8 })
  }
  const plain = name.length + 2 + clean.length <= UNFOLDED_MAX && isPlain(clean)
  if (plain) return clean === '' ? `${name}:` : `${name}: ${clean}`
  // One word cannot be folded; usually a Message-Id.
  if (clean.length <= PIECE_BYTES_MAX && isPlain(clean) && !clean.includes(' ')) return `${name}: ${clean}`
  return STRUCTURED_FIELDS.has(key) ? structuredText(name, clean, utf8) : unstructuredText(name, clean, utf8)
}

/** Whether the text is one mailbox in the form in which it would be written. */
function isCanonicalMailbox(text: string): boolean {
  const mailbox = parsePlainMailbox(text)
  return mailbox !== null && text.includes(`@${mailbox.domain}`)
}

/** Builds an address field from parsed addresses; see headerField. */
function addressField(name: string, items: readonly (Mailbox | AddressGroup)[], options: HeaderOptions = {}) {
  const line = new FieldLines(name)
  const utf8 = options.utf8 === true
  const written = items.flatMap((item) =>
    'members' in item && !isNestable(item, utf8) ? item.members : [item],
  )
  written.forEach((item, index) => {
    const room = index === 0 ? line.roomForEncodedWord(1) : LINE_PREFERRED - 1
    const pieces = addressPieces(item, utf8, room)
    if (index < written.length - 1) appendToLast(pieces, ',')
    line.addTogether(pieces)
  })
  return line.text
}

/** Builds `Name: value; parameter=...` for Content-Type and Content-Disposition. Always ASCII: RFC 2231. */
export function parameterField(name: string, value: string, parameters: readonly Parameter[]): string {
  const texts = [value, ...parameters.flatMap(formatParameter)]
  const line = new FieldLines(name)
  texts.forEach((text, index) => {
    line.add({ text: index < texts.length - 1 ? `${text};` : text, blanks: 1 })
  })
  return line.text
}

const tryParse = (value: string) => readOrNull(() => parseAddressItems(value))

/** A member that is itself written as a group cannot be in a group: then the members are written alone. */
function isNestable(group: AddressGroup, utf8: boolean): boolean {
  return utf8 || !group.members.some(needsSmtpUtf8)
}

/** Collects the lines of one field. */
class FieldLines {
  text: string
  /** Characters of the line so far. */
  column: number
  #first = true

  constructor(name: string) {
    this.text = `${name}:`
    this.column = this.text.length
  }

  /** The first piece stays on the line of the name, however long: some readers lose a value that begins a line later. */
  add(piece: Piece): void {
    const width = piece.blanks + piece.text.length
    if (this.column + width > LINE_PREFERRED && (!this.#first || piece.encoded)) this.#fold()
    this.text += ' '.repeat(piece.blanks) + piece.text
    this.column += width
    this.#first = false
  }

  /** Starts a new line before `pieces` unless they all fit on what is left of this one. */
  addTogether(pieces: readonly Piece[]): void {
    const width = pieces.reduce((sum, piece) => sum + piece.blanks + piece.text.length, 0)
    if (!this.#first && this.column + width > LINE_PREFERRED) this.#fold()
    for (const piece of pieces) this.add(piece)
  }

  /** Characters that an encoded word may have as the next piece: on this line if it is worth it, else on a new one. */
  roomForEncodedWord(blanks: number): number {
    const left = LINE_PREFERRED - this.column - blanks
    return left >= ENCODED_WORD_MIN ? left : LINE_PREFERRED - blanks
  }

  #fold(): void {
    this.text += '\r\n'
    this.column = 0
  }
}

/**
 * Words stay as they are up to the first and after the last one that needs encoding; the text in between is
 * encoded as a whole, so that no blank is lost between encoded words (RFC 2047 §6.2).
 */
function unstructuredText(name: string, value: string, utf8: boolean): string {
  const words = wordsOf(value)
  const needing = words.map((word) => !isSendable(word.text, utf8))
  const first = needing.indexOf(true)
  const last = needing.lastIndexOf(true)
  const line = new FieldLines(name)
  const plainEnd = first < 0 ? words.length : first
  for (const word of words.slice(0, plainEnd)) line.add(word)
  if (first < 0) return line.text
  const { blanks } = words[first] as Piece
  const span = joinWords(words.slice(first, last + 1))
  encodeWords(span, 'text', line.roomForEncodedWord(blanks)).forEach((text, index) => {
    line.add({ text, blanks: index === 0 ? blanks : 1, encoded: true })
  })
  for (const word of words.slice(last + 1)) line.add(word)
  return line.text
}

function structuredText(name: string, value: string, utf8: boolean): string {
  const line = new FieldLines(name)
  for (const word of wordsOf(utf8 ? value : percentEncode(value))) {
    // A run that no line can hold is cut, which puts a blank into it: the whole message would be lost else.
    cutBytes(word.text, PIECE_BYTES_MAX).forEach((text, index) => {
      line.add({ text, blanks: index === 0 ? word.blanks : 1 })
    })
  }
  return line.text
}

function addressPieces(item: Mailbox | AddressGroup, utf8: boolean, room: number): Piece[] {
  if ('members' in item) return groupPieces(item, utf8, room)
  const address = bareAddress(item)
  if (!utf8 && needsSmtpUtf8(item)) {
    // Only SMTPUTF8 can carry this address. Without it, it is shown as the name of an empty group, so that
    // the field stays legal and readable (RFC 6857 §3.1, erratum 3955).
    const shown = [item.name, address].filter((text) => text !== '').join(' ')
    return [...phrasePieces(shown, utf8, room), { text: ':;', blanks: 1 }]
  }
  const name = phrasePieces(item.name, utf8, room)
  return [...name, { text: name.length === 0 ? address : `<${address}>`, blanks: 1 }]
}

function groupPieces(group: AddressGroup, utf8: boolean, room: number): Piece[] {
  const pieces = group.name === '' ? [{ text: '""', blanks: 1 }] : phrasePieces(group.name, utf8, room)
  appendToLast(pieces, ':')
  group.members.forEach((member, index) => {
    const memberPieces = addressPieces(member, utf8, LINE_PREFERRED - 1)
    if (index < group.members.length - 1) appendToLast(memberPieces, ',')
    pieces.push(...memberPieces)
  })
  appendToLast(pieces, ';')
  return pieces
}

function appendToLast(pieces: Piece[], mark: string): void {
  const last = pieces.pop() as Piece
  pieces.push({ ...last, text: last.text + mark })
}

/** A display name: atoms, a quoted string, or encoded words. `room` is the width of the first encoded word. */
function phrasePieces(name: string, utf8: boolean, room: number): Piece[] {
  const clean = blankControls(name).trim()
  const words = wordsOf(formatPhrase(clean))
  if (words.every((word) => isSendable(word.text, utf8))) return words
  return encodeWords(clean, 'phrase', room).map((text) => ({ text, blanks: 1, encoded: true }))
}

/** False for text that must be encoded: not ASCII, mistakable for an encoded word, or too long for a line. */
function isSendable(word: string, utf8: boolean): boolean {
  if (word.includes('=?') || Buffer.byteLength(word) > PIECE_BYTES_MAX) return false
  return utf8 || isPlain(word)
}

const PRINTABLE = /^[\x20-\x7e]*$/

function isPlain(text: string): boolean {
  return PRINTABLE.test(text) && !text.includes('=?')
}

/** Words with the number of blanks before each; `text` is trimmed, the first word gets the one after the colon. */
function wordsOf(text: string): Piece[] {
  const words: Piece[] = []
  let blanks = 1
  for (const word of text === '' ? [] : text.split(' ')) {
    if (word === '') {
      blanks = Math.min(blanks + 1, BLANKS_MAX)
      continue
    }
    words.push({ text: word, blanks })
    blanks = 1
  }
  return words
}

function joinWords(words: readonly Piece[]): string {
  return words.map((word, index) => ' '.repeat(index === 0 ? 0 : word.blanks) + word.text).join('')
}

function percentEncode(value: string): string {
  return value.replace(/[^\x20-\x7e]+/g, (run) => encodeURIComponent(run))
}

/** Slices of at most `bytesMax` octets, no character split. */
function cutBytes(text: string, bytesMax: number): string[] {
  if (Buffer.byteLength(text) <= bytesMax) return [text]
  const slices: string[] = []
  let held = ''
  let heldBytes = 0
  for (const character of text) {
    const bytes = utf8Length(character)
    if (heldBytes + bytes > bytesMax) {
      slices.push(held)
      held = ''
      heldBytes = 0
    }
    held += character
    heldBytes += bytes
  }
  return [...slices, held]
}
