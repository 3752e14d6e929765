/**
 * The embedded store: SQLite in WAL mode with synchronous=FULL, one writer thread with group commit, one
 * reader thread, which checkpoints too. The data folder belongs to one process at a time: an exclusive lock on `lock.db` says so,
 * which the operating system lifts when the process ends, however it ends.
 */

import { closeSync, fdatasync, mkdirSync, openSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import {
  type Compilable,
  type CompiledQuery,
  type DatabaseConnection,
  type Driver,
  Kysely,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import { PassingMap } from '../base/passing.ts'
import { type Checkpoints, createCheckpoints, LOG_PAGES_NET } from './checkpoints.ts'
import { damaged, describeFinding } from './damage.ts'
import { DATABASE_FILE, refuseHalfRestored } from './data-folder.ts'
import { checkFileBeside } from './file-check.ts'
import { ownLeaseTimes } from './lease-times.ts'
import { checkLog } from './log-check.ts'
import { type BeforeMigrations, migrate, unmigrated } from './migrate.ts'
import { createPacker, type PackedUnits } from './packed-units.ts'
import type { Schema } from './schema.ts'
import type {
  PackedResult,
  Role,
  UnitReply,
  WorkerError,
  WorkerReply,
  WorkerRequest,
} from './sqlite-worker.ts'
import {
  type DatabaseFiles,
  type SqlValue,
  StaleWrite,
  type Statement,
  type StatementResult,
  type Store,
  StoreFault,
  StoreFull,
  StoreUnavailable,
} from './store.ts'
import { type UnitJob, WriterQueue } from './writer-queue.ts'

const LOCK_NAME = 'lock.db'
const SQLITE_FULL = 13
const SQLITE_BUSY = 5
const SQLITE_IOERR = 10
const SQLITE_READONLY = 8
const SQLITE_CORRUPT = 11
const SQLITE_CANTOPEN = 14
const SQLITE_NOTADB = 26

export interface SqliteOptions {
  /** Told once, when the database stops taking new work until a restart. */
  onFault?(fault: StoreFault): void
  /** Runs before the schema is touched; a rejection ends the start. */
  beforeMigrations?: BeforeMigrations
}

/** What is wrong with the database, as far as anybody has noticed. */
interface Faults {
  readonly first: StoreFault | null
  note(fault: StoreFault): void
}

/** Opens (or makes) the database in `folder`. @throws StoreUnavailable when another process has it, StoreFault when it is damaged */
export async function openSqlite(
  folder: string,
  { onFault, beforeMigrations }: SqliteOptions = {},
): Promise<Store> {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  refuseHalfRestored(folder)
  const file = join(folder, DATABASE_FILE)
  makePrivately(file)
  const lock = lockFolder(folder)
  const faults = watchFaults(onFault)
  try {
    // Before the first connection, which takes from the log what it can read and writes over the rest.
    checkLog(file)
  } catch (error) {
    lock.close()
    throw error
  }
  const writer = createConnection(file, 'writer', faults)
  try {
    const stopCheck = await checkAtStart(file, writer, faults)
    await beforeMigrations?.(unmigrated('sqlite', (sql) => ask(writer, sql)))
    await migrate({
      kind: 'sqlite',
      run: async (sql) => void (await writer.ask({ kind: 'script', sql })),
      applied: async () =>
        (await ask(writer, 'SELECT version FROM schema_versions')).map((row) => row['version'] as number),
    })
    const [mode] = await ask(writer, 'PRAGMA auto_vacuum')
    const shrinks = mode?.['auto_vacuum'] === INCREMENTAL
    const reader = createConnection(file, 'reader', faults)
    const unlock = () => lock.close()
    return createSqliteStore({ file, writer, reader, faults, shrinks, stopCheck, unlock })
  } catch (error) {
    await writer.end()
    lock.close()
    throw error
  }
}

/** A database up to this size is checked before anything else is done with it: some 60 ms, a second from a slow disk. */
const CHECKED_FIRST_MAX_BYTES = 64 * 1024 * 1024

/** A larger one is checked by a process beside the service, which resolves what ends that. @throws StoreFault */
async function checkAtStart(file: string, writer: Connection, faults: Faults): Promise<() => void> {
  const size = await stat(file).then(
    (found) => found.size,
    () => 0,
  )
  if (size === 0) return () => {}
  if (size > CHECKED_FIRST_MAX_BYTES) {
    // Header and list of tables; and a database that was just restored has its log from here on.
    await ask(writer, 'SELECT count(*) FROM sqlite_schema')
    const check = checkFileBeside(file)
    void check.result.then(({ findings }) => {
      if (findings[0] !== undefined) faults.note(damaged(file, describeFinding(findings[0])))
    })
    return check.stop
  }
  const [finding] = await ask(writer, 'PRAGMA quick_check(1)')
  if (finding?.['quick_check'] !== 'ok') throw damaged(file, String(finding?.['quick_check']))
  return () => {}
}

/** As `PRAGMA auto_vacuum` gives it. */
const INCREMENTAL = 2

async function ask(connection: Connection, sql: string): Promise<Record<string, unknown>[]> {
  const [reply] = await connection.ask({ kind: 'single', statement: { sql, values: [] } })
  return resultsOf(reply).flatMap(({ rows }) => rows)
}

function watchFaults(onFault: ((fault: StoreFault) => void) | undefined): Faults {
  let first: StoreFault | null = null
  return {
    get first() {
      return first
    },
    note(fault) {
      if (first) return
      first = fault
      onFault?.(fault)
    },
  }
}

/** SQLite would make a database by the umask alone; what it adds to one gets the database's own mode. */
const makePrivately = (file: string) => closeSync(openSync(file, 'a', 0o600))

/** Takes the data folder for this process. @throws StoreUnavailable when another one has it */
export function lockFolder(folder: string): { close(): void } {
  const file = join(folder, LOCK_NAME)
  makePrivately(file)
  const lock = new DatabaseSync(file, { timeout: 0 })
  try {
    lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
  } catch (error) {
    lock.close()
    const { message, errcode } = error as Error & { errcode?: number }
    const busy = ((errcode ?? 0) & 0xff) === SQLITE_BUSY
    const why = busy ? 'another process is using it' : `its lock.db cannot be locked (${message})`
    throw new StoreUnavailable(`Cannot open data folder "${folder}": ${why}`, { cause: error })
  }
  return lock
}

/**
 * Rows and replies die young; by V8's own rule this part of each thread's heap doubles, some day, to 32 MB, and stays
 * there with 10 MB in use.
 */
const YOUNG_MB: Record<Role, number> = { writer: 9, reader: 9 }

/** The results of some units; of units that gave no rows just how many each statement affected. */
type Answer = UnitReply[] | readonly number[]

interface Connection {
  ask(request: WorkerRequest): Promise<UnitReply[]>
  /** The results of each unit, or what it failed with. */
  run(units: PackedUnits): Promise<Answer>
  /** Resolves the pages in the log. */
  checkpoint(): Promise<number>
  /** As `DatabaseFiles`. */
  trim(): Promise<void>
  shrink(pages: number): Promise<void>
  /** Everything that is asked, and was not answered, is rejected from now on. */
  fail(error: Error): void
  end(): Promise<void>
}

/** A thread with one connection; questions are answered in order. */
function createConnection(file: string, role: Role, faults: Faults): Connection {
  const worker = new Worker(join(import.meta.dirname, 'sqlite-worker.ts'), {
    workerData: { file, role },
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB[role] },
  })
  const waiting = new PassingMap<number, { resolve(reply: Answer): void; reject(error: Error): void }>()
  let nextId = 1
  let broken: Error | null = null
  const fail = (error: Error) => {
    broken ??= error
    for (const { reject } of waiting.values()) reject(error)
    waiting.clear()
  }
  const noteFault = (error: Error) => {
    if (error instanceof StoreFault) faults.note(error)
  }
  worker.on('message', (reply: WorkerReply) => {
    const question = waiting.get(reply.id)
    waiting.delete(reply.id)
    if ('affected' in reply) question?.resolve(reply.affected)
    else if ('units' in reply) {
      for (const unit of reply.units) if ('error' in unit) noteFault(toError(unit.error))
      question?.resolve(reply.units)
    } else {
      const error = toError(reply.error)
      noteFault(error)
      question?.reject(error)
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
  const ask = (request: WorkerRequest) => post(request, []) as Promise<UnitReply[]>
  return {
    ask,
    fail,
    trim: async () => void (await post({ kind: 'trim' }, [])),
    shrink: async (pages) => void (await post({ kind: 'shrink', pages }, [])),
    checkpoint: async () => ((await post({ kind: 'checkpoint' }, [])) as readonly number[])[0] ?? 0,
    run: (units) => post({ kind: 'units', units }, units.bytes.byteLength > 0 ? [units.bytes] : []),
    async end() {
      if (broken) {
        await worker.terminate()
        return
      }
      const ended = new Promise((resolve) => worker.once('exit', resolve))
      await ask({ kind: 'close' })
      await ended
    },
  }
}

/** SQLite's extended codes keep the primary one in their low byte. */
const primaryCode = ({ code }: WorkerError) => (code === null ? null : code & 0xff)

const isDiskFailure = (error: unknown): error is StoreFault =>
  error instanceof StoreFault && error.kind === 'disk'

/**
 * After a failed write or sync nobody knows what is on the disk, and the next sync may claim success for pages that were
 * dropped: nothing is written any more until a new start reads what is there.
 */
const diskFailed = (message: string, cause?: unknown) =>
  new StoreFault('disk', `The disk failed; nothing is accepted until a restart: ${message}`, { cause })

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

interface StoreParts {
  file: string
  writer: Connection
  reader: Connection
  faults: Faults
  shrinks: boolean
  /** What still looks at the file. */
  stopCheck(): void
  unlock(): void
}

function createSqliteStore(parts: StoreParts): Store {
  const { file, writer, reader, faults } = parts
  // Closed behind the connections only: closing a file gives up the locks that they have on it, too.
  const dataFile = openSync(file, 'r')
  const pack = createPacker()
  const syncFile = () =>
    promisify(fdatasync)(dataFile).catch((error: Error) => {
      const fault = diskFailed(error.message, error)
      faults.note(fault)
      writer.fail(fault)
      throw fault
    })
  // SQLite takes for carried over what it has handed to the system, and lets the log begin anew over it.
  const checkpoint = () =>
    reader.checkpoint().catch((error) => {
      if (isDiskFailure(error)) writer.fail(error)
      throw error
    })
  const besideUnits = async (run: () => Promise<unknown>) => {
    const release = await queue.acquire()
    await run().finally(release)
  }
  const checkpoints = createCheckpoints({
    checkpoint,
    syncFile,
    beginAnew: () => besideUnits(() => writer.checkpoint()),
  })
  const queue = new WriterQueue(async (group) => {
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
    leaseTimes: ownLeaseTimes,
    db,
    // Outcomes are written if they can be: a forgotten one is a message sent twice.
    commit: (unit, order) =>
      faults.first && order !== 'first' ? Promise.reject(faults.first) : queue.commit(unit, order),
    read: async (statement) => {
      const [result] = resultsOf((await reader.ask({ kind: 'single', statement }))[0])
      return result?.rows ?? []
    },
    transaction: (run) => db.transaction().execute(run),
    statement: (query, expectRows) => toStatement(query, expectRows),
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
        const pages = short ? LOG_PAGES_NET.short : LOG_PAGES_NET.ample
        // Refused by a writer that has failed, which needs it no more.
        writer.ask({ kind: 'script', sql: `PRAGMA wal_autocheckpoint = ${pages}` }).catch(() => {})
      },
      async measure() {
        const [row] = await ask(reader, MEASURE)
        const log = await stat(`${file}-wal`).catch(() => null)
        const of = (name: string) => Number(row?.[name] ?? 0)
        return {
          pageBytes: of('page_size'),
          pages: of('page_count'),
          freePages: of('freelist_count'),
          logBytes: log?.size ?? 0,
        }
      },
      async trimLog() {
        await checkpoints.idle()
        await checkpoint()
        await syncFile()
        await besideUnits(() => writer.trim())
      },
      async shrink(pages) {
        await besideUnits(() => writer.shrink(pages))
        checkpoints.wrote(0, SHRINK_BYTES_PER_PAGE * pages)
      },
    }
  }
}

const MEASURE =
  'SELECT page_size, page_count, freelist_count FROM pragma_page_size, pragma_page_count, pragma_freelist_count'
/** In the log: the page where it is now, and a share of those that lead to it; measured. */
const SHRINK_BYTES_PER_PAGE = 5 * 1024

export function toStatement(query: Compilable, expectRows?: number): Statement {
  const { sql, parameters } = query.compile()
  const statement: Statement = { sql, values: parameters as readonly SqlValue[] }
  return expectRows === undefined ? statement : { ...statement, expectRows }
}

function rowsOf(answer: Answer): number {
  if (isAffected(answer)) return answer.reduce((sum, affected) => sum + affected, 0)
  const results = answer.flatMap((reply) => ('results' in reply ? reply.results : []))
  return results.reduce((sum, { affected }) => sum + affected, 0)
}

const isAffected = (answer: Answer): answer is readonly number[] => typeof answer[0] !== 'object'

const NO_ROWS = Object.freeze([]) as unknown as Record<string, unknown>[]

function settle(group: readonly UnitJob[], answer: Answer): void {
  if (!isAffected(answer)) {
    for (const [index, job] of group.entries()) settleUnit(job, answer[index] as UnitReply)
    return
  }
  let at = 0
  for (const job of group)
    job.resolve(job.unit.map(() => ({ rows: NO_ROWS, affected: answer[at++] as number })))
}

function settleUnit(job: UnitJob, reply: UnitReply): void {
  if ('results' in reply) job.resolve(resultsOf(reply))
  else if (reply.error.stale) {
    job.reject(new StaleWrite(job.unit[reply.error.stale.statement] as Statement, reply.error.stale.affected))
  } else job.reject(toError(reply.error))
}

/**
 * Kysely thinks of SQLite as one connection, for which its queries wait in line: reads behind single writes and their
 * syncs, and behind whole transactions. Here the two threads and the jobs of the writer keep the order.
 */
class ConcurrentAdapter extends SqliteAdapter {
  override get supportsMultipleConnections() {
    return true
  }
}

/** Kysely's view: reads go to the reader, single writes into a group, a transaction takes the writer. */
function createDriver(
  writer: Connection,
  reader: Connection,
  queue: WriterQueue,
  checkpoints: Checkpoints,
  faults: Faults,
): Driver {
  const releases = new WeakMap<DatabaseConnection, () => void>()
  /** Rows that a transaction has touched so far. */
  const touched = new WeakMap<DatabaseConnection, number>()
  const run = async (request: WorkerRequest) => resultsOf((await writer.ask(request))[0])

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
          results = resultsOf((await reader.ask({ kind: 'single', statement }))[0])
        } else {
          if (faults.first) throw faults.first
          results = await queue.commit([statement])
        }
        const [{ rows, affected }] = results as [StatementResult]
        return { rows: rows as R[], numAffectedRows: BigInt(affected) }
      },
      // biome-ignore lint/correctness/useYield: refused, so there is nothing to yield
      async *streamQuery() {
        throw new Error('Streaming queries are not offered: page by key instead')
      },
    }
    return self
  }
  const finish = async (self: DatabaseConnection, word: 'COMMIT' | 'ROLLBACK') => {
    try {
      await writer.ask({ kind: 'script', sql: word })
      if (word === 'COMMIT') checkpoints.wrote(touched.get(self) ?? 0, 0)
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
      await writer.ask({ kind: 'script', sql: 'BEGIN IMMEDIATE' }).catch((error) => {
        releases.get(self)?.()
        releases.delete(self)
        throw error
      })
    },
    commitTransaction: (self) => finish(self, 'COMMIT'),
    // After a commit that failed the worker has rolled back, and the writer may be another transaction's by now.
    rollbackTransaction: async (self) => void (releases.has(self) && (await finish(self, 'ROLLBACK'))),
    releaseConnection: async () => {},
    destroy: async () => {},
  }
}
