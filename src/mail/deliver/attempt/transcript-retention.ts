/** Removes old dialogues of attempts, TLS results and MTA-STS policies. */
import type { Clock } from '../../../base/time/clock.ts'
import { createJob, type Job } from '../../../platform/jobs/job.ts'
import type { Store } from '../../../platform/store/store.ts'

const DAY_MS = 86_400_000
/** People ask what a server said within days; a report covers the day before. */
const TRANSCRIPTS_KEPT_MS = 14 * DAY_MS
const TLS_RESULTS_KEPT_MS = 30 * DAY_MS
const EVERY_MS = 3_600_000
/** Rows in one transaction: the writer is held up for some milliseconds. */
const CHUNK = 1_000
/** Transactions in one run; the next run continues. */
const CHUNKS_MAX = 1_000

const OLD_TRANSCRIPTS = `DELETE FROM transcripts WHERE (delivery_id, attempt) IN
  (SELECT delivery_id, attempt FROM transcripts WHERE started_at < ? ORDER BY started_at LIMIT ${CHUNK})`
const OLD_RESULTS = 'DELETE FROM tls_results WHERE day < ?'
const OLD_POLICIES = 'DELETE FROM mta_sts_policies WHERE expires_at < ?'

export const transcriptRetention = (store: Store, clock: Clock): Job =>
  createJob({
    name: 'transcript-retention',
    everyMs: EVERY_MS,
    scope: 'database',
    work: (signal) => removeOld(store, clock.now(), signal),
  })

/** `now` in Unix milliseconds. */
export async function removeOld(store: Store, now: number, signal?: AbortSignal): Promise<void> {
  const day = new Date(now - TLS_RESULTS_KEPT_MS).toISOString().slice(0, 10)
  await store.commit([
    { sql: OLD_RESULTS, values: [day] },
    { sql: OLD_POLICIES, values: [Math.round(now)] },
  ])
  for (let chunk = 0; chunk < CHUNKS_MAX && !signal?.aborted; chunk++) {
    const values = [Math.round(now - TRANSCRIPTS_KEPT_MS)]
    const [result] = await store.commit([{ sql: OLD_TRANSCRIPTS, values }])
    if ((result?.affected ?? 0) < CHUNK) return
  }
}
