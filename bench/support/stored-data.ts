/** The database of a stopped service, opened directly to let time pass and to fill tables. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import { Client } from 'pg'
import type { SqlValue, Statement } from '../../src/platform/store/store.ts'
import type { BenchService } from './service.ts'

/** Where a service keeps its rows. */
export type Place = Pick<BenchService, 'dataFolder' | 'databaseUrl'>

/** Rows of one transaction when tables are filled. */
const ROWS_PER_TRANSACTION = 50_000
/** Rows of one INSERT on PostgreSQL, where each statement is a message to the server. */
const ROWS_PER_STATEMENT = 5_000
const SQLITE_CACHE_KB = 1_000_000

const sqliteFile = ({ dataFolder }: Place) => join(dataFolder, 'sendwright.db')

/** Runs one statement. */
export async function execute(place: Place, sql: string): Promise<void> {
  if (place.databaseUrl === null) {
    const database = new DatabaseSync(sqliteFile(place))
    database.exec(sql)
    database.close()
    return
  }
  await withClient(place.databaseUrl, async (client) => void (await client.query(sql)))
}

export async function queryOne(place: Place, sql: string): Promise<Record<string, unknown>> {
  if (place.databaseUrl === null) {
    const database = new DatabaseSync(sqliteFile(place))
    const row = database.prepare(sql).get()
    database.close()
    return row as Record<string, unknown>
  }
  return withClient(place.databaseUrl, async (client) => (await client.query(sql)).rows[0])
}

/** Writes rows of one shape, with the indexes and triggers that the schema has, without waiting for the disk. */
export async function fill(place: Place, rows: Iterable<Statement>): Promise<void> {
  if (place.databaseUrl === null) await fillSqlite(sqliteFile(place), rows)
  else await withClient(place.databaseUrl, (client) => fillPostgres(client, rows))
}

async function fillSqlite(file: string, rows: Iterable<Statement>): Promise<void> {
  const database = new DatabaseSync(file)
  database.exec(`PRAGMA synchronous = OFF; PRAGMA cache_size = -${SQLITE_CACHE_KB}; BEGIN`)
  let count = 0
  let statement: ReturnType<typeof database.prepare> | null = null
  for (const { sql, values } of rows) {
    statement ??= database.prepare(sql)
    statement.run(...values)
    if (++count % ROWS_PER_TRANSACTION !== 0) continue
    database.exec('COMMIT; BEGIN')
    await setImmediate() // lets a pending signal be handled
  }
  database.exec('COMMIT')
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  database.close()
}

async function fillPostgres(client: Client, rows: Iterable<Statement>): Promise<void> {
  await client.query('SET synchronous_commit = off')
  await client.query('BEGIN')
  let waiting: (readonly SqlValue[])[] = []
  let head = ''
  let written = 0
  const write = async () => {
    if (waiting.length === 0) return
    await client.query(multiRow(head, waiting))
    written += waiting.length
    waiting = []
    if (written % ROWS_PER_TRANSACTION === 0) await client.query('COMMIT; BEGIN')
  }
  for (const { sql, values } of rows) {
    head = sql
    waiting.push(values)
    if (waiting.length === ROWS_PER_STATEMENT) await write()
  }
  await write()
  await client.query('COMMIT')
  // What autovacuum would do soon after.
  await client.query('VACUUM ANALYZE events')
}

/** `INSERT INTO t (a, b) VALUES (?, ?)` for many rows, as one array per column. */
function multiRow(sql: string, rows: readonly (readonly SqlValue[])[]) {
  const columns = (rows[0] ?? []).map((_, at) => rows.map((row) => row[at] ?? null))
  const arrays = columns.map((values, at) => {
    const known = values.find((value) => value !== null)
    const type = typeof known === 'number' ? 'bigint' : known instanceof Uint8Array ? 'bytea' : 'text'
    return `$${at + 1}::${type}[]`
  })
  const text = `${sql.slice(0, sql.indexOf('VALUES'))}SELECT * FROM unnest(${arrays.join(', ')})`
  return { name: 'fill', text, values: columns }
}

async function withClient<T>(url: string, run: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return await run(client)
  } finally {
    await client.end()
  }
}
