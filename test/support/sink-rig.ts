/** A sink in a fresh database that the test turns on and off, and what it has got. */
import pino from 'pino'
import type { EventSinkRow } from '../../src/platform/store/schema.ts'
import { insert, type Store } from '../../src/platform/store/store.ts'
import { createFollowing } from '../../src/watching/event-sinks/following.ts'
import { createTestClock } from './clock.ts'
import { deliveredAt, eventStatement, NOW_MS } from './events.ts'
import { eventually } from './service.ts'

const ROW: EventSinkRow = {
  ...{ name: 'one', kind: 'http', settings_json: JSON.stringify({ behind_max_seconds: 3600 }) },
  ...{ secret_sealed: null, sent: 0, sent_at: null, skipped: 0, skipped_from: null, skipped_to: null },
  ...{ failing_since: null, last_error: null, created_at: NOW_MS, updated_at: NOW_MS },
}

export async function sinkRig(store: Store) {
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
            throw new AggregateError([new Error('tried', { cause: new Error('down\nhere') })], 'in vain')
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
  /** `settings`: besides that it may be an hour behind. */
  const change = async (settings: object) => {
    const settings_json = JSON.stringify({ behind_max_seconds: 3600, ...settings })
    const updated_at = Number((await row()).updated_at) + 1
    await store.db.updateTable('event_sinks').set({ settings_json, updated_at }).execute()
  }
  return { clock, sent, sink, row, until, write, change }
}
