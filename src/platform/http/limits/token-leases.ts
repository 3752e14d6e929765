/** Exchanges leases of tokens in PostgreSQL, many buckets in one round trip, and without a sync: the table has no log. */
import type { Clock } from '../../../base/time/clock.ts'
import { createJob, type Job } from '../../jobs/job.ts'
import type { Store } from '../../store/store.ts'
import type { ExchangeLeases, Leased } from './shared-rate-limit.ts'

const COLUMNS = ['size', 'per_ms', 'held', 'unspent', 'needed', 'cost', 'wanted'] as const
const NUMBERS = COLUMNS.map((name) => `${name} float8`).join(', ')

/** In the order of their names, so that processes cannot deadlock. */
const sqlOf = (now: string) => `SELECT ask.id, leased.granted, leased.free
  FROM (SELECT * FROM json_to_recordset(?::json) AS given(id int, bucket text, ${NUMBERS}) ORDER BY bucket COLLATE "C") AS ask,
    LATERAL lease_tokens(ask.bucket, ${now}, ${COLUMNS.map((name) => `ask.${name}`).join(', ')}) AS leased`

export function createTokenLeases(store: Store, clock: Clock): ExchangeLeases {
  const sql = sqlOf(store.leaseTimes.sql)
  return async (requests) => {
    const values = [JSON.stringify(requests), store.leaseTimes.value(clock.now(), 0)]
    return (await store.read({ sql, values })) as unknown as Leased[]
  }
}

const EVERY_MS = 3_600_000
const ROWS_PER_STEP = 5_000
const OLD_BUCKETS = `DELETE FROM rate_buckets WHERE bucket IN
  (SELECT bucket FROM rate_buckets WHERE filled_at < time_from_now(?) ORDER BY filled_at LIMIT ${ROWS_PER_STEP})`

/** Removes buckets that have been full for long. */
export const bucketRetention = (store: Store): Job =>
  createJob({
    name: 'rate-buckets',
    everyMs: EVERY_MS,
    scope: 'database',
    async work() {
      const [removed] = await store.commit([{ sql: OLD_BUCKETS, values: [-EVERY_MS] }])
      return (removed?.affected ?? 0) === ROWS_PER_STEP ? 'more' : undefined
    },
  })
