import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ContentLines } from './wire.ts'

function stuff(...pieces: string[]): string {
  const stuffer = new ContentLines('dot')
  const out: Buffer[] = []
  for (const piece of pieces)
    stuffer.push(Buffer.from(piece, 'latin1'), (bytes) => out.push(Buffer.from(bytes)))
  stuffer.end((bytes) => out.push(Buffer.from(bytes)))
  return Buffer.concat(out).toString('latin1')
}

const CASES: [content: string, wire: string][] = [
  ['', '.\r\n'],
  ['a', 'a\r\n.\r\n'],
  ['a\r\n', 'a\r\n.\r\n'],
  ['\r\n\r\n', '\r\n\r\n.\r\n'],
  ['.', '..\r\n.\r\n'],
  ['.\r\n', '..\r\n.\r\n'],
  ['..\r\n.a.\r\na.\r\n', '...\r\n..a.\r\na.\r\n.\r\n'],
  ['a\n.\nb', 'a\r\n..\r\nb\r\n.\r\n'],
  ['a\r.\rb', 'a\r\n..\r\nb\r\n.\r\n'],
  ['a\r\r\n.\r\n', 'a\r\n\r\n..\r\n.\r\n'],
  ['a\n\r\n.', 'a\r\n\r\n..\r\n.\r\n'],
  ['a\r', 'a\r\n.\r\n'],
  ['a\r\n\0.\r\nb', 'a\r\n..\r\nb\r\n.\r\n'],
  ['a\r\0\n.', 'a\r\n..\r\n.\r\n'],
  ['\t\x0b.\x01', '\t\x0b.\x01\r\n.\r\n'],
]

for (const [content, wire] of CASES) {
  test(`content ${JSON.stringify(content)} goes out as ${JSON.stringify(wire)}`, () => {
    assert.equal(stuff(content), wire)
    assert.equal(stuff(...content), wire)
  })
}

test('whatever the content and its pieces, one message comes out of the wire, with CRLF line ends only', () => {
  const piece = fc
    .array(fc.constantFrom('.', '..', '\r', '\n', '\r\n', '\0', 'a', 'QUIT', '\xff', '\r\n.\r\n'), {
      maxLength: 10,
    })
    .map((parts) => parts.join(''))
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 6 }), (pieces) => {
      const wire = stuff(...pieces)
      assert.doesNotMatch(wire, /\r(?!\n)|(?<!\r)\n|\0/)
      assert.equal(`\r\n${wire}`.indexOf('\r\n.\r\n'), wire.length - 3)
      const content = pieces.join('').replaceAll('\0', '').replace(/\r\n|\r|\n/g, '\r\n') // biome-ignore format: one line
      const received = wire.slice(0, -3).replace(/(^|\r\n)\./g, '$1')
      assert.equal(received, content === '' || content.endsWith('\r\n') ? content : `${content}\r\n`)
    }),
    { seed: 5321, numRuns: 2000 },
  )
})

test('content that needs no change is passed on without a copy', () => {
  const bytes = Buffer.from('a line\r\n'.repeat(100))
  const out: Uint8Array[] = []
  new ContentLines('dot').push(bytes, (piece) => out.push(piece))
  assert.equal(out.length, 1)
  assert.equal(out[0]?.buffer, bytes.buffer)
})
