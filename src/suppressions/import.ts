/**
 * CSV files taken in behind the call that brought them.
 *
 * 1. `submit` checks the header, puts the file into the blob store and a row into `suppression_imports`; then
 *    the call is answered.
 * 2. One worker per process claims imports under a lease and takes up to 1,000 rows at a time. Each step commits the
 *    records together with the number of rows done.
 * 3. After a stop or a crash the import is claimed again and goes on behind the last step.
 *
 * A row that cannot be read is skipped and counted; the counts are logged at the end.
 */
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import type { Logger } from 'pino'
import { type Actor, auditStatement } from '../accounts/audit.ts'
import type { Clock, Timer } from '../base/clock.ts'
import { CsvSyntaxError, readCsv } from '../base/csv.ts'
import { BadRequest } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import type { Chunk } from '../base/mime-message.ts'
import type { Domain } from '../domains/domain.ts'
import type { BlobStore } from '../store/blobs.ts'
import type { SuppressionImportRow, SuppressionKind } from '../store/schema.ts'
import { insert, StaleWrite, type Statement, type Store } from '../store/store.ts'
import { type KindTraits, traitsOf } from './kinds.ts'
import { type GivenRecord, type NewRecord, readRecord } from './records.ts'
import { addStatements, overTagLimit } from './store.ts'

export interface Imports {
  /** Resolves once the file is on disk and will be worked off. @throws BadRequest `while reading csv header` */
  submit(actor: Actor, domain: Domain, kind: SuppressionKind, file: Chunk): Promise<void>
  /** Gives up what is not yet done for a domain; a step that runs is undone. */
  forgetDomain(domainId: string): Promise<void>
  start(): void
  /** Stops behind the present step. */
  stop(): Promise<void>
}

export interface ImportParts {
  store: Store
  blobs: BlobStore
  clock: Clock
  log: Logger
  /** Default 250 MiB. */
  unpackedBytesMax?: number
}

const ROWS_PER_STEP = 1000
/** Characters held for one step; a row may be 256 KiB long, a thousand of them would be too much. */
const STEP_LENGTH_MAX = 4 * 1024 * 1024
/** A plain file has 25 MB; packed ten times as much is more than any real list, and a bomb ends here. */
const UNPACKED_BYTES_MAX = 250 * 1024 * 1024
/** A step takes seconds at the worst; after this another process may go on. */
const LEASE_MS = 60_000
/** Pause between looks for imports that another process has left behind. */
const LOOK_EVERY_MS = 60_000
/** Attempts without one finished step, after which an import is given up. */
const ATTEMPTS_MAX = 5

type Task = SuppressionImportRow & { lease_token: string }
type Columns = ReadonlyMap<string, number>

