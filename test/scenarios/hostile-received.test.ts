/**
 * One large mail of a stranger, of a shape that is slow to read, to routes that post it: other calls go on.
 */
// Slow: it sends a whole process more than anyone does, and measures it meanwhile.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFormSink } from '../support/form-sink.ts'
import { startReceivedRig } from '../support/received-rig.ts'

const MB = 1_000_000
const filled = (unit: string | Buffer, bytes: number) =>
  Buffer.alloc(bytes - (bytes % Buffer.byteLength(unit)), unit)
const MULTIPART = ['MIME-Version: 1.0', 'Content-Type: multipart/mixed; boundary=b']
const text = (type: string, encoding = '8bit') => [
  'MIME-Version: 1.0',
  `Content-Type: ${type}`,
  `Content-Transfer-Encoding: ${encoding}`,
]
const lines = (line: string, bytes: number) => filled(`${line}\r\n`, bytes)
const inParts = (head: string, content: Buffer, count = 1) =>
  Buffer.concat([
    ...Array.from({ length: count }, () => [Buffer.from(`--b\r\n${head}\r\n\r\n`), content]).flat(),
    Buffer.from('\r\n--b--\r\n'),
  ])
const latin1 = (characters: string) => Buffer.from(characters, 'latin1')
const BASE64 = Buffer.alloc(57, 'a').toString('base64')

type Mail = [headers: string[], body: Buffer]

/** Each with the routes that it is sent to. */
const SHAPES: Record<string, [make: () => Mail, ...locals: ('in' | 'raw' | 'note')[]]> = {
  'quoted blank lines': [() => [[], lines('> ', 20 * MB)], 'in', 'note'],
  'ordinary lines': [() => [[], lines('The quick brown fox jumps over the lazy dog.', 20 * MB)], 'in'],
  'one line': [() => [[], Buffer.concat([filled('x', 20 * MB), Buffer.from('\r\n')])], 'in'],
  'nested tags': [() => [text('text/html; charset=utf-8'), lines('<div><p>x', 20 * MB)], 'in'],
  'a text in windows-1251': [
    () => [text('text/plain; charset=windows-1251'), filled(latin1('\xcf\xf0\xe8\xe2\xe5\xf2\r\n'), 20 * MB)],
    ...(['in', 'raw'] as const),
  ],
  'a text that is not UTF-8': [() => [[], filled(latin1('\x99\x99\x99 \r\n'), 5 * MB)], 'in'],
  'html in base64': [() => [text('text/html', 'base64'), lines(BASE64, 10 * MB)], 'in'],
  'a text in quoted-printable': [
    () => [text('text/plain', 'quoted-printable'), lines('=E4=E4 =', 5 * MB)],
    'in',
  ],
  'a file of 15 MB': [
    () => [
      MULTIPART,
      inParts('Content-Type: x/y\r\nContent-Transfer-Encoding: base64', lines(BASE64, 20 * MB)),
    ],
    'in',
  ],
  'a thousand parts': [
    () => [MULTIPART, inParts('Content-Type: text/html', lines('<p>x', 5_000), 1_000)],
    'in',
  ],
  'a preamble of 8-bit lines': [
    () => [MULTIPART, Buffer.concat([filled(latin1('\xe4\r\n'), 10 * MB), inParts('X-A: b', latin1('x'))])],
    'raw',
  ],
}

test('a large mail to a URL holds up no other call, whatever its shape', async (t) => {
  const sink = await createFormSink(t, 1)
  const { route, give, measured, call, service } = await startReceivedRig(t)
  const [url] = sink.urls
  await route('match_recipient("in@")', `forward("${url}/in")`)
  await route('match_recipient("raw@")', `forward("${url}/mime")`)
  await route('match_recipient("note@")', `store(notify="${url}/note")`)
  // Loading and compiling once is not measured.
  for (const local of ['in', 'raw', 'note'])
    assert.equal(await give([], Buffer.from('Hello\r\n'), local), 250)
  await sink.waitFor(3)
  for (const [name, [make, ...locals]] of Object.entries(SHAPES)) {
    const [headers, body] = make()
    for (const local of locals)
      await measured(`${name}, ${local}`, async () => {
        const before = sink.forms.length
        assert.equal(await give(headers, body, local), 250)
        await sink.waitFor(before + 1)
      })
    if (!(locals as string[]).includes('note')) continue
    const events = await call('GET', `/v3/${service.domain}/events?event=stored&limit=1`)
    const path = new URL(JSON.parse(events.text).items[0].storage.url).pathname
    for (const accept of ['application/json', 'message/rfc2822'])
      await measured(`${name}, stored, ${accept}`, async () => {
        const { status, text: json } = await call('GET', path, undefined, { accept })
        assert.equal(status, 200)
        const view = JSON.parse(json)
        assert.ok((view['body-plain'] ?? view['body-mime']).length >= body.byteLength)
      })
  }
})
