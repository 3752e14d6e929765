/**
 * The embedded store: SQLite in WAL mode with synchronous=FULL, one writer thread with group commit, one
 * reader thread, which checkpoints too. The data folder belongs to one process at a time: an exclusive lock on `lock.db` says so,
 * which the operating system lifts when the process ends, however it ends.
 */

import { closeSync, fdatasync, mkdirSync, openSync } from 'node:fs'
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
import { type Checkpoints, createCheckpoints } from './checkpoints.ts'
import { ownLeaseTimes } from './lease-times.ts'
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
  type SqlValue,
  StaleWrite,
  type Statement,
  type StatementResult,
  type Store,
  StoreFull,
  StoreUnavailable,
} from './store.ts'
import { type UnitJob, WriterQueue } from './writer-queue.ts'

const LOCK_NAME = 'lock.db'
const SQLITE_FULL = 13
const SQLITE_BUSY = 5
const SQLITE_IOERR = 10
const SQLITE_READONLY = 8

/** Opens (or makes) the database in `folder`. @throws StoreUnavailable when another process has it. */
export async function openSqlite(
  folder: string,
  { beforeMigrations }: { beforeMigrations?: BeforeMigrations } = {},
): Promise<Store> {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const file = join(folder, 'sendwright.db')
  makePrivately(file)
  const lock = lockFolder(folder)
  const writer = createConnection(file, 'writer')
  const rows = async (sql: string) => {
    const [reply] = await writer.ask({ kind: 'single', statement: { sql, values: [] } })
    return resultsOf(reply).flatMap((result) => result.rows)
  }
  try {
    await beforeMigrations?.(unmigrated('sqlite', rows))
    await migrate({
      kind: 'sqlite',
      run: async (sql) => void (await writer.ask({ kind: 'script', sql })),
      applied: async () =>
        (await rows('SELECT version FROM schema_versions')).map((row) => row['version'] as number),
    })
  } catch (error) {
    await writer.end()
    lock.close()
    throw error
  }
  return createSqliteStore(file, writer, createConnection(file, 'reader'), () => lock.close())
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
    throw new StoreUnavailable(`Cannot open data folder "${folder}": another process is using it`, {
      cause: error,
    })
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
  /** Everything that is asked, and was not answered, is rejected from now on. */
  fail(error: Error): void
  end(): Promise<void>
}

/** A thread with one connection; questions are answered in order. */
function createConnection(file: string, role: Role): Connection {
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
  worker.on('message', (reply: WorkerReply) => {
    const question = waiting.get(reply.id)
    waiting.delete(reply.id)
    if ('affected' in reply) question?.resolve(reply.affected)
    else if ('units' in reply) question?.resolve(reply.units)
    else {
      const error = toError(reply.error)
      question?.reject(error)
      if (role === 'writer' && error instanceof DiskFailed) fail(untilRestart(error))
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

class DiskFailed extends StoreUnavailable {}

/**
 * After a failed write or sync nobody knows what is on the disk, and the next sync may claim success for pages that were
 * dropped: nothing is written any more until a new start reads what is there.
 */
const untilRestart = ({ message }: Error) =>
  new StoreUnavailable(`The disk failed; nothing is accepted until a restart: ${message}`)

function toError(error: WorkerError): Error {
  const { message } = error
  const primary = primaryCode(error)
  if (primary === SQLITE_IOERR) return new DiskFailed(message)
  if (primary === SQLITE_FULL) return new StoreFull(message)
  if (primary === SQLITE_READONLY || primary === SQLITE_BUSY) return new StoreUnavailable(message)
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

function createSqliteStore(file: string, writer: Connection, reader: Connection, unlock: () => void): Store {
  // Closed behind the connections only: closing a file gives up the locks that they have on it, too.
  const dataFile = openSync(file, 'r')
  const pack = createPacker()
  const checkpoints = createCheckpoints({
    // SQLite takes for carried over what it has handed to the system, and lets the log begin anew over it.
    checkpoint: () =>
      reader.checkpoint().catch((error) => {
        if (error instanceof DiskFailed) writer.fail(untilRestart(error))
        throw error
      }),
    syncFile: () =>
      promisify(fdatasync)(dataFile).catch((error: Error) => {
        writer.fail(untilRestart(error))
        throw error
      }),
    async beginAnew() {
      const release = await queue.acquire()
      await writer.checkpoint().finally(release)
    },
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
      createDriver: () => createDriver(writer, reader, queue, checkpoints),
    },
  })
  return {
    kind: 'sqlite',
    leaseTimes: ownLeaseTimes,
    db,
    commit: (unit, order) => queue.commit(unit, order),
    read: async (statement) => {
      const [result] = resultsOf((await reader.ask({ kind: 'single', statement }))[0])
      return result?.rows ?? []
    },
    transaction: (run) => db.transaction().execute(run),
    statement: (query, expectRows) => toStatement(query, expectRows),
    async ping() {
      await queue.commit([{ sql: 'SELECT 1', values: [] }])
      return true
    },
    async close() {
      await queue.acquire().then((release) => release())
      await db.destroy()
      await checkpoints.idle()
      await reader.end()
      await writer.end()
      closeSync(dataFile)
      unlock()
    },
  }
}

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
        } else results = await queue.commit([statement])
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
