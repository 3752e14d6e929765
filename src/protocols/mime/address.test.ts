// Own process: it measures the memory of its process.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { anyCharacter } from '../../../test/support/any-character.ts'
import { heldMb } from '../../../test/support/process-memory.ts'
import {
  AddressSyntaxError,
  addressKey,
  bareAddress,
  formatMailbox,
  type Mailbox,
  needsSmtpUtf8,
  parseAddressItems,
  parseAddressList,
  parseMailbox,
  parsePlainMailbox,
  toAsciiDomain,
} from './address.ts'

const SEED = 20260601

const accepted: [text: string, name: string, local: string, domain: string][] = [
  ['ann@example.com', '', 'ann', 'example.com'],
  [' <ann@Example.COM> ', '', 'ann', 'example.com'],
  ['Ann <Ann.Lee+tag@example.com>', 'Ann', 'Ann.Lee+tag', 'example.com'],
  ['"Lee, Ann" <ann@example.com>', 'Lee, Ann', 'ann', 'example.com'],
  ['"Ann \\"A\\" \\\\ Lee" <ann@example.com>', 'Ann "A" \\ Lee', 'ann', 'example.com'],
  // RFC 5322 appendix A.1.2, A.5, A.6.1 (obsolete dots and commas; its source route is refused below)
  ['"Joe Q. Public" <john.q.public@example.com>', 'Joe Q. Public', 'john.q.public', 'example.com'],
  ['"Giant; \\"Big\\" Box" <sysservices@example.net>', 'Giant; "Big" Box', 'sysservices', 'example.net'],
  ['Pete(A nice \\) chap) <pete(his account)@silly.test(his host)>', 'Pete', 'pete', 'silly.test'],
  ['Joe Q. Public <john.q.public@example.com>', 'Joe Q. Public', 'john.q.public', 'example.com'],
  // comments nest, and name an address in old mail
  ['(a (b) c) ann@example.com (Ann \\(Lee)', 'Ann (Lee', 'ann', 'example.com'],
  ['ann @ example.com', '', 'ann', 'example.com'],
  // quoted local parts
  ['"ann lee"@example.com', '', 'ann lee', 'example.com'],
  ['"ann"."lee"@example.com', '', 'ann.lee', 'example.com'],
  ['"a@b"@example.com', '', 'a@b', 'example.com'],
  // encoded words: RFC 2047 §8, and senders who do not keep to it
  ['=?US-ASCII?Q?Keith_Moore?= <moore@cs.utk.edu>', 'Keith Moore', 'moore', 'cs.utk.edu'],
  ['=?ISO-8859-1?Q?Andr=E9?= Pirard <PIRARD@vm1.ulg.ac.be>', 'André Pirard', 'PIRARD', 'vm1.ulg.ac.be'],
  ['=?UTF-8?B?SsO2?= =?UTF-8?B?cmc=?= <j@example.com>', 'Jörg', 'j', 'example.com'],
  ['=?UTF-8?Q?=E6=97?= =?UTF-8?Q?=A5?= <j@example.com>', '日', 'j', 'example.com'],
  ['=?utf-8?Q?Acme,_Inc.?= <a@example.com>', 'Acme, Inc.', 'a', 'example.com'],
  // A name may have the backslash (RFC 6532 §3.2), and an address the character without it.
  ['"Ann \\© Lee" <a@example.com>', 'Ann © Lee', 'a', 'example.com'],
  ['"ünal©"@example.com', '', 'ünal©', 'example.com'],
  ['"=?utf-8?Q?kept?=" <a@example.com>', '=?utf-8?Q?kept?=', 'a', 'example.com'],
  ['=?utf-8?Q?a=0D=0ABcc:_x@y?= <a@example.com>', 'a Bcc: x@y', 'a', 'example.com'],
  // RFC 6532
  ['Jörg Müller <jörg@exämple.de>', 'Jörg Müller', 'jörg', 'xn--exmple-cua.de'],
  ['用户@例子.广告', '', '用户', 'xn--fsqu00a.xn--4rr70v'],
  ['a@straße.de', '', 'a', 'xn--strae-oqa.de'],
  ['a@例子。com', '', 'a', 'xn--fsqu00a.com'],
  ['x@localhost', '', 'x', 'localhost'],
]

for (const [text, name, local, domain] of accepted) {
  test(`reads ${text}`, () => assert.deepEqual(parseMailbox(text), { name, local, domain }))
}

