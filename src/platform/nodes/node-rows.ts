/** The table of processes, and the leases of dead ones. */
import type { SqlValue, Statement, Store } from '../store/store.ts'
import type { NodeFacts, NodeReport, Role } from './node.ts'

const COLUMNS = 'id, host, roles_json, addresses_json, version, state, started_at, last_seen_at'

export const REGISTER = `INSERT INTO nodes (${COLUMNS})
  VALUES ($1, $2, $3, $4, $5, $6, time_from_now(0), time_from_now(0))
  ON CONFLICT (id) DO UPDATE SET last_seen_at = excluded.last_seen_at`

export const registerValues = (facts: NodeFacts, state: NodeReport['state']) => [
  ...[facts.id, facts.host, JSON.stringify(facts.roles), JSON.stringify(facts.addresses)],
  ...[facts.version, state],
]

const READ = `SELECT ${COLUMNS}, time_from_now(0) - last_seen_at AS silent_ms FROM nodes ORDER BY started_at, id`

/** Notes a sign of life and reads all rows, as they were before; `is_known` of each: this process still has its row. */
export const BEAT = `WITH own AS (
    UPDATE nodes SET last_seen_at = time_from_now(0) WHERE id = $1 RETURNING id)
  SELECT ${COLUMNS}, time_from_now(0) - last_seen_at AS silent_ms, (SELECT count(*) FROM own) AS is_known
  FROM nodes ORDER BY started_at, id`

export function reportOf(row: Record<string, unknown>): NodeReport {
  return {
    id: String(row['id']),
    host: String(row['host']),
    roles: JSON.parse(String(row['roles_json'])) as Role[],
    addresses: JSON.parse(String(row['addresses_json'])) as string[],
    version: String(row['version']),
    state: row['state'] as NodeReport['state'],
    startedAt: Number(row['started_at']),
    lastSeenAt: Number(row['last_seen_at']),
    silentMs: Math.max(0, Number(row['silent_ms'])),
  }
}

export async function readNodes(store: Store): Promise<NodeReport[]> {
  return (await store.read({ sql: READ, values: [] })).map(reportOf)
}

/** The last value of each is the id of the dead process. */
const RETURNED = [
  `UPDATE deliveries SET state = 'queued', lease_owner = NULL, lease_token = NULL, lease_until = NULL,
      updated_at = time_from_now(0)
    WHERE state = 'sending' AND lease_owner = ?`,
  // A run that was cut off is due again at once.
  `UPDATE jobs SET lease_owner = '', lease_until = 0, next_run_at = LEAST(next_run_at, time_from_now(0))
    WHERE lease_owner = ?`,
  'DELETE FROM outgoing_leases WHERE owner = ?',
  `UPDATE list_uploads SET lease_until = 0 WHERE state = 'running' AND lease_owner = ?`,
  `UPDATE list_expansions SET lease_until = 0 WHERE state = 'running' AND lease_owner = ?`,
  'UPDATE suppression_imports SET lease_until = 0 WHERE lease_owner = ?',
]

/**
 * Removes a dead process and returns what it had under a lease, in one unit. It fails if the process has given a sign of
 * life since `lastSeenAt`, or another one was faster.
 */
export function removalOf({ id, lastSeenAt }: NodeReport): Statement[] {
  const values: SqlValue[] = [id]
  return [
    {
      sql: 'DELETE FROM nodes WHERE id = ? AND last_seen_at = ?',
      values: [id, lastSeenAt],
      expectRows: 1,
    },
    ...RETURNED.map((sql) => ({ sql, values })),
  ]
}
