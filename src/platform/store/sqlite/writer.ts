/**
 * Schedules a store's single writer: waiting units are written together as one group, which is one transaction and one
 * sync; an interactive transaction has the writer to itself.
 */
import type { SqlValue, Statement, StatementResult, WaitingUnit } from '../store.ts'

/** Units per sync, so that the first of a burst does not wait for the last. */
const GROUP_UNITS_MAX = 256

/**
 * Waiting units that are worth a second group with its own sync, which the writer starts as soon as the first is on the
 * disk: with 64 connections that only submit mail, 10 to 20 % more is accepted a second. Not while outcomes arrive as
 * well: then the processors are the bottleneck, and the smaller groups cost 0.07 ms of a message's 1.1 ms.
 */
const SECOND_GROUP_MIN = 16
/** After so many groups without an outcome the writer assumes that no mail is being delivered. */
const GROUPS_WITHOUT_OUTCOME = 10

interface Transaction {
  begin(): void
}

type Waiting = WaitingUnit | Transaction

const isTransaction = (job: Waiting | undefined): job is Transaction => job !== undefined && 'begin' in job

export class WriterQueue {
  readonly #write: (group: readonly WaitingUnit[]) => Promise<() => void>
  readonly #jobs: Waiting[] = []
  /** Units that go before all jobs: outcomes. */
  readonly #priority: WaitingUnit[] = []
  /** Groups in flight; at most two. */
  #groups = 0
  /** Groups since the last one with priority units. */
  #sincePriority = 0
  /** The next group waits for the end of this turn of the event loop. */
  #gathering = false
  /** A transaction has the writer. */
  #taken = false
  /**
   * A group with priority units has gone before the waiting transaction; no second one may. Outcomes arrive continuously
   * while a backlog is delivered: if all of them went first, the transaction, and every unit queued after it, would wait
   * for the end of the backlog.
   */
  #overtaken = false

  /** @param write commits a group as one transaction; resolves to a function that settles each of its units */
  constructor(write: (group: readonly WaitingUnit[]) => Promise<() => void>) {
    this.#write = write
  }

  /** As `Store.commit`. */
  commit(unit: readonly Statement[], order?: 'first'): Promise<StatementResult[]> {
    return new Promise((resolve, reject) => {
      const job: WaitingUnit = { unit, resolve, reject }
      if (order === 'first') this.#priority.push(job)
      else this.#jobs.push(job)
      if (this.#groups > 0 || !this.#hasOutcomes()) this.#handOver()
      else this.#soon()
    })
  }

  /** Whether mail is being delivered: recent groups had outcomes. */
  #hasOutcomes(): boolean {
    return this.#priority.length > 0 || this.#sincePriority < GROUPS_WITHOUT_OUTCOME
  }

  /**
   * Starts a group at the end of this turn of the event loop. Outcomes arrive in bursts: without this, half of all
   * groups held only the first unit of a burst, and the others waited for its sync. While mail is only accepted it makes
   * no difference at best.
   */
  #soon(): void {
    if (this.#gathering) return
    this.#gathering = true
    setImmediate(() => {
      this.#gathering = false
      this.#handOver()
    })
  }

  /** Takes the writer for one transaction; resolves to the function that releases it. */
  acquire(): Promise<() => void> {
    return new Promise((resolve) => {
      const release = () => {
        this.#taken = false
        this.#handOver()
      }
      this.#jobs.push({ begin: () => resolve(release) })
      this.#handOver()
    })
  }

