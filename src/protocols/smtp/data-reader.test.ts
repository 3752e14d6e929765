import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { DataReader } from './data-reader.ts'

/** Reads `wire` in pieces of the given lengths (the last one repeats). */
function read(wire: Buffer, lengths: readonly number[] = [wire.length]) {
  const reader = new DataReader()
  const content: Uint8Array[] = []
  let at = 0
  for (let turn = 0; at < wire.length; turn++) {
    const length = Math.max(1, lengths[Math.min(turn, lengths.length - 1)] ?? 1)
    const progress = reader.push(wire.subarray(at, at + length), (piece) => content.push(piece))
    const text = Buffer.concat(content).toString('latin1')
    if (progress.kind === 'end')
      return { kind: 'end', text, rest: wire.subarray(at + progress.next).toString('latin1') }
    if (progress.kind === 'bare-line-end') return { kind: 'bare-line-end' }
    at += length
  }
  return { kind: 'more', text: Buffer.concat(content).toString('latin1') }
}

const CASES: [name: string, wire: string, expected: ReturnType<typeof read>][] = [
  ['an empty message', '.\r\n', { kind: 'end', text: '', rest: '' }],
  ['one line', 'a\r\n.\r\n', { kind: 'end', text: 'a\r\n', rest: '' }],
  ['a doubled dot', '..a\r\n.\r\n', { kind: 'end', text: '.a\r\n', rest: '' }],
  ['a lone doubled dot', '..\r\n.\r\n', { kind: 'end', text: '.\r\n', rest: '' }],
  ['a dot that was not doubled', '.a\r\n.\r\n', { kind: 'end', text: 'a\r\n', rest: '' }],
  ['dots within a line', 'a.b.\r\n.\r\n', { kind: 'end', text: 'a.b.\r\n', rest: '' }],
  ['commands after the end', 'a\r\n.\r\nQUIT\r\n', { kind: 'end', text: 'a\r\n', rest: 'QUIT\r\n' }],
  ['a NUL, which is content', 'a\0b\r\n\0.\r\n.\r\n', { kind: 'end', text: 'a\0b\r\n\0.\r\n', rest: '' }],
  ['no end', 'a\r\n.', { kind: 'more', text: 'a\r\n' }],
]

for (const [name, wire, expected] of CASES) {
  test(`content: ${name}, in any pieces`, () => {
    for (let size = 1; size <= wire.length; size++) {
      assert.deepEqual(read(Buffer.from(wire, 'latin1'), [size]), expected)
    }
  })
}

test('every form of line end other than CRLF is a fault, wherever it stands', () => {
  const ends = ['\n', '\r', '\r\r\n', '\n\r', '\r\0\n', '\n\n', '\r\r']
  for (const before of ends) {
    for (const after of ['\r\n', ...ends]) {
      for (const dot of ['.', 'x', '', '..', '\0.']) {
        if (`${before}${dot}${after}` === '\r\n') continue
        for (const wire of [
          `a${before}${dot}${after}b\r\n.\r\n`,
          `a\r\n${dot}${before}${dot}${after}b\r\n.\r\n`,
        ]) {
          for (const size of [1, 2, 3, wire.length]) {
            assert.deepEqual(
              read(Buffer.from(wire, 'latin1'), [size]),
              { kind: 'bare-line-end' },
              JSON.stringify(wire),
            )
          }
        }
      }
    }
  }
})

test('any stuffed content comes out as it was, in any pieces', () => {
  const line = fc.string({ unit: fc.constantFrom('a', '.', '\0', '\t', ' ', '\xff'), maxLength: 12 })
  fc.assert(
    fc.property(
      fc.array(line),
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }),
      (lines, sizes) => {
        const text = lines.map((one) => `${one}\r\n`).join('')
        const stuffed = lines.map((one) => `${one.startsWith('.') ? '.' : ''}${one}\r\n`).join('')
        const result = read(Buffer.from(`${stuffed}.\r\nNOOP\r\n`, 'latin1'), sizes)
        assert.equal(result.kind, 'end')
        assert.equal(result.text, text)
      },
    ),
    { seed: 32, numRuns: 500 },
  )
})

test('arbitrary bytes: either a fault, or only CRLF ends lines and only CRLF.CRLF ended it', () => {
  const bytes = fc.array(fc.constantFrom(10, 13, 46, 0, 97), { maxLength: 24 })
  fc.assert(
    fc.property(bytes, fc.integer({ min: 1, max: 5 }), (values, size) => {
      const wire = Buffer.from(values)
      const whole = read(wire)
      const pieces = read(wire, [size])
      assert.equal(pieces.kind, whole.kind)
      const text = wire.toString('latin1')
      const end = `\r\n${text}`.indexOf('\r\n.\r\n')
      const upTo = end < 0 ? text : text.slice(0, end + 3)
      // A CR at the very end may still get its LF.
      const bare = /\r(?!\n|$)|(?<!\r)\n/.test(upTo)
      assert.equal(whole.kind, bare ? 'bare-line-end' : end < 0 ? 'more' : 'end', JSON.stringify(text))
    }),
    { seed: 32, numRuns: 5_000 },
  )
})
