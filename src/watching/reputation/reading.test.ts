import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { jobContext } from '../../../test/support/job-context.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { createReading, firstDay } from './reading.ts'
import { waitAfter } from './source-failure.ts'

const DAY_MS = 86_400_000
const YESTERDAY = Date.UTC(2026, 10, 26)
const DAYS = { first: 30, again: 7, most: 120 }

test('the first day to ask for: a month at first, then what was missed and the last week', () => {
  const cases: [readDaysAgo: number | null, askedDaysAgo: number][] = [
    [null, 29],
    [0, 6],
    [1, 7],
    [40, 46],
    [400, 119],
    // A clock that was ahead.
    [-30, 0],
  ]
  for (const [read, asked] of cases) {
    const readThrough = read === null ? null : YESTERDAY - read * DAY_MS
    assert.equal((YESTERDAY - firstDay(readThrough, YESTERDAY, DAYS)) / DAY_MS, asked, String(read))
  }
})

test('waits grow from 15 minutes to 6 hours', () => {
  const minutes = [1, 2, 3, 4, 5, 6, 100].map((failures) => waitAfter(failures) / 60_000)
  assert.deepEqual(minutes, [15, 30, 60, 120, 240, 360, 360])
})

eachStore('a fault at one source does not keep the other from being read', async (store) => {
  const clock = createTestClock()
  const asked = Promise.withResolvers<string>()
  const sources = {
    async find(name: string) {
      if (name === 'google') throw new Error('the database refuses its row')
      asked.resolve(name)
      return null
    },
  }
  const none = {} as never
  const job = createReading({ store, clock, client: none, domains: none, sources: sources as never })
  job.start(jobContext(store, { clock }))
  const second = await asked.promise
  // Before the store closes: its last statement would wait half a minute for a connection.
  await job.stop()
  assert.equal(second, 'snds')
})
