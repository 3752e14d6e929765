/**
 * Retention: events beyond their age, or beyond the space they may take, are deleted from the oldest on.
 *
 * Rows go in the order in which they were written, in small batches with a pause after each, so that neither
 * a writer nor a reader ever waits for more than one batch. The newest row always stays: on SQLite its number
 * is where the next one's begins, and page tokens name such numbers. So does what a follower has not seen yet, however
 * old it is. Several nodes may run this at a time.
 */
import type { Logger } from 'pino'
import type { Clock, Timer } from '../base/clock.ts'
import type { Statement, Store } from '../store/store.ts'
import { type EventFollower, followedPlace, isBehind } from './follower.ts'
import type { CommitPlace } from './page-request.ts'

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
  /** Who must have seen an event before it goes; default: nobody. */
  followers?: readonly EventFollower[]
}

export interface EventRetention {
  /** Repairs what a copied database needs, then begins to look every ten minutes. */
  start(): Promise<void>
  /** One complete run; resolves the number of events deleted. */
  run(): Promise<number>
  stop(): Promise<void>
}

export function createEventRetention(parts: RetentionParts): EventRetention {
  const { store, clock, log, followers = [] } = parts
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
      const seen = followers.length > 0 ? await followedPlace(store) : null
      const gone = await deleteBatch(store, cutoffUs, size, seen)
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
      await adoptCopiedEvents(store, followers)
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

/** SQLite: those below the oldest event that is left (migration 0022). */
const REMOVE_SEGMENTS: Statement = {
  sql: 'DELETE FROM event_segments WHERE segment < (SELECT min(seq) >> 14 FROM events)',
  values: [],
}

/** Deletes those of the `size` oldest rows that are before `cutoffUs`, and up to `seen`; resolves how many. */
async function deleteBatch(
  store: Store,
  cutoffUs: number,
  size: number,
  seen: CommitPlace | null,
): Promise<number> {
  const rows = await store.db
    .selectFrom('events')
    .select(['tx', 'seq', 'timestamp_us'])
    .orderBy('seq')
    .limit(size + 1)
    .execute()
  // One row more than the batch is read, and the last one left, so the newest is never among those to go.
  const old = rows
    .slice(0, Math.min(size, rows.length - 1))
    .filter((row) => row.timestamp_us < cutoffUs && (seen === null || isBehind(row, seen)))
  if (old.length === 0) return 0
  const gone = old.map(({ seq }) => seq)
  const remove = store.statement(store.db.deleteFrom('events').where('seq', 'in', gone))
  await store.commit(store.kind === 'sqlite' ? [remove, REMOVE_SEGMENTS] : [remove])
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
 * A transaction number that no visible row of this server can have: asked in the statement that looks, since others
 * may write meanwhile.
 */
const NEXT_TX = 'pg_snapshot_xmax(pg_current_snapshot())::text::bigint'
const FOREIGN = `SELECT seq FROM events WHERE tx >= ${NEXT_TX} LIMIT`

/**
 * A dump of PostgreSQL restored elsewhere brings transaction numbers that mean nothing there: numbers of the
 * future would keep events out of ascending lists until the counter gets there. Such rows become settled.
 *
 * Their order goes with their numbers, so followers come to the end of it first. Then their places, if they are of the
 * future too, go behind everything that is there. A process may die in between, and several may do it at a time:
 * nobody writes events before his own run is done.
 */
export async function adoptCopiedEvents(
  store: Store,
  followers: readonly EventFollower[] = [],
): Promise<void> {
  if (store.kind !== 'postgres') return
  const [foreign] = await store.read({ sql: `${FOREIGN} 1`, values: [] })
  if (foreign) {
    for (const follower of followers) await follower.stepToEnd()
    const settle = { sql: `UPDATE events SET tx = 0 WHERE seq IN (${FOREIGN} ${ADOPT_ROWS})`, values: [] }
    while (((await store.commit([settle]))[0]?.affected ?? 0) > 0);
  }
  const place = `UPDATE event_followers SET tx = ${NEXT_TX}, seq = 0 WHERE tx >= ${NEXT_TX}`
  await store.commit([{ sql: place, values: [] }])
}
