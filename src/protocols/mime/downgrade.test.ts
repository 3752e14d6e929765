import assert from 'node:assert/strict'
import { test } from 'node:test'
import { malformedMessages } from '../../../test/support/malformed-mime.ts'
import { seededNumbers } from '../../../test/support/random.ts'
import type { Chunk } from '../message/mime-message.ts'
import { messageBytes } from '../message/mime-message.ts'
import { makeFit, type Need } from './downgrade.ts'
import { parseMessage } from './parse.ts'
import { MimeSyntaxError, splitMessage } from './split.ts'

/** The message as it would be sent; null: it cannot be made fit. */
async function fit(raw: Buffer, need: Need, lazy = false): Promise<Buffer | null> {
  const { headers, bodyOffset } = splitMessage(raw)
  const content = raw.subarray(bodyOffset)
  const body: Chunk = lazy ? { sizeBytes: content.length, open: () => pieces(content) } : content
  const result = await makeFit(headers, [body], need)
  if (!result) return null
  if (!result.changed) return raw
  const kept = headers.filter(
    ({ name }) => result.fields === null || !/^content-(?:type|transfer-encoding)$/i.test(name),
  )
  return messageBytes({
    headers: [...kept.map((header) => header.raw), ...(result.fields ?? [])],
    body: result.body,
  })
}

/** In odd sizes, so that lines lie across pieces. */
async function* pieces(bytes: Buffer): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 61) yield bytes.subarray(at, at + 61)
}

const latin = (text: string) => Buffer.from(text, 'latin1')
const utf8 = (text: string) => Buffer.from(text)
const isSevenBit = (bytes: Buffer) => bytes.every((byte) => byte < 128)
const longest = (bytes: Buffer) =>
  Math.max(
    ...bytes
      .toString('latin1')
      .split('\r\n')
      .map(({ length }) => length),
  )

const simple = (type: string, text: string, encoding = '8bit') =>
  utf8(`Subject: x\r\nContent-Type: ${type}\r\nContent-Transfer-Encoding: ${encoding}\r\n\r\n${text}`)

test('a single part of text becomes quoted-printable or base64, and reads the same', async () => {
  for (const text of ['Grüße\r\n', 'Привет, мир\r\n'.repeat(50)]) {
    const made = await fit(simple('text/plain; charset=utf-8', text), 'seven-bit')
    assert.ok(made && isSevenBit(made))
    assert.equal((await parseMessage(made)).text, text.replaceAll('\r\n', '\n'))
  }
})

test('text in another charset keeps its bytes and the name of its charset', async () => {
  const raw = latin(
    'Content-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: 8bit\r\n\r\nGr\xfc\xdfe\r\n',
  )
  const made = (await fit(raw, 'seven-bit')) as Buffer
  assert.match(made.toString(), /charset=iso-8859-1[\s\S]*Gr=FC=DFe/)
})

test('what is fit stays as it is, byte by byte', async () => {
  const raw = simple('text/plain', 'plain\r\n', '7bit')
  for (const need of ['seven-bit', 'short-lines'] as const) assert.equal(await fit(raw, need), raw)
})

const SIGNED = (text: string) =>
  utf8(
    `Content-Type: multipart/signed; boundary=s; micalg=sha-256; protocol="application/pkcs7-signature"\r\n\r\n--s\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n${text}\r\n--s\r\nContent-Type: application/pkcs7-signature\r\nContent-Transfer-Encoding: base64\r\n\r\nAAAA\r\n--s--\r\n`,
  )

