/**
 * Mail addresses: RFC 5322 §3.4 with UTF-8 as of RFC 6532, read in one pass from left to right.
 *
 * Read: display names (atoms, quoted strings, encoded words, the unquoted dots of §4.1), angle and bare
 * addresses, quoted local parts, comments (nested), groups, empty list elements (§4.4). A comment after
 * a bare address is its name, as in old mail: `ann@example.com (Ann)`.
 *
 * Refused, on purpose: domain literals, source routes, blanks around the dots of an address, control
 * characters, line breaks, and invisible characters in a local part.
 */
import { domainToASCII } from 'node:url'
import { ownText } from '../../base/flow/cache.ts'
import { decodeWords } from './encoded-word.ts'
import { blankControls, hasControls } from './quoted/text-safety.ts'

/**
 * One address with its display name. `name` is decoded ('' if there is none); `local` is unquoted, as
 * given otherwise, and may be non-ASCII; `domain` is in lower case and ASCII (A-labels).
 */
export type Mailbox = { readonly name: string; readonly local: string; readonly domain: string }

/** `Team: ann@example.com, bob@example.com;` */
export type AddressGroup = { name: string; members: Mailbox[] }

export class AddressSyntaxError extends Error {
  override name = 'AddressSyntaxError'
}

/** What `read` returns; null: it throws an AddressSyntaxError. */
export function readOrNull<T>(read: () => T): T | null {
  try {
    return read()
  } catch (error) {
    if (error instanceof AddressSyntaxError) return null
    throw error
  }
}

/** Octets of a local part as sent, RFC 5321 §4.5.3.1.1. */
const LOCAL_BYTES_MAX = 64
/** Characters of a domain name without its final dot, RFC 1035 §3.1. */
const DOMAIN_MAX = 253
const LABEL_MAX = 63
/** Text of one mailbox: an address (318) and a display name longer than any that is shown. */
const MAILBOX_TEXT_MAX = 2_048
/** Text of a list: 1,000 recipients with long names take about half of it. */
const LIST_TEXT_MAX = 1_048_576
/** Ten times the recipients that one call may have; keeps a hostile list from filling memory. */
const LIST_MAILBOXES_MAX = 10_000
/** A quoted value in an error message is cut to this. */
const QUOTE_MAX = 80

/**
 * Reads exactly one mailbox, `Name <local@domain>` or `local@domain`.
 * @throws AddressSyntaxError for anything else, a list or a group included.
 */
export function parseMailbox(text: string): Mailbox {
  const plain = parsePlainMailbox(text)
  if (plain) return plain
  const [item, second] = new AddressReader(text, MAILBOX_TEXT_MAX).items()
  if (!item || second || 'members' in item)
    throw new AddressSyntaxError(`Expected one address: ${quote(text)}`)
  return item
}

/**
 * Reads a list as in To or Cc; groups are replaced by their members, empty elements skipped. Blank text
 * is an empty list. At most 10,000 mailboxes in 1 MiB.
 * @throws AddressSyntaxError if any element is malformed.
 */
export function parseAddressList(text: string): Mailbox[] {
  return parseAddressItems(text).flatMap((item) => ('members' in item ? item.members : [item]))
}

/** As parseAddressList, with the groups kept. */
export function parseAddressItems(text: string): (Mailbox | AddressGroup)[] {
  const plain = parsePlainMailbox(text)
  return plain ? [plain] : new AddressReader(text, LIST_TEXT_MAX).items()
}

/**
 * As parseAddressList, with semicolons between addresses as well as commas, as some mail programs write them. The
 * semicolon that ends a group stays what it is.
 * @throws AddressSyntaxError if any element is malformed.
 */
export function parseSemicolonList(text: string): Mailbox[] {
  const items = new AddressReader(text, LIST_TEXT_MAX, ',;').items()
  return items.flatMap((item) => ('members' in item ? item.members : [item]))
}

