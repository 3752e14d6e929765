/** The shared store: PostgreSQL 15 or newer. Commits are synchronous; waiting units share one (postgres-groups.ts). */
import { createHash } from 'node:crypto'
import { type DatabaseConnection, type Driver, Kysely, PostgresDialect, PostgresDriver } from 'kysely'
import pg from 'pg'
import { ChangeHub } from '../../../base/changes.ts'
import { remember } from '../../../base/flow/cache.ts'
import { createEventBounds } from '../event-bounds.ts'
import { type BeforeMigrations, type MigratedDatabase, migrate, unmigrated } from '../migrate.ts'
import { type Clash, completeEntries, createPod, reopenPod } from '../pods/directory.ts'
import { distribute } from '../pods/distribute.ts'
import { advisoryKey } from '../pods/pod.ts'
import type { Schema } from '../schema.ts'
import {
  databaseLeaseTimes,
  type LeaseTimes,
  type SqlValue,
  StaleWrite,
  type Statement,
  type Store,
  StoreBusy,
  StoreFull,
  StoreUnavailable,
  statementOf,
} from '../store.ts'
import { COPY_LOCK, MIGRATION_LOCK } from './advisory-locks.ts'
import { createGroupCommit } from './postgres-groups.ts'
import {
  isReadOnly,
  NoWritableServer,
  requireSessions,
  Servers,
  type WritableClient,
  WritablePool,
} from './postgres-servers.ts'

/** Connections per process: enough that concurrent commits share the server's syncs. */
const CONNECTIONS_MAX = 16

/** An exhausted pool must not block callers for ever. */
const CONNECT_LIMIT_MS = 30_000

export const DISK_FULL = '53100'
const TOO_MANY_CONNECTIONS = '53300'

/** bigint columns hold milliseconds and counts, far below 2^53. */
const types = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format as 'text'),
} as pg.CustomTypesConfig

export interface PostgresOptions {
  /** In place of the database's, for tests with a fake clock. */
  leaseTimes?: LeaseTimes
  beforeMigrations?: BeforeMigrations
  /** Whose schema it is; null: the database is of one installation. */
  pod?: string | null
  /** The pod's tables hold what the directory says is another pod's. */
  onClashes?: ((clashes: readonly Clash[]) => void) | undefined
}

/**
 * Connects to `url` and brings the schema up to date; a pod's is made if it is missing.
 * @throws StoreUnavailable
 */
export async function openPostgres(url: string, options: PostgresOptions = {}): Promise<Store> {
  const { pod = null } = options
  const servers = new Servers(url, pod)
  await requireSessions(servers)
  const pool = new WritablePool(servers, {
    max: CONNECTIONS_MAX,
    connectionTimeoutMillis: CONNECT_LIMIT_MS,
    types,
    pipeline: true,
  })
  // The pool replaces a connection that the server drops. Without a listener the event would end the process.
  pool.on('error', () => {})
  pool.on('connect', withoutNul)
  try {
    await migratePostgres(pool, options)
  } catch (error) {
    await pool.end()
    throw isConnectionFault(error) ? servers.unreachable(error) : error
  }
  const cannotReach: CannotReach = (error) => {
    throw servers.unreachable(error)
  }
  const db = new Kysely<Schema>({ dialect: new Dialect({ pool, cannotReach }) })
  return {
    kind: 'postgres',
    pod,
    leaseTimes: options.leaseTimes ?? databaseLeaseTimes,
    changes: new ChangeHub(),
    db,
    commit: createGroupCommit({
      connect: () => pool.connect().catch(cannotReach),
      inOneWrite: (client, send) => (client as pg.Client as WritableClient).inOneWrite(send),
      prepare: (statement) => ({ ...named(numbered(statement.sql)), values: statement.values as SqlValue[] }),
      toStoreError,
      isConnectionFault,
    }),
    read: (statement) => read(pool, statement),
    transaction: (run) => db.transaction().execute(run),
    eventBounds: createEventBounds((sql, values = []) => read(pool, { sql, values })),
    statement: statementOf,
    fault: () => null,
    endUnanswered: (server) => pool.endUnanswered(server),
    ping: async () => (await pool.query('SELECT 1')).rowCount === 1,
    async close() {
      await db.destroy()
      // Kysely leaves the pool open if nothing was asked through it.
      if (!pool.ending) await pool.end()
    },
  }
}

/** @throws StoreUnavailable always */
type CannotReach = (error: unknown) => never

interface DialectParts {
  pool: pg.Pool
  cannotReach: CannotReach
}

/** Kysely's dialect with our errors: a lost server is StoreUnavailable. */
class Dialect extends PostgresDialect {
  readonly #parts: DialectParts

  constructor(parts: DialectParts) {
    super(parts)
    this.#parts = parts
  }

  override createDriver(): Driver {
    return new TranslatingDriver(this.#parts)
  }
}

class TranslatingDriver extends PostgresDriver {
  readonly #wrapped = new WeakSet<DatabaseConnection>()
  readonly #cannotReach: CannotReach

  constructor(parts: DialectParts) {
    super(parts)
    this.#cannotReach = parts.cannotReach
  }

