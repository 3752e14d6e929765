import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import nodemailerParser from 'nodemailer/lib/addressparser/index.js'
import { addressParser as postalMimeParser } from 'postal-mime'
import {
  AddressSyntaxError,
  bareAddress,
  formatMailbox,
  type Mailbox,
  needsSmtpUtf8,
  parseMailbox,
} from './address.ts'
import { headerField } from './header.ts'
import { parseAuthors, parseRecipients } from './loose-address.ts'

const SEED = 20261123

const shown = (mailboxes: readonly Mailbox[]) =>
  mailboxes.map((mailbox) => [mailbox.name, bareAddress(mailbox)])

/** As sent by a plug-in of a blog system, a transport of a mail library, people. */
const UNQUOTED: [text: string, name: string, address: string][] = [
  ['Site: Title <wordpress@example.com>', 'Site: Title', 'wordpress@example.com'],
  ['Doe, Jane <jane@example.com>', 'Doe, Jane', 'jane@example.com'],
  ['Shop; Orders & Returns <shop@example.com>', 'Shop; Orders & Returns', 'shop@example.com'],
  ['Team @ Example <team@example.com>', 'Team @ Example', 'team@example.com'],
  ['[Staging] Alerts <ops@example.com>', '[Staging] Alerts', 'ops@example.com'],
  ['Example (Support) <help@example.com>', 'Example (Support)', 'help@example.com'],
  ['Example (Support <help@example.com>', 'Example (Support', 'help@example.com'],
  ['=?utf-8?Q?Caf=C3=A9?=: News <n@example.com>', 'Café: News', 'n@example.com'],
  ['Jörg: Blog <blog@example.com> ', 'Jörg: Blog', 'blog@example.com'],
  ['jane@example.com <jane@example.com>', 'jane@example.com', 'jane@example.com'],
]

for (const [text, name, address] of UNQUOTED) {
  test(`the unquoted name of ${text} is all before the bracket`, () => {
    assert.deepEqual(shown(parseAuthors(text)), [[name, address]])
    assert.deepEqual(shown(parseRecipients(text)), [[name, address]])
  })
}

const LISTS: [text: string, ...addresses: string[]][] = [
  ['a@example.com; b@example.com', 'a@example.com', 'b@example.com'],
  ['a@example.com ; B <b@example.com>;', 'a@example.com', 'b@example.com'],
  ['a@example.com, b@example.com; "C; D" <c@example.com>', 'a@example.com', 'b@example.com', 'c@example.com'],
  ['Team: a@example.com, b@example.com;', 'a@example.com', 'b@example.com'],
  ['x: a@example.com;; b@example.com', 'a@example.com', 'b@example.com'],
]

for (const [text, ...addresses] of LISTS) {
  test(`recipients of ${text}`, () => assert.deepEqual(parseRecipients(text).map(bareAddress), addresses))
}

test('an author may have another address for a name', () => {
  assert.deepEqual(shown(parseAuthors('info@shop.example <noreply@mail.shop.example>')), [
    ['info@shop.example', 'noreply@mail.shop.example'],
  ])
})

/** Each could lose a recipient, or be read in another way by somebody else. */
const REFUSED_RECIPIENTS = [
  'a@example.com, Bob: B <b@example.com>',
  'a@example.com; Bob [b] @ home <b@example.com>',
  'a@example.com Bob <b@example.com>',
  'Bob (a@example.com) x: <b@example.com>',
  'A: <a@example.com>, B: <b@example.com>',
  'A: "quoted <a@example.com>',
  'A: \\ <a@example.com>',
  'A: <<a@example.com>>',
  'A: <a@example.com> rest',
  'A: <a@example.com>\r\nBcc: b@example.com',
  'A:\r\nBcc: b@example.com <a@example.com>',
  'A: \u0000 <a@example.com>',
  'A: <a@[127.0.0.1]>',
  'A: <@example.net:a@example.com>',
  'A: <a@b@example.com>',
  'A: <>',
  'A: x; B: y',
  `${'A: '.repeat(1000)}<a@example.com>`,
]

