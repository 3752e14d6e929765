/**
 * The embedded store: SQLite in WAL mode with synchronous=FULL, one writer thread with group commit, and one reader
 * thread, which also checkpoints. An exclusive lock on `lock.db` reserves the data folder for one process; the operating
 * system releases it when the process ends, however it ends.
 */
import { closeSync, fdatasync, fstatSync, mkdirSync, openSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Driver,
  Kysely,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import { ChangeHub } from '../../../base/changes.ts'
import { PassingMap } from '../../../base/flow/cache.ts'
import { type SqliteSizes, sizesFor } from '../../../base/process/memory-sizes.ts'
import { DATABASE_FILE, refuseHalfRestored } from '../blobs/data-folder.ts'
import { checkLog } from '../log-check.ts'
import { type BeforeMigrations, migrate, unmigrated } from '../migrate.ts'
import type { Schema } from '../schema.ts'
import {
  type DatabaseFiles,
  ownLeaseTimes,
  type SqlValue,
  StaleWrite,
  type Statement,
  type StatementResult,
  type Store,
  StoreFault,
  StoreFull,
  StoreUnavailable,
  statementOf,
  type WaitingUnit,
} from '../store.ts'
import type {
  ConnectionOptions,
  PackedResult,
  Role,
  UnitReply,
  WorkerError,
  WorkerReply,
  WorkerRequest,
} from './connection.ts'
import { damaged, describeFinding, SYNC_CHECK_MAX_BYTES, startFileCheck } from './damage.ts'
import { keepUpgradeCopy, type UpgradeCopy } from './upgrade-copy.ts'
import {
  AUTOCHECKPOINT_PAGES,
  type Checkpoints,
  createCheckpoints,
  createPacker,
  type PackedUnits,
  WriterQueue,
} from './writer.ts'

export const LOCK_NAME = 'lock.db'
const SQLITE_FULL = 13
const SQLITE_BUSY = 5
const SQLITE_IOERR = 10
const SQLITE_READONLY = 8
const SQLITE_CORRUPT = 11
const SQLITE_CANTOPEN = 14
const SQLITE_NOTADB = 26

export interface SqliteOptions {
  /** Called once, when the database stops accepting new work until a restart. */
  onFault?(fault: StoreFault): void
  /** Runs before the schema is touched; a rejection aborts the start. */
  beforeMigrations?: BeforeMigrations
  /** Gets what became of the copy that is kept before an upgrade; without it none is kept. */
  onUpgradeCopy?: ((copy: UpgradeCopy) => void) | undefined
  /** Default: those of a machine with enough memory. */
  sizes?: SqliteSizes
  /** Longest check of a large database beside its use, in milliseconds. Default: 20 seconds. */
  checkMaxMs?: number | undefined
  /** Starts what serves a connection (connection.ts). Default: a thread. */
  connect?: ((options: ConnectionOptions, sizes: SqliteSizes) => ConnectionThread) | undefined
}

/** A thread that serves a connection, or what stands for one. */
export type ConnectionThread = Pick<Worker, 'postMessage' | 'on' | 'once' | 'terminate'>

/** Faults of the database that were noticed so far. */
type Faults = ReturnType<typeof watchFaults>

/** Opens or creates the database in `folder`. @throws StoreUnavailable if another process has it, StoreFault if it is damaged */
export async function openSqlite(
  folder: string,
  {
    onFault,
    beforeMigrations,
    onUpgradeCopy,
    sizes = sizesFor('normal').sqlite,
    checkMaxMs,
    connect = startThread,
  }: SqliteOptions = {},
): Promise<Store> {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  refuseHalfRestored(folder)
  const file = join(folder, DATABASE_FILE)
  createPrivateFile(file)
  const lock = lockFolder(folder)
  const faults = watchFaults(onFault)
  try {
    // Before the first connection, which recovers what it can read of the log and overwrites the rest.
    checkLog(file)
  } catch (error) {
    lock.close()
    throw error
  }
  const connection = (role: Role) =>
    createConnection(connect({ file, role, cacheKb: sizes.cacheKb[role] }, sizes), role, faults)
  const writer = connection('writer')
  try {
    const stopCheck = await checkAtStart(file, writer, faults, checkMaxMs)
    await beforeMigrations?.(unmigrated('sqlite', (sql) => queryRows(writer, sql)))
    const run = async (sql: string) => void (await writer.send({ kind: 'script', sql }))
    await migrate({
      kind: 'sqlite',
      run,
      async upgrading(version) {
        const copy = onUpgradeCopy && (await keepUpgradeCopy(file, version, run))
        if (copy) onUpgradeCopy?.(copy)
      },
      applied: async () =>
        (await queryRows(writer, 'SELECT version FROM schema_versions')).map(
          (row) => row['version'] as number,
        ),
    })
    // Deleted content is overwritten within its page, which is written anyway (decision 223). A migration switches it off.
    await run('PRAGMA secure_delete = FAST')
    const [mode] = await queryRows(writer, 'PRAGMA auto_vacuum')
    const shrinks = mode?.['auto_vacuum'] === INCREMENTAL
    const reader = connection('reader')
    const unlock = () => lock.close()
    return createSqliteStore({ file, writer, reader, faults, shrinks, stopCheck, unlock })
  } catch (error) {
    await writer.end()
    lock.close()
    throw error
  }
}

/** Checks the database; a large one in a separate process, which the returned function stops. @throws StoreFault */
async function checkAtStart(
  file: string,
  writer: Connection,
  faults: Faults,
  maxMs?: number,
): Promise<() => void> {
  const size = await stat(file).then(
    (found) => found.size,
    () => 0,
  )
  if (size === 0) return () => {}
  if (size > SYNC_CHECK_MAX_BYTES) {
    // Checks header and list of tables, and creates the log of a database that was just restored.
    await queryRows(writer, 'SELECT count(*) FROM sqlite_schema')
    const check = startFileCheck(file, 'quick_check', maxMs)
    void check.result.then(({ findings }) => {
      if (findings[0] !== undefined) faults.note(damaged(file, describeFinding(findings[0])))
    })
    return check.stop
  }
  const [finding] = await queryRows(writer, 'PRAGMA quick_check(1)')
  if (finding?.['quick_check'] !== 'ok') throw damaged(file, String(finding?.['quick_check']))
  return () => {}
}

/** As `PRAGMA auto_vacuum` returns it. */
const INCREMENTAL = 2

async function queryRows(connection: Connection, sql: string): Promise<Record<string, unknown>[]> {
  const [reply] = await connection.send({ kind: 'single', statement: { sql, values: [] } })
  return resultsOf(reply).flatMap(({ rows }) => rows)
}

function watchFaults(onFault: ((fault: StoreFault) => void) | undefined) {
  let first: StoreFault | null = null
  return {
    get first(): StoreFault | null {
      return first
    },
    note(fault: StoreFault): void {
      if (first) return
      first = fault
      onFault?.(fault)
    },
  }
}

/** SQLite creates a database with the umask's mode; the files that it adds get the mode of the database. */
const createPrivateFile = (file: string) => closeSync(openSync(file, 'a', 0o600))

/** Locks the data folder for this process. @throws StoreUnavailable if another one has it */
export function lockFolder(folder: string): { close(): void } {
  const file = join(folder, LOCK_NAME)
  createPrivateFile(file)
  const lock = new DatabaseSync(file, { timeout: 0 })
  try {
    lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
  } catch (error) {
    lock.close()
    const { message, errcode } = error as Error & { errcode?: number }
    const busy = ((errcode ?? 0) & 0xff) === SQLITE_BUSY
    const reason = busy ? 'another process is using it' : `its lock.db cannot be locked (${message})`
    throw new StoreUnavailable(`Cannot open data folder "${folder}": ${reason}`, { cause: error })
  }
  return lock
}

/** Results of a group of units; if no unit returned rows, only how many rows each statement affected. */
type Answer = UnitReply[] | readonly number[]

type Connection = ReturnType<typeof createConnection>

const startThread = (workerData: ConnectionOptions, { youngMb }: SqliteSizes): ConnectionThread =>
  new Worker(join(import.meta.dirname, 'sqlite-worker.ts'), {
    workerData,
    resourceLimits: { maxYoungGenerationSizeMb: youngMb },
  })

/** A connection that `worker` serves; it answers requests in order. */
function createConnection(worker: ConnectionThread, role: Role, faults: Faults) {
  const waiting = new PassingMap<number, { resolve(reply: Answer): void; reject(error: Error): void }>()
  let nextId = 1
  let broken: Error | null = null
  /** Rejects all unanswered requests, and all later ones. */
  const fail = (error: Error) => {
    broken ??= error
    for (const { reject } of waiting.values()) reject(error)
    waiting.clear()
  }
  const noteFault = (error: Error) => {
    if (error instanceof StoreFault) faults.note(error)
  }
  worker.on('message', (reply: WorkerReply) => {
    const request = waiting.get(reply.id)
    waiting.delete(reply.id)
    if ('affected' in reply) request?.resolve(reply.affected)
    else if ('units' in reply) {
      for (const unit of reply.units) if ('error' in unit) noteFault(toError(unit.error))
      request?.resolve(reply.units)
    } else {
      const error = toError(reply.error)
      noteFault(error)
      request?.reject(error)
      if (role === 'writer' && isDiskFailure(error)) fail(error)
    }
  })
  worker.on('error', (error) => fail(new StoreUnavailable('The database thread failed', { cause: error })))
  worker.on('exit', () => fail(new StoreUnavailable('The database is closed')))
  const post = (request: WorkerRequest, transfer: ArrayBuffer[]) =>
    new Promise<Answer>((resolve, reject) => {
      if (broken) return reject(broken)
      const id = nextId++
      waiting.set(id, { resolve, reject })
      worker.postMessage({ id, request }, transfer)
    })
  const send = (request: WorkerRequest) => post(request, []) as Promise<UnitReply[]>
  return {
    send,
    fail,
    /** As in `DatabaseFiles`. */
    trim: async (): Promise<void> => void (await post({ kind: 'trim' }, [])),
    shrink: async (pages: number): Promise<void> => void (await post({ kind: 'shrink', pages }, [])),
    /** Resolves to the pages in the log. */
    checkpoint: async (): Promise<number> =>
      ((await post({ kind: 'checkpoint' }, [])) as readonly number[])[0] ?? 0,
    /** The results of each unit, or its error. */
    run: (units: PackedUnits): Promise<Answer> =>
      post({ kind: 'units', units }, units.bytes.byteLength > 0 ? [units.bytes] : []),
    async end(): Promise<void> {
      if (broken) {
        await worker.terminate()
        return
      }
      const ended = new Promise((resolve) => worker.once('exit', resolve))
      await send({ kind: 'close' })
      await ended
    },
  }
}

/** SQLite's extended codes have the primary one in their low byte. */
const primaryCode = ({ code }: WorkerError) => (code === null ? null : code & 0xff)

const isDiskFailure = (error: unknown): error is StoreFault =>
  error instanceof StoreFault && error.kind === 'disk'

/**
 * After a failed write or sync the state of the disk is unknown, and the next sync may report success for pages that the
 * system has dropped. So nothing more is written until a restart reads what is on the disk.
 */
const diskFailed = (message: string, cause?: unknown) =>
  new StoreFault('disk', `The disk failed; nothing is accepted until a restart: ${message}`, { cause })

const removed = (file: string) =>
  new StoreFault('disk', `The database "${file}" was removed; nothing is accepted or sent until a restart`)

function toError(error: WorkerError): Error {
  const { message, file = '' } = error
  const primary = primaryCode(error)
  if (primary === SQLITE_IOERR) return diskFailed(message)
  if (primary === SQLITE_CORRUPT || primary === SQLITE_NOTADB) return damaged(file, message)
  if (primary === SQLITE_FULL) return new StoreFull(message)
  if (primary === SQLITE_READONLY || primary === SQLITE_BUSY) return new StoreUnavailable(message)
  if (primary === SQLITE_CANTOPEN)
    return new StoreUnavailable(`Cannot open the database "${file}": ${message}`)
  return new Error(message)
}

function resultsOf(reply: UnitReply | undefined): StatementResult[] {
  if (!reply) return []
  if ('error' in reply) throw toError(reply.error)
  return reply.results.map(unpackResult)
}

function unpackResult({ columns, values, affected }: PackedResult): StatementResult {
  const rows: Record<string, unknown>[] = []
  for (let at = 0; at < values.length; at += columns.length) {
    const row: Record<string, unknown> = {}
    for (let column = 0; column < columns.length; column++)
      row[columns[column] as string] = values[at + column]
    rows.push(row)
  }
  return { rows, affected }
}

const syncData = promisify(fdatasync)

interface StoreParts {
  file: string
  writer: Connection
  reader: Connection
  faults: Faults
  shrinks: boolean
  /** Stops the check of the file that may still be running. */
  stopCheck(): void
  unlock(): void
}

function createSqliteStore(parts: StoreParts): Store {
  const { file, writer, reader, faults } = parts
  // Closed only after the connections: closing any descriptor of a file drops all locks of the process on it.
  const dataFile = openSync(file, 'r')
  const pack = createPacker()
  const syncFile = () =>
    syncData(dataFile).catch((error: Error) => {
      const fault = diskFailed(error.message, error)
      faults.note(fault)
      writer.fail(fault)
      throw fault
    })
  // SQLite counts pages as checkpointed once the system has them, and restarts the log over them: an error is fatal.
  const checkpoint = () =>
    reader.checkpoint().catch((error) => {
      if (isDiskFailure(error)) writer.fail(error)
      throw error
    })
  const betweenGroups = async (run: () => Promise<unknown>) => {
    const release = await queue.acquire()
    await run().finally(release)
  }
  const checkpoints = createCheckpoints({
    checkpoint,
    syncFile,
    restartLog: () => betweenGroups(() => writer.checkpoint()),
  })
  const queue = new WriterQueue(async (group) => {
    // The descriptors still work, but whatever is written is gone when they are closed.
    if (fstatSync(dataFile).nlink === 0) {
      const fault = removed(file)
      faults.note(fault)
      throw fault
    }
    const units = pack(group.map(({ unit }) => unit))
    const { byteLength: bytes } = units.bytes
    const answer = await writer.run(units)
    checkpoints.wrote(rowsOf(answer), bytes)
    return () => settle(group, answer)
  })
  const db = new Kysely<Schema>({
    dialect: {
      createAdapter: () => new ConcurrentAdapter(),
      createIntrospector: (kysely) => new SqliteIntrospector(kysely),
      createQueryCompiler: () => new SqliteQueryCompiler(),
      createDriver: () => createDriver(writer, reader, queue, checkpoints, faults),
    },
  })
  return {
    kind: 'sqlite',
    pod: null,
    leaseTimes: ownLeaseTimes,
    changes: new ChangeHub(),
    db,
    // Outcomes are still written if possible: a lost one is a message sent twice.
    commit: (unit, order) =>
      faults.first && order !== 'first' ? Promise.reject(faults.first) : queue.commit(unit, order),
    read: async (statement) => {
      const [result] = resultsOf((await reader.send({ kind: 'single', statement }))[0])
      return result?.rows ?? []
    },
    transaction: (run) => db.transaction().execute(run),
    statement: statementOf,
    fault: () => faults.first,
    files: databaseFiles(),
    async ping() {
      if (faults.first) throw faults.first
      await queue.commit([{ sql: 'SELECT 1', values: [] }])
      return true
    },
    async close() {
      parts.stopCheck()
      await queue.acquire().then((release) => release())
      await db.destroy()
      await checkpoints.idle()
      await reader.end()
      await writer.end()
      closeSync(dataFile)
      parts.unlock()
    },
  }

  function databaseFiles(): DatabaseFiles {
    return {
      shrinks: parts.shrinks,
      setShort(short) {
        checkpoints.setShort(short)
        const pages = short ? AUTOCHECKPOINT_PAGES.short : AUTOCHECKPOINT_PAGES.ample
        // A writer that has failed rejects this, and does not need it any more.
        writer.send({ kind: 'script', sql: `PRAGMA wal_autocheckpoint = ${pages}` }).catch(() => {})
      },
      async measure() {
        const [row] = await queryRows(reader, MEASURE)
        const log = await stat(`${file}-wal`).catch(() => null)
        const pragma = (name: string) => Number(row?.[name] ?? 0)
        return {
          pageBytes: pragma('page_size'),
          pages: pragma('page_count'),
          freePages: pragma('freelist_count'),
          logBytes: log?.size ?? 0,
        }
      },
      async trimLog() {
        await checkpoints.idle()
        await checkpoint()
        await syncFile()
        await betweenGroups(() => writer.trim())
      },
      async shrink(pages) {
        await betweenGroups(() => writer.shrink(pages))
        checkpoints.wrote(0, SHRINK_BYTES_PER_PAGE * pages)
      },
    }
  }
}

const MEASURE =
  'SELECT page_size, page_count, freelist_count FROM pragma_page_size, pragma_page_count, pragma_freelist_count'
/** Written to the log per page: the page at its new position, and a share of the pages that point to it; measured. */
const SHRINK_BYTES_PER_PAGE = 5 * 1024

function rowsOf(answer: Answer): number {
  if (isAffected(answer)) return answer.reduce((sum, affected) => sum + affected, 0)
  const results = answer.flatMap((reply) => ('results' in reply ? reply.results : []))
  return results.reduce((sum, { affected }) => sum + affected, 0)
}

const isAffected = (answer: Answer): answer is readonly number[] => typeof answer[0] !== 'object'

const NO_ROWS = Object.freeze([]) as unknown as Record<string, unknown>[]

function settle(group: readonly WaitingUnit[], answer: Answer): void {
  if (!isAffected(answer)) {
    for (const [index, job] of group.entries()) settleUnit(job, answer[index] as UnitReply)
    return
  }
  let at = 0
  for (const job of group)
    job.resolve(job.unit.map(() => ({ rows: NO_ROWS, affected: answer[at++] as number })))
}

function settleUnit(job: WaitingUnit, reply: UnitReply): void {
  if ('results' in reply) job.resolve(resultsOf(reply))
  else if (reply.error.stale) {
    job.reject(new StaleWrite(job.unit[reply.error.stale.statement] as Statement, reply.error.stale.affected))
  } else job.reject(toError(reply.error))
}

/**
 * Kysely's own adapter assumes a single connection and serialises all queries on it: reads would wait for single writes
 * with their syncs, and for whole transactions. Here the two threads and the writer's queue keep the order.
 */
class ConcurrentAdapter extends SqliteAdapter {
  override get supportsMultipleConnections() {
    return true
  }
}

/** Driver for Kysely: reads go to the reader, single writes join a group, a transaction has the writer to itself. */
function createDriver(
  writer: Connection,
  reader: Connection,
  queue: WriterQueue,
  checkpoints: Checkpoints,
  faults: Faults,
): Driver {
  const releases = new WeakMap<DatabaseConnection, () => void>()
  /** Rows that each open transaction has written so far. */
  const touched = new WeakMap<DatabaseConnection, number>()
  const run = async (request: WorkerRequest) => resultsOf((await writer.send(request))[0])

  function connection(): DatabaseConnection {
    const self: DatabaseConnection = {
      async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
        const statement = { sql: query.sql, values: query.parameters as SqlValue[] }
        let results: StatementResult[]
        if (releases.has(self)) {
          results = await run({ kind: 'single', statement })
          if (query.query.kind !== 'SelectQueryNode')
            touched.set(self, (touched.get(self) ?? 0) + (results[0]?.affected ?? 0))
        } else if (query.query.kind === 'SelectQueryNode') {
          results = resultsOf((await reader.send({ kind: 'single', statement }))[0])
        } else {
          if (faults.first) throw faults.first
          results = await queue.commit([statement])
        }
        const [{ rows, affected }] = results as [StatementResult]
        return { rows: rows as R[], numAffectedRows: BigInt(affected) }
      },
      // biome-ignore lint/correctness/useYield: it always throws, so there is nothing to yield
      async *streamQuery() {
        throw new Error('Streaming queries are not supported: page by key instead')
      },
    }
    return self
  }
  const finish = async (self: DatabaseConnection, command: 'COMMIT' | 'ROLLBACK') => {
    try {
      await writer.send({ kind: 'script', sql: command })
      if (command === 'COMMIT') checkpoints.wrote(touched.get(self) ?? 0, 0)
    } finally {
      releases.get(self)?.()
      releases.delete(self)
    }
  }
  return {
    init: async () => {},
    acquireConnection: async () => connection(),
    async beginTransaction(self) {
      if (faults.first) throw faults.first
      releases.set(self, await queue.acquire())
      await writer.send({ kind: 'script', sql: 'BEGIN IMMEDIATE' }).catch((error) => {
        releases.get(self)?.()
        releases.delete(self)
        throw error
      })
    },
    commitTransaction: (self) => finish(self, 'COMMIT'),
    // After a failed COMMIT the worker has rolled back, and the writer may already belong to another transaction.
    rollbackTransaction: async (self) => void (releases.has(self) && (await finish(self, 'ROLLBACK'))),
    releaseConnection: async () => {},
    destroy: async () => {},
  }
}
