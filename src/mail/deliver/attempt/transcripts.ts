/**
 * The SMTP dialogue of attempts, kept for diagnosis, and its end after some days. Small and bounded: the client leaves out
 * secrets, and content is one line with its size.
 */

import { pause } from '../../../base/flow/pause.ts'
import type { Clock } from '../../../base/time/clock.ts'
import { DAY_MS, HOUR_MS } from '../../../base/time/durations.ts'
import { createJob, type Job } from '../../../platform/jobs/job.ts'
import type { RowParts } from '../../../platform/store/account-rows.ts'
import { removeRows } from '../../../platform/store/commits.ts'
import { type KeptBounds, readKeptDays } from '../../../platform/store/kept-days.ts'
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

/** A report covers the day before. */
export const TLS_RESULTS_DAYS = 30
/** Rows in one transaction: the writer is held up for some milliseconds. */
const CHUNK = 1_000

const OLD_RESULTS = 'DELETE FROM tls_results WHERE day < ?'
const OLD_POLICIES = 'DELETE FROM mta_sts_policies WHERE expires_at < ?'

const TRANSCRIPTS: SizedTable = {
  ...{ name: 'transcripts', key: 'delivery_id, attempt', age: 'started_at' },
  ...{ texts: ['lines_json', 'mx_host'], rowBytes: 250 },
}

/** Dialogues looked at in one step, where accounts keep theirs for a shorter time. */
const PASS_PORTION = 2_000
const PASS_PAUSE_MS = 20
// A dialogue knows its delivery only. Without one, its domain or the delivery's facts are gone: then the account decides.
const PASSED = `SELECT passed.delivery_id, passed.attempt, passed.account_id, passed.started_at,
    COALESCE(deliveries.domain_id, past_deliveries.domain_id) AS domain_id
  FROM (SELECT delivery_id, attempt, account_id, started_at FROM transcripts
    WHERE started_at < ? AND started_at >= ? AND (started_at, delivery_id, attempt) > (?, ?, ?)
    ORDER BY started_at, delivery_id, attempt LIMIT ${PASS_PORTION}) AS passed
  LEFT JOIN deliveries ON deliveries.id = passed.delivery_id
  LEFT JOIN past_deliveries ON past_deliveries.id = passed.delivery_id
  ORDER BY passed.started_at, passed.delivery_id, passed.attempt`

/** Removes old dialogues of attempts, those beyond `bytesMax`, old TLS results and MTA-STS policies. */
export const transcriptRetention = (
  store: Store,
  clock: Clock,
  bounds: KeptBounds,
  bytesMax: number | null,
): Job =>
  createJob({
    name: 'transcript-retention',
    everyMs: HOUR_MS,
    scope: 'database',
    async work(signal) {
      await removeOld(store, clock.now(), bounds.preset, signal)
      await removeShortened({ store, clock }, bounds, signal)
      await removeBeyond(store, TRANSCRIPTS, bytesMax, signal)
    },
  })

/** `now` in Unix milliseconds; `days` that dialogues are kept. */
export async function removeOld(store: Store, now: number, days: number, signal?: AbortSignal) {
  const day = new Date(now - TLS_RESULTS_DAYS * DAY_MS).toISOString().slice(0, 10)
  await store.commit([
    { sql: OLD_RESULTS, values: [day] },
    { sql: OLD_POLICIES, values: [Math.round(now)] },
  ])
  const old = { where: 'started_at < ? ORDER BY started_at', values: [Math.round(now - days * DAY_MS)] }
  await removeRows(store, { from: 'transcripts', key: 'delivery_id, attempt', ...old }, signal)
}

interface Passed {
  delivery_id: string
  attempt: number
  account_id: string
  started_at: number
  domain_id: string | null
}

/** Removes dialogues that their domain or account keeps for a shorter time: one pass in the order of time, if there are any. */
export async function removeShortened({ store, clock }: RowParts, bounds: KeptBounds, signal?: AbortSignal) {
  const kept = await readKeptDays(store, 'dialogues', bounds)
  if (kept.least === undefined) return
  const now = clock.now()
  const before = Math.round(now - kept.least * DAY_MS)
  const isOver = ({ account_id, domain_id, started_at }: Passed) =>
    Number(started_at) < now - (kept.of(account_id, domain_id) ?? bounds.preset) * DAY_MS
  let last = { started_at: 0, delivery_id: '', attempt: 0 }
  while (!signal?.aborted) {
    const values = [before, last.started_at, last.started_at, last.delivery_id, last.attempt]
    const rows = (await store.read({ sql: PASSED, values })) as unknown as Passed[]
    const over = rows.filter(isOver)
    for (let at = 0; at < over.length; at += CHUNK) await store.commit([removal(over.slice(at, at + CHUNK))])
    const end = rows.at(-1)
    if (!end || rows.length < PASS_PORTION) return
    last = { ...end, started_at: Number(end.started_at), attempt: Number(end.attempt) }
    await pause(clock, PASS_PAUSE_MS, signal)
  }
}

const removal = (rows: readonly Passed[]): Statement => ({
  sql: `DELETE FROM transcripts WHERE (delivery_id, attempt) IN (VALUES ${rows.map(() => '(?, CAST(? AS BIGINT))').join(', ')})`,
  values: rows.flatMap(({ delivery_id, attempt }) => [delivery_id, Number(attempt)]),
})
