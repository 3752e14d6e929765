import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { simpleParser } from 'mailparser'
import { anyCharacter } from '../../../test/support/any-character.ts'
import { parseAddressList } from './address.ts'
import { decodeWords } from './encoded-word.ts'
import { HeaderSyntaxError, headerField, isHeaderName, parameterField } from './header.ts'
import { formatParameter, parseContentType } from './parameters.ts'
import { unfoldedValue } from './split.ts'

const SEED = 20260601
const HOSTILE = [
  '\r\n',
  '\r',
  '\n',
  '\0',
  '\u0085',
  '\u2028',
  '\u2029',
  '\v',
  '\f',
  '\u001b',
  '\t',
  '\ud800',
  '\u00a0',
]

/** Fields in which what looks like an encoded word is left as given. */
const STRUCTURED = ['Message-Id', 'List-Unsubscribe', 'References', 'Content-Disposition']

/** Asserts what every raw field must be, and returns its lines. */
function checkField(raw: string, name: string, utf8 = false): string[] {
  assert.ok(raw.startsWith(`${name}:`), raw)
  const lines = raw.split('\r\n')
  for (const [index, line] of lines.entries()) {
    assert.ok(Buffer.byteLength(line) <= 998, `line of ${line.length}`)
    assert.ok(
      utf8 ? !/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(line) : /^[\x20-\x7e]*$/.test(line),
      line,
    )
    if (index > 0) assert.match(line, /^ +[^ ]/, 'a continuation begins with a blank and is not blank')
    if (STRUCTURED.includes(name)) continue
    if (/=\?utf-8\?/.test(line)) assert.ok(line.length <= 76, `${line.length}: ${line}`)
    for (const word of line.match(/=\?utf-8\?[BQ]\?[^?]*\?=/g) ?? []) assert.ok(word.length <= 75, word)
  }
  return lines
}

test('short ASCII text is written as it is', () => {
  assert.equal(headerField('Subject', 'Hello, World!'), 'Subject: Hello, World!')
  assert.equal(headerField('Subject', ''), 'Subject:')
  assert.equal(headerField('X-Long', 'x'.repeat(70)), `X-Long: ${'x'.repeat(70)}`)
})

const encodings: [value: string, raw: string][] = [
  ['Grüße', 'Subject: =?utf-8?B?R3LDvMOfZQ==?='],
  ['Bestellung für Ann', 'Subject: Bestellung =?utf-8?Q?f=C3=BCr?= Ann'],
  ['a café is a café, yes', 'Subject: a =?utf-8?B?Y2Fmw6kgaXMgYSBjYWbDqSw=?= yes'],
  ['literal =?utf-8?Q?x?= word', 'Subject: literal =?utf-8?B?PT91dGYtOD9RP3g/PQ==?= word'],
  ['日本', 'Subject: =?utf-8?B?5pel5pys?='],
]
for (const [value, raw] of encodings) {
  test(`encodes ${value}`, () => assert.equal(headerField('Subject', value), raw))
}

test('a long subject is folded within 76, no character is split, and decodes to itself', () => {
  for (const value of [
    '👩‍💻🎉'.repeat(60),
    'ä'.repeat(300),
    'word '.repeat(200).trim(),
    `${'a '.repeat(50)}ü${' b'.repeat(50)}`,
  ]) {
    const raw = headerField('Subject', value)
    checkField(raw, 'Subject')
    assert.equal(decodeWords(unfoldedValue(raw)), value)
    for (const word of raw.match(/=\?utf-8\?B\?([^?]*)\?=/g) ?? []) {
      assert.doesNotMatch(Buffer.from(word.slice(10, -2), 'base64').toString(), /\ufffd/)
    }
  }
})

test('a run without blanks that no line can hold is encoded, so that it comes through whole', () => {
  const value = `{"a":"${'x'.repeat(5_000)}"}`
  const raw = headerField('X-Service-Variables', value)
  checkField(raw, 'X-Service-Variables')
  assert.equal(decodeWords(unfoldedValue(raw)), value)
})

test('many blanks in a row never make a blank line', () => {
  checkField(headerField('Subject', `a${' '.repeat(5_000)}b`), 'Subject')
  checkField(headerField('Message-Id', `<a>${' '.repeat(5_000)}<b>`), 'Message-Id')
})

