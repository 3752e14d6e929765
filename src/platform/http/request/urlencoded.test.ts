import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Fields, parseUrlencoded } from './params.ts'
import { readUrlencoded } from './urlencoded.ts'

async function readInPieces(bytes: Buffer, lengths: Iterator<number>): Promise<Fields> {
  async function* pieces() {
    for (let at = 0; at < bytes.length; ) {
      const length = lengths.next().value as number
      yield bytes.subarray(at, at + length)
      at += length
    }
  }
  const fields = new Fields()
  await readUrlencoded(pieces(), fields)
  return fields
}

test('a form that comes in pieces gives what it gives as a whole', async () => {
  // Of what is not valid UTF-8 the two make different replacement characters.
  const piece = fc.constantFrom(
    'a',
    'b=c',
    '&',
    '=',
    '+',
    '%41',
    '%c3%bc',
    '%26',
    '%3d',
    '%',
    '%4',
    '%zz',
    'ü',
    '[]',
    '[1]',
  )
  const text = fc.array(piece, { maxLength: 40 }).map((pieces) => pieces.join(''))
  const property = fc.asyncProperty(
    text,
    fc.infiniteStream(fc.integer({ min: 1, max: 4 })),
    async (form, lengths) => {
      const { values } = await readInPieces(Buffer.from(form), lengths)
      const isUtf8 = !form.includes('ü') || !/%(?![\da-f]{2})/i.test(form)
      if (isUtf8) assert.deepEqual(values, parseUrlencoded(form).values)
    },
  )
  await fc.assert(property, { seed: 23, numRuns: 500 })
})

test('pairs are counted, empty ones too', async () => {
  const ones = fc.sample(fc.infiniteStream(fc.constant(4096)), { numRuns: 1, seed: 1 })[0] as Iterator<number>
  for (const form of ['&'.repeat(10_001), 'a&'.repeat(10_001), 'a=1&'.repeat(10_001)]) {
    await assert.rejects(readInPieces(Buffer.from(form), ones), /more than 10000 parameters$/)
    assert.throws(() => parseUrlencoded(form), /more than 10000 parameters$/)
  }
  assert.deepEqual((await readInPieces(Buffer.from('&'.repeat(10_000)), ones)).values, new Map())
})

test('long texts are what they are when they are decoded as a whole, wherever a character is cut', async () => {
  function* lengths() {
    for (;;) yield 50_021
  }
  for (const padding of ['', 'a', 'aa', 'aaa']) {
    const texts = ['🚀ü€', 'a', `${'b'.repeat(65_535)}€`].map(
      (text) => padding + text.repeat(70_000 / text.length),
    )
    const form = texts.map((text, at) => `f${at}=${text}`).join('&')
    const { values } = await readInPieces(Buffer.from(form), lengths())
    assert.deepEqual(values, new Map(texts.map((text, at) => [`f${at}`, [text]])))
  }
  const broken = Buffer.concat([Buffer.from('f='), Buffer.alloc(200_000, 0xc3)])
  const { values } = await readInPieces(broken, lengths())
  assert.deepEqual(values.get('f'), ['\uFFFD'.repeat(200_000)])
})
