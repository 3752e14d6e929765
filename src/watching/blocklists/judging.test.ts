import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BlocklistCheckRow } from '../../platform/store/schema.ts'
import { judgeAnswer } from './judging.ts'

const HOUR_MS = 3_600_000
const NOW = Date.UTC(2026, 5, 1)
const ROW: BlocklistCheckRow = {
  ...{ list: 'list.example', subject: '192.0.2.1', checked_at: null, next_at: NOW, listed_since: null },
  ...{ listed_at: null, code: '', misses: 0 },
}
const LISTED = { kind: 'listed', code: '127.0.0.2' } as const
const FREE = { kind: 'not-listed', code: '' } as const
const SILENT = { kind: 'silent', code: '' } as const

const judge = (row: BlocklistCheckRow, answer: Parameters<typeof judgeAnswer>[1], now = NOW) =>
  judgeAnswer(row, answer, now, 0.5)

test('what is listed is delisted by two answers in a row, and asked for again soon after the first', () => {
  const { row, change } = judge(ROW, LISTED)
  assert.deepEqual(
    [change, row.listed_since, row.listed_at, row.code, row.next_at],
    ['listed', NOW, NOW, '127.0.0.2', NOW + 6 * HOUR_MS],
  )
  const again = judge(row, LISTED, NOW + HOUR_MS)
  assert.deepEqual([again.change, again.row.listed_since, again.row.listed_at], [null, NOW, NOW + HOUR_MS])
  const once = judge(row, FREE)
  assert.deepEqual([once.change, once.row.listed_since, once.row.next_at], [null, NOW, NOW + HOUR_MS])
  assert.equal(judge(once.row, LISTED).row.misses, 0, 'in a row')
  const twice = judge(once.row, FREE)
  assert.deepEqual([twice.change, twice.row.listed_since, twice.row.code], ['delisted', null, ''])
})

test('no usable answer changes nothing, until nothing has confirmed a listing for a week', () => {
  assert.deepEqual(judge(ROW, SILENT), { row: { ...ROW, next_at: NOW + HOUR_MS }, change: null })
  const { row } = judge(ROW, LISTED)
  assert.equal(judge(row, SILENT, NOW + 167 * HOUR_MS).change, null)
  assert.equal(judge(row, SILENT, NOW + 169 * HOUR_MS).change, 'delisted')
})