test('UTF-8 mode leaves text and addresses readable, within 998 octets', () => {
  assert.equal(headerField('Subject', 'Grüße', { utf8: true }), 'Subject: Grüße')
  assert.equal(
    headerField('To', 'Jörg <jörg@exämple.de>', { utf8: true }),
    'To: Jörg <jörg@xn--exmple-cua.de>',
  )
  const raw = headerField('Subject', '語'.repeat(2_000), { utf8: true })
  checkField(raw, 'Subject', true)
  assert.equal(decodeWords(unfoldedValue(raw)), '語'.repeat(2_000))
})

const addresses: [value: string, raw: string][] = [
  ['ann@example.com', 'To: ann@example.com'],
  ['Ann Lee <ann@example.com>', 'To: Ann Lee <ann@example.com>'],
  ['"Lee, Ann"<ann@example.com>', 'To: "Lee, Ann" <ann@example.com>'],
  ['John Q. Public <j@x.de>', 'To: "John Q. Public" <j@x.de>'],
  ['Jörg Müller <j@müller.de>', 'To: =?utf-8?B?SsO2cmcgTcO8bGxlcg==?= <j@xn--mller-kva.de>'],
  ['Team: a@x.de, "b b"@x.de;', 'To: Team: a@x.de, "b b"@x.de;'],
  ['undisclosed-recipients:;', 'To: undisclosed-recipients:;'],
  ['jörg@x.de', 'To: =?utf-8?B?asO2cmdAeC5kZQ==?= :;'],
  ['T: jörg@x.de, a@x.de;', 'To: =?utf-8?B?asO2cmdAeC5kZQ==?= :;, a@x.de'],
  ['not an address', 'To: not an address'],
  ['nöt an address', 'To: =?utf-8?Q?n=C3=B6t?= an address'],
]
for (const [value, raw] of addresses) {
  test(`writes the addresses ${value}`, () => assert.equal(headerField('To', value), raw))
}

test('1,000 recipients fold at commas and parse back', () => {
  const value = Array.from({ length: 1_000 }, (_, index) => `Nr ${index} Ü <r${index}@example.com>`).join(
    ', ',
  )
  const raw = headerField('To', value)
  const lines = checkField(raw, 'To')
  assert.ok(lines.slice(0, -1).every((line) => line.endsWith(',')))
  assert.deepEqual(parseAddressList(unfoldedValue(raw)), parseAddressList(value))
})

test('structured fields are folded at blanks and never encoded', () => {
  const references = Array.from({ length: 20 }, (_, index) => `<${index}.abcdefghijklmnop@example.com>`).join(
    ' ',
  )
  const raw = headerField('References', references)
  assert.ok(checkField(raw, 'References').every((line) => line.length <= 78))
  assert.equal(unfoldedValue(raw), references)
  const id = `<${'x'.repeat(200)}@example.com>`
  assert.equal(headerField('Message-Id', id), `Message-Id: ${id}`)
  assert.equal(
    headerField('List-Unsubscribe', '<https://example.com/ü?a=%20>'),
    'List-Unsubscribe: <https://example.com/%C3%BC?a=%20>',
  )
  checkField(headerField('References', `<${'x'.repeat(5_000)}>`), 'References')
})

test('header names are printable ASCII without colon', () => {
  for (const name of ['Subject', 'X-a_b.c', '!#$%']) assert.ok(isHeaderName(name), name)
  for (const name of ['', 'a b', 'a:', 'a\r\n', 'ü', 'a\0', 'x'.repeat(77)]) {
    assert.ok(!isHeaderName(name), JSON.stringify(name))
    assert.throws(() => headerField(name, 'x'), HeaderSyntaxError)
  }
  assert.throws(() => headerField('Subject', 'x'.repeat(1_048_577)), HeaderSyntaxError)
})

const words = fc.oneof(
  fc.constantFrom(
    ...HOSTILE,
    'Bcc: x@example.com',
    ' ',
    '  ',
    '=?utf-8?Q?=0D=0AX:?=',
    '?=',
    '"',
    '\\',
    '(',
    '<',
    '>',
    '@',
    ',',
    ';',
    ':',
  ),
  fc.string({ unit: 'grapheme', maxLength: 12 }),
  fc.string({ unit: anyCharacter, maxLength: 6 }),
  fc.integer({ min: 1, max: 1_200 }).map((length) => 'w'.repeat(length)),
)
const hostileValues = fc.array(words, { maxLength: 12 }).map((parts) => parts.join(''))
const names = fc.constantFrom(
  'Subject',
  'X-Custom',
  'To',
  'From',
  'Reply-To',
  'Message-Id',
  'List-Unsubscribe',
  'x'.repeat(76),
)

