/**
 * PostgreSQL's side of a copy, over one connection. It holds a lock that a starting service asks for, so nobody begins to
 * use the database meanwhile (platform/store/postgres/postgres.ts).
 */
import pg from 'pg'
import { migrate } from '../../platform/store/migrate.ts'
import { createPod } from '../../platform/store/pods/directory.ts'
import { distribute } from '../../platform/store/pods/distribute.ts'
import { advisoryKey, schemaOf } from '../../platform/store/pods/pod.ts'
import { COPY_LOCK, MIGRATION_LOCK } from '../../platform/store/postgres/advisory-locks.ts'
import { DISK_FULL, isConnectionFault, migrated } from '../../platform/store/postgres/postgres.ts'
import { StoreFull, StoreUnavailable } from '../../platform/store/store.ts'
import type { Catalog, Column, Table, TablePlan } from './catalog.ts'
import type { Side, Source, Target, Writer } from './side.ts'
import { type ColumnType, MigrationError, type Row, type Value } from './values.ts'

const TYPES: Readonly<Record<string, ColumnType>> = {
  bigint: 'integer',
  integer: 'integer',
  smallint: 'integer',
  'double precision': 'real',
  text: 'text',
  bytea: 'blob',
}

const { builtins } = pg.types
const INTEGERS: readonly number[] = [builtins.INT8, builtins.INT4, builtins.INT2]

const types = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    INTEGERS.includes(oid) ? BigInt : pg.types.getTypeParser(oid, format as 'text'),
} as pg.CustomTypesConfig

const CONNECT_LIMIT_MS = 30_000

interface Connection extends Side {
  client: pg.Client
}

/** Reads as of the moment of its opening. `pod`: whose schema it is. @throws MigrationError if the database is being copied, StoreUnavailable */
export async function openPostgresSource(url: string, pod: string | null = null): Promise<Source> {
  const { client, ...side } = await connect(url, pod)
  if ((await side.catalog()) === null) {
    await client.end()
    throw new MigrationError(`There is nothing to copy: ${side.name} holds no tables.`)
  }
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
  return {
    ...side,
    async usedBy() {
      // In a new transaction: what is asked is whether anybody is there now.
      await client.query('COMMIT')
      const found = await side.usedBy()
      await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
      return found
    },
  }
}

/** `pod`: whose schema it is, which is made if it is missing. @throws as `openPostgresSource` */
export async function openPostgresTarget(url: string, pod: string | null = null): Promise<Target> {
  const { client, ...side } = await connect(url, pod)
  return {
    ...side,
    async prepare(only) {
      if (pod !== null) await createPod(client, pod)
      await client.query(`SELECT pg_advisory_lock(${advisoryKey(MIGRATION_LOCK)})`)
      await migrate(migrated(client), only)
      if (pod !== null) await distribute(client, pod)
      await client.query(`SELECT pg_advisory_unlock(${advisoryKey(MIGRATION_LOCK)})`)
    },
    async write(run) {
      await client.query('BEGIN')
      try {
        await run(writing(client))
        await client.query('COMMIT')
      } catch (error) {
        await client.query('ROLLBACK').catch(() => {})
        throw translated(error, side.name)
      }
    },
    async finish(plan, onStep) {
      onStep('numbers of new rows')
      for (const { name, identity } of plan) if (identity !== null) await setSequence(client, name, identity)
      onStep('statistics of the planner')
      await client.query('ANALYZE')
    },
  }
}

/** The next number is above all that are there. */
async function setSequence(client: pg.Client, table: string, column: string): Promise<void> {
  await client.query(
    `SELECT setval(pg_get_serial_sequence($1, $2), greatest(max(${column}), 1), max(${column}) IS NOT NULL) FROM ${table}`,
    [table, column],
  )
}

async function connect(url: string, pod: string | null): Promise<Connection> {
  const name = pod === null ? nameOf(url) : `pod "${pod}" of ${nameOf(url)}`
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: CONNECT_LIMIT_MS, types })
  // A lost connection rejects the query that runs on it.
  client.on('error', () => {})
  try {
    await client.connect()
    // Not startup options, which connection poolers refuse.
    await client.query('SET statement_timeout = 0')
    await client.query('SET idle_in_transaction_session_timeout = 0')
    if (pod !== null) await client.query(`SET search_path = ${schemaOf(pod)}`)
    const { rows } = await client.query(`SELECT pg_try_advisory_lock(${advisoryKey(COPY_LOCK)}) AS free`)
    if (rows[0].free !== true)
      throw new MigrationError(`Another process is copying ${name}. Wait until it ends.`)
  } catch (error) {
    await client.end().catch(() => {})
    if (error instanceof MigrationError) throw error
    throw new StoreUnavailable(`Cannot reach ${name}: ${(error as Error).message}`, { cause: error })
  }
  const query = async (sql: string, values: Row = []): Promise<Value[][]> => {
    let count = 0
    const text = sql.replaceAll('?', () => `$${++count}`)
    const { rows } = await client
      .query<Value[]>({ text, values: [...values], rowMode: 'array' })
      .catch((error: unknown) => {
        throw translated(error, name)
      })
    return rows
  }
  return {
    client,
    kind: 'postgres',
    name,
    query,
    catalog: () => readCatalog(query),
    usedBy: () => nodeAlive(name, query),
    close: () => client.end(),
  }
}

