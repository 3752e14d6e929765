/** Webhook endpoints that have failed for a while, over all accounts. */
import { firstIdAt } from '../../base/ids.ts'
import type { Store } from '../../platform/store/store.ts'
import { WEBHOOK } from './webhooks.ts'

interface FailingEndpoint {
  accountId: string
  /** As registered, with the secret part of its user info masked. */
  url: string
  /** Unix milliseconds of the oldest event that it has not taken. */
  failingSince: number
}

/** An operator looks after a few; the rest follows when these work. */
const ENDPOINTS_MAX = 100
/** Attempts of an account that are searched for a success: an endpoint that is used has some among them. */
const ATTEMPTS_READ_MAX = 20_000

/**
 * Skips from lane to lane in the index of failing rows, so that a lane with 100,000 of them costs as much as one with a
 * single row.
 */
const FAILING_LANES = `WITH RECURSIVE lanes (lane) AS (
    SELECT min(lane) FROM outgoing_posts WHERE attempts > 0
    UNION ALL
    SELECT (SELECT min(p.lane) FROM outgoing_posts p WHERE p.attempts > 0 AND p.lane > lanes.lane)
    FROM lanes WHERE lanes.lane IS NOT NULL),
  heads AS (SELECT (SELECT p.id FROM outgoing_posts p WHERE p.attempts > 0 AND p.lane = lanes.lane
    ORDER BY p.created_at LIMIT 1) AS id FROM lanes WHERE lanes.lane IS NOT NULL)
  SELECT p.account_id, p.url, p.created_at FROM heads JOIN outgoing_posts p ON p.id = heads.id
  WHERE p.kind = ? AND p.created_at <= ? ORDER BY p.created_at LIMIT ?`

const SUCCESSES = `SELECT DISTINCT url FROM (SELECT url, status FROM webhook_attempts
  WHERE account_id = ? AND id > ? ORDER BY id DESC LIMIT ${ATTEMPTS_READ_MAX}) newest WHERE status = 'ok'`

/** Endpoints that have taken nothing since `since` (Unix milliseconds), though an older event waits for them. */
export async function failingEndpoints(store: Store, since: number): Promise<FailingEndpoint[]> {
  const rows = await store.read({
    sql: FAILING_LANES,
    values: [WEBHOOK, Math.floor(since), ENDPOINTS_MAX],
  })
  const byAccount = Map.groupBy(rows, (row) => String(row['account_id']))
  const failing: FailingEndpoint[] = []
  for (const [accountId, ofAccount] of byAccount) {
    const working = await store.read({ sql: SUCCESSES, values: [accountId, firstIdAt(since)] })
    const urls = new Set(working.map((row) => String(row['url'])))
    for (const row of ofAccount) {
      const [url, failingSince] = [String(row['url']), Number(row['created_at'])]
      if (!urls.has(url)) failing.push({ accountId, url, failingSince })
    }
  }
  return failing
}
