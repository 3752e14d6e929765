/** What a sink gets that fails for longer than it may, and what one asks for that is new, on both databases. */
import assert from 'node:assert/strict'
import pino from 'pino'
import { createTestClock } from '../../../test/support/clock.ts'
import { deliveredAt, eventStatement, NOW_MS } from '../../../test/support/events.ts'
import { eventually } from '../../../test/support/service.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { DAY_MS, HOUR_MS } from '../../base/time/durations.ts'
import type { EventSinkRow } from '../../platform/store/schema.ts'
import { insert, type Store } from '../../platform/store/store.ts'
import { cursorOf } from '../events/follower.ts'
import { createFollowing } from './following.ts'

const ROW: EventSinkRow = {
  ...{ name: 'one', kind: 'http', settings_json: JSON.stringify({ behind_max_seconds: 3600 }) },
  ...{ secret_sealed: null, sent: 0, sent_at: null, skipped: 0, skipped_from: null, skipped_to: null },
  ...{ failing_since: null, last_error: null, created_at: NOW_MS, updated_at: NOW_MS },
}

async function rigOf(store: Store) {
  const clock = createTestClock(NOW_MS)
  const sent: string[] = []
  const sink = { isDown: false, failures: 0 }
  await store.commit([
    insert('event_sinks', ROW),
    insert('event_followers', { name: 'sink:one', tx: 0, seq: 0 }),
  ])
  const row = async () => await store.db.selectFrom('event_sinks').selectAll().executeTakeFirstOrThrow()
  const following = createFollowing({
    ...{ store, clock, log: pino({ level: 'silent' }) },
    known: {
      list: async () => [await row()],
      open: async () => ({
        async send(events) {
          if (sink.isDown) {
            sink.failures++
            throw new Error('down\nhere')
          }
          sent.push(...events.map(({ json }) => JSON.parse(json).id))
        },
        close() {},
      }),
      shownError: (_row, words) => words,
    },
  })
  /** Turns until `look` finds what it waits for. */
  const until = async (what: string, look: () => Promise<boolean>) => {
    const stop = new AbortController()
    const turns = (async () => {
      while (!stop.signal.aborted) await following.turn(stop.signal)
    })()
    await eventually(what, async () => {
      await clock.advance(1_000)
      return look()
    })
    stop.abort()
    await clock.advance(1_000)
    await turns
  }
  const write = async (atMs: number, count: number) => {
    const events = Array.from({ length: count }, (_, index) => deliveredAt(atMs + index))
    await store.commit(events.map(eventStatement))
    return events.map(({ id }) => id)
  }
  return { clock, sent, sink, row, until, write }
}

eachStore('a new sink gets all that is kept, however old', async (store) => {
  const { sent, until, write, row } = await rigOf(store)
  const old = await write(-10 * DAY_MS, 700)
  const recent = await write(0, 3)
  await until('all are sent', async () => sent.length >= 703)
  assert.deepEqual(sent, [...old, ...recent])
  assert.equal(Number((await row()).sent), 703)
})

eachStore('a sink that takes nothing for too long misses what is too old, and says so', async (store) => {
  const { clock, sent, sink, until, write, row } = await rigOf(store)
  sink.isDown = true
  await write(0, 40)
  await until('it has failed', async () => (await row()).failing_since !== null)
  assert.equal((await row()).last_error, 'down\\u000ahere')
  assert.equal(Number((await row()).skipped), 0)
  const place = await cursorOf(store, 'sink:one')
  clock.leap(2 * HOUR_MS)
  const recent = await write(2 * HOUR_MS, 5)
  await until('the old ones are skipped', async () => Number((await row()).skipped) === 40)
  const { skipped_from: from, skipped_to: to } = await row()
  assert.deepEqual([Number(from), Number(to)], [NOW_MS, NOW_MS + 39])
  assert.notDeepEqual(await cursorOf(store, 'sink:one'), place)
  assert.deepEqual(sent, [])
  sink.isDown = false
  await until('the recent ones are sent', async () => sent.length === 5)
  assert.deepEqual(sent, recent)
  assert.deepEqual([(await row()).failing_since, Number((await row()).sent)], [null, 5])
})