test('what somebody has signed is never changed', async () => {
  assert.equal(await fit(SIGNED('Grüße'), 'seven-bit'), null)
  const long = SIGNED('x'.repeat(2_000))
  assert.equal(await fit(long, 'short-lines'), long)
  const wrapped = (inner: Buffer) =>
    Buffer.concat([
      utf8('Content-Type: multipart/mixed; boundary=m\r\n\r\n--m\r\n'),
      inner,
      utf8(`\r\n--m\r\nContent-Type: text/plain\r\n\r\n${'y'.repeat(2_000)}\r\n--m--\r\n`),
    ])
  const made = (await fit(wrapped(long), 'short-lines')) as Buffer
  assert.ok(made.includes(long.subarray(long.indexOf('--s'), -1)), 'the signed part is the same')
  assert.ok(!made.includes('y'.repeat(999)), 'the other one is not')
})

test('a long line of a text, an attachment or a part header is gone, and the content is the same', async () => {
  const text = `${'word '.repeat(400)}\r\nend\r\n`
  for (const type of ['text/html', 'text/plain', 'application/json']) {
    const raw = simple(type, text, '7bit')
    const made = (await fit(raw, 'short-lines')) as Buffer
    assert.ok(longest(made) <= 998)
    assert.deepEqual(await contentOf(await parseMessage(made)), await contentOf(await parseMessage(raw)))
  }
  const name = `Content-Type: multipart/mixed; boundary=m\r\n\r\n--m\r\nX-Long: ${'word '.repeat(300)}end\r\n\r\nhi\r\n--m--\r\n`
  const made = (await fit(utf8(name), 'short-lines')) as Buffer
  assert.ok(longest(made) <= 998)
  assert.match(made.toString(), /X-Long: word/)
})

test('a delimiter with 8-bit bytes cannot be replaced', async () => {
  const raw = utf8(
    'Content-Type: multipart/mixed; boundary="ü"\r\n\r\n--ü\r\nContent-Type: text/plain\r\n\r\nhi\r\n--ü--\r\n',
  )
  assert.equal(await fit(raw, 'seven-bit'), null)
})

type Content = Record<string, unknown>

/** What a message says, messages within it opened. */
async function contentOf({
  text,
  html,
  amp,
  attachments,
  headers,
}: Awaited<ReturnType<typeof parseMessage>>): Promise<Content> {
  const files = await Promise.all(
    attachments.map(async ({ content, sizeBytes: _, ...facts }) => ({
      ...facts,
      content:
        facts.contentType === 'message/rfc822'
          ? await contentOf(await parseMessage(content))
          : Buffer.from(content).toString('latin1'),
    })),
  )
  const own = headers.filter(([name]) => !/^content-/i.test(name))
  return { text, html, amp, files, own }
}

/** Random messages: 8-bit texts and files, in levels, messages in messages, 8-bit preambles and file names. */
function randomPart(random: () => number, depth: number): Buffer {
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
  const words = Array.from({ length: 1 + Math.floor(random() * 30) }, () =>
    pick(['plain', 'Grüße', 'Привет', '日本', '=20', '.', 'trailing ', '\tTab', 'x'.repeat(200), 'From me']),
  )
  const text = words.map((word) => word + pick([' ', '\r\n', '  \r\n', '\r\n.\r\n'])).join('')
  const kind = random()
  if (depth > 0 && kind < 0.3) {
    const boundary = `b${depth}-${Math.floor(random() * 1e9)}`
    const parts = Array.from({ length: 1 + Math.floor(random() * 3) }, () => randomPart(random, depth - 1))
    const preamble = pick(['', 'Eine Präambel\r\n'])
    return Buffer.concat([
      utf8(
        `Content-Type: multipart/mixed; boundary="${boundary}"\r\nContent-Transfer-Encoding: 8bit\r\n\r\n${preamble}`,
      ),
      ...parts.flatMap((part) => [utf8(`--${boundary}\r\n`), part, utf8('\r\n')]),
      utf8(`--${boundary}--\r\n${pick(['', 'Nachwort ü\r\n'])}`),
    ])
  }
  if (depth > 0 && kind < 0.4) {
    const inner = Buffer.concat([utf8('Subject: inner ü\r\n'), randomPart(random, depth - 1)])
    return Buffer.concat([
      utf8('Content-Type: message/rfc822\r\nContent-Transfer-Encoding: 8bit\r\n\r\n'),
      inner,
    ])
  }
  if (kind < 0.6) {
    const name = pick(['a.bin', 'ü.txt', 'Привет.bin'])
    const type = pick(['application/octet-stream', 'text/csv; charset=utf-8', 'application/json'])
    return utf8(
      `Content-Type: ${type}\r\nContent-Disposition: attachment; filename="${name}"\r\nContent-Transfer-Encoding: 8bit\r\n\r\n${text}`,
    )
  }
  const type = pick(['text/plain; charset=utf-8', 'text/html; charset="utf-8"'])
  return utf8(
    `Content-Type: ${type}\r\nContent-Transfer-Encoding: ${pick(['8bit', 'binary'])}\r\n\r\n${text}`,
  )
}

