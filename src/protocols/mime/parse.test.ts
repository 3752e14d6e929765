import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { formatMailbox } from './address.ts'
import { parseMessage } from './parse.ts'
import { MimeSyntaxError, splitMessage } from './split.ts'

const SEED = 20260601

const raw = (...lines: string[]) => Buffer.from(lines.join('\r\n'))
const split = (text: string | Buffer) => splitMessage(Buffer.from(text))

test('header fields are split, unfolded and decoded; the body offset counts bytes', () => {
  const message = raw(
    'Subject: =?utf-8?Q?Gr=C3=BC?=',
    ' =?utf-8?Q?=C3=9Fe?= an',
    '\talle',
    'X-Empty:',
    'Tö: x',
    '',
    'body',
  )
  const { headers, bodyOffset } = split(message)
  assert.deepEqual(headers, [
    {
      name: 'Subject',
      raw: 'Subject: =?utf-8?Q?Gr=C3=BC?=\r\n =?utf-8?Q?=C3=9Fe?= an\r\n\talle',
      value: 'Grüße an alle',
    },
    { name: 'X-Empty', raw: 'X-Empty:', value: '' },
  ])
  assert.ok(message.subarray(bodyOffset).toString().startsWith('Tö: x'), 'a bad name ends the header')
})

const bodies: [name: string, message: string, names: string[], body: string][] = [
  ['CRLF', 'A: 1\r\nB: 2\r\n\r\nx', ['A', 'B'], 'x'],
  ['LF', 'A: 1\nB: 2\n\nx', ['A', 'B'], 'x'],
  ['no body', 'A: 1\r\n', ['A'], ''],
  ['no line end', 'A: 1', ['A'], ''],
  ['no header', '\r\nx', [], 'x'],
  ['nothing', '', [], ''],
  ['text that is no header', 'Hello\nA: 1\n\nx', [], 'Hello\nA: 1\n\nx'],
  ['a line that is no field', 'A: 1\nHello you\nB: 2\n\nx', ['A'], 'Hello you\nB: 2\n\nx'],
  ['a leading continuation', ' A: 1\nB: 2\n\nx', [], ' A: 1\nB: 2\n\nx'],
  ['an mbox line', 'From ann Mon Jun 1\nA: 1\n\nx', ['A'], 'x'],
  ['a blank before the colon', 'A : 1\n\nx', ['A'], 'x'],
  ['a line of blanks inside a field', 'A: 1\n \n 2\n\nx', ['A'], 'x'],
]
for (const [name, message, names, body] of bodies) {
  test(`splits a message with ${name}`, () => {
    const { headers, bodyOffset } = split(message)
    assert.deepEqual(
      headers.map((header) => header.name),
      names,
    )
    assert.equal(message.slice(bodyOffset), body)
  })
}

test('raw fields have CRLF folds and no bare CR or NUL; values no control characters', () => {
  const [header] = split('A: 1\n 2\r3\0 =?utf-8?Q?=0D=0AB:_x?=\n\n').headers
  assert.deepEqual(header, { name: 'A', raw: 'A: 1\r\n 2 3  =?utf-8?Q?=0D=0AB:_x?=', value: '1 2 3   B: x' })
})

test('fields in UTF-8 are decoded as such, other bytes as Latin-1 without loss', () => {
  const bytes = Buffer.concat([
    Buffer.from('A: ü\r\nB: '),
    Buffer.from([0xfc, 0xff]),
    Buffer.from('\r\n\r\n'),
  ])
  const { headers } = split(bytes)
  assert.deepEqual(
    headers.map(({ value }) => value),
    ['ü', 'üÿ'],
  )
  assert.ok(
    Buffer.from(headers[1]?.raw as string, 'latin1')
      .subarray(3)
      .equals(Buffer.from([0xfc, 0xff])),
  )
})

test('a header is bounded in fields and bytes', () => {
  assert.equal(split('A: 1\n'.repeat(1_000)).headers.length, 1_000)
  assert.throws(() => split('A: 1\n'.repeat(1_001)), MimeSyntaxError)
  assert.throws(() => split(`A: ${'x'.repeat(1_048_576)}\n\n`), MimeSyntaxError)
  assert.throws(() => split(`A: 1\n${' x\n'.repeat(400_000)}\n`), MimeSyntaxError)
})

