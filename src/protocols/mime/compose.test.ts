import assert from 'node:assert/strict'
import { isAscii } from 'node:buffer'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { simpleParser } from 'mailparser'
import { anyCharacter } from '../../../test/support/any-character.ts'
import { type LazyChunk, messageBytes, messageSize } from '../message/mime-message.ts'
import { type BodyFile, composeMessage, encodeFile, type MessageParts } from './compose.ts'
import { parseMessage } from './parse.ts'
import {
  base64Size,
  decodeContent,
  encodeBase64,
  encodeBase64Lazily,
  encodeQuotedPrintable,
  encodeText,
  toCrlf,
} from './transfer-encoding.ts'

const SEED = 20260601

function parts(given: Partial<MessageParts>): MessageParts {
  const headers = [['From', 'Ann <ann@example.com>']] as const
  return { headers, inline: [], attachments: [], utf8: false, boundarySeed: 'seed', ...given }
}

function file(filename: string, content: BodyFile['content'], contentType = 'application/pdf'): BodyFile {
  return { filename, contentType, content }
}

async function bytesOf(given: Partial<MessageParts>): Promise<Buffer> {
  const message = composeMessage(parts(given))
  const bytes = await messageBytes(message)
  assert.equal(bytes.length, messageSize(message), 'the size is known ahead')
  const text = bytes.toString('latin1')
  assert.doesNotMatch(text, /\r(?!\n)|(?<!\r)\n|\0/, 'CRLF line ends only, no NUL')
  assert.ok(text.endsWith('\r\n'))
  assert.ok(message.composed)
  assert.ok(isAscii(await messageBytes({ ...message, headers: [] })), 'a composed body is ASCII')
  assert.ok(text.split('\r\n').every((line) => line.length <= 998))
  return bytes
}

/** Deterministic bytes of every value. */
function noise(size: number): Buffer {
  const bytes = Buffer.alloc(size)
  for (let index = 0; index < size; index++) bytes[index] = (index * 167 + (index >> 8) * 13) & 255
  return bytes
}

function lazy(bytes: Uint8Array, pieceBytes: number, sizeBytes = bytes.length): LazyChunk {
  return {
    sizeBytes,
    async *open() {
      for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes)
    },
  }
}

async function collect(chunk: LazyChunk): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  for await (const piece of chunk.open()) pieces.push(piece)
  return Buffer.concat(pieces)
}

/** The tree of content types, read off the delimiters' headers in order. */
function typesIn(bytes: Buffer): string[] {
  return [...bytes.toString('latin1').matchAll(/^Content-Type: ([a-z0-9/-]+)/gm)].map(
    (match) => match[1] as string,
  )
}

const [PDF, PNG] = [file('a.pdf', Buffer.from('pdf')), file('b.png', Buffer.from('png'), 'image/png')]
const trees: [name: string, given: Partial<MessageParts>, types: string[]][] = [
  ['text only', { text: 'x' }, ['text/plain']],
  ['html only', { html: 'x' }, ['text/html']],
  ['nothing', {}, ['text/plain']],
  ['one file only', { attachments: [PDF] }, ['application/pdf']],
  ['text and html', { html: 'x', text: 'x' }, ['multipart/alternative', 'text/plain', 'text/html']],
  [
    'text, amp and html',
    { text: 'x', html: 'x', amp: 'x' },
    ['multipart/alternative', 'text/plain', 'text/x-amp-html', 'text/html'],
  ],
  ['html and inline', { html: 'x', inline: [PNG] }, ['multipart/related', 'text/html', 'image/png']],
  [
    'text and attachment',
    { text: 'x', attachments: [PDF] },
    ['multipart/mixed', 'text/plain', 'application/pdf'],
  ],
  [
    'everything',
    { text: 'x', html: 'x', inline: [PNG, PNG], attachments: [PDF] },
    [
      'multipart/mixed',
      'multipart/related',
      'multipart/alternative',
      'text/plain',
      'text/html',
      'image/png',
      'image/png',
      'application/pdf',
    ],
  ],
]
for (const [name, given, types] of trees) {
  test(`structure of ${name}`, async () => assert.deepEqual(typesIn(await bytesOf(given)), types))
}

test('a plain message, byte for byte', async () => {
  const headers = [
    ['From', 'Ann <ann@example.com>'],
    ['Mime-Version', '2.0'],
    ['content-type', 'text/evil'],
    ['Subject', 'Hi'],
  ] as const
  assert.equal(
    (await bytesOf({ headers, text: 'one\ntwo' })).toString(),
    'From: Ann <ann@example.com>\r\nSubject: Hi\r\nMime-Version: 1.0\r\n' +
      'Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 7bit\r\n\r\none\r\ntwo\r\n',
  )
})

