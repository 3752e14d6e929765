import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SourceFailure } from '../source-failure.ts'
import { blocksIn, complaintRateOf, csvRows, daysIn, sndsDate } from './feed.ts'

const LINE =
  '192.0.2.9,11/26/2026 10:00 AM,11/26/2026 7:00 PM,"1,895",1894,"1,894",YELLOW,2.3%,11/26/2026 1:00 PM,11/26/2026 2:00 PM,4,mail.a.example,a@a.example,\r\n'

test('a line of data.aspx, without its samples', async () => {
  const again = LINE.replace('YELLOW', 'red')
  const days = daysIn(await csvRows(Buffer.from(LINE + again), 14))
  assert.deepEqual(days, [
    {
      ...{ ip: '192.0.2.9', recipients: 1_894, filterResult: 'RED', complaintRate: '2.3%', trapHits: 4 },
      trapPeriod: '11/26/2026 1:00 PM - 11/26/2026 2:00 PM',
    },
  ])
  assert.deepEqual(daysIn(await csvRows(Buffer.alloc(0), 14)), [], 'a day without enough mail')
})

test('lines of ipStatus.aspx: those that are blocked', async () => {
  const lines = '192.0.2.0,192.0.2.255,Yes,Blocked due to user complaints\r\n2001:DB8::1,2001:db8::1,No,\r\n'
  assert.deepEqual(blocksIn(await csvRows(Buffer.from(lines), 4)), [
    { firstIp: '192.0.2.0', lastIp: '192.0.2.255', detail: 'Blocked due to user complaints' },
  ])
})

test('what is no such file is refused whole', async () => {
  for (const text of ['<html></html>', 'a,b', '"open', 'a\r\n'.repeat(3)])
    await assert.rejects(csvRows(Buffer.from(text), 4), SourceFailure)
  assert.throws(() => daysIn([['192.0.2.999', ...Array(13).fill('')]]), SourceFailure)
  assert.throws(() => blocksIn([['192.0.2.1', 'x', 'Yes', '']]), SourceFailure)
})

test('control characters and long texts do not get through, nor more lines than a network has', async () => {
  const [row] = await csvRows(Buffer.from(`a,b\u0007,${'x'.repeat(500)},d\r\n`), 4)
  assert.doesNotMatch(row?.[1] ?? '', /\p{Cc}/u)
  assert.equal(row?.[2]?.length, 200)
  assert.equal((await csvRows(Buffer.from('a,b,c,d\r\n'.repeat(10_010)), 4)).length, 10_000)
})

test('dates and rates as SNDS writes them', () => {
  assert.equal(sndsDate(Date.UTC(2026, 0, 5)), '010526')
  const rates: [text: string, rate: number | null][] = [
    ['< 0.1%', 0.001],
    ['0.3%', 0.003],
    ['12 %', 0.12],
    ['', null],
    ['none', null],
  ]
  for (const [text, rate] of rates) assert.equal(complaintRateOf(text), rate, text)
})
