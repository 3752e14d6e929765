import assert from 'node:assert/strict'
import { test } from 'node:test'
import { weeklyWindow } from './weekly-window.ts'

const at = (text: string) => Date.parse(text)

test('the next time within a window', () => {
  const cases: [window: string, time: string, next: string][] = [
    ['09:00-17:00', '2026-06-01T08:59:59.999Z', '2026-06-01T09:00:00Z'],
    ['09:00-17:00', '2026-06-01T09:00:00.000Z', '2026-06-01T09:00:00Z'],
    ['09:00-17:00', '2026-06-01T16:59:59.999Z', '2026-06-01T16:59:59.999Z'],
    ['09:00-17:00', '2026-06-01T17:00:00Z', '2026-06-02T09:00:00Z'],
    ['Mon-Fri 09:00-17:00 Europe/Berlin', '2026-06-05T14:59:00Z', '2026-06-05T14:59:00Z'],
    // Friday 17:00 there.
    ['Mon-Fri 09:00-17:00 Europe/Berlin', '2026-06-05T15:00:00Z', '2026-06-08T07:00:00Z'],
    // Over the changes of clocks.
    ['Mon-Fri 09:00-17:00 Europe/Berlin', '2026-03-27T17:00:00Z', '2026-03-30T07:00:00Z'],
    ['Mon-Fri 09:00-17:00 Europe/Berlin', '2026-10-23T17:00:00Z', '2026-10-26T08:00:00Z'],
    // Skipped from 02:00 to 03:00 there: the beginning, then the whole window.
    ['02:30-05:00 Europe/Berlin', '2026-03-29T00:10:00Z', '2026-03-29T01:00:00Z'],
    ['02:10-02:40 Europe/Berlin', '2026-03-29T00:50:00Z', '2026-03-30T00:10:00Z'],
    ['Sun 02:10-02:40 Europe/Berlin', '2026-03-29T00:50:00Z', '2026-04-05T00:10:00Z'],
    // Into the next day.
    ['Fri 22:00-06:00', '2026-06-06T05:59:00Z', '2026-06-06T05:59:00Z'],
    ['Fri 22:00-06:00', '2026-06-06T06:00:00Z', '2026-06-12T22:00:00Z'],
    ['Fri 22:00-06:00', '2026-06-05T05:00:00Z', '2026-06-05T22:00:00Z'],
    ['sat-mon,wed 00:00-24:00', '2026-06-02T10:00:00Z', '2026-06-03T00:00:00Z'],
    ['sat-mon,wed 00:00-24:00', '2026-06-04T00:00:00Z', '2026-06-06T00:00:00Z'],
    ['Tue 10:00-10:00', '2026-06-03T09:59:00Z', '2026-06-03T09:59:00Z'],
    ['Tue 10:00-10:00', '2026-06-03T10:00:00Z', '2026-06-09T10:00:00Z'],
    ['09:00-17:00 Asia/Kathmandu', '2026-06-01T00:00:00Z', '2026-06-01T03:15:00Z'],
    ['09:00 - 09:01 Australia/Lord_Howe', '2026-06-01T00:00:00Z', '2026-06-01T22:30:00Z'],
  ]
  for (const [window, time, next] of cases)
    assert.equal(
      new Date(weeklyWindow(window)?.next(at(time)) ?? 0).toISOString(),
      new Date(next).toISOString(),
      `${window} from ${time}`,
    )
})

test('what is no window', () => {
  for (const text of [
    ...['', 'always', '9-17', '24:00-25:00', '09:60-10:00', '09:00-24:01', '09:00', 'Mon-Fri'],
    ...['Mo 09:00-17:00', 'Mon- 09:00-17:00', 'Mon-Tue-Wed 09:00-17:00', '09:00-17:00 Mars/Base'],
    `09:00-17:00 ${'x'.repeat(100)}`,
    `09:00-17:00${' '.repeat(1000)}UTC`,
  ])
    assert.equal(weeklyWindow(text), null, text)
})