test('a message is read with its addresses, texts and files', async () => {
  const message = await parseMessage(
    raw(
      'From: =?utf-8?Q?M=C3=BCller,_J?= <j@example.com>',
      'To: a@x.de, broken address, "B" <b@x.de>',
      'Cc: Team: c@x.de, d@x.de;',
      'Subject: =?iso-8859-1?Q?Gr=FC=DFe?=',
      'Message-ID: <1@example.com>',
      'Content-Type: multipart/mixed; boundary="o"',
      '',
      '--o',
      'Content-Type: multipart/alternative; boundary=i',
      '',
      '--i',
      '',
      'plain',
      '--i',
      'Content-Type: text/x-amp-html; charset=utf-8',
      'Content-Transfer-Encoding: base64',
      '',
      Buffer.from('<html ⚡4email>').toString('base64'),
      '--i',
      'Content-Type: text/html; charset=iso-8859-1',
      'Content-Transfer-Encoding: quoted-printable',
      '',
      '<p>=FC</p>',
      '--i--',
      '--o',
      'Content-Type: image/png',
      'Content-ID: <logo>',
      "Content-Disposition: inline; filename*=utf-8''%C3%BC.png",
      'Content-Transfer-Encoding: base64',
      '',
      'AAEC',
      '--o',
      'Content-Type: message/rfc822',
      '',
      'Subject: nested',
      '',
      'inner',
      '--o--',
    ),
  )
  assert.deepEqual(message.from, [{ name: 'Müller, J', local: 'j', domain: 'example.com' }])
  assert.deepEqual(message.to.map(formatMailbox), ['a@x.de', 'B <b@x.de>'])
  assert.deepEqual(message.cc.map(formatMailbox), ['c@x.de', 'd@x.de'])
  assert.equal(message.subject, 'Grüße')
  assert.equal(message.messageId, '<1@example.com>')
  assert.equal(message.text?.trim(), 'plain')
  assert.equal(message.html?.trim(), '<p>ü</p>')
  assert.equal(message.amp, '<html ⚡4email>')
  const [image, nested] = message.attachments
  assert.deepEqual(
    { ...image, content: [...(image?.content ?? [])] },
    {
      filename: 'ü.png',
      contentType: 'image/png',
      sizeBytes: 3,
      contentId: 'logo',
      disposition: 'inline',
      content: [0, 1, 2],
    },
  )
  assert.equal(Buffer.from(nested?.content ?? []).toString(), 'Subject: nested\r\n\r\ninner')
  assert.deepEqual(message.headers[3], ['Subject', 'Grüße'])
})

test('what is absent is empty or null', async () => {
  const { from, to, cc, subject, messageId, text, html, amp, attachments } = await parseMessage(
    raw('X: y', '', ''),
  )
  assert.deepEqual(
    [from, to, cc, subject, messageId, html, amp, attachments],
    [[], [], [], '', null, null, null, []],
  )
  assert.equal(text?.trim() ?? '', '')
})

test('the reader of parts sees the same header fields: none hidden behind a malformed line', async () => {
  const message = await parseMessage(
    raw('From: a@x.de', 'no field', 'From: evil@x.de', 'Content-Type: text/html', '', 'x'),
  )
  assert.deepEqual(message.from.map(formatMailbox), ['a@x.de'])
  assert.equal(message.html, null)
  assert.match(message.text ?? '', /^no field\nFrom: evil/)
})

function nestedMultiparts(depth: number): string {
  let message = ''
  for (let level = 0; level < depth; level++)
    message += `Content-Type: multipart/mixed; boundary=b${level}\n\n--b${level}\n`
  return message
}

test('20 levels and 1,000 parts are read, more are refused', async () => {
  await parseMessage(Buffer.from(nestedMultiparts(20)))
  await assert.rejects(parseMessage(Buffer.from(nestedMultiparts(21))), MimeSyntaxError)
  await assert.rejects(parseMessage(Buffer.from(nestedMultiparts(10_000))), MimeSyntaxError)
  const parts = (count: number) =>
    `Content-Type: multipart/mixed; boundary="b"\n\n${'--b\n\nx\n'.repeat(count)}--b--\n`
  await parseMessage(Buffer.from(parts(999)))
  await assert.rejects(parseMessage(Buffer.from(parts(1_001))), MimeSyntaxError)
  await assert.rejects(parseMessage(Buffer.from(parts(100_000))), MimeSyntaxError)
})

