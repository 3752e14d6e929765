import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { messageBytes } from '../../../protocols/message/mime-message.ts'
import { encodeFile } from '../../../protocols/mime/compose.ts'
import { encodeText } from '../../../protocols/mime/transfer-encoding.ts'
import { cutText, fillings, joinText, type Lookup, substitute } from '../../record/variables.ts'
import { type Composed, composeParts, type EncodedFiles, type TextKind, type TextPart } from '../texts.ts'
import { MergeBody } from './merge.ts'

const SEED = 20261123
const NO_FILES: EncodedFiles = { inline: [], attachments: [] }

const part = (kind: TextKind, value: string): TextPart => ({ kind, value, leaf: null })
const bytesOf = async ({ fields, body, composed }: Composed) =>
  (await messageBytes({ headers: fields ?? [], body, composed })).toString('latin1')

/** The copy as the gaps give it, null if they do not, and as composing gives it. */
async function bothWays(texts: readonly TextPart[], lookup: Lookup, files = NO_FILES) {
  const cuts = texts.map(({ value }) => cutText(value))
  const values = cuts.map((cut) => fillings(cut, lookup))
  const filled = MergeBody.of(texts, cuts, files, 'seed')?.fill(values) ?? null
  const whole = texts.map((text) => part(text.kind, substitute(text.value, lookup)))
  return {
    filled: filled && (await bytesOf(filled)),
    composed: await bytesOf(
      composeParts(
        whole,
        files,
        'seed',
        whole.map(({ value }) => encodeText(value)),
      ),
    ),
  }
}

const onlyX = (value: string) => (name: string) => (name === 'recipient.x' ? value : null)

test('a filled body is what composing gives, in texts of every kind and beside files', async () => {
  const file = (contentType: string, content: string) =>
    encodeFile({ filename: 'a', contentType, content: Buffer.from(content) })
  const files = {
    inline: [file('image/png', 'picture')],
    attachments: [
      file('text/plain', 'x'.repeat(100_000)),
      file('message/rfc822', 'Subject: x\r\n\r\nbody\r\n'),
    ],
  }
  const texts = [
    part('text', 'Hello %recipient.x%,\n%recipient.other% stays, 100 %\n.\n%recipient.x%%recipient.x%'),
    part('html', '<p a="1">%recipient.x%</p>\r\n<p>%recipient.x%</p>'),
    part('amp', '%recipient.x%<p>%unsubscribe_url%</p>'),
  ]
  for (const given of [texts, texts.slice(0, 1), texts.slice(1)]) {
    for (const also of [NO_FILES, files]) {
      for (const value of ['Ann', 'a=b&c', '%recipient.x%', '.', ' ', '$&', 'x'.repeat(300)]) {
        const { filled, composed } = await bothWays(given, onlyX(value), also)
        assert.equal(filled, composed)
      }
    }
  }
})

test('an empty value is filled in, but for the last character of a text', async () => {
  const inside = await bothWays([part('text', 'Dear %recipient.x%,')], onlyX(''))
  assert.equal(inside.filled, inside.composed)
  const atEnd = await bothWays([part('text', 'Dear\n%recipient.x%')], onlyX(''))
  assert.equal(atEnd.filled, null)
  assert.match(atEnd.composed, /Dear\r\n$/)
})

const COMPOSED = {
  'not ASCII': ['Hello %recipient.x%', 'Jürgen'],
  'a line break': ['Hello %recipient.x%', 'a\nb'],
  'a NUL': ['Hello %recipient.x%', 'a\0b'],
  'what looks like a boundary': ['Hello %recipient.x%', 'a=_b'],
  'half of what looks like a boundary': ['Hello %recipient.x%_b', 'a='],
  'a line that becomes too long': [`${'x'.repeat(990)}%recipient.x%`, '0123456789'],
  'many values that may be on one line': [`${'x'.repeat(900)} %recipient.x% %recipient.x%`, 'y'.repeat(50)],
  'a text that is not ASCII': ['Grüße, %recipient.x%', 'Ann'],
  'a text with a long line': [`${'x'.repeat(1_000)}\n%recipient.x%`, 'Ann'],
  'a text with a boundary': ['=_ %recipient.x%', 'Ann'],
  'a text with half a boundary before a value': ['a=%recipient.x%', '_b'],
  'a text with a CR before a value': ['a\r%recipient.x%\nb', ''],
  'a text with the mark in it': ['a\u0001b%recipient.x%', 'Ann'],
  'a text with the mark of another kind': ['a\u0003b%recipient.x%', 'Ann'],
} as const

for (const [what, [text, value]] of Object.entries(COMPOSED)) {
  test(`is composed: ${what}`, async () => {
    const { filled } = await bothWays([part('text', text), part('html', '<p></p>')], onlyX(value))
    assert.equal(filled, null)
  })
}

test('a file with the marks in it has no gaps, nor do they stand in for those of a text that is encoded', async () => {
  const content = Buffer.from('Subject: \u0001\r\n\r\n\u0001\r\n')
  const files = {
    inline: [],
    attachments: [encodeFile({ filename: 'a', contentType: 'message/rfc822', content })],
  }
  for (const text of ['Hello %recipient.x%', 'Hello', 'Grüße %recipient.x% %recipient.x%']) {
    const { filled } = await bothWays([part('text', text)], onlyX('Ann'), files)
    assert.equal(filled, null)
  }
})

test('whatever the texts and values are, a filled body is what composing gives', async () => {
  const piece = fc.constantFrom(
    ...[
      '%recipient.x%',
      '%recipient.y%',
      '%recipient_name%',
      '%',
      '=',
      '_',
      '=_',
      '\r',
      '\n',
      '\r\n',
      ' ',
      '.',
    ],
    ...['', 'word', 'ü', '\u0001', '\u0002', 'x'.repeat(480), '-'],
  )
  const text = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(''))
  const value = fc.array(
    fc.constantFrom('=', '_', 'a', '', 'ß', '\n', '%recipient.y%', ' ', 'x'.repeat(40)),
    {
      maxLength: 3,
    },
  )
  let filledCount = 0
  await fc.assert(
    fc.asyncProperty(text, text, value, value, async (plain, html, x, y) => {
      const lookup: Lookup = (name) =>
        name === 'recipient.x' ? x.join('') : name === 'recipient.y' ? y.join('') : null
      for (const whole of [plain, html])
        assert.equal(joinText(cutText(whole), fillings(cutText(whole), lookup)), substitute(whole, lookup))
      const { filled, composed } = await bothWays([part('text', plain), part('html', html)], lookup)
      if (filled === null) return
      filledCount++
      assert.equal(filled, composed)
    }),
    { seed: SEED, numRuns: 3_000 },
  )
  assert.ok(filledCount > 300, `only ${filledCount} were filled`)
})