for (const text of REFUSED_RECIPIENTS) {
  test(`refuses ${JSON.stringify(text).slice(0, 60)}`, () => {
    assert.throws(() => parseRecipients(text), AddressSyntaxError)
  })
}

test('two authors of whom one has an unquoted name are refused', () => {
  assert.throws(() => parseAuthors('a@example.com, Bob: B <b@example.com>'), AddressSyntaxError)
  assert.throws(() => parseAuthors('a@example.com; b@example.com'), AddressSyntaxError)
})

/** Texts of the characters that matter, around addresses. */
const PIECES = [
  ...['a@example.com', 'b@example.net', '<c@example.org>', '<', '>', '"', '\\', '(', ')', '[', ']', ':', ';'],
  ...[
    ',',
    '@',
    '.',
    ' ',
    '\t',
    '\r\n',
    'Name',
    'é',
    '=?utf-8?Q?x=40y=2Cz?=',
    '=?',
    '?=',
    '%',
    '&',
    '\u202e',
    '+',
  ],
]
const text = fc
  .array(fc.constantFrom(...PIECES), { minLength: 1, maxLength: 9 })
  .map((pieces) => pieces.join(''))

type Parsed = { name: string; address?: string | undefined }

/** The address that a library reads in a From field as we send it. */
function readBack(field: string, parse: (value: string) => unknown): Parsed[] {
  const value = field.replace(/^From: ?/, '').replaceAll(/\r\n(?=[ \t])/g, '')
  return parse(value) as Parsed[]
}

test('what is accepted as one mailbox is the same mailbox to two other parsers', () => {
  let accepted = 0
  const property = fc.property(fc.tuple(text, fc.boolean()), ([given, author]) => {
    let list: Mailbox[]
    try {
      list = (author ? parseAuthors : parseRecipients)(given)
    } catch (error) {
      assert.ok(error instanceof AddressSyntaxError)
      return
    }
    for (const mailbox of list) {
      accepted++
      assert.deepEqual(parseMailbox(formatMailbox(mailbox)), { ...mailbox })
      const field = headerField('From', formatMailbox(mailbox), { utf8: needsSmtpUtf8(mailbox) })
      assert.equal(field.split(/\r\n(?![ \t])/).length, 1, `another field in ${field}`)
      for (const parse of [nodemailerParser, postalMimeParser]) {
        const found = readBack(field, parse as (value: string) => unknown)
        assert.deepEqual(
          found.map(({ address }) => address),
          [bareAddress(mailbox)],
          field,
        )
      }
    }
  })
  fc.assert(property, { seed: SEED, numRuns: 50_000 })
  assert.ok(accepted > 1000, `only ${accepted} were accepted`)
})

test('no recipient is lost: every address in the text is one of those read, or in quotes', () => {
  const address = fc.constantFrom('a@example.com', 'b@example.net', 'c@example.org')
  const name = fc.constantFrom('', 'Ann ', 'Lee, Ann ', 'A: ', '[x] ', '(y) ')
  const recipient = fc.tuple(name, address).map(([before, bare]) => `${before}<${bare}>`)
  const list = fc
    .tuple(
      fc.array(fc.oneof(address, recipient), { minLength: 1, maxLength: 4 }),
      fc.constantFrom(', ', '; ', ' ', ','),
    )
    .map(([elements, separator]) => elements.join(separator))
  const property = fc.property(list, (given) => {
    let found: Mailbox[]
    try {
      found = parseRecipients(given)
    } catch {
      return
    }
    const wanted = new Set(given.match(/[abc]@[a-z.]+/g))
    assert.deepEqual(new Set(found.map(bareAddress)), wanted, given)
  })
  fc.assert(property, { seed: SEED, numRuns: 5_000 })
})