const refused = [
  '',
  ' ',
  'ann',
  'ann@',
  '@example.com',
  '<>',
  '<ann@example.com',
  'ann@example.com>',
  'Ann ann@example.com',
  'a@b@example.com',
  'ann..lee@example.com',
  '.ann@example.com',
  'ann.@example.com',
  'ann . lee@example.com',
  '""@example.com',
  '"ann@example.com',
  '"test\\©"@example.com',
  'Ann <"test\\©"@example.com>',
  '"a"."\\ü"@example.com',
  'ann(@example.com',
  'ann@[127.0.0.1]',
  'ann@127.0.0.1',
  'ann@１２７.0.0.1',
  'ann@-example.com',
  'ann@example-.com',
  'ann@exa_mple.com',
  'ann@example..com',
  'ann@example.com.',
  'ann@exämple%2ecom',
  'ann@exämple.com:25',
  'Mary Smith <@node.test:mary@example.net>',
  'a@example.com, b@example.com',
  'Team: a@example.com;',
  'a@example.com;',
  'ann\\lee@example.com',
  'ann@example.com\r\nBcc: x@example.com',
  '"a\nb" <ann@example.com>',
  'a\u0000b@example.com',
  'ann\u0085@example.com',
  'ann\u2028@example.com',
  'ann\u200b@example.com',
  'ann\u202e@example.com',
  'ann\u00a0@example.com',
  '\ud800@example.com',
  `${'a'.repeat(65)}@example.com`,
  `${'é'.repeat(33)}@example.com`,
  `ann@${'a'.repeat(64)}.com`,
  `ann@${'a.'.repeat(126)}com`,
  `"${'x'.repeat(3_000)}" <ann@example.com>`,
]

for (const text of refused) {
  test(`refuses ${JSON.stringify(text).slice(0, 60)}`, () => {
    assert.throws(() => parseMailbox(text), AddressSyntaxError)
  })
}

test('a local part of 64 octets and a domain of 253 characters are read', () => {
  const domain = `${`${'a'.repeat(61)}.`.repeat(4)}abcde`
  assert.equal(domain.length, 253)
  const address = `${'a'.repeat(64)}@${domain}`
  assert.equal(bareAddress(parseMailbox(address)), address)
})

const lists: [text: string, addresses: string[]][] = [
  ['', []],
  [' , ,', []],
  ['a@x.de', ['a@x.de']],
  ['a@x.de, b@x.de,', ['a@x.de', 'b@x.de']],
  [',a@x.de,,b@x.de', ['a@x.de', 'b@x.de']],
  ['"A, B" <a@x.de>,\tC <c@x.de> (d, e)', ['"A, B" <a@x.de>', 'C <c@x.de>']],
  [
    'A Group:Ed Jones <c@a.test>,joe@where.test,John <jdoe@one.test>;',
    ['Ed Jones <c@a.test>', 'joe@where.test', 'John <jdoe@one.test>'],
  ],
  ['Undisclosed recipients:;', []],
  ['x: a@x.de; , b@x.de', ['a@x.de', 'b@x.de']],
]

for (const [text, addresses] of lists) {
  test(`reads the list ${JSON.stringify(text)}`, () => {
    assert.deepEqual(parseAddressList(text).map(formatMailbox), addresses)
  })
}

test('groups are kept where they are asked for', () => {
  assert.deepEqual(parseAddressItems('Team: a@x.de;, b@x.de'), [
    { name: 'Team', members: [{ name: '', local: 'a', domain: 'x.de' }] },
    { name: '', local: 'b', domain: 'x.de' },
  ])
})

for (const text of [
  'a@x.de b@x.de',
  'a@x.de; b@x.de',
  'x: a@x.de',
  'x: y: a@x.de;;',
  ': a@x.de;',
  'a@x.de, b',
]) {
  test(`refuses the list ${text}`, () => assert.throws(() => parseAddressList(text), AddressSyntaxError))
}

test('an error quotes what was given, cut and without controls', () => {
  assert.throws(
    () => parseMailbox(`x${'y'.repeat(500)}`),
    (error: Error) => error.message.length < 200,
  )
  assert.throws(
    () => parseMailbox('x\r\ny'),
    (error: Error) => !/[\r\n]/.test(error.message),
  )
})

test('a list is bounded in text and in addresses', () => {
  assert.equal(parseAddressList('a@b.de,'.repeat(10_000)).length, 10_000)
  assert.throws(() => parseAddressList('a@b.de,'.repeat(10_001)), AddressSyntaxError)
  assert.throws(() => parseAddressList('a'.repeat(1_048_577)), AddressSyntaxError)
})

const bombs = [
  '(',
  '"',
  '<',
  '=?',
  '=?u?q?',
  '.',
  'a.',
  '(\\',
  'a:',
  '"a".',
  '=?u?q?a?=',
  '\\',
  '@',
  'a@',
  ',',
  ' ',
  'é',
]
for (const bomb of bombs) {
  test(`a megabyte of ${bomb} ends`, () => {
    try {
      parseAddressList(bomb.repeat(Math.floor(1_048_576 / bomb.length)))
    } catch (error) {
      assert.ok(error instanceof AddressSyntaxError)
    }
  })
}