/**
 * The form of nearly all addresses: `local@domain`, alone or after a name of plain words. No run of characters can be
 * split in two ways, so the pattern takes linear time.
 */
const PLAIN_MAILBOX =
  /^(?:([A-Za-z0-9]+(?: [A-Za-z0-9]+)*) <)?([A-Za-z0-9_+-]+(?:\.[A-Za-z0-9_+-]+)*)@((?:[A-Za-z0-9]+(?:-+[A-Za-z0-9]+)*\.)+[A-Za-z]+)(>?)$/
/** Name, address and brackets; a longer text is read by the full parser, which knows the limits of each. */
const PLAIN_TEXT_MAX = 128

/**
 * The mailbox of a plain text, as the full parser would read it; null: use that parser. One message reads nine, of three
 * different texts.
 */
export function parsePlainMailbox(text: string): Mailbox | null {
  if (text.length > PLAIN_TEXT_MAX) return null
  const known = recent.get(text) ?? older.get(text)
  if (known !== undefined) return known
  const match = PLAIN_MAILBOX.exec(text)
  if (match === null) return null
  const own = ownText(text)
  const mailbox = mailboxOf(match, own)
  if (mailbox) keep(own, mailbox)
  return mailbox
}

/** Texts read lately and their mailboxes. */
let recent = new Map<string, Mailbox>()
let older: ReadonlyMap<string, Mailbox> = recent
const RECENT_MAX = 512

function keep(text: string, mailbox: Mailbox): void {
  if (recent.size >= RECENT_MAX) {
    older = recent
    recent = new Map()
  }
  recent.set(text, mailbox)
}

/** Made of slices of `text`, the matched text. */
function mailboxOf(match: RegExpExecArray, text: string): Mailbox | null {
  const [, name, local, domain, close] = match as unknown as [
    string,
    string | undefined,
    string,
    string,
    string,
  ]
  if ((name === undefined) !== (close === '')) return null
  if (local.length > LOCAL_BYTES_MAX || domain.length > LABEL_MAX) return null
  const localAt = name === undefined ? 0 : name.length + ' <'.length
  const domainAt = localAt + local.length + 1
  return Object.freeze({
    name: text.slice(0, name?.length ?? 0),
    local: text.slice(localAt, domainAt - 1),
    domain: text.slice(domainAt, domainAt + domain.length).toLowerCase(),
  })
}

/** `local@domain`, the local part quoted only where it must be (RFC 5321 §4.1.2). */
export function bareAddress(mailbox: Mailbox): string {
  return `${isDotAtom(mailbox.local) ? mailbox.local : quotedString(mailbox.local)}@${mailbox.domain}`
}

/**
 * For people and JSON: the name in Unicode, quoted where needed; parseMailbox reads it back. The domain
 * stays in A-labels, which can neither be mistaken for another nor differ from what is on the wire.
 */
export function formatMailbox(mailbox: Mailbox): string {
  const name = formatPhrase(mailbox.name)
  return name === '' ? bareAddress(mailbox) : `${name} <${bareAddress(mailbox)}>`
}

/** A display name or group name in Unicode as a phrase of RFC 6532 §3.2: plain atoms or a quoted string. */
export function formatPhrase(name: string): string {
  const clean = blankControls(name).trim()
  return clean.includes('=?') || !isAtoms(clean) ? quotedString(clean) : clean
}

/**
 * The form in which addresses are compared: lower case throughout, although RFC 5321 §2.4 lets a host
 * distinguish local parts by case, since none does; NFC, so that equal looking addresses are equal.
 * Text that is no address is trimmed and lower-cased.
 */
export function addressKey(address: Mailbox | string): string {
  return bareAddressOf(address).normalize('NFC').toLowerCase()
}

function bareAddressOf(address: Mailbox | string): string {
  if (typeof address !== 'string') return bareAddress(address)
  try {
    return bareAddress(parseMailbox(address))
  } catch {
    return address.trim()
  }
}

