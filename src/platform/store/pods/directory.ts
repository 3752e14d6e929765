/**
 * The directory of pods: what all pods of one database share, in a schema beside theirs (decision 255).
 *
 * 1. `pods`: each pod with the addresses of its live nodes, and the hosts of its public URLs (platform/nodes/presence.ts).
 * 2. `entries`: which pod has a key, a domain, a login and so on (entries.ts).
 * 3. `nodes`: the live nodes of all pods, from which the addresses in `pods` are made.
 *
 * The tables have neither triggers nor foreign keys, so that Citus can keep a copy of them on each of its machines
 * (reference tables).
 */
import type pg from 'pg'
import { PODS_LOCK } from '../postgres/advisory-locks.ts'
import { StoreUnavailable } from '../store.ts'
import { hasCitus } from './distribute.ts'
import type { EntryKind } from './entries.ts'
import { SCHEMA_PREFIX, schemaOf } from './pod.ts'

const TABLES = [
  `pods (name text COLLATE "C" PRIMARY KEY, http text NOT NULL, smtp text NOT NULL, state text NOT NULL,
    seen_at bigint NOT NULL, hosts text NOT NULL DEFAULT '[]')`,
  'entries (kind text COLLATE "C", value text COLLATE "C", pod text COLLATE "C" NOT NULL, PRIMARY KEY (kind, value))',
  `nodes (id text COLLATE "C" PRIMARY KEY, pod text COLLATE "C" NOT NULL, http text, smtp text,
    seen_at bigint NOT NULL)`,
]

type Client = Pick<pg.ClientBase, 'query'>

/**
 * Makes the directory and the pod's schema if they are missing. They stay as they are if they are there, which needs no
 * right to make schemas.
 * @throws StoreUnavailable for a pod that was moved away
 */
