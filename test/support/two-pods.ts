/** Two pods of one database with rows of two accounts in every table that belongs to one. No service can work with them. */
import type { TestContext } from 'node:test'
import pg from 'pg'
import { MOVE_RULES } from '../../src/carry/account-move/rules.ts'
import { planOf, type TablePlan } from '../../src/carry/migrate/catalog.ts'
import { openPostgresTarget } from '../../src/carry/migrate/postgres-side.ts'
import { openPostgres } from '../../src/platform/store/postgres/postgres.ts'
import { createTestDatabase } from './postgres.ts'

export type Query = (sql: string, values?: unknown[]) => Promise<Record<string, unknown>[]>
export type Who = 'own' | 'other'

export const ACCOUNTS = { own: 'a'.repeat(24), other: 'b'.repeat(24) }
export const FIRST = { a: '1'.repeat(24), b: '2'.repeat(24) }
/** Above those that the database gives. */
const NUMBERS = { own: 101, other: 102 }
const POOLS = ['sending_ips_json', 'sending_pool_id', 'dynamic_pool_id']

/** Pod `a` has the rows, pod `b` none. */
export async function twoPods(t: TestContext) {
  const { url, drop } = await createTestDatabase()
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  t.after(async () => {
    await client.end()
    await drop()
  })
  const query: Query = async (sql, values = []) => (await client.query(sql, values)).rows
  for (const pod of ['a', 'b'] as const) {
    await (await openPostgres(url, { pod })).close()
    await query(
      `INSERT INTO pod_${pod}.accounts (id, name, signing_key_sealed, created_at, updated_at) VALUES ($1, 'first', '', 1, 1)`,
      [FIRST[pod]],
    )
  }
  const side = await openPostgresTarget(url, 'a')
  const catalog = (await side.catalog()) ?? new Map()
  await side.close()
  const plan = planOf(catalog, catalog)
  await fill(query, plan)
  return { url, query, plan }
}

/** A file that a row of the table names; nothing makes it. */
export const blobName = (table: string, who: Who): string => `${table}_${who}`.padEnd(22, '0').slice(0, 22)

/** Ids and names of one account are those that others of its rows refer to. */
function cellOf(
  { name: table, identity }: TablePlan,
  column: TablePlan['columns'][number],
  who: Who,
): unknown {
  const { name, type } = column
  if (name === 'account_id' || (table === 'accounts' && name === 'id') || table === 'account_days')
    return type === 'text' ? ACCOUNTS[who] : 1
  if (table === 'accounts' && name === 'parent_id') return FIRST.a
  if (table === 'accounts' && name === 'status') return 'open'
  if (POOLS.includes(name)) return null
  if (name === identity || (name === 'scope' && type === 'integer')) return NUMBERS[who]
  if (name === 'blobs_json') return JSON.stringify([blobName(table, who)])
  if (type === 'text' && /^(raw_)?blob$/.test(name)) return blobName(table, who)
  if (/_json$/.test(name)) return '["one"]'
  if (type === 'integer') return who === 'own' ? 1 : 2
  if (type === 'real') return 0.5
  if (type === 'blob') return Buffer.from(who)
  if (/(^|_)(id|pk)$/.test(name)) return `id-${who}`
  return /email|login/.test(name) ? `login-${who}` : `${name}-${who}`
}

async function fill(query: Query, plan: readonly TablePlan[]): Promise<void> {
  // Triggers name no schema.
  await query('SET search_path = pod_a')
  for (const table of plan) {
    const rule = MOVE_RULES[table.name]
    if (rule?.does !== 'moves' && rule?.does !== 'drops') continue
    const names = table.columns.map(({ name }) => name)
    for (const who of ['own', 'other'] as const)
      await query(
        `INSERT INTO pod_a.${table.name} (${names.join(', ')}) OVERRIDING SYSTEM VALUE
          VALUES (${names.map((_, at) => `$${at + 1}`).join(', ')})`,
        table.columns.map((column) => cellOf(table, column, who)),
      )
  }
  // Two transactions: the counters have read the first, and not the second.
  await query("UPDATE pod_a.events SET tx = 5, seq = DEFAULT, id = 'unread' WHERE account_id = $1", [
    ACCOUNTS.own,
  ])
  await query(
    `INSERT INTO pod_a.events (tx, id, account_id, domain_name, event, timestamp_us, payload_json)
      VALUES (3, 'read', $1, 'name-own', 'accepted', 1, '{}')`,
    [ACCOUNTS.own],
  )
  await query('UPDATE pod_a.event_followers SET tx = 4')
  await query("INSERT INTO pod_a.counted_visits VALUES ('visit', 1)")
  await query(
    `INSERT INTO sendwright_pods.entries (kind, value, pod) VALUES ('account', $1, 'a'), ('account', $2, 'a')`,
    [ACCOUNTS.own, ACCOUNTS.other],
  )
}
