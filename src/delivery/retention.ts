/** Removes what attempts leave behind once nobody asks for it any more. */
import type { Clock, Timer } from '../base/clock.ts'
import type { Store } from '../store/store.ts'

const DAY_MS = 86_400_000
/** People ask what a server said within days; a report covers the day before. */
const TRANSCRIPTS_KEPT_MS = 14 * DAY_MS
const TLS_RESULTS_KEPT_MS = 30 * DAY_MS
const EVERY_MS = 3_600_000
/** Rows in one transaction: the writer is held up for some milliseconds. */
const CHUNK = 1_000
/** Transactions in one run; the next hour goes on. */
const CHUNKS_MAX = 1_000

const OLD_TRANSCRIPTS = `DELETE FROM transcripts WHERE (delivery_id, attempt) IN
  (SELECT delivery_id, attempt FROM transcripts WHERE started_at < ? ORDER BY started_at LIMIT ${CHUNK})`
const OLD_RESULTS = 'DELETE FROM tls_results WHERE day < ?'
const OLD_POLICIES = 'DELETE FROM mta_sts_policies WHERE expires_at < ?'

/** Runs once an hour until closed. */
export function startRetention(
  store: Store,
  clock: Clock,
  onError: (error: unknown) => void,
): { close(): void } {
  let timer: Timer
  let closed = false
  const arm = () => {
    timer = clock.setTimer(EVERY_MS, () => {
      removeOld(store, clock.now())
        .catch(onError)
        .finally(() => {
          if (!closed) arm()
        })
    })
  }
  arm()
  return {
    close() {
      closed = true
      timer.cancel()
    },
  }
}

/** `now` in Unix milliseconds. */
export async function removeOld(store: Store, now: number): Promise<void> {
  const day = new Date(now - TLS_RESULTS_KEPT_MS).toISOString().slice(0, 10)
  await store.commit([
    { sql: OLD_RESULTS, values: [day] },
    { sql: OLD_POLICIES, values: [Math.round(now)] },
  ])
  for (let chunk = 0; chunk < CHUNKS_MAX; chunk++) {
    const values = [Math.round(now - TRANSCRIPTS_KEPT_MS)]
    const [result] = await store.commit([{ sql: OLD_TRANSCRIPTS, values }])
    if ((result?.affected ?? 0) < CHUNK) return
  }
}