export function createImports(parts: ImportParts): Imports {
  const { store, blobs, clock, log, unpackedBytesMax = UNPACKED_BYTES_MAX } = parts
  const owner = newId()
  const times = store.leaseTimes
  let timer: Timer | null = null
  let working: Promise<void> | null = null
  let again = false
  let stopping = false

  function wake(): void {
    if (stopping) return
    again = true
    if (working) return
    timer?.cancel()
    working = work().finally(() => {
      working = null
      if (!stopping) timer = clock.setTimer(LOOK_EVERY_MS, wake)
    })
  }

  async function work(): Promise<void> {
    while (again && !stopping) {
      again = false
      try {
        for (let task = await claim(); task && !stopping; task = await claim()) await run(task)
      } catch (error) {
        log.error({ err: error }, 'cannot claim imports')
      }
    }
  }

  /** On SQLite nobody else can hold a lease, so an earlier run's are void at once. */
  async function claim(): Promise<Task | null> {
    const now = clock.now()
    const foreign = store.kind === 'sqlite' ? ' OR lease_owner <> ?' : ''
    const lock = store.kind === 'postgres' ? 'FOR UPDATE SKIP LOCKED' : ''
    const sql = `UPDATE suppression_imports
      SET lease_token = ?, lease_owner = ?, lease_until = ${times.sql}, attempts = attempts + 1
      WHERE id = (SELECT id FROM suppression_imports WHERE lease_until <= ${times.sql}${foreign} ORDER BY id LIMIT 1 ${lock})
      RETURNING *`
    const values = [
      ...[newId(), owner, times.value(now, LEASE_MS), times.value(now, 0)],
      ...(foreign ? [owner] : []),
    ]
    const [result] = await store.commit([{ sql, values }])
    return (result?.rows[0] as unknown as Task | undefined) ?? null
  }

  async function run(task: Task): Promise<void> {
    const about = { import: task.id, domain: task.domain_id, list: task.kind }
    try {
      const finished = await takeRows(task)
      if (!finished) return
      await end(task)
      log.info({ ...about, rows: task.rows_done, bad: task.rows_bad }, 'import finished')
    } catch (error) {
      if (error instanceof StaleWrite) return
      const hopeless = error instanceof CsvSyntaxError || error instanceof UnpackFailure
      log.error({ err: error, ...about, rows: task.rows_done, bad: task.rows_bad }, 'import failed')
      if (hopeless || task.attempts >= ATTEMPTS_MAX)
        await end(task).catch((fault) => log.error({ err: fault }))
    }
  }

  /** False when it was stopped in between; then it goes on behind the last step some other time. */
  async function takeRows(task: Task): Promise<boolean> {
    const traits = traitsOf(task.kind)
    const file = await blobs.read(task.blob)
    let columns: Columns | null = null
    let seen = 0
    let rows: string[][] = []
    let length = 0
    for await (const row of readCsv(unpacked(file.open(), unpackedBytesMax))) {
      if (!columns) {
        columns = columnsOf(traits, row)
        continue
      }
      seen++
      if (seen <= task.rows_done) continue
      rows.push(row)
      for (const cell of row) length += cell.length
      if (rows.length < ROWS_PER_STEP && length < STEP_LENGTH_MAX) continue
      await step(task, columns, rows)
      rows = []
      length = 0
      if (stopping) return false
    }
    if (columns && rows.length > 0) await step(task, columns, rows)
    return true
  }

  /** Dates and texts follow the time of the upload, so that a repeated step writes the same. */
  async function step(task: Task, columns: Columns, rows: readonly string[][]): Promise<void> {
    const read = rows.map((row) => readRow(task, columns, row)).filter((record) => record !== null)
    const over = await overTagLimit(store, task.domain_id, read)
    const records = read.filter(({ address }) => !over.has(address))
    const owned = { id: task.domain_id, accountId: task.account_id }
    const done = { rows: task.rows_done + rows.length, bad: task.rows_bad + rows.length - records.length }
    const progress: Statement = {
      sql: `UPDATE suppression_imports SET rows_done = ?, rows_bad = ?, lease_until = ${times.sql}, attempts = 0
        WHERE id = ? AND lease_token = ?`,
      values: [done.rows, done.bad, times.value(clock.now(), LEASE_MS), task.id, task.lease_token],
      expectRows: 1,
    }
    const added = addStatements(owned, task.kind, records, task.created_at, { keepTimes: true })
    await store.commit([progress, ...added])
    task.rows_done = done.rows
    task.rows_bad = done.bad
    task.attempts = 0
  }

  async function end(task: Task): Promise<void> {
    const sql = 'DELETE FROM suppression_imports WHERE id = ? AND lease_token = ?'
    await store.commit([{ sql, values: [task.id, task.lease_token], expectRows: 1 }])
    await blobs.remove(task.blob)
  }

  return {
    async submit(actor, domain, kind, file) {
      await checkHeader(traitsOf(kind), file)
      const blob = await keep(blobs, file)
      const now = clock.now()
      const id = newId(now)
      const row: SuppressionImportRow = {
        id,
        account_id: domain.accountId,
        domain_id: domain.id,
        kind,
        blob,
        rows_done: 0,
        rows_bad: 0,
        attempts: 0,
        lease_token: null,
        lease_owner: null,
        lease_until: 0,
        created_at: Math.floor(now),
      }
      const change = { action: `${kind}.import`, subject: domain.name, detail: { import: id }, status: 202 }
      try {
        await store.commit([insert('suppression_imports', row), auditStatement(actor, change, now)])
      } catch (error) {
        await blobs.remove(blob)
        throw error
      }
      wake()
    },
    async forgetDomain(domainId) {
      const rows = await store.db
        .deleteFrom('suppression_imports')
        .where('domain_id', '=', domainId)
        .returning('blob')
        .execute()
      for (const { blob } of rows) await blobs.remove(blob)
    },
    start: wake,
    async stop() {
      stopping = true
      timer?.cancel()
      await working
    },
  }
}

