/**
 * Retention: events beyond their age, or beyond the space they may take, are deleted from the oldest on.
 *
 * Rows go in the order in which they were written, in small batches with a pause after each, so that neither
 * a writer nor a reader ever waits for more than one batch. The newest row always stays: on SQLite its number
 * is where the next one's begins, and page tokens name such numbers. Several nodes may run this at a time.
 */
import type { Logger } from 'pino'
import type { Clock, Timer } from '../base/clock.ts'
import type { Store } from '../store/store.ts'

export const DAY_MS = 86_400_000
/** What every installation keeps, however little space is allowed (events.md rule 15). */
export const RETENTION_DAYS_MIN = 3

/** About 10 ms of work on either database. */
const BATCH_ROWS = 500
/** Between batches: retention takes a tenth of the writer at the most. */
const PAUSE_MS = 100
const EVERY_MS = 10 * 60_000
/** Columns, index entries and tags of an event beside its JSON; measured 330 to 450 bytes. */
const ROW_OVERHEAD_BYTES = 400
/** Rows whose size stands for all. */
const SAMPLE_ROWS = 1000

export interface RetentionParts {
  store: Store
  clock: Clock
  log: Logger
  days: number
  /** About the space that events may take; null: no limit. */
  bytesMax: number | null
}

export interface EventRetention {
  /** Repairs what a copied database needs, then begins to look every ten minutes. */
  start(): Promise<void>
  /** One complete run; resolves the number of events deleted. */
  run(): Promise<number>
  stop(): Promise<void>
}

export function createEventRetention(parts: RetentionParts): EventRetention {
  const { store, clock, log } = parts
  let timer: Timer | null = null
  let stopping = false
  let running: Promise<number> | null = null
  let wakeUp: (() => void) | null = null

  const pause = () =>
    new Promise<void>((resolve) => {
      const sleeping = clock.setTimer(PAUSE_MS, resolve)
      wakeUp = () => {
        sleeping.cancel()
        resolve()
      }
    })

  /** Deletes up to `rowsMax` of the oldest rows before `cutoffUs`, in batches. */
  async function deleteBefore(cutoffUs: number, rowsMax: number): Promise<number> {
    let deleted = 0
    while (!stopping && deleted < rowsMax) {
      const size = Math.min(BATCH_ROWS, rowsMax - deleted)
      const gone = await deleteBatch(store, cutoffUs, size)
      deleted += gone
      if (gone < size) break
      await pause()
    }
    return deleted
  }

  async function runOnce(): Promise<number> {
    const before = (days: number) => (clock.now() - days * DAY_MS) * 1000
    const aged = await deleteBefore(before(parts.days), Number.POSITIVE_INFINITY)
    const excess = parts.bytesMax === null ? 0 : await rowsBeyond(store, parts.bytesMax)
    const pressed = await deleteBefore(before(RETENTION_DAYS_MIN), excess)
    if (pressed < excess && !stopping) {
      log.warn({ rows: excess - pressed }, 'events take more space than allowed, but are younger than 3 days')
    }
    if (aged + pressed > 0) log.info({ aged, pressed }, 'events beyond retention deleted')
    return aged + pressed
  }

  const run = () => {
    running ??= runOnce().finally(() => {
      running = null
    })
    return running
  }

  function arm(): void {
    timer = clock.setTimer(EVERY_MS, () => {
      void run()
        .catch((error) => log.error({ err: error }, 'cannot delete old events'))
        .finally(() => {
          if (!stopping) arm()
        })
    })
  }

  return {
    async start() {
      await adoptCopiedEvents(store)
      arm()
    },
    run,
    async stop() {
      stopping = true
      timer?.cancel()
      wakeUp?.()
      await running?.catch(() => {})
    },
  }
}

/** Deletes those of the `size` oldest rows that are before `cutoffUs`; resolves how many. */
async function deleteBatch(store: Store, cutoffUs: number, size: number): Promise<number> {
  const rows = await store.db
    .selectFrom('events')
    .select(['seq', 'timestamp_us'])
    .orderBy('seq')
    .limit(size + 1)
    .execute()
  // One row more than the batch is read, and the last one left, so the newest is never among those to go.
  const old = rows.slice(0, Math.min(size, rows.length - 1)).filter((row) => row.timestamp_us < cutoffUs)
  if (old.length === 0) return 0
  const gone = old.map(({ seq }) => seq)
  await store.db.deleteFrom('events').where('seq', 'in', gone).execute()
  return old.length
}

/** How many of the oldest rows are beyond the space allowed, by the size of the newest ones. */
async function rowsBeyond(store: Store, bytesMax: number): Promise<number> {
  const ends = await store.db
    .selectFrom('events')
    .select((of) => [of.fn.min('seq').as('low'), of.fn.max('seq').as('high')])
    .executeTakeFirst()
  if (!ends || ends.high === null || ends.low === null) return 0
  const sample = await store.db
    .selectFrom('events')
    .select('payload_json')
    .orderBy('seq', 'desc')
    .limit(SAMPLE_ROWS)
    .execute()
  const bytes = sample.reduce((sum, row) => sum + Buffer.byteLength(row.payload_json), 0)
  const perRow = bytes / Math.max(1, sample.length) + ROW_OVERHEAD_BYTES
  const count = Number(ends.high) - Number(ends.low) + 1
  return Math.max(0, count - Math.floor(bytesMax / perRow))
}

/** Rows of one repair. */
const ADOPT_ROWS = 10_000

/**
 * A dump of PostgreSQL restored elsewhere brings transaction numbers that mean nothing there: numbers of the
 * future would keep events out of ascending lists until the counter gets there. Such rows become settled.
 */
export async function adoptCopiedEvents(store: Store): Promise<void> {
  if (store.kind !== 'postgres') return
  const next = await store.db
    .selectNoFrom((of) => of.fn<number>('pg_snapshot_xmax', [of.fn('pg_current_snapshot', [])]).as('tx'))
    .executeTakeFirstOrThrow()
  const nextTx = Number(next.tx)
  for (let above: number | null = null; ; ) {
    let rows = store.db.selectFrom('events').select(['seq', 'tx']).orderBy('seq', 'desc').limit(ADOPT_ROWS)
    if (above !== null) rows = rows.where('seq', '<', above)
    const found = await rows.execute()
    const foreign = found.filter((row) => row.tx >= nextTx)
    // Looked at from the newest on; the numbers of one database grow, so the first own row ends the search.
    if (foreign.length === 0) return
    await store.db
      .updateTable('events')
      .set({ tx: 0 })
      .where('seq', '<=', foreign[0]?.seq ?? 0)
      .where('seq', '>=', foreign.at(-1)?.seq ?? 0)
      .where('tx', '>=', nextTx)
      .execute()
    above = foreign.at(-1)?.seq ?? 0
  }
}