test('the related level names the type of its root (RFC 2387)', async () => {
  const text = (await bytesOf({ html: 'x', inline: [PNG] })).toString()
  assert.match(text, /multipart\/related;\s+boundary="[^"]+";\s+type="text\/html"/)
})

const fileNames = [
  'a.pdf',
  'Übersicht März.pdf',
  '例え話.txt',
  'a "b" \\c.txt',
  `${'very long '.repeat(12)}.pdf`,
  '🎉.png',
]
test('an independent parser reads back subject, names, addresses, texts and file names', async () => {
  const headers = [
    ['From', 'Jörg Müller <joerg@exämple.de>'],
    ['To', '"Lee, Ann" <ann@example.com>, 日本 <nihon@example.jp>'],
    ['Subject', 'Grüße 🎉 und noch viel mehr Wörter, die gefaltet werden müssen, weil sie zu lang sind'],
    ['Message-Id', '<1@example.com>'],
  ] as const
  const text = 'Zeile ä\r\n\r\nmit = und Ende \n.punkt\nFrom hier'
  const html = `<p>${'日本語'.repeat(500)}</p>`
  const attachments = fileNames.map((name, index) => file(name, noise(index * 100)))
  const mail = await simpleParser(await bytesOf({ headers, text, html, attachments }))
  assert.equal(mail.subject, headers[2][1])
  assert.deepEqual(mail.from?.value, [{ name: 'Jörg Müller', address: 'joerg@exämple.de' }])
  assert.deepEqual(
    [mail.to].flat()[0]?.value.map(({ name }) => name),
    ['Lee, Ann', '日本'],
  )
  assert.equal(mail.text, 'Zeile ä\n\nmit = und Ende \n.punkt\nFrom hier')
  assert.equal(mail.html, html)
  assert.deepEqual(
    mail.attachments.map(({ filename }) => filename),
    fileNames,
  )
  mail.attachments.forEach((attachment, index) => {
    assert.ok(attachment.content.equals(noise(index * 100)))
  })
})

test('SMTPUTF8 headers are UTF-8 and read back by an independent parser', async () => {
  const headers = [
    ['From', 'Jörg <jörg@example.de>'],
    ['Subject', 'Grüße'],
  ] as const
  const bytes = await bytesOf({ headers, text: 'x', utf8: true })
  assert.ok(bytes.toString().startsWith('From: Jörg <jörg@example.de>\r\nSubject: Grüße\r\n'))
  assert.equal((await simpleParser(bytes)).from?.value[0]?.address, 'jörg@example.de')
})

test('files come back byte for byte: empty, one byte, around line ends, binary, 300 KB, lazy or not', async () => {
  for (const size of [0, 1, 2, 3, 56, 57, 58, 113, 114, 115, 65_537, 300_000]) {
    const content = noise(size)
    for (const chunk of [content, lazy(content, 4_099), lazy(content, 57), lazy(content, 1_000_000)]) {
      const bytes = await bytesOf({
        html: '<img src="cid:b.png">',
        inline: [file('b.png', chunk, 'image/png')],
        attachments: [file('c', chunk)],
      })
      const { attachments } = await simpleParser(bytes)
      assert.equal(attachments.length, 2)
      for (const attachment of attachments)
        assert.ok(Buffer.from(attachment.content).equals(content), `size ${size}`)
      const own = await parseMessage(bytes)
      assert.ok(own.attachments.every((attachment) => Buffer.from(attachment.content).equals(content)))
    }
  }
})

test('a single file as the whole message comes back byte for byte', async () => {
  for (const content of [noise(0), noise(100), lazy(noise(100), 7)]) {
    const { attachments } = await simpleParser(await bytesOf({ attachments: [file('a.bin', content)] }))
    const expected = content instanceof Uint8Array ? content : noise(100)
    assert.ok(Buffer.from(attachments[0]?.content ?? []).equals(expected))
  }
})

test('a lazy file that yields another size than it said fails instead of damaging the message', async () => {
  for (const sizeBytes of [99, 101]) {
    const message = composeMessage(
      parts({ text: 'x', attachments: [file('a', lazy(noise(100), 10, sizeBytes))] }),
    )
    await assert.rejects(messageBytes(message), /Attachment of/)
  }
})

test('a file encoded once serves every message', async () => {
  const encoded = encodeFile(file('a.pdf', noise(1_000)))
  assert.deepEqual(
    await bytesOf({ text: 'x', attachments: [encoded] }),
    await bytesOf({ text: 'x', attachments: [file('a.pdf', noise(1_000))] }),
  )
})

