import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import {
  displayName,
  formatBytes,
  localInput,
  localInputMs,
  shortAge,
  shortDateTime,
  startOfDay,
  timeUntil,
  writeDates,
} from './format.ts'

beforeEach(() => writeDates({ language: null, time_zone: 'UTC' }))

test('sizes read in decimal units and never as "1000 kB"', () => {
  const expected = { 0: '0 B', 999: '999 B', 1000: '1.0 kB', 9949: '9.9 kB', 9999: '10 kB', 999499: '999 kB' }
  for (const [bytes, text] of Object.entries(expected)) assert.equal(formatBytes(Number(bytes)), text)
  assert.equal(formatBytes(999_999), '1.0 MB')
  assert.equal(formatBytes(25_000_000), '25 MB')
})

test('ages are short, and a clock ahead of ours counts as now', () => {
  const now = Date.UTC(2026, 10, 21, 12)
  for (const [agoMs, text] of [
    [-5_000, 'now'],
    [59_000, 'now'],
    [61_000, '1 min'],
    [3_600_000, '1 h'],
    [86_400_000 * 2, '2 d'],
    [86_400_000 * 30, 'Oct 22'],
    [86_400_000 * 400, 'Oct 17, 2025'],
  ] as const)
    assert.equal(shortAge(now - agoMs, now), text)
})

test('what is to come is rounded to the nearest', () => {
  const now = Date.UTC(2026, 10, 21, 12)
  for (const [minutes, text] of [
    [0.4, 'in a moment'],
    [1, 'in 1 min'],
    [119 / 60, 'in 2 min'],
    [59.9, 'in 60 min'],
    [90, 'in 90 min'],
    [91, 'in 2 h'],
    [36 * 60, 'in 36 h'],
    [47 * 60, 'in 2 d'],
    [8 * 24 * 60, 'Nov 29, 2026'],
  ] as const)
    assert.equal(timeUntil(now + minutes * 60_000, now), text)
})

test('a mailbox shows its name, or its address if it has none', () => {
  for (const [mailbox, shown] of [
    ['"Shop, Inc." <shop@example.com>', 'Shop, Inc.'],
    ['Shop <shop@example.com>', 'Shop'],
    ['<shop@example.com>', 'shop@example.com'],
    ['shop@example.com', 'shop@example.com'],
    ['', ''],
  ])
    assert.equal(displayName(mailbox ?? ''), shown)
})

test('dates follow the language and the time zone that were chosen', () => {
  const at = Date.UTC(2026, 0, 31, 20, 30)
  writeDates({ language: 'de', time_zone: 'Asia/Tokyo' })
  assert.equal(shortDateTime(at), '01.02.2026, 05:30')
  assert.equal(localInput(at), '2026-02-01T05:30')
  assert.equal(localInputMs('2026-02-01T05:30'), at)
  assert.equal(startOfDay(at), Date.UTC(2026, 0, 31, 15))
  assert.equal(startOfDay(at, -1), Date.UTC(2026, 0, 30, 15))
  // The day on which the clock goes forward has 23 hours.
  writeDates({ language: null, time_zone: 'Europe/Berlin' })
  const noon = Date.UTC(2026, 2, 29, 10)
  assert.equal(startOfDay(noon, 1) - startOfDay(noon), 23 * 3_600_000)
  assert.equal(localInputMs(localInput(noon)), noon)
  assert.ok(Number.isNaN(localInputMs('')))
  writeDates({ language: 'en', time_zone: 'Mars/Olympus' })
  assert.match(shortDateTime(at), /2026/, 'a browser that does not know the zone writes as before')
  writeDates({ language: null, time_zone: null })
})
