/** Encoded words as they come, read from whole messages: what a word may hold depends on how the field's bytes are read. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeCharset } from './charset.ts'
import { parseMessage } from './parse.ts'

/** The field's bytes, one character for each. */
const subjects: [field: string, expected: string][] = [
  ['=?utf-8?Q?Gr=C3=BC=C3=9Fe?=', 'Grüße'],
  // Raw bytes in a word (RFC 2047 §2 allows none).
  ['=?utf-8?Q?Gr\xc3\xbc\xc3\x9fe?=', 'Grüße'],
  ['=?UTF-8?Q?Gr\xc3\xbc=C3=9Fe_an_alle?=', 'Grüße an alle'],
  ['=?iso-8859-1?Q?Gr\xfc\xdfe?=', 'Grüße'],
  ['=?iso-8859-1?Q?Gr\xfc=DFe?= und =?utf-8?Q?Gr\xc3\xbc=C3=9Fe?=', 'Grüße und Grüße'],
  ['=?windows-1251?Q?\xcf\xf0\xe8\xe2\xe5\xf2?=', 'Привет'],
  ['=?koi8-r?Q?\xf0\xd2\xc9\xd7\xc5\xd4?= =?koi8-r?B?8NLJ18XU?=', 'ПриветПривет'],
  ['=?gb2312?Q?\xd6\xd0\xce\xc4?=', '中文'],
  ['=?gb2312?B?\xd6\xd0\xce\xc4?=', '中文'],
  ['=?shift_jis?Q?\x93\xfa\x96{\x8c\xea?=', '日本語'],
  // A label that the bytes belie: the field as a whole is UTF-8.
  ['=?windows-1251?Q?\xd0\x9f\xd1\x80\xd0\xb8?=', 'При'],
  ['caf\xe9 =?utf-8?Q?=E2=82=AC?=', 'café €'],
  // A character, or a word, split over two.
  ['=?utf-8?Q?=E6=97?= =?utf-8?Q?=A5?=', '日'],
  ['=?utf-8?B?5pc=?=\r\n =?UTF-8?B?pQ==?=', '日'],
  ['=?iso-2022-jp?B?GyRCRnxLXBsoQg==?= =?iso-2022-jp?B?GyRCOGwbKEI=?=', '日本語'],
  ['=?utf-8?Q?=E6?= =?utf-8?Q?ok?=', '\ufffdok'],
  ['=?utf-8?Q?a?= =?iso-8859-1?Q?b?= c', 'ab c'],
  ['=?utf-8*de?Q?J=C3=B6rg?= =?utf-8?q?=_x?=', 'Jörg= x'],
  ['=?utf-8?Q?two words?=', 'two words'],
  ['=?x-none?Q?caf=C3=A9?=', 'café'],
  ['=?x-none?Q?caf=E9?=', 'café'],
  // What is none.
  ['=?utf-8?X?a?=', '=?utf-8?X?a?='],
  ['=?utf-8?Q?a', '=?utf-8?Q?a'],
  ['1 =? 2 ?= 3', '1 =? 2 ?= 3'],
  ['=?utf-8?Q?a=0D=0ABcc:_x=00?=', 'a Bcc: x'],
  // UTF-7, RFC 2152.
  ['=?utf-7?Q?Gr+APwA3w-e?=', 'Grüße'],
  ['=?UTF-7?Q?Hi_Mom_+Jjo-!?=', 'Hi Mom ☺!'],
  ['=?unicode-1-1-utf-7?Q?A+ImIDkQ.?=', 'A≢Α.'],
  ['=?utf-7?B?MSArLSAx?=', '1 + 1'],
  ['=?utf-7?Q?a+AA0ACg-Bcc:_x?=', 'a Bcc: x'],
]

test('subjects', async () => {
  for (const [field, expected] of subjects) {
    const { subject } = await parseMessage(Buffer.from(`Subject: ${field}\r\n\r\n`, 'latin1'))
    assert.equal(subject, expected, field)
  }
})

test('names of senders and of files', async () => {
  for (const [word, expected] of [
    ['=?gb2312?Q?\xd6\xd0\xce\xc4?=', '中文'],
    ['=?utf-8?Q?J\xc3\xb6rg?=', 'Jörg'],
    ['=?windows-1251?Q?\xcf\xf0\xe8\x80?=', 'ПриЂ'],
    ['=?utf-7?Q?J+APY-rg?=', 'Jörg'],
  ] as const) {
    const lines = [
      `From: ${word} <a@example.com>`,
      `Content-Disposition: attachment; filename="${word}"`,
      '',
      'x',
    ]
    const { from, attachments } = await parseMessage(Buffer.from(lines.join('\r\n'), 'latin1'))
    assert.deepEqual(from, [{ name: expected, local: 'a', domain: 'example.com' }])
    assert.equal(attachments[0]?.filename, expected)
  }
})

test('UTF-7', () => {
  const cases: [encoded: string, text: string][] = [
    ['Hi Mom +Jjo-!', 'Hi Mom ☺!'],
    ['+ZeVnLIqe-', '日本語'],
    ['A+ImIDkQ.', 'A≢Α.'],
    ['Item 3 is +AKM-1.', 'Item 3 is £1.'],
    ['2+-2=4, a + b', '2+2=4, a + b'],
    ['+ADw-b+AD4-x+ADw-/b+AD4-', '<b>x</b>'],
    ['+2D3eAA-', '😀'],
    // Half of a pair, a byte too many, no end.
    ['+2D0-x', '\ufffdx'],
    ['+AGEA-x', 'ax'],
    ['+AGE', 'a'],
    ['+', '+'],
    ['++-x', 'x'],
    ['a +Jjo +Jjo', 'a ☺ ☺'],
    ['caf\u00e9', 'café'],
  ]
  for (const [encoded, text] of cases)
    assert.equal(decodeCharset(Buffer.from(encoded), 'UTF-7'), text, encoded)
})
