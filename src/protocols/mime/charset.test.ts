import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeCharset, decodePieces } from './charset.ts'

const TEXTS: [label: string, bytes: Buffer][] = [
  ['utf-8', Buffer.from('\ufeffGrüße 🎉 €\r\n')],
  ['', Buffer.from('Grüße 🎉 €')],
  ['us-ascii', Buffer.from('Gr\xfc\xdfe \x99', 'latin1')],
  ['unknown', Buffer.from([0xe2, 0x82])],
  ['windows-1251', Buffer.from('\xcf\xf0\xe8\xe2\xe5\xf2', 'latin1')],
  ['utf-16le', Buffer.from('Grüße 🎉', 'utf16le')],
  ['iso-2022-jp', Buffer.from('\x1b$B%F%9%H\x1b(B.', 'latin1')],
  ['shift_jis', Buffer.from([0x83, 0x65, 0x83, 0x58, 0x83, 0x67, 0x83])],
  ['gb18030', Buffer.from([0xce, 0xc4, 0x81, 0x30, 0x81, 0x30, 0xff])],
  ['cp932', Buffer.alloc(0)],
]

test('text that is decoded in pieces is that of all bytes, whatever the pieces', async () => {
  for (const [label, bytes] of TEXTS) {
    for (const size of [1, 2, 3, 5, 100]) {
      async function* pieces() {
        for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
      }
      const texts: string[] = []
      for await (const text of decodePieces(pieces, label)) texts.push(text)
      assert.equal(texts.join(''), decodeCharset(bytes, label), `${label} by ${size}`)
      assert.ok(
        texts.every((text) => text.isWellFormed()),
        `${label} by ${size}`,
      )
    }
  }
})