export async function createPod(client: Client, pod: string): Promise<void> {
  const schema = schemaOf(pod)
  if (await isThere(client, schema)) {
    await refuseMoved(client, pod)
    return addHosts(client)
  }
  await client.query('BEGIN')
  try {
    // Of the whole database, whichever pod asks.
    await client.query(`SELECT pg_advisory_xact_lock(${PODS_LOCK})`)
    const isCitus = await hasCitus(client)
    // The directory is on all machines, and a pod's tables are distributed when they are made (distribute.ts).
    if (isCitus) await client.query('SET LOCAL citus.enable_schema_based_sharding = off')
    if (!(await isThere(client, 'sendwright_pods'))) await createDirectory(client, isCitus)
    await client.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`)
    await client.query(
      `INSERT INTO sendwright_pods.pods (name, http, smtp, state, seen_at) VALUES ($1, '[]', '[]', 'open', 0)
        ON CONFLICT (name) DO NOTHING`,
      [pod],
    )
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {})
    throw error
  }
}

/** A copy that was cut off has left it `moving`. Called by a process that starts, so nobody copies now. */
export const reopenPod = (client: Client, pod: string): Promise<unknown> =>
  client.query("UPDATE sendwright_pods.pods SET state = 'open' WHERE name = $1 AND state = 'moving'", [pod])

/** What it had is elsewhere: whatever it still has in its queue would be sent a second time. */
async function refuseMoved(client: Client, pod: string): Promise<void> {
  const { rows } = await client.query(
    "SELECT 1 FROM sendwright_pods.pods WHERE name = $1 AND state = 'moved'",
    [pod],
  )
  if (rows.length > 0)
    throw new StoreUnavailable(`Cannot open pod "${pod}": all that it had was moved to another pod.`)
}

/** To a directory that was made before pods said their hosts. */
async function addHosts(client: Client): Promise<void> {
  const { rows } = await client.query(
    `SELECT 1 FROM pg_attribute WHERE attrelid = 'sendwright_pods.pods'::regclass AND attname = 'hosts'`,
  )
  if (rows.length === 0)
    await client.query(
      `ALTER TABLE sendwright_pods.pods ADD COLUMN IF NOT EXISTS hosts text NOT NULL DEFAULT '[]'`,
    )
}

async function createDirectory(client: Client, isCitus: boolean): Promise<void> {
  await client.query('CREATE SCHEMA sendwright_pods')
  for (const table of TABLES) {
    await client.query(`CREATE TABLE sendwright_pods.${table}`)
    const [name] = table.split(' ')
    if (isCitus) await client.query(`SELECT create_reference_table('sendwright_pods.${name}')`)
  }
}

async function isThere(client: Client, schema: string): Promise<boolean> {
  const { rows } = await client.query('SELECT to_regnamespace($1) IS NOT NULL AS there', [schema])
  return rows[0].there === true
}

/** A pod as the directory has it. */
export interface PodReport {
  name: string
  /** `open`; `moving`: it is being copied, and does not send; `moved`: another pod has all of it. */
  state: string
  /** Live nodes. */
  nodes: number
  /** "host:port" of each. */
  http: string[]
  smtp: string[]
  /** Number of entries by kind. */
  entries: Partial<Record<EntryKind, number>>
}

/** By name; none where the database has no directory. */
export async function readPods(client: Client): Promise<PodReport[]> {
  if (!(await isThere(client, 'sendwright_pods'))) return []
  const { rows: pods } = await client.query(
    `SELECT name, state, http, smtp, (SELECT count(*)::int FROM sendwright_pods.nodes WHERE pod = pods.name) AS nodes
      FROM sendwright_pods.pods ORDER BY name`,
  )
  const { rows: counts } = await client.query(
    'SELECT pod, kind, count(*)::int AS count FROM sendwright_pods.entries GROUP BY pod, kind',
  )
  return pods.map(({ name, state, nodes, http, smtp }) => ({
    ...{ name, state, nodes, http: JSON.parse(http), smtp: JSON.parse(smtp) },
    entries: Object.fromEntries(
      counts.filter(({ pod }) => pod === name).map(({ kind, count }) => [kind, count]),
    ),
  }))
}

/** What a pod's tables give entries to, as `entries.ts` writes them: kind and SELECT of the values. */
export const SOURCES: readonly (readonly [kind: string, values: string])[] = [
  ['key', 'SELECT secret_hmac FROM api_keys UNION SELECT secret_hmac FROM public_keys'],
  // A name is free when everything of its former domain is removed.
  ['domain', 'SELECT name FROM domains UNION SELECT name FROM domain_deletions'],
  [
    'host',
    `SELECT web_prefix || '.' || name FROM domains UNION SELECT mailfrom_host FROM domains WHERE mailfrom_host <> name`,
  ],
  ['login', 'SELECT login FROM credentials'],
  ['account', 'SELECT id FROM accounts'],
  ['user', 'SELECT email FROM users'],
  ['pod', `SELECT substr(current_schema()::text, ${SCHEMA_PREFIX.length + 1})`],
]

/**
 * Ids in the links of an account, from pods that had it before: of deliveries, lists, members who are to confirm, and shared
 * tests. `ACCOUNT` is its id as a literal.
 */
export const LINKED = `SELECT id FROM deliveries WHERE account_id = ACCOUNT
  UNION SELECT id FROM past_deliveries WHERE account_id = ACCOUNT
  UNION SELECT id FROM lists WHERE account_id = ACCOUNT
  UNION SELECT pending_id FROM list_members
    WHERE pending_id IS NOT NULL AND list_id IN (SELECT id FROM lists WHERE account_id = ACCOUNT)
  UNION SELECT regexp_replace(share_id, '^.*[.]', '') FROM placement_tests WHERE account_id = ACCOUNT`

/** An entry that a pod's tables ask for and another pod has. */
export interface Clash {
  kind: string
  value: string
  pod: string
}

/** Clashes that are named; there may be more. */
const CLASHES_MAX = 20

/**
 * Enters what the pod's tables hold and the directory lacks: after a copy into the pod, or a restored backup of it. Returns
 * what another pod has already.
 */
export async function completeEntries(client: Client, pod: string): Promise<Clash[]> {
  const clashes: Clash[] = []
  for (const [kind, values] of SOURCES) {
    await client.query(
      `INSERT INTO sendwright_pods.entries (kind, value, pod)
        SELECT '${kind}', value, '${pod}' FROM (${values}) AS found (value) ON CONFLICT (kind, value) DO NOTHING`,
    )
    const { rows } = await client.query(
      `SELECT kind, value, pod FROM sendwright_pods.entries
        WHERE kind = '${kind}' AND pod <> '${pod}' AND value IN (${values}) ORDER BY value LIMIT ${CLASHES_MAX}`,
    )
    clashes.push(...rows)
  }
  return clashes
}