  override async acquireConnection(): Promise<DatabaseConnection> {
    const connection = await super.acquireConnection().catch(this.#cannotReach)
    if (!this.#wrapped.has(connection)) {
      this.#wrapped.add(connection)
      const execute = connection.executeQuery.bind(connection)
      connection.executeQuery = (...args) => execute(...args).catch(rethrow) as never
    }
    return connection
  }
}

function rethrow(error: unknown): never {
  throw toStoreError(error)
}

/**
 * PostgreSQL's text type cannot hold NUL: any statement with one fails, even a search for a name from a URL. It is
 * replaced by U+FFFD, as UTF-8 encoding does with lone surrogates anyway.
 */
function withoutNul(client: pg.PoolClient): void {
  const query = client.query.bind(client) as (...args: unknown[]) => unknown
  const clean = (values: unknown[]) =>
    values.map((value) => (hasNul(value) ? value.replaceAll('\0', '\ufffd') : value))
  const cleaned = (arg: unknown) => {
    const values = Array.isArray(arg) ? arg : (arg as { values?: unknown } | null | undefined)?.values
    if (!Array.isArray(values) || !values.some(hasNul)) return arg
    return values === arg ? clean(values) : { ...(arg as object), values: clean(values) }
  }
  const cleanQuery = (...args: unknown[]) => query(...args.map(cleaned))
  client.query = cleanQuery as typeof client.query
}

const hasNul = (value: unknown): value is string => typeof value === 'string' && value.includes('\0')

async function migratePostgres(pool: pg.Pool, options: PostgresOptions): Promise<void> {
  const { pod = null, beforeMigrations, onClashes } = options
  const client = await pool.connect()
  try {
    if (pod !== null) await createPod(client, pod)
    await client.query(`SELECT pg_advisory_lock(${advisoryKey(MIGRATION_LOCK)})`)
    await refuseDuringCopy(client)
    if (pod !== null) await reopenPod(client, pod)
    await beforeMigrations?.(unmigrated('postgres', async (sql) => (await client.query(sql)).rows))
    await migrate(migrated(client))
    if (pod !== null) {
      await distribute(client, pod)
      const clashes = await completeEntries(client, pod)
      if (clashes.length > 0) onClashes?.(clashes)
    }
    await client.query(`SELECT pg_advisory_unlock(${advisoryKey(MIGRATION_LOCK)})`)
  } finally {
    client.release()
  }
}

/** For `migrate`. */
export const migrated = (client: Pick<pg.ClientBase, 'query'>): MigratedDatabase => ({
  kind: 'postgres',
  run: async (sql) => void (await client.query(sql)),
  applied: async () =>
    (await client.query('SELECT version FROM schema_versions')).rows.map((row) => Number(row.version)),
})

/** @throws StoreUnavailable */
async function refuseDuringCopy(client: pg.PoolClient): Promise<void> {
  const { rows } = await client.query(`SELECT pg_try_advisory_lock_shared(${advisoryKey(COPY_LOCK)}) AS free`)
  if (rows[0].free !== true)
    throw new StoreUnavailable(
      'Cannot open the database: `sendwright migrate` is copying it. Start again when that has ended.',
    )
  await client.query(`SELECT pg_advisory_unlock_shared(${advisoryKey(COPY_LOCK)})`)
}

async function read(pool: pg.Pool, { sql, values }: Statement): Promise<Record<string, unknown>[]> {
  const { rows } = await pool.query(numbered(sql), values as SqlValue[]).catch(rethrow)
  return rows
}

const numberedTexts = new Map<string, string>()

/** Cached texts; hot statements are few, the rest is cheap to convert again. */
const TEXTS_MAX = 2000

/** Turns `?` into `$1`, `$2` ...; our statements have no question mark inside a literal. */
function numbered(sql: string): string {
  const known = numberedTexts.get(sql)
  if (known !== undefined) return known
  let count = 0
  const text = sql.replaceAll('?', () => `$${++count}`)
  return remember(numberedTexts, TEXTS_MAX, sql, text)
}

const names = new Map<string, string>()

/** Prepared texts per connection: those of the hot paths. Others are parsed each time. */
const NAMED_MAX = 300

/**
 * The server keeps a statement that has a name prepared. The name is a digest of the text: processes that share a session
 * through a pooler never take another statement for theirs.
 */
function named(text: string): { text: string; name?: string } {
  const known = names.get(text)
  if (known !== undefined) return { text, name: known }
  if (names.size >= NAMED_MAX) return { text }
  const name = createHash('sha256').update(text).digest('base64url')
  names.set(text, name)
  return { text, name }
}

/** The last two are Citus' words for a machine that was lost, at the latest during COMMIT: whether it is on disk there is unknown. */
const LOST =
  /terminated|Connection ended|not queryable|timeout exceeded when trying to connect|timeout expired|read timeout|could not commit transaction for shard|failure on connection marked as essential/i

export function isConnectionFault(error: unknown): boolean {
  const code = (error as { code?: string }).code ?? ''
  // Class 08 and 57P: connection lost, server shutting down or starting; 25P03 and 25P04: ended by the server for its time.
  // Node's codes are words; the pool's errors have no code.
  return (
    /^(08|57P|25P0[34])/.test(code) ||
    code === TOO_MANY_CONNECTIONS ||
    isReadOnly(error) ||
    error instanceof NoWritableServer ||
    /^(E[A-Z]+|EAI_[A-Z]+)$/.test(code) ||
    LOST.test(String((error as Error).message))
  )
}

/**
 * The server could not do it now, on a connection that stays usable: 57014, 55P03: over a time limit for statements or
 * locks, or cancelled by its operator; class 40: lost against another transaction; class 53: out of something; 58030: its
 * disk failed.
 */
const FOR_NOW = /^(57014|55P03|40|53|58030)/

function toStoreError(error: unknown): unknown {
  if (error instanceof StaleWrite) return error
  const { code = '' } = error as { code?: string }
  if (code === DISK_FULL) return new StoreFull('PostgreSQL has no space left', { cause: error })
  if (isConnectionFault(error)) return new StoreUnavailable('PostgreSQL went away', { cause: error })
  return FOR_NOW.test(code) ? new StoreBusy('PostgreSQL refused it for now', { cause: error }) : error
}
