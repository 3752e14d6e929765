/** Keeps SQLite's index of events. */
import { createTicker, failingOnce } from '../domains/ticker.ts'
import { indexEvents } from '../events/indexing.ts'
import type { Closers, Core } from './core.ts'

/** What is not indexed yet costs a search 1 to 2 us an event. An idle look is two reads by key. */
const INDEX_EVERY_MS = 1_000

export function startEventIndex({ store, clock, log }: Core, open: Closers): void {
  if (store.kind !== 'sqlite') return
  const job = createTicker({
    name: 'event-index',
    everyMs: INDEX_EVERY_MS,
    clock,
    log,
    work: failingOnce((signal) => indexEvents(store, signal)),
  })
  job.start()
  open.push(() => job.stop())
}