/** True if the address can only travel with SMTPUTF8 (RFC 6531): its local part is not ASCII. */
export function needsSmtpUtf8(mailbox: Mailbox): boolean {
  return !isAscii(mailbox.local)
}

/**
 * A host name in lower case and A-labels (IDNA by UTS 46, as browsers do).
 * @throws AddressSyntaxError unless every label is letters, digits and inner hyphens (RFC 1123 §2.1).
 *   A name that ends in a number is refused: it would be taken for an IP address.
 */
export function toAsciiDomain(domain: string): string {
  const ascii = (isAscii(domain) ? domain : convertDomain(domain)).toLowerCase()
  const labels = ascii.length <= DOMAIN_MAX ? ascii.split('.') : []
  if (labels.length === 0 || !labels.every(isLabel) || /^[0-9]+$/.test(labels.at(-1) as string)) {
    throw new AddressSyntaxError(`Invalid domain name: ${quote(domain)}`)
  }
  return ascii
}

/** domainToASCII takes its input for a URL's host, so nothing but LDH may reach it in ASCII. */
function convertDomain(domain: string): string {
  return domain.length > DOMAIN_MAX || /[^-.0-9A-Za-z\u0080-\uffff]/.test(domain) ? '' : domainToASCII(domain)
}

function isLabel(label: string): boolean {
  if (label.length === 0 || label.length > LABEL_MAX) return false
  return !/[^-0-9a-z]/.test(label) && !label.startsWith('-') && !label.endsWith('-')
}

/** What the text between two structural characters is made of. `spaced`: blanks or comments before it. */
type Word = {
  kind: 'atom' | 'quoted' | 'encoded' | 'dot'
  text: string
  spaced: boolean
  /** A backslash before a character that is not ASCII: legal in a name (RFC 6532 §3.2), not in an address (RFC 6531 §3.3). */
  nameOnly?: boolean
}

class AddressReader {
  readonly #text: string
  /** Characters allowed between two elements of a list. */
  readonly #separators: string
  #at = 0
  /** Text of the last comment read. */
  #comment = ''
  #count = 0

  constructor(text: string, lengthMax: number, separators = ',') {
    if (text.length > lengthMax) {
      throw new AddressSyntaxError(`Address text of ${text.length} characters: at most ${lengthMax} are read`)
    }
    if (hasControls(text)) throw new AddressSyntaxError(`Control character in address: ${quote(text)}`)
    this.#text = text
    this.#separators = separators
  }

  /** The whole text: elements between separators. */
  items(): (Mailbox | AddressGroup)[] {
    const items: (Mailbox | AddressGroup)[] = []
    for (;;) {
      const item = this.#element(true)
      if (item) items.push(item)
      if (this.#at >= this.#text.length) return items
      if (!this.#separators.includes(this.#text[this.#at] as string)) throw this.#error('Expected ","')
      this.#at++
    }
  }

  /** One mailbox or group; null for an empty element. */
  #element(groupAllowed: false): Mailbox | null
  #element(groupAllowed: boolean): Mailbox | AddressGroup | null
  #element(groupAllowed: boolean): Mailbox | AddressGroup | null {
    const words = this.#words()
    const next = this.#text[this.#at]
    if (next === '@') return this.#bare(words)
    if (next === '<') return this.#angle(phraseOf(words))
    if (next === ':' && groupAllowed && words.length > 0) return this.#group(phraseOf(words))
    if (words.length === 0) return null
    throw this.#error(next === undefined || next === ',' ? 'Missing "@" and domain' : `Unexpected "${next}"`)
  }

  #bare(words: readonly Word[]): Mailbox {
    const local = this.#local(words)
    this.#expect('@')
    const domain = this.#domain()
    this.#comment = ''
    this.#skipBlanks()
    return this.#counted({ name: nameOf(this.#comment), local, domain })
  }

