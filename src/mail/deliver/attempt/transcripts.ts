/**
 * The SMTP dialogue of attempts, kept for diagnosis, and its end after some days. Small and bounded: the client leaves out
 * secrets, and content is one line with its size.
 */

import type { Clock } from '../../../base/time/clock.ts'
import { DAY_MS, HOUR_MS } from '../../../base/time/durations.ts'
import { createJob, type Job } from '../../../platform/jobs/job.ts'
import { removeBeyond, type SizedTable } from '../../../platform/store/kept-size.ts'
import { insert, type Statement, type Store } from '../../../platform/store/store.ts'
import type { ClaimedDelivery } from '../claim/queue.ts'
import type { AttemptResult } from '../contract.ts'

/** Which attempts keep their dialogue: all, those without a 250, or none. */
type KeepTranscripts = 'failures' | 'all' | 'off'

/** The row for the outcome's transaction, or null if nothing is kept. */
export function transcriptStatement(
  keep: KeepTranscripts,
  delivery: ClaimedDelivery,
  { transcript, outcome, mxHost }: AttemptResult,
): Statement | null {
  if (keep === 'off' || !transcript || transcript.lines.length === 0) return null
  if (keep === 'failures' && outcome.kind === 'delivered') return null
  return insert('transcripts', {
    delivery_id: delivery.id,
    attempt: delivery.attempts + 1,
    account_id: delivery.account_id,
    started_at: Math.floor(transcript.startedAt),
    mx_host: mxHost ?? '',
    lines_json: JSON.stringify(
      transcript.lines.map(({ ms, direction, line }) => [Math.round(ms), direction, line]),
    ),
  })
}

/** People ask what a server said within days; a report covers the day before. */
const TRANSCRIPTS_KEPT_MS = 14 * DAY_MS
const TLS_RESULTS_KEPT_MS = 30 * DAY_MS
/** Rows in one transaction: the writer is held up for some milliseconds. */
const CHUNK = 1_000
/** Transactions in one run; the next run continues. */
const CHUNKS_MAX = 1_000

const OLD_TRANSCRIPTS = `DELETE FROM transcripts WHERE (delivery_id, attempt) IN
  (SELECT delivery_id, attempt FROM transcripts WHERE started_at < ? ORDER BY started_at LIMIT ${CHUNK})`
const OLD_RESULTS = 'DELETE FROM tls_results WHERE day < ?'
const OLD_POLICIES = 'DELETE FROM mta_sts_policies WHERE expires_at < ?'

const TRANSCRIPTS: SizedTable = {
  ...{ name: 'transcripts', key: 'delivery_id, attempt', age: 'started_at' },
  ...{ texts: ['lines_json', 'mx_host'], rowBytes: 250 },
}

/** Removes old dialogues of attempts, those beyond `bytesMax`, old TLS results and MTA-STS policies. */
export const transcriptRetention = (store: Store, clock: Clock, bytesMax: number | null): Job =>
  createJob({
    name: 'transcript-retention',
    everyMs: HOUR_MS,
    scope: 'database',
    async work(signal) {
      await removeOld(store, clock.now(), signal)
      await removeBeyond(store, TRANSCRIPTS, bytesMax, signal)
    },
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