test('formatting quotes names where needed and local parts only where they must be', () => {
  const format = (name: string, local: string) => formatMailbox({ name, local, domain: 'x.de' })
  assert.equal(format('', 'ann'), 'ann@x.de')
  assert.equal(format('Ann Lee', 'ann'), 'Ann Lee <ann@x.de>')
  assert.equal(format('Jörg', 'jörg'), 'Jörg <jörg@x.de>')
  assert.equal(format('Lee, Ann', 'ann'), '"Lee, Ann" <ann@x.de>')
  assert.equal(format('A  B', 'a b'), '"A  B" <"a b"@x.de>')
  assert.equal(format('=?utf-8?Q?x?=', '..'), '"=?utf-8?Q?x?=" <".."@x.de>')
  assert.equal(format('a\r\nBcc: b', 'a'), '"a Bcc: b" <a@x.de>')
})

test('keys compare addresses without letter case, quotes, names and normal form', () => {
  assert.equal(addressKey('Ann <ANN@Example.com>'), 'ann@example.com')
  assert.equal(addressKey('"ann"@EXAMPLE.com'), 'ann@example.com')
  assert.equal(addressKey({ name: 'x', local: 'JÖRG', domain: 'x.de' }), 'jörg@x.de')
  assert.equal(addressKey('JO\u0308RG@exämple.de'), 'jörg@xn--exmple-cua.de')
  assert.equal(addressKey(' Not an address '), 'not an address')
})

test('only a non-ASCII local part needs SMTPUTF8', () => {
  assert.equal(needsSmtpUtf8(parseMailbox('Jörg <j@exämple.de>')), false)
  assert.equal(needsSmtpUtf8(parseMailbox('jörg@example.de')), true)
})

test('domain names become A-labels or are refused', () => {
  assert.equal(toAsciiDomain('MÜNCHEN.de'), 'xn--mnchen-3ya.de')
  for (const domain of ['', '.', 'a b', 'a/b', 'ü/b', 'ü?x', 'ü@b', 'ü:1', '[::1]', '0x7f.1', '１.２']) {
    assert.throws(() => toAsciiDomain(domain), AddressSyntaxError, domain)
  }
})

const mailboxes: fc.Arbitrary<Mailbox> = fc.record(
  {
    name: fc
      .string({ unit: 'grapheme', maxLength: 30 })
      .map((name) => name.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '').trim()),
    local: fc
      .string({ minLength: 1, maxLength: 20 })
      .filter((local) => Buffer.byteLength(JSON.stringify(local)) <= 40),
    domain: fc.domain().filter((domain) => !/^\d+$/.test(domain.split('.').at(-1) as string)),
  },
  { noNullPrototype: true },
)

test('what is formatted is read back the same, alone and in a list', () => {
  fc.assert(
    fc.property(fc.array(mailboxes, { minLength: 1, maxLength: 4 }), (list) => {
      assert.deepEqual(parseMailbox(formatMailbox(list[0] as Mailbox)), list[0])
      assert.deepEqual(parseAddressList(list.map(formatMailbox).join(', ')), list)
    }),
    { seed: SEED, numRuns: 1_000 },
  )
})

test('any text is read or refused with AddressSyntaxError, and what is read holds its promises', () => {
  const tricky = fc.array(
    fc.constantFrom(
      'a',
      'b.c',
      '@',
      'x.de',
      '<',
      '>',
      ',',
      ';',
      ':',
      '"',
      '\\',
      '(',
      ')',
      ' ',
      '\t',
      '=?utf-8?Q?',
      '?=',
      'é',
      '.',
      '[',
      '\r',
      '例',
    ),
    { maxLength: 20 },
  )
  fc.assert(
    fc.property(
      fc.oneof(
        tricky.map((parts) => parts.join('')),
        fc.string({ unit: anyCharacter }),
      ),
      (text) => {
        try {
          for (const mailbox of parseAddressList(text)) {
            assert.match(mailbox.domain, /^[a-z0-9.-]+$/)
            assert.doesNotMatch(mailbox.local + mailbox.name, /[\u0000-\u001f\u007f]/)
            assert.deepEqual(parseMailbox(formatMailbox(mailbox)), mailbox)
          }
        } catch (error) {
          if (!(error instanceof AddressSyntaxError)) throw error
        }
      },
    ),
    { seed: SEED, numRuns: 3_000 },
  )
})

test('an address that was a slice of a large text does not keep that text', () => {
  const before = heldMb()
  for (let at = 0; at < 60; at++) {
    const body = `to=recipient-number-${at}@example.com&text=${'x'.repeat(4_000_000)}${at}`
    assert.equal(parsePlainMailbox(body.slice(3, body.indexOf('&')))?.domain, 'example.com')
  }
  const grown = heldMb() - before
  assert.ok(grown < 60, `60 texts of 4 MB, and ${Math.round(grown)} MB more`)
})