test('many lines that begin with dashes are no parts', async () => {
  const { text } = await parseMessage(Buffer.from(`Subject: sql\n\n${'-- comment\n'.repeat(5_000)}`))
  assert.equal(text?.length, 5_000 * '-- comment\n'.length)
})

const bombs: [name: string, message: string][] = [
  ['encoded words', `Subject: ${'=?utf-8?Q?a?= '.repeat(70_000)}\n\n`],
  ['encoded words of unknown charset', `Subject: ${'=?x-no?B?YQ==?= '.repeat(60_000)}\n\n`],
  ['unfinished encoded words', `Subject: ${'=?utf-8?Q?'.repeat(100_000)}\n\n`],
  ['addresses', `To: ${'a@b,'.repeat(250_000)}\n\n`],
  ['comments', `To: ${'('.repeat(1_000_000)}\n\n`],
  ['a parameter', `Content-Type: text/plain; ${'a="'.repeat(300_000)}\n\nx`],
  ['parameters', `Content-Type: multipart/mixed; ${'a*0=b;'.repeat(100_000)}\n\nx`],
  ['boundary parameters', `A: b\n\n--${'boundary="'.repeat(200_000)}`],
  ['delimiters that are none', `Content-Type: multipart/mixed; boundary=b\n\n${'--bx\n'.repeat(200_000)}`],
  ['nested messages', `${'Content-Type: message/rfc822\n\n'.repeat(2_000)}x`],
  ['quoted-printable', `Content-Transfer-Encoding: quoted-printable\n\n${'='.repeat(500_000)}`],
  ['empty lines', `A: b\n\n${'\n'.repeat(300_000)}`],
]
for (const [name, message] of bombs) {
  test(`a bomb of ${name} is read or refused`, async () => {
    try {
      await parseMessage(Buffer.from(message))
    } catch (error) {
      assert.ok(error instanceof MimeSyntaxError, String(error))
    }
  })
}

test('any bytes are read or refused with MimeSyntaxError', async () => {
  const pieces = fc.constantFrom(
    ...[
      'From: ',
      'To: a@x.de',
      'Content-Type: multipart/mixed; boundary=b',
      'Content-Type: text/html; charset=x',
    ],
    ...[
      'Content-Transfer-Encoding: base64',
      'Content-Disposition: attachment; filename="',
      '\r\n',
      '\n',
      '\n\n',
      '--b',
    ],
    ...[
      '--b--',
      '=?utf-8?B?',
      '?=',
      ' ',
      '\0',
      '\r',
      ':',
      'ü',
      '\ufeff',
      'x',
      '=',
      '"',
      "filename*0*=utf-8''%",
    ],
  )
  const messages = fc.oneof(
    fc.array(pieces, { maxLength: 40 }).map((parts) => Buffer.from(parts.join(''))),
    fc.uint8Array({ maxLength: 200 }),
  )
  await fc.assert(
    fc.asyncProperty(messages, async (message) => {
      try {
        const { headers } = await parseMessage(message)
        for (const [name, value] of headers) assert.doesNotMatch(name + value, /[\r\n\0]/)
      } catch (error) {
        if (!(error instanceof MimeSyntaxError)) throw error
      }
    }),
    { seed: SEED, numRuns: 3_000 },
  )
})