/** Errors with a sentence for the operator. */
function translated(error: unknown, name: string): unknown {
  const { code = '', message } = error as { code?: string; message: string }
  if (code === DISK_FULL) return new StoreFull(`${name} has no space left`, { cause: error })
  if (isConnectionFault(error)) return new StoreUnavailable(`${name} went away: ${message}`, { cause: error })
  return error
}

/** `host/database`; without user and password. */
function nameOf(url: string): string {
  const { host, pathname } = new URL(url)
  return `postgres://${host}${pathname}`
}

/** A node that is silent for longer is dead: others would have taken over what it held (decision 93). */
const ALIVE_MS = 10_000

async function nodeAlive(name: string, query: Side['query']): Promise<string | null> {
  const [table] = await query("SELECT to_regclass('nodes')::text")
  if (table?.[0] === null) return null
  const found = await query(
    `SELECT host, (time_from_now(0) - last_seen_at) / 1000 FROM nodes
      WHERE last_seen_at > time_from_now(?) ORDER BY last_seen_at DESC`,
    [BigInt(-ALIVE_MS)],
  )
  const [first] = found
  if (!first) return null
  return `${name} is in use: a node on "${first[0]}" gave a sign of life ${first[1]} s ago. Stop all nodes; after a crash wait ${ALIVE_MS / 1000} seconds.`
}

/** A table in partitions has the primary key of one of them, whose columns may have other numbers. */
const COLUMNS = `SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), (a.attidentity <> '')::int,
    coalesce(array_position(i.indkey::int2[], k.attnum), -1)
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    LEFT JOIN pg_index i ON i.indisprimary
      AND i.indrelid = coalesce((SELECT min(inhrelid) FROM pg_inherits WHERE inhparent = c.oid), c.oid)
    LEFT JOIN pg_attribute k ON k.attrelid = i.indrelid AND k.attname = a.attname
  WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = current_schema()::regnamespace
    AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
  ORDER BY c.relname, a.attnum`

const REFERENCES = `SELECT c.relname, r.relname FROM pg_constraint f
    JOIN pg_class c ON c.oid = f.conrelid JOIN pg_class r ON r.oid = f.confrelid
  WHERE f.contype = 'f' AND c.relnamespace = current_schema()::regnamespace`

async function readCatalog(query: Side['query']): Promise<Catalog | null> {
  const rows = await query(COLUMNS)
  const references = await query(REFERENCES)
  const tables = new Map<string, Table>()
  for (const [name, ofTable] of Map.groupBy(rows, ([table]) => String(table))) {
    const keys = ofTable.filter(([, , , , at]) => Number(at) >= 0)
    keys.sort((a, b) => Number(a[4]) - Number(b[4]))
    const identity = ofTable.find(([, , , numbered]) => numbered === 1n)
    tables.set(name, {
      name,
      columns: ofTable.map(
        ([, column, type]): Column => ({ name: String(column), type: TYPES[String(type)] ?? 'other' }),
      ),
      key: keys.map(([, column]) => String(column)),
      refersTo: references.filter(([from]) => from === name).map(([, to]) => String(to)),
      identity: identity ? String(identity[1]) : null,
    })
  }
  return tables.size > 0 ? tables : null
}

const ARRAYS: Record<ColumnType, string> = {
  integer: 'bigint[]',
  real: 'double precision[]',
  text: 'text[]',
  blob: 'bytea[]',
  other: 'text[]',
}

function writing(client: pg.Client): Writer {
  return {
    async run(sql, values = []) {
      let count = 0
      await client.query(
        sql.replaceAll('?', () => `$${++count}`),
        [...values],
      )
    },
    // An array for each column: one statement for any number of rows.
    async insert({ name, columns }: TablePlan, rows: readonly Row[]) {
      const names = columns.map((column) => column.name).join(', ')
      const arrays = columns.map(({ type }, at) => `$${at + 1}::${ARRAYS[type]}`).join(', ')
      await client
        .query(
          `INSERT INTO ${name} (${names}) OVERRIDING SYSTEM VALUE SELECT * FROM unnest(${arrays})`,
          columns.map((_, at) => rows.map((row) => row[at])),
        )
        .catch((error: Error & { code?: string }) => {
          // Data exceptions, and violated constraints.
          if (!/^2[23]/.test(error.code ?? '')) throw error
          throw new MigrationError(`Cannot copy rows of table ${name}: PostgreSQL says "${error.message}".`, {
            cause: error,
          })
        })
    },
  }
}
