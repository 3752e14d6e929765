/**
 * Address fields of a call as people and simple programs write them, read by the rules of RFC 5322 first. What those
 * rules refuse may still be one of two things:
 *
 * 1. addresses with semicolons between them, `ann@example.com; bob@example.com`;
 * 2. one address after a display name without the quotes that it needs, `Site: News [weekly] <news@example.com>`.
 *    All text before the angle bracket is the name. A comment in it, which RFC 5322 would drop, is part of the name too.
 *
 * The second reading must never lose an address that was meant as one: it is refused where the name holds an address
 * that could be another element of the list. Quotes, backslashes, further angle brackets and control characters in the
 * name are refused as well, so that there is one way to read it.
 */
import {
  AddressSyntaxError,
  addressKey,
  type Mailbox,
  parseAddressList,
  parseMailbox,
  parseSemicolonList,
} from './address.ts'
import { decodeWords } from './encoded-word.ts'
import { blankControls } from './quoted/text-safety.ts'

/** Name and address; the name has nothing that begins another construct. */
const UNQUOTED = /^([^<>"\\\p{Cc}]+)<([^<>]+)>[ \t]*$/u
/** A display name longer than any that is shown; the same bound as for well-formed ones. */
const UNQUOTED_MAX = 2_048
/** Text between two addresses, or around one. */
const BETWEEN = /[\s,;:()[\]]+/

/**
 * The authors of a message, the value of `from`.
 * @throws AddressSyntaxError as parseAddressList, or for a name in which another author may be meant
 */
export const parseAuthors = (text: string): Mailbox[] => parseLoosely(text, [parseAddressList], namesAuthor)

/**
 * Recipients, a value of `to`, `cc` or `bcc`.
 * @throws AddressSyntaxError as parseAddressList, or for a name in which another recipient may be meant
 */
export const parseRecipients = (text: string): Mailbox[] =>
  parseLoosely(text, [parseAddressList, parseSemicolonList], namesRecipient)

/** The first reading that succeeds; `isAmbiguous`: whether a name may hold an address that is meant as one. */
function parseLoosely(
  text: string,
  readings: readonly ((text: string) => Mailbox[])[],
  isAmbiguous: (name: string, mailbox: Mailbox) => boolean,
): Mailbox[] {
  let refused: unknown
  for (const read of readings) {
    try {
      const list = read(text)
      const commented = list.length === 1 && text.includes('(') ? unquoted(text, isAmbiguous) : null
      return commented ? [commented] : list
    } catch (error) {
      if (!(error instanceof AddressSyntaxError)) throw error
      refused ??= error
    }
  }
  const mailbox = unquoted(text, isAmbiguous)
  if (mailbox === null) throw refused
  return [mailbox]
}

/** One address after an unquoted name; null for any other text. */
function unquoted(text: string, isAmbiguous: (name: string, mailbox: Mailbox) => boolean): Mailbox | null {
  if (text.length > UNQUOTED_MAX) return null
  const match = UNQUOTED.exec(text)
  if (match === null) return null
  const [, before, address] = match as unknown as [string, string, string]
  const mailbox = bareMailbox(address)
  if (mailbox === null || isAmbiguous(before, mailbox)) return null
  return { ...mailbox, name: blankControls(decodeWords(before)).trim() }
}

/** `a@x, News <b@y>` names two authors; `a@x <b@y>` one, with an address for a name, as some sites write it. */
const namesAuthor = (name: string): boolean =>
  name
    .split(/[,;]/)
    .slice(0, -1)
    .some((element) => bareMailbox(element.trim()) !== null)

/** A recipient that is lost is worse than a call that is refused: any other address in the name counts. */
const namesRecipient = (name: string, mailbox: Mailbox): boolean =>
  name.split(BETWEEN).some((word) => {
    const other = bareMailbox(word)
    return other !== null && addressKey(other) !== addressKey(mailbox)
  })

function bareMailbox(text: string): Mailbox | null {
  try {
    const mailbox = parseMailbox(text)
    return mailbox.name === '' ? mailbox : null
  } catch {
    return null
  }
}