test('inline files are found by cid under their file name, or the id they were given', async () => {
  const inline = [file('logo.png', Buffer.from('1'), 'image/png'), { ...PNG, contentId: 'id@x' }]
  const ids = (await parseMessage(await bytesOf({ html: 'x', inline }))).attachments.map(
    ({ contentId }) => contentId,
  )
  assert.deepEqual(ids, ['logo.png', 'id@x'])
  const odd = await bytesOf({
    html: 'x',
    inline: [file('mein lögo>\r\n.png', Buffer.from('1'), 'image/png')],
  })
  assert.match(odd.toString(), /\r\nContent-Id: <mein%20l%C3%B6go%3E%20.png>\r\n/)
})

test('file names and content types of users cannot add headers', async () => {
  const evil = '\r\nBcc: x@example.com\r\n\r\nbody'
  const bytes = await bytesOf({
    text: 'x',
    inline: [{ ...file(`a${evil}`, Buffer.from('1'), `image/png${evil}`), contentId: `c${evil}` }],
    attachments: [file('', Buffer.from('1'), `a/b; x="${evil}"`)],
  })
  assert.doesNotMatch(bytes.toString(), /^(Bcc|body)/m)
  const { attachments } = await parseMessage(bytes)
  assert.deepEqual(
    attachments.map(({ contentType }) => contentType),
    ['application/octet-stream', 'a/b'],
  )
  assert.equal(attachments[1]?.filename, 'attachment')
})

test('an attached message stays as it is when clean 7bit, else it becomes an encoded file', async () => {
  const clean = Buffer.from('Subject: x\r\n\r\nbody\r\n')
  const types = async (content: BodyFile['content'], type = 'message/rfc822') => {
    const bytes = await bytesOf({ text: 'x', attachments: [file('m.eml', content, type)] })
    const { attachments } = await parseMessage(bytes)
    const expected = content instanceof Uint8Array ? content : clean
    assert.ok(Buffer.from(attachments[0]?.content as Uint8Array).equals(expected))
    return `${attachments[0]?.contentType} ${[...bytes.toString().matchAll(/Encoding: (\S+)/g)].at(-1)?.[1]}`
  }
  assert.equal(await types(clean), 'message/rfc822 7bit')
  for (const unclean of [
    'Subject: ä\r\n\r\n',
    'a: b\n\nc',
    'a: b\r\n\r\n\0',
    `a: ${'b'.repeat(999)}\r\n\r\n`,
  ]) {
    assert.equal(await types(Buffer.from(unclean)), 'application/octet-stream base64')
  }
  assert.equal(await types(lazy(clean, 5)), 'application/octet-stream base64')
  assert.equal(await types(clean, 'multipart/mixed; boundary=x'), 'application/octet-stream base64')
  assert.equal(await types(clean, 'message/partial'), 'application/octet-stream base64')
})

test('the same input gives the same bytes, another seed other boundaries', async () => {
  const given = { text: 'x', html: 'y', attachments: [PDF] }
  assert.deepEqual(await bytesOf(given), await bytesOf(given))
  assert.notDeepEqual(await bytesOf(given), await bytesOf({ ...given, boundarySeed: 'other' }))
})

test('a boundary never occurs in a part, even if the sender foresaw it', async () => {
  const foreseen = `=_${hash('sha256', 'seed').slice(0, 32)}_`
  const text = `before\r\n--${foreseen}a\r\n\r\nafter\r\n--${foreseen}a--`
  const nested = file('m.eml', Buffer.from(`Subject: x\r\n\r\n${text}\r\n`), 'message/rfc822')
  const mail = await parseMessage(await bytesOf({ text, html: '<p>x</p>', attachments: [nested] }))
  assert.equal(mail.text?.trim(), text.replaceAll('\r\n', '\n'))
  assert.equal(mail.attachments.length, 1)
})

const encodings: [name: string, text: string, encoding: string, content?: string][] = [
  ['ASCII', 'a\nb\rc\r\nd', '7bit', 'a\r\nb\r\nc\r\nd'],
  ['empty text', '', '7bit', ''],
  ['a line of 998', 'x'.repeat(998), '7bit'],
  ['a line of 999', 'x'.repeat(999), 'quoted-printable'],
  ['a long line after short ones', `${'a\n'.repeat(600)}${'x'.repeat(999)}\nb`, 'quoted-printable'],
  ['NUL', 'a\0b and more', 'quoted-printable', 'a=00b and more'],
  [
    'mostly ASCII',
    'Grüße an alle, die das lesen',
    'quoted-printable',
    'Gr=C3=BC=C3=9Fe an alle, die das lesen',
  ],
  ['mostly not', '日本語テキスト', 'base64', '5pel5pys6Kqe44OG44Kt44K544OI'],
  [
    'blanks at line ends',
    'ü and so on, and on and on \n\t\nx ',
    'quoted-printable',
    '=C3=BC and so on, and on and on=20\r\n=09\r\nx=20',
  ],
]
for (const [name, text, encoding, content] of encodings) {
  test(`transfer encoding of ${name}`, () => {
    const encoded = encodeText(text)
    assert.equal(encoded.encoding, encoding)
    if (content !== undefined) assert.equal(encoded.content.toString('latin1'), content)
  })
}