const bodiesRead: [name: string, fields: string, body: Buffer | string, text: string][] = [
  ['UTF-8 without a charset', '', 'ü', 'ü'],
  ['Latin-1 without a charset', '', Buffer.from([0xfc]), 'ü'],
  ['Latin-1 called ASCII', 'Content-Type: text/plain; charset=us-ascii\n', Buffer.from([0xfc]), 'ü'],
  ['an unknown charset', 'Content-Type: text/plain; charset=x-none\n', 'ü', 'ü'],
  [
    'Shift JIS by a Windows name',
    'Content-Type: text/plain; charset="cp932"\n',
    Buffer.from([0x93, 0xfa]),
    '日',
  ],
  ['a comment after the charset', 'Content-Type: text/plain; charset=utf-8 (Plain)\n', 'ü', 'ü'],
  ['an unknown encoding', 'Content-Transfer-Encoding: x-none\n', 'a', 'a'],
  [
    'quoted-printable with soft breaks',
    'Content-Transfer-Encoding: Quoted-Printable\n',
    'a=\n=3D=  \r\nb \t\nc=20\n=XY=4',
    'a=b\nc \n=XY=4',
  ],
  ['base64 with noise', 'Content-Transfer-Encoding: base64\n', 'Y\r\n!W Jj', 'abc'],
  ['no valid type', 'Content-Type: nonsense\n', 'a', 'a'],
  ['a multipart without boundary', 'Content-Type: multipart/mixed\n', 'a', 'a'],
  ['a multipart without delimiter', 'Content-Type: multipart/mixed; boundary=b\n', 'a', 'a'],
]
for (const [name, fields, body, text] of bodiesRead) {
  test(`reads text with ${name}`, async () => {
    const message = Buffer.concat([Buffer.from(`${fields}\n`), Buffer.from(body as string)])
    assert.equal((await parseMessage(message)).text, text)
  })
}

const delimiters: [name: string, body: string, texts: string[]][] = [
  ['preamble and epilogue', 'pre\n--b\n\n1\n--b\n\n2\n--b--\nepi\n--b\n\nno', ['1', '2']],
  ['no line end before the first', '--b\n\n1\n--b--', ['1']],
  ['no closing delimiter', '--b\n\n1\n--b\n\n2', ['1', '2']],
  ['blanks after the delimiter', '--b \t\n\n1\n--b--  \n', ['1']],
  ['CRLF', '--b\r\n\r\n1\r\n\r\n--b--', ['1\n']],
  ['an empty part', '--b\n--b\n\n2\n--b--', ['', '2']],
  ['a longer boundary in the text', '--b\n\n--bc\n x--b\n--b--', ['--bc\n x--b']],
]
for (const [name, body, texts] of delimiters) {
  test(`cuts parts with ${name}`, async () => {
    const { text } = await parseMessage(Buffer.from(`Content-Type: multipart/mixed; boundary=b\n\n${body}`))
    assert.equal(text, texts.join('\n'))
  })
}

const names: [fields: string, filename: string][] = [
  ['Content-Disposition: attachment; filename=a.pdf', 'a.pdf'],
  ['Content-Disposition: attachment; filename="a;b \\"c\\".pdf"', 'a;b "c".pdf'],
  ['Content-Disposition: attachment; filename=my file (1).pdf', 'my file (1).pdf'],
  ["Content-Disposition: attachment; filename*=iso-8859-1'de'%FC.pdf; filename=x", 'ü.pdf'],
  // RFC 2231 §3 and §4.1
  ["Content-Disposition: attachment; filename*1*=%83.pdf; filename*0*=utf-8''%E3%81", '\u3043.pdf'],
  [
    "Content-Disposition: attachment; filename*0*=us-ascii'en'a%20; filename*1=%41b; filename*2*=%21",
    'a %41b!',
  ],
  ['Content-Disposition: attachment; filename="=?utf-8?Q?=C3=BC?=.pdf"', 'ü.pdf'],
  ['Content-Type: application/pdf; name=b.pdf', 'b.pdf'],
  ['Content-Type: application/pdf', ''],
]
for (const [fields, filename] of names) {
  test(`reads the file name of ${fields}`, async () => {
    const type = fields.startsWith('Content-Type') ? '' : 'Content-Type: application/pdf\n'
    const { attachments } = await parseMessage(Buffer.from(`${type}${fields}\n\nx`))
    assert.equal(attachments[0]?.filename, filename)
  })
}

test('unencoded files keep their bytes, calendars too', async () => {
  const calendar = 'BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n'
  const body = `--b\r\nContent-Type: text/calendar; method=REQUEST\r\n\r\n${calendar}\r\n--b--`
  const { attachments } = await parseMessage(
    Buffer.from(`Content-Type: multipart/mixed; boundary=b\r\n\r\n${body}`),
  )
  assert.equal(Buffer.from(attachments[0]?.content ?? []).toString(), calendar)
})
