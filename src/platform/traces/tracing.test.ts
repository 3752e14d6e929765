import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readTraceparent, traceparentOf } from './tracing.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'

const TABLE: [name: string, text: unknown, isSampled: boolean | null][] = [
  ['sampled', `00-${TRACE}-${SPAN}-01`, true],
  ['not sampled', `00-${TRACE}-${SPAN}-00`, false],
  ['unknown flags', `00-${TRACE}-${SPAN}-fe`, false],
  ['a later version with more fields', `cc-${TRACE}-${SPAN}-01-what-comes-later`, true],
  ['version 00 with more fields', `00-${TRACE}-${SPAN}-01-more`, null],
  ['version ff', `ff-${TRACE}-${SPAN}-01`, null],
  ['upper case', `00-${TRACE.toUpperCase()}-${SPAN}-01`, null],
  ['no trace id', `00-${'0'.repeat(32)}-${SPAN}-01`, null],
  ['no parent id', `00-${TRACE}-${'0'.repeat(16)}-01`, null],
  ['short', `00-${TRACE}-${SPAN}`, null],
  ['a line end', `00-${TRACE}-${SPAN}-01\n`, null],
  ['two fields in one', `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`, null],
  ['too long', `cc-${TRACE}-${SPAN}-01-${'x'.repeat(300)}`, null],
  ['a list', [`00-${TRACE}-${SPAN}-01`], null],
  ['nothing', undefined, null],
]
for (const [name, text, isSampled] of TABLE)
  test(`traceparent: ${name}`, () => {
    const expected = isSampled === null ? null : { traceId: TRACE, spanId: SPAN, isSampled }
    assert.deepEqual(readTraceparent(text), expected)
  })

test('a traceparent that was written is read back', () => {
  const context = { traceId: TRACE, spanId: SPAN, isSampled: true }
  assert.deepEqual(readTraceparent(traceparentOf(context)), context)
})
