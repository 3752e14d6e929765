/** Why mail was not delivered: classified failures by provider and class, each with its most frequent reply. */
import type { SqlValue, Store } from '../../platform/store/store.ts'
import { type RuleSet, UNCLASSIFIED } from './rules.ts'

export interface ReasonQuery {
  accountId: string
  /** Unix milliseconds; the end is exclusive. */
  startMs: number
  endMs: number
  /** Null: all domains of the account. */
  domainName: string | null
}

interface FailureReason {
  /** As events name it. */
  provider: string
  category: string
  ruleId: string
  temporary: number
  permanent: number
  reply: { text: string; count: number }
  sample: FailureSample
}

/** The newest failure with that reply. */
interface FailureSample {
  domain: string
  /** Unix milliseconds. */
  failedAt: number
  sendingIp: string | null
  /** Its event; null once that is no longer kept. */
  event: { id: string; messageId: string | null; recipient: string | null } | null
}

/** Failures that one request counts, the newest ones: 50 to 100 ms of a reader. */
const FAILURES_MAX = 50_000
/** Each needs a read for its event. */
const REASONS_MAX = 100
/** Failures of a domain in the same millisecond that are looked at for an event. */
const EVENTS_MAX = 100

/** The result of `failureReasons`, with the explanation of the newest failure's rule. */
export async function explainedReasons(store: Store, { byId }: RuleSet, query: ReasonQuery) {
  const { reasons, partial } = await failureReasons(store, query)
  const explained = reasons.map((reason) => ({
    ...reason,
    explanation: (byId.get(reason.ruleId) ?? UNCLASSIFIED).explanation,
  }))
  return { reasons: explained, partial }
}

/** Most frequent first. `partial`: there were more failures than are counted. */
async function failureReasons(store: Store, query: ReasonQuery) {
  const { accountId, startMs, endMs, domainName } = query
  const values: SqlValue[] = [accountId, startMs, endMs, ...(domainName === null ? [] : [domainName])]
  const rows = await store.read({
    sql: `WITH recent AS (
        SELECT id, provider, category, severity, sample FROM classified_failures
        WHERE account_id = ? AND failed_at >= ? AND failed_at < ? ${domainName === null ? '' : 'AND domain_name = ?'}
        ORDER BY failed_at DESC LIMIT ${FAILURES_MAX}),
      replies AS (
        SELECT provider, category, sample, count(*) AS n, max(id) AS newest,
          sum(CASE WHEN severity = 'PERMANENT' THEN 1 ELSE 0 END) AS final
        FROM recent GROUP BY provider, category, sample),
      ranked AS (
        SELECT provider, category, n, newest,
          sum(n) OVER (PARTITION BY provider, category) AS total,
          sum(final) OVER (PARTITION BY provider, category) AS permanent,
          row_number() OVER (PARTITION BY provider, category ORDER BY n DESC, newest DESC) AS place
        FROM replies)
      SELECT ranked.provider, ranked.category, n, total, permanent, domain_name, recipient_domain, sending_ip, rule_id,
        classified_failures.sample AS reply, failed_at, (SELECT count(*) FROM recent) AS counted
      FROM ranked JOIN classified_failures ON classified_failures.id = newest
      WHERE place = 1 ORDER BY total DESC, ranked.provider, ranked.category LIMIT ${REASONS_MAX}`,
    values,
  })
  const reasons: FailureReason[] = []
  for (const row of rows) reasons.push(await reasonOf(store, accountId, row))
  return { reasons, partial: Number(rows[0]?.['counted'] ?? 0) >= FAILURES_MAX }
}

async function reasonOf(
  store: Store,
  accountId: string,
  row: Record<string, unknown>,
): Promise<FailureReason> {
  const [total, permanent] = [Number(row['total']), Number(row['permanent'])]
  return {
    provider: String(row['provider']),
    category: String(row['category']),
    ruleId: String(row['rule_id']),
    temporary: total - permanent,
    permanent,
    reply: { text: String(row['reply']), count: Number(row['n']) },
    sample: {
      domain: String(row['domain_name']),
      failedAt: Number(row['failed_at']),
      sendingIp: (row['sending_ip'] ?? null) as string | null,
      event: await eventOf(store, accountId, row),
    },
  }
}

/** The event that was written with a failure: of its domain, time, rule and recipient's domain. */
async function eventOf(store: Store, accountId: string, row: Record<string, unknown>) {
  const fromUs = Number(row['failed_at']) * 1000
  // On PostgreSQL only the partition of that time is planned.
  const inPartition =
    store.kind === 'sqlite' ? '' : 'WHERE events.timestamp_us >= ? AND events.timestamp_us < ?'
  const range = [fromUs, fromUs + 1000]
  const events = await store.read({
    // `|| ''` leaves only the index by domain, name and time.
    sql: `SELECT events.id, events.message_id, events.recipient, events.payload_json FROM (
        SELECT seq FROM event_keys WHERE domain_name = ? AND event = 'failed' AND timestamp_us >= ? AND timestamp_us < ?
          AND account_id || '' = ? LIMIT ${EVENTS_MAX}) AS found
      JOIN events ON events.seq = found.seq ${inPartition}`,
    values: [String(row['domain_name']), ...range, accountId, ...(inPartition === '' ? [] : range)],
  })
  const match = events.find((event) => {
    const payload = JSON.parse(String(event['payload_json'])) as Record<string, unknown>
    return (
      payload['i-classification-rule-id'] === row['rule_id'] &&
      payload['recipient-domain'] === row['recipient_domain']
    )
  })
  if (!match) return null
  return {
    id: String(match['id']),
    messageId: (match['message_id'] ?? null) as string | null,
    recipient: (match['recipient'] ?? null) as string | null,
  }
}
