/**
 * On Citus the schema of a pod goes to one of the cluster's machines, as a whole. What it takes there and PostgreSQL alone does
 * not is in this file; whether it is needed is asked of the database.
 *
 * A schema is distributed when its tables are made: Citus refuses some commands of migrations on distributed tables.
 */
import type pg from 'pg'
import { schemaOf } from './pod.ts'

type Client = Pick<pg.ClientBase, 'query'>

export async function hasCitus(client: Client): Promise<boolean> {
  const { rows } = await client.query("SELECT 1 FROM pg_extension WHERE extname = 'citus'")
  return rows.length > 0
}

/**
 * Sent on each new connection of a pod: triggers on distributed tables write to tables of the same machine only, and so are
 * safe. Without Citus the setting means nothing.
 */
export const ALLOW_TRIGGERS = `set_config('citus.enable_unsafe_triggers', 'on', false)`

/** Functions that run on the machines, whose sessions have another search_path. They name no schema. */
const TRIGGER_FUNCTIONS = `SELECT DISTINCT p.oid::regprocedure::text AS name FROM pg_trigger t
    JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid
  WHERE NOT t.tgisinternal AND c.relnamespace = current_schema()::regnamespace`

/** Tables whose changes cannot be followed while their schema moves to another machine: without a key, or without a log. */
const UNFOLLOWED = `SELECT c.relname AS name, c.relpersistence = 'u' AS unlogged,
    NOT EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary) AS keyless
  FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace
    AND c.relreplident = 'd'`

/** Gives the pod's schema to a machine of the cluster, unless it has one. Does nothing without Citus. */
export async function distribute(client: Client, pod: string): Promise<void> {
  if (!(await hasCitus(client))) return
  const schema = schemaOf(pod)
  const { rows } = await client.query(
    'SELECT 1 FROM pg_dist_schema WHERE schemaid = to_regnamespace($1)::oid',
    [schema],
  )
  if (rows.length > 0) return
  await client.query('BEGIN')
  try {
    for (const { name } of (await client.query(TRIGGER_FUNCTIONS)).rows)
      await client.query(`ALTER FUNCTION ${name} SET search_path = ${schema}`)
    for (const { name, unlogged, keyless } of (await client.query(UNFOLLOWED)).rows) {
      if (unlogged) await client.query(`ALTER TABLE ${name} SET LOGGED`)
      if (keyless) await client.query(`ALTER TABLE ${name} REPLICA IDENTITY FULL`)
    }
    await client.query('SELECT citus_schema_distribute($1::regnamespace)', [schema])
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {})
    throw error
  }
}
