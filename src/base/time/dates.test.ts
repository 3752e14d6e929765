import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  formatGmt,
  formatIsoLocal,
  formatRfc2822,
  formatRfc2822Unknown,
  formatRfc3339,
  formatUtc,
  isGoZeroTime,
  parseDate,
} from './dates.ts'

const noon = new Date('2026-06-01T12:00:00Z')

test('every area gets its own form of the same moment', () => {
  assert.equal(formatGmt(noon), 'Mon, 01 Jun 2026 12:00:00 GMT')
  assert.equal(formatUtc(noon), 'Mon, 01 Jun 2026 12:00:00 UTC')
  assert.equal(formatRfc2822(noon), 'Mon, 01 Jun 2026 12:00:00 +0000')
  assert.equal(formatRfc2822Unknown(noon), 'Mon, 01 Jun 2026 12:00:00 -0000')
  assert.equal(formatRfc3339(noon), '2026-06-01T12:00:00Z')
  assert.equal(formatRfc3339(new Date('2025-11-07T20:54:42.186Z')), '2025-11-07T20:54:42.186Z')
  assert.equal(formatIsoLocal(new Date('2006-01-02T15:04:05.999Z')), '2006-01-02T15:04:05')
})

const READ: ReadonlyArray<[string, string | undefined]> = [
  ['Thu, 13 Oct 2011 18:02:00 +0000', '2011-10-13T18:02:00.000Z'],
  ['Thu, 13 Oct 2011 18:02:00 GMT', '2011-10-13T18:02:00.000Z'],
  ['Thu, 13 Oct 2011 18:02:00 UTC', '2011-10-13T18:02:00.000Z'],
  ['13 oct 2011 18:02 +0230', '2011-10-13T15:32:00.000Z'],
  ['Fri, 1 Jan 2027 00:30:00 -0100', '2027-01-01T01:30:00.000Z'],
  ['29 Feb 2028 00:00:00 +0000', '2028-02-29T00:00:00.000Z'],
  ['31 Dec 2026 23:59:60 GMT', '2027-01-01T00:00:00.000Z'],
  ['1318528920', '2011-10-13T18:02:00.000Z'],
  ['1318528920.25', '2011-10-13T18:02:00.250Z'],
  ['Mon, 01 Jan 0001 00:00:00 +0000', '0001-01-01T00:00:00.000Z'],
  ['Thu, 13 Oct 2011 18:02:00 EST', undefined],
  ['Thu, 13 Oct 2011 18:02:00 Z', undefined],
  ['Thu, 13 Oct 2011 18:02:00', undefined],
  ['Xyz, 13 Oct 2011 18:02:00 GMT', undefined],
  ['29 Feb 2027 00:00:00 +0000', undefined],
  ['0 Jan 2027 00:00:00 +0000', undefined],
  ['31 Apr 2027 00:00:00 +0000', undefined],
  ['13 Okt 2011 18:02:00 GMT', undefined],
  ['13 Oct 11 18:02:00 GMT', undefined],
  ['13 Oct 2011 24:00:00 GMT', undefined],
  ['13 Oct 2011 18:60:00 GMT', undefined],
  ['13 Oct 2011 18:02:61 GMT', undefined],
  ['13 Oct 2011 18:02:00 +0060', undefined],
  ['13 Oct 2011 18:02:00 +2400', undefined],
  ['2026-06-01T12:00:00Z', undefined],
  ['-5', undefined],
  ['1e9', undefined],
  ['9'.repeat(13), undefined],
  ['', undefined],
  [`13 Oct 2011 ${' '.repeat(5000)}18:02:00 GMT`, undefined],
]

test('dates in: RFC 2822 with numeric zone, GMT or UTC, or Unix seconds, and nothing else', () => {
  for (const [text, expected] of READ) {
    assert.equal(parseDate(text)?.toISOString(), expected, JSON.stringify(text.slice(0, 60)))
  }
})

test('the Go zero time is told apart in either spelling', () => {
  for (const zone of ['+0000', 'UTC']) {
    const date = parseDate(`Mon, 01 Jan 0001 00:00:00 ${zone}`)
    assert.ok(date !== undefined && isGoZeroTime(date))
  }
  assert.equal(isGoZeroTime(noon), false)
})

test('what is written can be read again', () => {
  const seconds = fc.integer({ min: -62135596800, max: 253402300799 })
  const property = fc.property(seconds, (second) => {
    const date = new Date(second * 1000)
    for (const write of [formatGmt, formatUtc, formatRfc2822, formatRfc2822Unknown]) {
      assert.equal(parseDate(write(date))?.getTime(), date.getTime())
    }
  })
  fc.assert(property, { seed: 7, numRuns: 500 })
})
