import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findLeaves } from '../../protocols/mime/part-map.ts'
import { splitMessage } from '../../protocols/mime/split.ts'
import { jsonStream } from '../messages/json-stream.ts'
import { createLargeTexts } from './large-texts.ts'
import { mailTexts, type Utf8 } from './mail-texts.ts'

const largeTexts = createLargeTexts()

async function textOf(text: Utf8 | null): Promise<string | null> {
  if (text === null) return null
  if (text instanceof Uint8Array) return Buffer.from(text).toString()
  const pieces: Buffer[] = []
  for await (const piece of text.open()) pieces.push(Buffer.from(piece))
  return Buffer.concat(pieces).toString()
}

async function textsOf(mail: string) {
  const bytes = Buffer.from(mail, 'latin1')
  const { headers, bodyOffset } = splitMessage(bytes)
  const body = bytes.subarray(bodyOffset)
  const leaves = await findLeaves(headers, body)
  const of = (type: string) => leaves.filter((leaf) => leaf.type === type)
  const texts = await mailTexts(largeTexts, { plain: of('text/plain'), html: of('text/html') }, body)
  return {
    texts,
    plain: await textOf(texts.plain),
    html: await textOf(texts.html),
    strippedText: await textOf(texts.strippedText),
    strippedSignature: await textOf(texts.strippedSignature),
    strippedHtml: await textOf(texts.strippedHtml),
  }
}

const mail = (type: string, encoding: string, content: string) =>
  `Content-Type: ${type}\r\nContent-Transfer-Encoding: ${encoding}\r\n\r\n${content}`

test('a reply is given without its quotation and signature', async () => {
  const { texts: _, ...found } = await textsOf(
    mail('text/plain; charset=latin1', '8bit', 'Sch\xf6n.\r\n\r\n> Wie?\r\n-- \r\nAnn'),
  )
  assert.deepEqual(found, {
    plain: 'Schön.\r\n\r\n> Wie?\r\n-- \r\nAnn',
    html: null,
    strippedText: 'Schön.',
    strippedSignature: '-- \nAnn',
    strippedHtml: '',
  })
})

const LONG = 'Zeile für Zeile\r\n'.repeat(300_000)
const ENCODED = {
  base64: Buffer.from(LONG).toString('base64').replaceAll(/.{76}/g, '$&\r\n'),
  '8bit': Buffer.from(LONG).toString('latin1'),
  'quoted-printable': LONG.replaceAll('ü', '=C3=BC'),
}

test('long texts are those of the mail, whatever their encoding, and stay whole', async () => {
  for (const [encoding, content] of Object.entries(ENCODED)) {
    const found = await textsOf(mail('text/plain; charset=utf-8', encoding, content))
    assert.ok(found.plain === LONG, encoding)
    assert.ok(found.strippedText === LONG && found.html === null && found.strippedSignature === '', encoding)
  }
  const html = await textsOf(mail('text/html; charset=utf-8', 'base64', ENCODED.base64))
  assert.ok(html.html === LONG && html.strippedHtml === LONG)
  assert.match(html.plain ?? '', /^Zeile für Zeile Zeile/)
})

test('a view with them is sent as JSON piece by piece', async () => {
  const { texts } = await textsOf(mail('text/plain; charset=utf-8', '8bit', ENCODED['8bit']))
  const pieces: Uint8Array[] = []
  const members = { a: 1, text: '', b: [null, '"'], small: '', c: {} }
  const small = Buffer.from('\ufeff"ä\u0001\n')
  for await (const piece of jsonStream(members, { text: texts.plain, small })) pieces.push(Buffer.from(piece))
  const read = JSON.parse(Buffer.concat(pieces).toString())
  assert.ok(read.text === LONG)
  assert.deepEqual({ ...read, text: '' }, { ...members, small: small.toString() })
  await largeTexts.close()
})