test('large text is encoded as small text is', () => {
  const units = [
    'a\n',
    'a\r\n',
    'a\r',
    '\r\r\n\n',
    'ü\n',
    'x',
    `${'x'.repeat(900)}\r\n`,
    'a\0\n',
    '日本\n',
    '\ud800\n',
  ]
  const size = 300_000
  for (const unit of units) {
    const large = unit.repeat(Math.ceil(size / unit.length))
    const { encoding, content } = encodeText(large)
    const some = encodeText(unit.repeat(Math.ceil(2_000 / unit.length)))
    assert.equal(encoding, some.encoding, JSON.stringify(unit.slice(0, 10)))
    const decoded = Buffer.from(decodeContent(Buffer.from(content.toString('latin1'), 'latin1'), encoding))
    assert.ok(decoded.equals(Buffer.from(toCrlf(large))), JSON.stringify(unit.slice(0, 10)))
  }
})

/** A decoder by the letter of RFC 2045 §6.7, for the test only. */
function decodeQuotedPrintable(encoded: string): Buffer {
  const joined = encoded.replace(/=\r\n/g, '')
  return Buffer.from(
    joined.replace(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  )
}

test('quoted-printable decodes to the same bytes in lines of at most 76', () => {
  const texts = fc.array(
    fc.oneof(
      fc.string({ unit: anyCharacter }),
      fc.constantFrom('\r\n', ' ', '\t', '=', 'x'.repeat(75), 'ü'.repeat(40)),
    ),
  )
  fc.assert(
    fc.property(texts, (pieces) => {
      const bytes = Buffer.from(pieces.join(''))
      const encoded = encodeQuotedPrintable(bytes).toString('latin1')
      assert.ok(encoded.split('\r\n').every((line) => line.length <= 76 && !/[ \t]$/.test(line)))
      assert.ok(decodeQuotedPrintable(encoded).equals(bytes))
    }),
    { seed: SEED, numRuns: 800 },
  )
})

test('base64 is the standard one in lines of 76, its size known ahead, streamed or not', async () => {
  for (let size = 0; size < 400; size++) {
    const bytes = noise(size)
    const encoded = encodeBase64(bytes)
    assert.equal(encoded.length, base64Size(size))
    assert.deepEqual(encoded.toString().split('\r\n'), bytes.toString('base64').match(/.{1,76}/g) ?? [''])
    const streamed = encodeBase64Lazily(lazy(bytes, 1 + (size % 60)))
    assert.equal(streamed.sizeBytes, encoded.length)
    assert.ok((await collect(streamed)).equals(encoded))
    assert.ok((await collect(streamed)).equals(encoded), 'opens more than once')
  }
})

test('base64 in memory that is used again has the same bytes, wherever the pieces are cut', async () => {
  for (const size of [0, 1, 56, 57, 58, 114, 200_000]) {
    const bytes = noise(size)
    for (const pieceBytes of [1, 56, 57, 58, 65_536, 1_000_000]) {
      if (size / pieceBytes > 10_000) continue
      const { openScratch } = encodeBase64Lazily(lazy(bytes, pieceBytes))
      const copies: Buffer[] = []
      for await (const piece of openScratch?.() ?? assert.fail()) copies.push(Buffer.from(piece))
      assert.ok(Buffer.concat(copies).equals(encodeBase64(bytes)), `${size} in ${pieceBytes}`)
    }
  }
})

test('any texts survive composing, read by two parsers', async () => {
  const texts = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 300 })
    .map((text) => `${text.replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, '\n')}.`)
  await fc.assert(
    fc.asyncProperty(texts, texts, async (text, html) => {
      const bytes = await bytesOf({ text, html, attachments: [PDF] })
      const own = await parseMessage(bytes)
      assert.equal(own.text, text)
      assert.equal(own.html, html)
      assert.equal((await simpleParser(bytes)).text?.replaceAll('\r\n', '\n'), text)
    }),
    { seed: SEED, numRuns: 200 },
  )
})