  #handOver(): void {
    while (!this.#taken) {
      const first = this.#jobs[0]
      if (isTransaction(first) && (this.#overtaken || this.#priority.length === 0)) {
        if (this.#groups > 0) return
        this.#jobs.shift()
        this.#overtaken = false
        this.#taken = true
        first.begin()
      } else {
        if (this.#priority.length + this.#jobs.length === 0) return
        if (this.#groups > 0 && !this.#maySecond()) return
        this.#overtaken = isTransaction(first)
        this.#sincePriority = this.#priority.length > 0 ? 0 : this.#sincePriority + 1
        void this.#commitGroup(this.#takeGroup())
      }
    }
  }

  #maySecond(): boolean {
    if (this.#groups > 1 || this.#hasOutcomes()) return false
    return this.#jobs.length >= SECOND_GROUP_MIN && !this.#jobs.some(isTransaction)
  }

  async #commitGroup(group: readonly WaitingUnit[]): Promise<void> {
    this.#groups++
    let settle: () => void
    try {
      settle = await this.#write(group)
    } catch (error) {
      settle = () => {
        for (const job of group) job.reject(error as Error)
      }
    }
    this.#groups--
    // Before the units settle: the writer has its next group while their callers answer requests.
    this.#handOver()
    settle()
  }

  #takeGroup(): WaitingUnit[] {
    const group = this.#priority.splice(0, GROUP_UNITS_MAX)
    const end = this.#jobs.findIndex(isTransaction)
    const room = GROUP_UNITS_MAX - group.length
    const count = Math.min(room, end < 0 ? this.#jobs.length : end)
    return [...group, ...(this.#jobs.splice(0, count) as WaitingUnit[])]
  }
}

/**
 * The form in which units are posted to the database thread. As objects, every statement would be cloned with its SQL
 * text; here a text is sent once and referred to by number afterwards, and everything else is flat arrays. The bytes of
 * all values are transferred in one ArrayBuffer: a cloned value would copy the whole buffer pool that it is a slice of.
 */
export interface PackedUnits {
  /** New texts; they get the next numbers, in order. */
  texts: string[]
  /** Per unit the count of statements, then per statement its text's number, its count of values, `expectRows` or -1. */
  shape: number[]
  /** Null in place of bytes. */
  values: SqlValue[]
  /** Pairs of index in `values` and length, in order, for each value that is bytes. */
  slices: number[]
  /** The bytes of these values, concatenated. */
  bytes: ArrayBuffer
  /** Texts without a number of their own; numbered from -1 downwards in this packet only. */
  rare: string[]
}

/** The hot paths use a few dozen texts; those with lists of varying length would need unbounded memory. */
const NUMBERED_MAX = 500

/** The sending side; packs for one `createUnpacker`. All packets must arrive, in order. */
export function createPacker(
  numberedMax = NUMBERED_MAX,
): (units: readonly (readonly Statement[])[]) => PackedUnits {
  const numbers = new Map<string, number>()
  return (units) => {
    const texts: string[] = []
    const shape: number[] = []
    const values: SqlValue[] = []
    const rare: string[] = []
    const slices: number[] = []
    const pieces: Uint8Array[] = []
    const numberOf = (sql: string): number => {
      const known = numbers.get(sql)
      if (known !== undefined) return known
      if (numbers.size >= numberedMax) return -rare.push(sql)
      const number = numbers.size
      numbers.set(sql, number)
      texts.push(sql)
      return number
    }
    for (const unit of units) {
      shape.push(unit.length)
      for (const statement of unit) {
        shape.push(numberOf(statement.sql), statement.values.length, statement.expectRows ?? -1)
        for (const value of statement.values) {
          if (value instanceof Uint8Array) {
            slices.push(values.length, value.byteLength)
            pieces.push(value)
            values.push(null)
          } else values.push(value)
        }
      }
    }
    return { texts, shape, values, slices, bytes: joined(pieces), rare }
  }
}

function joined(pieces: readonly Uint8Array[]): ArrayBuffer {
  const size = pieces.reduce((sum, piece) => sum + piece.byteLength, 0)
  const bytes = new Uint8Array(size)
  let at = 0
  for (const piece of pieces) {
    bytes.set(piece, at)
    at += piece.byteLength
  }
  return bytes.buffer
}

/** The receiving side. */
export function createUnpacker(): (packed: PackedUnits) => Statement[][] {
  const known: string[] = []
  return ({ texts, shape, values, slices, bytes, rare }) => {
    known.push(...texts)
    for (let slice = 0, start = 0; slice < slices.length; slice += 2) {
      const size = slices[slice + 1] as number
      values[slices[slice] as number] = new Uint8Array(bytes, start, size)
      start += size
    }
    const units: Statement[][] = []
    let at = 0
    let valueAt = 0
    while (at < shape.length) {
      const unit: Statement[] = []
      for (let left = shape[at++] as number; left > 0; left--) {
        const number = shape[at] as number
        const valuesEnd = valueAt + (shape[at + 1] as number)
        const expectRows = shape[at + 2] as number
        const sql = (number < 0 ? rare[-number - 1] : known[number]) as string
        const statement = { sql, values: values.slice(valueAt, valuesEnd) }
        unit.push(expectRows < 0 ? statement : { ...statement, expectRows })
        valueAt = valuesEnd
        at += 3
      }
      units.push(unit)
    }
    return units
  }
}

/** The log grows by about this much between two checkpoints; a page that changes several times is copied once. */
const CHECKPOINT_BYTES = 16 * 1024 * 1024
/** Length of the log, in pages of 4 KB, from which the writer makes it restart. */
const LOG_PAGES_MAX = 16_000
/**
 * The same while the disk is short of space: the log takes about 4 MB instead of 80, at a higher cost per message. With
 * smaller values the fixed cost of a checkpoint (one sync) would dominate.
 */
const SHORT = { checkpointBytes: 2 * 1024 * 1024, logPagesMax: 1_000 }
/**
 * `wal_autocheckpoint`: the length of the log at which a COMMIT checkpoints after all. A safety net, far above the usual
 * length; closer to it while space is short, because a slow disk may block the reader thread until the disk is full.
 */
export const AUTOCHECKPOINT_PAGES = { ample: 64_000, short: 2_000 }
/** What a group of units writes besides its values: whole b-tree pages of which little has changed. */
const GROUP_BYTES = 48 * 1024
/** What a row takes with its indexes; more for a deletion, less for one of many inserted rows. */
const ROW_BYTES = 3 * 1024

export type Checkpoints = ReturnType<typeof createCheckpoints>

interface CheckpointParts {
  /** `PRAGMA wal_checkpoint(PASSIVE)` on another connection than the writer's; resolves to the pages in the log. */
  checkpoint(): Promise<number>
  /** Syncs the checkpointed pages to disk. */
  syncFile(): Promise<void>
  /** A checkpoint by the writer, between two groups; after it the log restarts. */
  restartLog(): Promise<void>
}

/**
 * Schedules checkpoints of SQLite's log (the WAL) in parallel to the writer. By default SQLite checkpoints within the
 * COMMIT that makes the log too long, and everything that is being accepted waits for it (p99 31 ms; 25 ms without any
 * checkpoint, decision 33).
 *
 * 1. After a certain amount of writes the reader thread checkpoints, while the writer continues.
 * 2. SQLite restarts the log at its beginning only when every page of it is checkpointed, which never happens while the
 *    writer is busy. So once the log is long, the writer itself checkpoints the few pages written since.
 * 3. SQLite syncs the database file only after a complete checkpoint, with all that earlier ones have written to it:
 *    20 to 50 ms. So the file is synced off the writer thread after each partial checkpoint: 10 ms of disk at a time,
 *    for which the log's own syncs wait. A single sync before the log restarts took 30 ms, and 1 % of the calls took
 *    32 ms instead of 22.
 */
export function createCheckpoints({ checkpoint, syncFile, restartLog }: CheckpointParts) {
  let writtenBytes = 0
  let checkpointBytes = CHECKPOINT_BYTES
  let logPagesMax = LOG_PAGES_MAX
  let running: Promise<void> | null = null

  async function run(): Promise<void> {
    const pages = await checkpoint()
    await syncFile()
    if (pages < logPagesMax) return
    await checkpoint() // pages written meanwhile
    await restartLog()
  }

  return {
    /** Records a committed group of units or transaction: its rows, and the bytes of BLOBs among their values. */
    wrote(rows: number, bytes: number): void {
      writtenBytes += GROUP_BYTES + ROW_BYTES * rows + bytes
      if (running || writtenBytes < checkpointBytes) return
      writtenBytes = 0
      // After a failure the next one runs when as much has been written again. Until then the log keeps everything, and
      // SQLite's own checkpoint runs when it is four times as long.
      running = run()
        .catch(() => {})
        .finally(() => {
          running = null
        })
    },
    /** Whether the disk is short of space. */
    setShort(short: boolean): void {
      checkpointBytes = short ? SHORT.checkpointBytes : CHECKPOINT_BYTES
      logPagesMax = short ? SHORT.logPagesMax : LOG_PAGES_MAX
    },
    /** Resolves when no checkpoint is running. */
    idle: async (): Promise<void> => void (await running),
  }
}
