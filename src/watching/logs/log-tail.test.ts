import assert from 'node:assert/strict'
import { createTestClock } from '../../../test/support/clock.ts'
import { deliveredAt, eventStatements, NOW_MS } from '../../../test/support/events.ts'
import { eventually } from '../../../test/support/service.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import { readLogQuery } from './log-query.ts'
import { createLogReader, type LogTail } from './log-reader.ts'

eachStore('a tail after an event leaves nothing out, one that begins now does', async (store) => {
  const reader = createLogReader({
    store,
    accounts: { byId: () => null, childrenOf: async () => [] },
    facts: { isRateLimit: () => false },
    retentionMs: 30 * DAY_MS,
  })
  const events = Array.from({ length: 720 }, (_, at) => deliveredAt(at))
  const ids = events.map(({ id }) => id)
  const clock = createTestClock(NOW_MS + 1_000)
  const aborter = new AbortController()
  const query = {
    ...readLogQuery(() => undefined, clock.now()),
    ...{ ascending: true, lowUs: 0, highUs: null, limit: 100 },
  }
  const open = (after: string | null, accountId = 'account-1') =>
    reader.tail({ accountId, query, after, clock, signal: aborter.signal })
  /** Ids of the pages up to the one that `isLast`. */
  const read = async (tail: AsyncGenerator<LogTail>, isLast: (page: LogTail) => boolean) => {
    const found: string[] = []
    for (let page: LogTail | undefined; page === undefined || !isLast(page); ) {
      const next = tail.next()
      page = undefined
      next.then(({ value }) => (page = value as LogTail))
      await eventually('a page', async () => {
        await clock.advance(2_000)
        return page !== undefined
      })
      found.push(...(await next).value.items.map((item: { id: string }) => item.id))
    }
    return found
  }
  const live = await open(null)
  await store.commit(eventStatements(events))
  assert.deepEqual(await read(live, ({ skipped }) => skipped), ids.slice(0, 500))
  const resumed = await open(ids[99] as string)
  assert.deepEqual(await read(resumed, ({ items }) => items.length < 100), ids.slice(100))
  await assert.rejects(open(ids[99] as string, 'account-2'), /no event with this id is kept/)
  await assert.rejects(open('nothing'), /no event with this id is kept/)
  aborter.abort()
})
