import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StoredHeader } from '../../../mail/record/record.ts'
import { type Chunk, readChunk } from '../../../protocols/message/mime-message.ts'
import { splitMessage } from '../../../protocols/mime/split.ts'
import { wholeMessage } from './whole-message.ts'

/** The raw form of a mail whose body is read in pieces of `pieceBytes`; 0: it is in memory. */
async function rawForm(mail: string, pieceBytes: number): Promise<string> {
  const bytes = Buffer.from(mail, 'latin1')
  const { headers, bodyOffset } = splitMessage(bytes)
  const stored = headers.map(({ name, value, raw }): StoredHeader => [name, value, raw])
  const inMemory = bytes.subarray(bodyOffset)
  const lazy: Chunk = {
    sizeBytes: inMemory.byteLength,
    async *open() {
      for (let at = 0; at < inMemory.byteLength; at += pieceBytes)
        yield inMemory.subarray(at, at + pieceBytes)
    },
  }
  const whole = await wholeMessage(stored, pieceBytes === 0 ? inMemory : lazy)
  const form = await readChunk(whole)
  assert.equal(form.byteLength, whole.sizeBytes)
  return form.toString('latin1')
}

const PLAIN =
  'Subject: a\r\nContent-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: 8bit\r\n\r\n'
const PARTS = (type: string, content: string) =>
  `Content-Type: ${type}; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain; charset=latin1\r\n\r\n${content}\r\n--b--\r\n`
const utf8 = (text: string) => Buffer.from(text).toString('latin1')

for (const pieceBytes of [0, 1, 7]) {
  const how = pieceBytes === 0 ? 'in memory' : `in pieces of ${pieceBytes}`

  test(`content that is not UTF-8 is encoded, all else stays (${how})`, async () => {
    assert.equal(
      await rawForm(`${PLAIN}Sch\xf6n\r\n`, pieceBytes),
      `${PLAIN.replace('8bit', 'quoted-printable')}Sch=F6n\r\n`,
    )
    const mixed = await rawForm(PARTS('multipart/mixed', 'Sch\xf6n'), pieceBytes)
    assert.match(mixed, /\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nSch=F6n\r\n--b--\r\n$/)
    const unchanged = [
      PLAIN + utf8('Schön € 🎉\r\n'),
      `${PLAIN}ASCII\r\n`,
      PLAIN,
      PARTS('multipart/mixed', utf8('€')),
      PARTS('multipart/signed', 'Sch\xf6n'),
    ]
    for (const mail of unchanged) assert.equal(await rawForm(mail, pieceBytes), mail)
  })
}
