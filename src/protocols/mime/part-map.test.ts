import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { LazyChunk } from '../message/mime-message.ts'
import { findLeaves } from './part-map.ts'
import { splitMessage } from './split.ts'

const { headers } = splitMessage(Buffer.from('Content-Type: multipart/mixed; boundary=b\r\n\r\n'))

const BODY = [
  'shown to nobody',
  '--b',
  'Content-Type: text/plain',
  '',
  'not at the begin of a line: --b',
  '-- b',
  '',
  '--b',
  'Content-Type: application/pdf',
  'Content-Transfer-Encoding: base64',
  '',
  'AAAA',
  'AA==',
  '',
  '--b--',
  'nor this',
  '--b',
  '',
].join('\r\n')

/** The body in pieces, cut at these places. */
function inPieces(body: string, cuts: readonly number[]): LazyChunk {
  const bytes = Buffer.from(body, 'latin1')
  const places = [...new Set([0, ...cuts, bytes.length])].sort((a, b) => a - b)
  const pieces = places.slice(1).map((end, at) => bytes.subarray(places[at], end))
  return {
    sizeBytes: bytes.length,
    open: async function* () {
      yield* pieces
    },
  }
}

test('parts are found by their delimiters, with the size of their content', async () => {
  const leaves = await findLeaves(headers, Buffer.from(BODY))
  assert.deepEqual(
    leaves.map(({ type, start, end, sizeBytes }) => [type, BODY.slice(start, end), sizeBytes]),
    [
      ['text/plain', 'not at the begin of a line: --b\r\n-- b\r\n', 39],
      ['application/pdf', 'AAAA\r\nAA==\r\n', 4],
    ],
  )
})

test('the pieces in which a body comes do not matter', async () => {
  const whole = await findLeaves(headers, Buffer.from(BODY))
  const cuts = fc.array(fc.nat(BODY.length), { maxLength: 12 })
  await fc.assert(
    fc.asyncProperty(cuts, async (places) => {
      assert.deepEqual(await findLeaves(headers, inPieces(BODY, places)), whole)
    }),
    { seed: 4, numRuns: 500 },
  )
  const everyByte = Array.from({ length: BODY.length }, (_, at) => at)
  assert.deepEqual(await findLeaves(headers, inPieces(BODY, everyByte)), whole)
})

test('hyphens at the begin of a piece, but not of a line, are no delimiter', async () => {
  const body = '--b\r\n\r\nlong line --b\r\n--b--\r\n'
  const [leaf, ...others] = await findLeaves(headers, inPieces(body, [body.indexOf('--b', 10)]))
  assert.deepEqual([body.slice(leaf?.start, leaf?.end), others], ['long line --b', []])
})