  #angle(name: string): Mailbox {
    this.#expect('<')
    const local = this.#local(this.#words())
    this.#expect('@')
    const domain = this.#domain()
    this.#skipBlanks()
    this.#expect('>')
    this.#skipBlanks()
    return this.#counted({ name, local, domain })
  }

  #group(name: string): AddressGroup {
    this.#expect(':')
    const members: Mailbox[] = []
    for (;;) {
      const member = this.#element(false)
      if (member) members.push(member)
      if (this.#text[this.#at] !== ',') break
      this.#at++
    }
    this.#expect(';')
    this.#skipBlanks()
    return { name, members }
  }

  #counted(mailbox: Mailbox): Mailbox {
    if (++this.#count > LIST_MAILBOXES_MAX) {
      throw new AddressSyntaxError(`Address list is too long: more than ${LIST_MAILBOXES_MAX} addresses`)
    }
    return mailbox
  }

  /** Atoms, quoted strings and dots up to the next structural character. */
  #words(): Word[] {
    const words: Word[] = []
    for (;;) {
      const spaced = this.#skipBlanks()
      const code = this.#text.charCodeAt(this.#at)
      if (code === QUOTE) words.push(this.#quoted(spaced))
      else if (code === DOT) {
        words.push({ kind: 'dot', text: '.', spaced })
        this.#at++
      } else if (isAtext(code)) words.push(this.#atom(spaced))
      else return words
    }
  }

  #atom(spaced: boolean): Word {
    const encodedEnd = this.#encodedWordEnd()
    const start = this.#at
    if (encodedEnd > 0) {
      this.#at = encodedEnd
      return { kind: 'encoded', text: this.#text.slice(start, encodedEnd), spaced }
    }
    while (isAtext(this.#text.charCodeAt(this.#at))) this.#at++
    return { kind: 'atom', text: this.#text.slice(start, this.#at), spaced }
  }

  /**
   * Where an encoded word that starts here ends, 0 if none does. Its text may hold characters that no
   * atom has ("," and "@" are common): many senders do not keep to RFC 2047 §5 (3).
   */
  #encodedWordEnd(): number {
    const text = this.#text
    if (!text.startsWith('=?', this.#at)) return 0
    let at = this.#at + 2
    while (isAtext(text.charCodeAt(at)) && text[at] !== '?') at++
    if (text[at] !== '?' || !'bqBQ'.includes(text[at + 1] ?? '-') || text[at + 2] !== '?') return 0
    at += 3
    while (at < text.length && text[at] !== '?' && text[at] !== ' ' && text[at] !== '\t') at++
    return text.startsWith('?=', at) ? at + 2 : 0
  }

  #quoted(spaced: boolean): Word {
    const text = this.#text
    let content = ''
    let nameOnly = false
    let from = ++this.#at
    for (; this.#at < text.length; this.#at++) {
      const code = text.charCodeAt(this.#at)
      if (code === QUOTE) {
        content += text.slice(from, this.#at++)
        return { kind: 'quoted', text: content.replaceAll('\t', ' '), spaced, nameOnly }
      }
      if (code !== BACKSLASH) continue
      content += text.slice(from, this.#at)
      from = ++this.#at
      nameOnly ||= text.charCodeAt(from) > 0x7f
    }
    throw this.#error('Quoted string without end')
  }

  /** Skips blanks and comments; true if there were any. */
  #skipBlanks(): boolean {
    const start = this.#at
    for (;;) {
      const code = this.#text.charCodeAt(this.#at)
      if (code === SPACE || code === TAB) this.#at++
      else if (code === OPEN) this.#skipComment()
      else return this.#at > start
    }
  }

  #skipComment(): void {
    const start = this.#at + 1
    let depth = 0
    for (; this.#at < this.#text.length; this.#at++) {
      const code = this.#text.charCodeAt(this.#at)
      if (code === BACKSLASH) this.#at++
      else if (code === OPEN) depth++
      else if (code === CLOSE && --depth === 0) {
        this.#comment = this.#text.slice(start, this.#at++)
        return
      }
    }
    throw this.#error('Comment without end')
  }

  /** A dot-atom, a quoted string, or both kinds joined by dots (§4.4), without blanks in between. */
  #local(words: readonly Word[]): string {
    let local = ''
    words.forEach((word, index) => {
      const dotExpected = index % 2 === 1
      const fits = dotExpected ? word.kind === 'dot' : word.kind === 'atom' || word.kind === 'quoted'
      if (!fits || word.nameOnly || (word.spaced && index > 0)) throw this.#error('Invalid local part')
      local += word.text
    })
    if (local === '' || words.length % 2 === 0) throw this.#error('Invalid local part')
    if (!isAscii(local) && INVISIBLE.test(local)) throw this.#error('Invisible character in local part')
    if (Buffer.byteLength(isDotAtom(local) ? local : quotedString(local)) > LOCAL_BYTES_MAX) {
      throw this.#error(`Local part is longer than ${LOCAL_BYTES_MAX} octets`)
    }
    return local
  }

  #domain(): string {
    this.#skipBlanks()
    if (this.#text[this.#at] === '[') throw this.#error('Domain literal is not accepted')
    const start = this.#at
    for (;;) {
      const code = this.#text.charCodeAt(this.#at)
      if (code !== DOT && !isAtext(code)) break
      this.#at++
    }
    return toAsciiDomain(this.#text.slice(start, this.#at))
  }

  #expect(character: string): void {
    if (this.#text[this.#at] !== character) throw this.#error(`Expected "${character}"`)
    this.#at++
  }

  #error(what: string): AddressSyntaxError {
    return new AddressSyntaxError(`${what} at character ${this.#at + 1} of address ${quote(this.#text)}`)
  }
}

const [TAB, SPACE, QUOTE, OPEN, CLOSE, DOT, BACKSLASH] = [0x09, 0x20, 0x22, 0x28, 0x29, 0x2e, 0x5c]

/** Blanks, controls, unassigned and format characters; the two joiners belong to Indic and Persian words. */
const INVISIBLE = /(?![\u200c\u200d])[\p{Z}\p{C}]/u

const ATEXT = new Uint8Array(128)
for (const character of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-/=?^_`{|}~") {
  ATEXT[character.charCodeAt(0)] = 1
}

/** atext of RFC 5322 §3.2.3 with the UTF-8 of RFC 6532 §3.2. NaN (end of text) is none. */
function isAtext(code: number): boolean {
  return code < 0x80 ? ATEXT[code] === 1 : code >= 0x80
}

function isDotAtom(text: string): boolean {
  if (text === '' || text.startsWith('.') || text.endsWith('.') || text.includes('..')) return false
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code !== DOT && !isAtext(code)) return false
  }
  return true
}

/** True for atoms with one space between them, which need no quotes as a display name. */
function isAtoms(text: string): boolean {
  if (text.includes('  ')) return false
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code !== SPACE && !isAtext(code)) return false
  }
  return true
}

function quotedString(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`
}

/** Joins the words of a phrase; adjacent encoded words decode as one run, quoted strings never decode. */
function phraseOf(words: readonly Word[]): string {
  let phrase = ''
  for (let index = 0; index < words.length; index++) {
    const word = words[index] as Word
    if (word.spaced && phrase !== '') phrase += ' '
    if (word.kind !== 'encoded') {
      phrase += word.text
      continue
    }
    let end = index + 1
    while (words[end]?.kind === 'encoded') end++
    phrase += decodeWords(
      words
        .slice(index, end)
        .map((encoded) => encoded.text)
        .join(' '),
    )
    index = end - 1
  }
  return blankControls(phrase).trim()
}

function nameOf(comment: string): string {
  return decodeWords(comment.replace(/\\(.)/g, '$1')).trim()
}

function isAscii(text: string): boolean {
  return !/[^\u0000-\u007f]/.test(text)
}

/** Shown in an error: controls blanked, cut. */
function quote(text: string): string {
  const shown = blankControls(text.slice(0, QUOTE_MAX))
  return `"${shown}${text.length > QUOTE_MAX ? '...' : ''}"`
}
