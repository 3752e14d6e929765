/**
 * The tests of isemail, each read as a recipient of the API. isemail grades what the grammars say of an address; whether mail
 * should be accepted for it is decided here, grade by grade.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { AddressSyntaxError, bareAddress, parseMailbox } from '../../src/protocols/mime/address.ts'

/** By grade, or by "grade #number" of a test. A grade that is not named stands for its category. */
const ACCEPTED: Readonly<Record<string, boolean>> = {
  VALID_CATEGORY: true,
  // Whether a name has records is found out when mail is sent.
  DNSWARN: true,
  ERR: false,
  // What no SMTP command can carry, and literals of addresses, which are no recipients of the public internet.
  RFC5322: false,
  // A needless backslash is removed before octets are counted.
  'RFC5322_LOCAL_TOOLONG #60': true,
  // Servers must take paths of 256 octets and may take longer ones (RFC 5321 §4.5.3.1.3): the recipient's own server says.
  'RFC5322_TOOLONG #39': true,
  RFC5321_ADDRESSLITERAL: false,
  RFC5321_QUOTEDSTRING: true,
  // An empty local part.
  'RFC5321_QUOTEDSTRING #43': false,
  RFC5321_TLD: true,
  // It would be taken for an IP address.
  RFC5321_TLDNUMERIC: false,
  // Comments and blanks are read as in a header; line breaks are not, they are an attempt to inject a field.
  CFWS_COMMENT: true,
  CFWS_FWS: false,
  'CFWS_FWS #157': true,
  'CFWS_FWS #158': true,
  // Obsolete forms: two words joined by a dot, and blanks or comments around "@", are read; the others are mistakes.
  DEPREC: false,
  DEPREC_LOCALPART: true,
  DEPREC_CFWS_NEAR_AT: true,
  'DEPREC_CFWS_NEAR_AT #86': false,
  'DEPREC_CFWS_NEAR_AT #95': false,
}

export async function run(folder: string, print: (line: string) => void): Promise<boolean> {
  const xml = readFileSync(join(folder, 'test/tests.xml'), 'utf8')
  const counts = { accepted: 0, refused: 0, wrong: 0 }
  for (const [, id = '', test = ''] of xml.matchAll(/<test id="(\d+)">(.*?)<\/test>/gs)) {
    const field = (name: string) => (new RegExp(`<${name}>(.*?)</${name}>`, 's').exec(test)?.[1] ?? '').trim()
    const [grade, category] = [field('diagnosis'), field('category')].map((name) =>
      name.replace('ISEMAIL_', ''),
    )
    const expected = ACCEPTED[`${grade} #${id}`] ?? ACCEPTED[`${grade}`] ?? ACCEPTED[`${category}`]
    const address = addressOf(/<address>(.*?)<\/address>/s.exec(test)?.[1] ?? '')
    const isAccepted = accepts(address)
    counts[isAccepted ? 'accepted' : 'refused']++
    if (isAccepted === expected) continue
    counts.wrong++
    print(`${id} ${grade} ${JSON.stringify(address)} is ${isAccepted ? 'accepted' : 'refused'}`)
  }
  print(`${counts.accepted} accepted, ${counts.refused} refused, ${counts.wrong} against the table`)
  return counts.wrong === 0 && counts.accepted > 0
}

/** Control characters stand there as their pictures. */
function addressOf(xml: string): string {
  const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }
  return xml
    .replace(/&(?:#x([0-9a-f]+)|(\w+));/gi, (whole, hex?: string, name = '') =>
      hex === undefined ? (entities[name] ?? whole) : String.fromCodePoint(Number.parseInt(hex, 16)),
    )
    .replace(/[\u2400-\u241f]/g, (picture) => String.fromCharCode(picture.charCodeAt(0) - 0x2400))
}

/** What is accepted must also be read again from its own form. */
function accepts(text: string): boolean {
  try {
    const mailbox = parseMailbox(text)
    const again = parseMailbox(bareAddress(mailbox))
    return again.local === mailbox.local && again.domain === mailbox.domain
  } catch (error) {
    if (error instanceof AddressSyntaxError) return false
    throw error
  }
}
