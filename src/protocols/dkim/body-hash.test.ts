import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { RelaxedBodyHash, relaxedBodyHash } from './body-hash.ts'

/** The same rules as in the module's head, written once more as replacements on a whole string. */
function canonicalByDefinition(body: string): string {
  const lines = body
    .replaceAll('\0', '')
    .split(/\r\n|\r|\n/)
    .map((line) => line.replace(/[ \t]+/g, ' ').replace(/ $/, ''))
  while (lines.at(-1) === '') lines.pop()
  return lines.map((line) => `${line}\r\n`).join('')
}

const sha256 = (text: string) => createHash('sha256').update(text, 'latin1').digest('base64')

const EMPTY = '47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=' // RFC 6376 §3.4.4

const CASES: [name: string, body: string, hash: string][] = [
  ['no body at all', '', EMPTY],
  ['one empty line', '\r\n', EMPTY],
  ['many empty lines', '\r\n'.repeat(5000), EMPTY],
  ['lines of white space only', ' \t\r\n \r\n\t', EMPTY],
  ['RFC 6376 §3.4.5', ' C \r\nD \t E\r\n\r\n\r\n', sha256(' C\r\nD E\r\n')],
  [
    'RFC 8463 A.3',
    'Hi.\r\n\r\nWe lost the game.  Are you hungry yet?\r\n\r\nJoe.\r\n',
    '2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=',
  ],
  ['a last line without line end', 'a', sha256('a\r\n')],
  ['white space after the last line', 'a\r\n  ', sha256('a\r\n')],
  ['many empty lines in the middle', `a${'\r\n'.repeat(3000)}b`, sha256(`a${'\r\n'.repeat(3000)}b\r\n`)],
  ['bare CR and LF, sent as CRLF', 'a\rb\nc\r\r\nd', sha256('a\r\nb\r\nc\r\n\r\nd\r\n')],
  ['NUL, not sent', 'a\0b\r\0\nc', sha256('ab\r\nc\r\n')],
  ['8-bit bytes and controls', '\xe9\x80\x0b \x01\xa0 ', sha256('\xe9\x80\x0b \x01\xa0\r\n')],
]

for (const [name, body, hash] of CASES) {
  test(`body hash: ${name}`, async () => {
    assert.equal(await relaxedBodyHash([Buffer.from(body, 'latin1')]), hash)
    const bytewise = new RelaxedBodyHash()
    for (const byte of Buffer.from(body, 'latin1')) bytewise.update(Uint8Array.of(byte))
    assert.equal(bytewise.digest(), hash)
  })
}

test('wherever a body is cut into pieces, lazy or not, its hash is that of the whole', async () => {
  const piece = fc
    .array(
      fc.constantFrom(
        ' ',
        '\t',
        '\r\n',
        '\r',
        '\n',
        '\0',
        'a',
        '.',
        '\xff',
        '  \r\n\r\n',
        'some words ',
        ' b',
      ),
      {
        maxLength: 12,
      },
    )
    .map((parts) => parts.join(''))
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(piece, fc.boolean()), { maxLength: 8 }), async (pieces) => {
      const chunks = pieces.map(([text, lazy]) => {
        const bytes = Buffer.from(text, 'latin1')
        return lazy ? { sizeBytes: bytes.length, open: async function* () { yield bytes } } : bytes // biome-ignore format: one line
      })
      const whole = pieces.map(([text]) => text).join('')
      assert.equal(await relaxedBodyHash(chunks), sha256(canonicalByDefinition(whole)))
    }),
    { seed: 6376, numRuns: 1500 },
  )
})

test('bodies longer than a block hash as their definition says', async () => {
  const words = fc.sample(fc.constantFrom('word', '  ', '\r\n', '\r\n\r\n', '\t', '=C3=A9', '\n\n.'), {
    seed: 6376,
    numRuns: 60_000,
  })
  const body = words.join('')
  assert.equal(await relaxedBodyHash([Buffer.from(body)]), sha256(canonicalByDefinition(body)))
})
