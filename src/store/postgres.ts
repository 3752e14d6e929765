/** The shared store: PostgreSQL 15 or newer. Commits are synchronous; the server groups concurrent ones itself. */
import { type Compilable, Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { migrate } from './migrate.ts'
import type { Schema } from './schema.ts'
import {
  type SqlValue,
  StaleWrite,
  type Statement,
  type StatementResult,
  type Store,
  StoreFull,
  StoreUnavailable,
} from './store.ts'

/** Connections per process: enough that concurrent commits share the server's syncs. */
const CONNECTIONS_MAX = 16

/** Serialises migrations of processes that start together. */
const MIGRATION_LOCK = 7_309_453

const DISK_FULL = '53100'

/** bigint columns hold milliseconds and counts, far below 2^53. */
const types = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format as 'text'),
} as pg.CustomTypesConfig

/** Connects to `url` and brings the schema up to date. @throws StoreUnavailable */
export async function openPostgres(url: string): Promise<Store> {
  const pool = new pg.Pool({ connectionString: url, max: CONNECTIONS_MAX, types })
  // An idle connection that the server drops is replaced by the pool; only the listener keeps it from being fatal.
  pool.on('error', () => {})
  try {
    await migratePostgres(pool)
  } catch (error) {
    await pool.end()
    throw isConnectionFault(error) ? new StoreUnavailable('Cannot reach PostgreSQL', { cause: error }) : error
  }
  const db = new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) })
  return {
    kind: 'postgres',
    db,
    commit: (unit) => commit(pool, unit),
    read: (statement) => read(pool, statement),
    transaction: (run) => db.transaction().execute(run),
    statement: toPostgresStatement,
    ping: async () => (await pool.query('SELECT 1')).rowCount === 1,
    close: () => db.destroy(),
  }
}

async function migratePostgres(pool: pg.Pool): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('SELECT pg_advisory_lock($1)', [MIGRATION_LOCK])
    await migrate({
      kind: 'postgres',
      run: async (sql) => void (await client.query(sql)),
      applied: async () =>
        (await client.query('SELECT version FROM schema_versions')).rows.map((row) => Number(row.version)),
    })
    await client.query('SELECT pg_advisory_unlock($1)', [MIGRATION_LOCK])
  } finally {
    client.release()
  }
}

async function commit(pool: pg.Pool, unit: readonly Statement[]): Promise<StatementResult[]> {
  let client: pg.PoolClient
  try {
    client = await pool.connect()
  } catch (error) {
    throw new StoreUnavailable('Cannot reach PostgreSQL', { cause: error })
  }
  let broken: Error | undefined
  try {
    await client.query('BEGIN')
    const results: StatementResult[] = []
    for (const statement of unit) results.push(await run(client, statement))
    await client.query('COMMIT')
    return results
  } catch (error) {
    if (isConnectionFault(error)) broken = error as Error
    else await client.query('ROLLBACK').catch((fault) => (broken = fault))
    throw toStoreError(error)
  } finally {
    client.release(broken)
  }
}

async function read(pool: pg.Pool, { sql, values }: Statement): Promise<Record<string, unknown>[]> {
  try {
    return (await pool.query(numbered(sql), values as SqlValue[])).rows
  } catch (error) {
    throw toStoreError(error)
  }
}

async function run(client: pg.PoolClient, statement: Statement): Promise<StatementResult> {
  const { rows, rowCount } = await client.query(numbered(statement.sql), statement.values as SqlValue[])
  const affected = rowCount ?? 0
  if (statement.expectRows !== undefined && affected !== statement.expectRows)
    throw new StaleWrite(statement, affected)
  return { rows, affected }
}

const numberedTexts = new Map<string, string>()

/** Texts remembered at the most; hot statements are few, the rest is cheap to number again. */
const TEXTS_MAX = 2000

/** `?` to `$1`, `$2` ...; our statements hold no question mark inside a literal. */
function numbered(sql: string): string {
  const known = numberedTexts.get(sql)
  if (known !== undefined) return known
  let count = 0
  const text = sql.replaceAll('?', () => `$${++count}`)
  if (numberedTexts.size >= TEXTS_MAX) numberedTexts.clear()
  numberedTexts.set(sql, text)
  return text
}

function toPostgresStatement(query: Compilable, expectRows?: number): Statement {
  const { sql, parameters } = query.compile()
  const statement: Statement = { sql, values: parameters as readonly SqlValue[] }
  return expectRows === undefined ? statement : { ...statement, expectRows }
}

function isConnectionFault(error: unknown): boolean {
  const code = (error as { code?: string }).code ?? ''
  // Class 08 and 57P: connection lost, server shutting down. Node's own codes are words.
  return (
    /^(08|57P)/.test(code) ||
    /^E[A-Z]+$/.test(code) ||
    /terminated|Connection ended/i.test(String((error as Error).message))
  )
}

function toStoreError(error: unknown): unknown {
  if (error instanceof StaleWrite) return error
  if ((error as { code?: string }).code === DISK_FULL)
    return new StoreFull('PostgreSQL has no space left', { cause: error })
  return isConnectionFault(error) ? new StoreUnavailable('PostgreSQL went away', { cause: error }) : error
}
