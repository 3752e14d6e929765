/** What a job is started with, for tests that run one outside a service. */
import pino, { type Logger } from 'pino'
import { type Clock, systemClock } from '../../src/base/time/clock.ts'
import type { JobContext } from '../../src/platform/jobs/job.ts'
import type { Store } from '../../src/platform/store/store.ts'

export function jobContext(
  store: Store,
  { clock = systemClock, log = pino({ level: 'silent' }) }: { clock?: Clock; log?: Logger } = {},
): JobContext {
  return { store, clock, log, random: () => 0, owner: 'test' }
}