test('no value, however hostile, makes more than its one field (10,000 values)', () => {
  fc.assert(
    fc.property(names, hostileValues, fc.boolean(), (name, value, utf8) => {
      checkField(headerField(name, value, { utf8 }), name, utf8)
    }),
    { seed: SEED, numRuns: 10_000 },
  )
})

test('an independent parser sees one field with one value for hostile values', async () => {
  for (const hostile of HOSTILE) {
    for (const name of ['Subject', 'To', 'X-Custom']) {
      const field = headerField(name, `before${hostile}Bcc: evil@example.com${hostile}${hostile}body`)
      const { headerLines, text } = await simpleParser(`${field}\r\n\r\nbody`)
      assert.deepEqual(
        headerLines.map(({ key }) => key),
        [name.toLowerCase()],
      )
      assert.equal(text?.trim(), 'body')
    }
  }
})

test('any text survives being sent as a subject, but for blanks and controls', () => {
  const texts = fc.array(
    fc.oneof(fc.string({ unit: 'grapheme', maxLength: 20 }), fc.constantFrom(' ', '=?', '?=', '_')),
  )
  fc.assert(
    fc.property(texts, fc.boolean(), (parts, utf8) => {
      const value = parts
        .join(' ')
        .replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ')
        .replace(/ {2,}/g, ' ')
        .trim()
      const raw = headerField('Subject', value, { utf8 })
      assert.equal(decodeWords(unfoldedValue(raw)), value)
    }),
    { seed: SEED, numRuns: 3_000 },
  )
})

const parameters: [value: string, pieces: string[]][] = [
  ['a.pdf', ['filename=a.pdf']],
  ['a b.pdf', ['filename="a b.pdf"']],
  ['a"\\b', ['filename="a\\"\\\\b"']],
  ['', ['filename=""']],
  ['ä.pdf', ["filename*=utf-8''%C3%A4.pdf"]],
  ["it's 5%*.txt", ['filename="it\'s 5%*.txt"']],
  ['a\r\nb', ['filename="a b"']],
  ['x'.repeat(80), [`filename*0="${'x'.repeat(61)}"`, `filename*1="${'x'.repeat(19)}"`]],
]
for (const [value, pieces] of parameters) {
  test(`writes the parameter ${JSON.stringify(value).slice(0, 30)}`, () => {
    assert.deepEqual(formatParameter(['filename', value]), pieces)
  })
}

test('parameter fields stay in ASCII lines of 76 and carry any name to an independent parser', async () => {
  for (const filename of [
    'ä'.repeat(200),
    `${'long name '.repeat(20)}.pdf`,
    '例え'.repeat(50),
    'a"b\\c.txt',
    '=?utf-8?Q?x?=.txt',
  ]) {
    const raw = parameterField('Content-Disposition', 'attachment', [['filename', filename]])
    assert.ok(checkField(raw, 'Content-Disposition').every((line) => line.length <= 76))
    if (filename.startsWith('=?')) continue // a parser may decode what it should not
    const { attachments } = await simpleParser(`Content-Type: application/pdf\r\n${raw}\r\n\r\nx`)
    assert.equal(attachments[0]?.filename, filename)
  }
})

const contentTypes: [text: string, type: string | null, parameters?: [string, string][]][] = [
  ['image/PNG', 'image/png', []],
  [
    'text/calendar; method=REQUEST; charset="utf-8"',
    'text/calendar',
    [
      ['method', 'REQUEST'],
      ['charset', 'utf-8'],
    ],
  ],
  ['text/plain; name="x.txt"; boundary=abc; a*=b', 'text/plain', []],
  ['text/plain; x="a;b"; broken; y=a b; z=\r\n', 'text/plain', [['x', 'a;b']]],
  ['image', null],
  ['image/', null],
  ['a/b/c', null],
  ['image/png\r\nX: y', null],
  ['', null],
  [`a/${'b'.repeat(2_000)}`, null],
]
for (const [text, type, kept] of contentTypes) {
  test(`reads the content type ${JSON.stringify(text).slice(0, 50)}`, () => {
    assert.deepEqual(parseContentType(text), type === null ? null : { type, parameters: kept })
  })
}
