import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { makeReply, ReplyParser, ReplySyntaxError, replyText, type SmtpReply } from './reply.ts'

function parse(...pieces: string[]): SmtpReply[] {
  const parser = new ReplyParser()
  const replies: SmtpReply[] = []
  for (const piece of pieces) parser.push(Buffer.from(piece), (reply) => replies.push(reply))
  return replies
}

const CASES: [wire: string, enhanced: string | null, lines: string[], text: string][] = [
  ['250 Ok\r\n', null, ['Ok'], '250 Ok'],
  ['250\r\n', null, [''], '250'],
  ['354 \r\n', null, [''], '354'],
  ['250 bare LF\n', null, ['bare LF'], '250 bare LF'],
  ['550 5.1.1 No such user\r\n', '5.1.1', ['5.1.1 No such user'], '550 5.1.1 No such user'],
  ['550-5.1.1 No\r\n550 5.1.1 user\r\n', '5.1.1', ['5.1.1 No', '5.1.1 user'], '550 5.1.1 No user'],
  ['550-No\r\n550 5.7.26 SPF\r\n', '5.7.26', ['No', '5.7.26 SPF'], '550 5.7.26 No SPF'],
  ['421 4.7.0\r\n', '4.7.0', ['4.7.0'], '421 4.7.0'],
  ['450 5.1.1 class differs\r\n', null, ['5.1.1 class differs'], '450 5.1.1 class differs'],
  ['550 5.1.1.1 is no code\r\n', null, ['5.1.1.1 is no code'], '550 5.1.1.1 is no code'],
  ['250 a\x00\x1b[31m\x7fb\u0085\r\n', null, ['a  [31m b '], '250 a  [31m b '],
  ['250 größer\r\n', null, ['größer'], '250 größer'],
]

for (const [wire, enhanced, lines, text] of CASES) {
  test(`reply ${JSON.stringify(wire)}`, () => {
    const [reply] = parse(wire) as [SmtpReply]
    assert.equal(reply.code, Number(wire.slice(0, 3)))
    assert.equal(reply.enhanced, enhanced)
    assert.deepEqual(reply.lines, lines)
    assert.equal(replyText(reply), text)
  })
}

const BAD: [name: string, wire: string][] = [
  ['no code', 'hello\r\n'],
  ['an empty line', '\r\n'],
  ['code out of range', '199 x\r\n'],
  ['code of four digits', '2500 x\r\n'],
  ['no separator', '250x\r\n'],
  ['code that changes', '250-a\r\n251 b\r\n'],
  ['a line over 4096 bytes', `250 ${'x'.repeat(4093)}\r\n`],
  ['a line without end', 'x'.repeat(4097)],
  ['over 100 lines', '250-x\r\n'.repeat(100)],
]

for (const [name, wire] of BAD) {
  test(`refuses ${name}`, () => {
    assert.throws(() => parse(wire), ReplySyntaxError)
    assert.throws(() => parse(...wire), ReplySyntaxError)
  })
}

test('good replies in front of a bad one are handed out', () => {
  const replies: SmtpReply[] = []
  assert.throws(() =>
    new ReplyParser().push(Buffer.from('250 a\r\ngarbage\r\n'), (reply) => replies.push(reply)),
  )
  assert.deepEqual(replies, [makeReply(250, ['a'])])
})

test('a line or reply without its end is seen as partial', () => {
  for (const wire of ['25', '250-a\r\n', '250 a\r\n250 b']) {
    const parser = new ReplyParser()
    parser.push(Buffer.from(wire), () => {})
    assert.equal(parser.partial, true, wire)
  }
})

test('replies come out alike wherever the bytes are cut', () => {
  const line = fc.tuple(
    fc.integer({ min: 200, max: 599 }),
    fc.array(fc.string(), { minLength: 1, maxLength: 4 }),
  )
  fc.assert(
    fc.property(
      fc.array(line, { maxLength: 5 }),
      fc.array(fc.nat(40), { maxLength: 30 }),
      (replies, cuts) => {
        const clean = replies.map(([code, texts]) => ({
          code,
          texts: texts.map((text) => text.replace(/[\r\n]/g, '')),
        }))
        const wire = Buffer.from(
          clean
            .flatMap(({ code, texts }) =>
              texts.map((text, index) => `${code}${index < texts.length - 1 ? '-' : ' '}${text}\r\n`),
            )
            .join(''),
        )
        const parser = new ReplyParser()
        const seen: SmtpReply[] = []
        let from = 0
        for (const cut of [...cuts, wire.length]) {
          parser.push(wire.subarray(from, from + cut), (reply) => seen.push(reply))
          from += cut
        }
        assert.deepEqual(
          seen.map((reply) => reply.code),
          clean.map(({ code }) => code),
        )
        assert.deepEqual(
          seen.map((reply) => reply.lines.length),
          clean.map(({ texts }) => texts.length),
        )
        assert.equal(parser.partial, false)
      },
    ),
    { seed: 5321, numRuns: 300 },
  )
})

test('arbitrary bytes give replies or a syntax error, nothing else', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 5 }), (pieces) => {
      const parser = new ReplyParser()
      try {
        for (const piece of pieces) parser.push(piece, () => {})
      } catch (error) {
        assert.ok(error instanceof ReplySyntaxError)
      }
    }),
    { seed: 5321, numRuns: 500 },
  )
})
