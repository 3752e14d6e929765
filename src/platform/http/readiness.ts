/** What `/health` says. */
import { pause } from '../../base/flow/pause.ts'
import type { Clock } from '../../base/time/clock.ts'
import type { Store, StoreFault } from '../store/store.ts'

/** Open to everybody: without the names of files, which the log has. */
const NOT_READY: Record<StoreFault['kind'], string> = {
  damaged: 'The database is damaged; the log and "sendwright doctor" say what to do',
  disk: 'The disk of the database failed; restart the service once it works',
}

const STORAGE_AWAY = 'The storage cannot be used'
const STORAGE_HANGS = 'The storage does not answer'
/** Balancers and supervisors wait for a second or longer. */
const ANSWER_MAX_MS = 600
/** One commit on a busy disk may take seconds; until then the last answer stands. */
const HANGS_AFTER_MS = 5_000

/**
 * Whether the service can work now. It never waits long for a disk or a database, and all calls share one question to
 * it. A storage that worked is said to hang only after `HANGS_AFTER_MS`, so that a busy disk does not take the service
 * out of a balancer.
 */
export function createReadiness(
  store: Pick<Store, 'fault' | 'ping'>,
  clock: Clock,
): () => Promise<{ ready: boolean; reason?: string }> {
  let asked: Promise<string | null> | null = null
  let askedAt = 0
  /** The last answer: null when the storage worked. */
  let last: string | null = STORAGE_HANGS
  const ask = () => {
    askedAt = clock.monotonic()
    return store
      .ping()
      .then((works) => (works ? null : STORAGE_AWAY))
      .catch(() => STORAGE_AWAY)
      .then((reason) => {
        asked = null
        last = reason
        return reason
      })
  }
  return async () => {
    const fault = store.fault()
    if (fault) return { ready: false, reason: NOT_READY[fault.kind] }
    asked ??= ask()
    const over = new AbortController()
    const late = pause(clock, ANSWER_MAX_MS, over.signal).then(() =>
      clock.monotonic() - askedAt < HANGS_AFTER_MS ? last : STORAGE_HANGS,
    )
    const reason = await Promise.race([asked, late]).finally(() => over.abort())
    return reason === null ? { ready: true } : { ready: false, reason }
  }
}