test('1,000 random messages: no 8-bit byte is left, every part decodes to what it was, all fields are there', async () => {
  const random = seededNumbers(26)
  for (let n = 0; n < 1_000; n++) {
    const part = randomPart(random, 3)
    const raw = Buffer.concat([
      utf8(`Subject: message ${n}\r\nX-Kept: yes\r\n`),
      utf8('Content-Type: multipart/mixed; boundary=top\r\n\r\n--top\r\n'),
      part,
      utf8('\r\n--top--\r\n'),
    ])
    const made = await fit(raw, 'seven-bit', n % 2 === 1)
    assert.ok(made, `message ${n} can be made fit`)
    assert.ok(isSevenBit(made), `message ${n}\n${made}`)
    assert.deepEqual(
      await contentOf(await parseMessage(made)),
      await contentOf(await parseMessage(raw)),
      `message ${n}\n${raw}`,
    )
    assert.equal(await fit(made, 'seven-bit'), made, 'and is fit then')
  }
})

test('malformed messages: made fit, or left alone, or refused as such; nothing else', async () => {
  const counts = { fit: 0, not: 0, refused: 0 }
  for (const raw of malformedMessages(2_000, 26)) {
    for (const need of ['seven-bit', 'short-lines'] as const) {
      try {
        const { headers, bodyOffset } = splitMessage(raw)
        const result = await makeFit(headers, [raw.subarray(bodyOffset)], need)
        if (result === null) counts.not++
        else counts.fit++
        if (result === null || need !== 'seven-bit') continue
        const bytes = await messageBytes({ headers: result.fields ?? [], body: result.body })
        assert.ok(isSevenBit(bytes), bytes.toString())
      } catch (error) {
        if (!(error instanceof MimeSyntaxError)) throw error
        counts.refused++
      }
    }
  }
  assert.ok(counts.fit > 2_000, JSON.stringify(counts))
})

test('a long preamble is rewritten line by line, in time that grows with it alone', async () => {
  const mail = (preamble: string) =>
    latin(`Content-Type: multipart/mixed; boundary=b\r\n\r\n${preamble}\r\n--b\r\n\r\nx\r\n--b--\r\n`)
  const words = `${'word '.repeat(400)}\r\nshort\r\n`.repeat(1_000)
  const folded = await fit(mail(words), 'short-lines')
  assert.ok(folded && longest(folded) <= 998)
  assert.equal(folded.toString('latin1').replaceAll('\r\n ', ' '), mail(words).toString('latin1'))
  // Without a blank it cannot be folded.
  const one = mail('x'.repeat(5_000_000))
  assert.ok((await fit(one, 'short-lines'))?.equals(one))
  const umlauts = 'Content-Transfer-Encoding: 8bit\r\n\xe4\xf6\r\n'.repeat(100_000)
  const ascii = await fit(mail(umlauts), 'seven-bit')
  assert.ok(ascii?.equals(mail('Content-Transfer-Encoding: 7bit\r\n??\r\n'.repeat(100_000))))
  assert.equal(await fit(mail('--\xe4\r\n'), 'seven-bit'), null)
})