/** The file cannot be unpacked, now or ever. */
class UnpackFailure extends Error {}

/** The bytes of a file that may be packed with gzip. @throws UnpackFailure for broken or endless gzip data */
async function* unpacked(bytes: AsyncIterable<Uint8Array>, bytesMax: number): AsyncGenerator<Uint8Array> {
  const iterator = bytes[Symbol.asyncIterator]()
  const first = await iterator.next()
  if (first.done) return
  const whole = rejoin(first.value, iterator)
  const [one, two] = first.value
  if (one === 0x1f && two === 0x8b) yield* gunzipped(whole, bytesMax)
  else yield* whole
}

async function* rejoin(first: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield first
    yield* { [Symbol.asyncIterator]: () => rest }
  } finally {
    await rest.return?.()
  }
}

async function* gunzipped(packed: AsyncIterable<Uint8Array>, bytesMax: number): AsyncGenerator<Uint8Array> {
  const gunzip = createGunzip()
  const feeding = pipeline(packed, gunzip).catch(() => {}) // the loop below sees the same error
  let size = 0
  try {
    for await (const chunk of gunzip as AsyncIterable<Buffer>) {
      size += chunk.byteLength
      if (size > bytesMax) {
        throw new UnpackFailure(`The file unpacks to more than ${bytesMax} bytes`)
      }
      yield chunk
    }
  } catch (error) {
    if (error instanceof UnpackFailure) throw error
    throw new UnpackFailure('The file cannot be unpacked', { cause: error })
  } finally {
    gunzip.destroy()
    await feeding
  }
}

/** @throws BadRequest when the first record does not name a column that a row needs */
async function checkHeader(traits: KindTraits, file: Chunk): Promise<void> {
  const bytes = file instanceof Uint8Array ? once(file) : file.open()
  try {
    for await (const header of readCsv(unpacked(bytes, UNPACKED_BYTES_MAX))) {
      const columns = columnsOf(traits, header)
      if (traits.columns.needed.some((name) => columns.has(name))) return
      break
    }
  } catch (error) {
    if (!(error instanceof CsvSyntaxError || error instanceof UnpackFailure)) throw error
  }
  throw new BadRequest('while reading csv header')
}

/** Place of each known column; of two with one name the first counts. */
function columnsOf(traits: KindTraits, header: readonly string[]): Columns {
  const columns = new Map<string, number>()
  for (const [index, text] of header.entries()) {
    const name = text.trim().toLowerCase()
    if (traits.columns.all.includes(name) && !columns.has(name)) columns.set(name, index)
  }
  return columns
}

/** Null for a row that is no record. */
function readRow(task: Task, columns: Columns, row: readonly string[]): NewRecord | null {
  const cell = (name: string) => row[columns.get(name) ?? -1] ?? ''
  const given: GivenRecord = Object.fromEntries([...columns.keys()].map((name) => [name, cell(name)]))
  const key = `${cell('address')}${cell('domain')}`
  // Not UTF-8; and an allowlist row names one thing only.
  if (key.includes('\ufffd') || (cell('address').trim() !== '' && cell('domain').trim() !== '')) return null
  const tags = `${cell('tags')},${cell('tag')}`.split(',')
  try {
    return readRecord(task.kind, { ...given, tag: undefined, tags }, task.created_at)
  } catch (error) {
    if (error instanceof BadRequest) return null
    throw error
  }
}

async function keep(blobs: BlobStore, file: Chunk): Promise<string> {
  if (!(file instanceof Uint8Array)) return blobs.keep(file)
  const spooled = await blobs.spool(once(file))
  return blobs.keep(spooled.chunk)
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}
