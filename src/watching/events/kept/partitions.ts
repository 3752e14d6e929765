/**
 * Partitions of events by time, on PostgreSQL (decision 151).
 *
 * The newest partition reaches to the end of time, and the oldest from its beginning, so every event has a place whenever
 * this runs. Before the newest one's time comes it is ended, and a further one begins there:
 *
 * 1. Constraints say that its rows are before the new bound. If it has many rows, they are first added for new rows only,
 *    which refuses events after the bound, and then checked without blocking anybody. The bound is days ahead, and `repair`
 *    takes it back when that time comes near.
 * 2. One transaction attaches it with the new bound and adds the next partition. PostgreSQL looks at no rows, as the
 *    constraints prove the bound.
 *
 * The partitions of `event_tags` have the same bounds and change in the same transactions. All of these wait for a lock for
 * a fraction of a second, since every statement waits behind them, and are tried again.
 */
import { sql, type Transaction } from 'kysely'
import { pause } from '../../../base/flow/pause.ts'
import { MINUTE_MS } from '../../../base/time/durations.ts'
import type { Core } from '../../../core.ts'
import { type Bounds, PARTITIONS_OF, parseBounds } from '../../../platform/store/event-bounds.ts'
import { advisoryKey } from '../../../platform/store/pods/pod.ts'
import { EVENT_PARTITIONS_LOCK } from '../../../platform/store/postgres/advisory-locks.ts'
import type { Schema } from '../../../platform/store/schema.ts'
import { type Store, StoreBusy } from '../../../platform/store/store.ts'
import type { CommitPosition } from '../search/page-request.ts'

const DAY_US = 86_400_000_000
/** With fewer events one partition is better: pages of rare events read all. */
const PARTITIONED_FROM_BYTES = 1_000_000_000
/** The newest partition begins at least so long from now. */
const AHEAD_US = 2 * DAY_US
/** The same where its rows are checked while events are written. */
const CHECKED_AHEAD_US = 7 * DAY_US
/** A bound that is not further away is not waited for. */
const REPAIRED_US = DAY_US
/** Larger ones are checked without a lock. */
const CHECKED_FROM_BYTES = 64_000_000
/** A session that has done nothing in its transaction for so long may be ended. */
const FORGOTTEN_MS = 10 * MINUTE_MS
/** Later events are the work of a wrong clock. They must not keep the partition open for ever. */
const EVENTS_AHEAD_US = 30 * DAY_US
/** Retention has about so many partitions. */
const PARTITIONS = 8

const LOCK_WAIT = '200ms'
const TRIES_MAX = 20
const TRY_AGAIN_MS = 500
const VIOLATED = '23514'

/** In the order in which writers of events lock them. */
const TABLES = ['events', 'event_tags'] as const

interface Partition extends Bounds {
  /** Its tables are `events_SUFFIX` and `event_tags_SUFFIX`. */
  suffix: string
}

interface PartitionParts extends Pick<Core, 'store' | 'clock' | 'log'> {
  /** Retention of events. */
  days: number
  /** For tests. */
  partitionedFromBytes?: number
  checkedFromBytes?: number
  forgottenMs?: number
}

export type EventPartitions = ReturnType<typeof createEventPartitions>

type Tx = Transaction<Schema>
type Run = Pick<Store, 'db'>['db'] | Tx

/** Whole days, so that each begins at midnight UTC. */
export const spanUs = (days: number): number => Math.max(1, Math.round(days / PARTITIONS)) * DAY_US

/** The name of a partition that begins there: at midnight UTC. */
const suffixOf = (fromUs: number) => new Date(fromUs / 1000).toISOString().slice(0, 10).replaceAll('-', '')
const startName = (fromUs: number) => `starts_at_${fromUs}`
const endName = (toUs: number) => `ends_at_${toUs}`

export function createEventPartitions(parts: PartitionParts) {
  const { store, clock, log } = parts
  const { partitionedFromBytes = PARTITIONED_FROM_BYTES, checkedFromBytes = CHECKED_FROM_BYTES } = parts
  const { change, end, announce, finish, takeBack } = createBoundChanges(parts)
  const span = spanUs(parts.days)
  const isUsed = store.kind === 'postgres'
  const nowUs = () => Math.floor(clock.now() * 1000)
  let isWarned = false

  async function repair(signal?: AbortSignal): Promise<void> {
    const newest = await newestOf(store.db)
    const toUs = await announced(store.db, newest)
    if (toUs !== null && toUs <= nowUs() + REPAIRED_US) await takeBack(newest, toUs, signal)
  }

  async function advance(signal?: AbortSignal): Promise<void> {
    await repair(signal)
    const newest = await newestOf(store.db)
    const begun = await announced(store.db, newest)
    if (begun !== null) return finish(newest, begun, signal)
    const size = await sizeOf(store, newest)
    const isDue =
      newest.fromUs === null ? size.totalBytes >= partitionedFromBytes : newest.fromUs < nowUs() + AHEAD_US
    if (!isDue) return
    const isLarge = size.rowBytes > checkedFromBytes
    const lastUs = await lastEvent(store, newest, signal)
    if (signal?.aborted) return
    if (lastUs > nowUs() + EVENTS_AHEAD_US) {
      if (!isWarned)
        log.warn('no partition for events can be added: some are more than 30 days in the future')
      isWarned = true
      return
    }
    const ahead = nowUs() + (isLarge ? CHECKED_AHEAD_US : AHEAD_US)
    const toUs = (Math.floor(Math.max(ahead, newest.fromUs ?? 0, lastUs) / span) + 1) * span
    if (!isLarge) return void (await end(newest, toUs, signal))
    if (await announce(newest, toUs, signal)) {
      const announcedUs = await announced(store.db, newest)
      if (announcedUs !== null) await finish(newest, announcedUs, signal)
    }
  }

  return {
    /** Takes back a bound that comes near; to be called before anybody writes events. */
    repair: async (): Promise<void> => (isUsed ? repair() : undefined),
    /** Adds a partition if it is time, and has the tables analysed once a day. */
    async advance(signal?: AbortSignal): Promise<void> {
      if (!isUsed) return
      await advance(signal)
      if (!signal?.aborted) await analyse(store.db)
    },
    /**
     * Drops the partitions that end at `cutoffUs` or before and whose events all followers have processed; resolves to
     * their number. `isEmpty`: only those without rows.
     */
    async drop(
      cutoffUs: number,
      processed: CommitPosition | null,
      isEmpty: boolean,
      signal?: AbortSignal,
    ): Promise<number> {
      let dropped = 0
      while (isUsed && !signal?.aborted) {
        const [oldest, next] = await partitionsOf(store.db)
        if (!oldest || !next || oldest.toUs === null || oldest.toUs > cutoffUs) break
        if (isEmpty && (await hasRows(store.db, oldest))) break
        let isDropped = false
        await change(async (tx) => {
          isDropped = false
          await lock(tx, [oldest, next])
          const [first, second] = await partitionsOf(tx)
          if (!isSame(first, oldest) || !isSame(second, next)) return
          if (isEmpty && (await hasRows(tx, oldest))) return
          if (processed && (await hasRowsAfter(tx, oldest, processed))) return
          for (const table of TABLES) {
            await run(tx, `DROP TABLE ${table}_${oldest.suffix}`)
            await reachToTheBeginning(tx, table, next)
          }
          isDropped = true
        }, signal)
        if (!isDropped) break
        dropped++
        log.info({ partition: oldest.suffix }, 'a partition of events beyond retention was dropped')
      }
      return dropped
    },
    /** How much longer than their retention events may be kept, in microseconds; 0 without partitions. */
    keptLongerUs: async (): Promise<number> =>
      isUsed && (await partitionsOf(store.db)).length > 1 ? span : 0,
  }
}

/** Transactions that change the bounds of partitions. */
function createBoundChanges({ store, clock, log, forgottenMs = FORGOTTEN_MS }: PartitionParts) {
  /** One transaction that changes partitions, tried again while the tables are in use. False: they always were. */
  async function change(work: (tx: Tx) => Promise<void>, signal?: AbortSignal): Promise<boolean> {
    for (let tries = 1; ; tries++) {
      try {
        await store.transaction(async (tx) => {
          await run(tx, `SELECT pg_advisory_xact_lock(${advisoryKey(EVENT_PARTITIONS_LOCK)})`)
          await run(tx, `SET LOCAL lock_timeout = '${LOCK_WAIT}'`)
          await work(tx)
        })
        return true
      } catch (error) {
        if (!(error instanceof StoreBusy)) throw error
        if (tries === TRIES_MAX || signal?.aborted) return false
        await pause(clock, TRY_AGAIN_MS, signal)
      }
    }
  }

  /** Ends the newest partition at `toUs`, and adds the next one. */
  const end = (newest: Partition, toUs: number, signal?: AbortSignal) =>
    change(async (tx) => {
      await lock(tx, [newest])
      if (!isSame(await newestOf(tx), newest)) return
      for (const table of TABLES) await split(tx, table, newest, toUs)
      log.info({ partition: suffixOf(toUs) }, 'a partition for events was added')
    }, signal)

  /** From now on no row may be at `toUs` or later. */
  const announce = (newest: Partition, toUs: number, signal?: AbortSignal) =>
    change(async (tx) => {
      await lock(tx, [newest])
      if (!isSame(await newestOf(tx), newest) || (await announced(tx, newest)) !== null) return
      for (const table of TABLES)
        await run(
          tx,
          `ALTER TABLE ${table}_${newest.suffix} ADD CONSTRAINT ${endName(toUs)} CHECK (timestamp_us < ${toUs}) NOT VALID`,
        )
    }, signal)

  /** Checks its rows and ends it. */
  async function finish(newest: Partition, toUs: number, signal?: AbortSignal): Promise<void> {
    for (const table of TABLES) {
      // Does nothing if it was checked already.
      const validate = `ALTER TABLE ${table}_${newest.suffix} VALIDATE CONSTRAINT ${endName(toUs)}`
      try {
        await cancellable(store, validate, signal)
      } catch (error) {
        if ((error as { code?: unknown }).code !== VIOLATED) throw error
        // Written between the choice of the bound and the constraint.
        return takeBack(newest, toUs, signal)
      }
      if (signal?.aborted) return
    }
    if (toUs > clock.now() * 1000 + REPAIRED_US) await end(newest, toUs, signal)
  }

  async function takeBack(newest: Partition, toUs: number, signal?: AbortSignal): Promise<void> {
    log.warn('a partition for events could not be ended; it will be tried again')
    const drop = () =>
      change(async (tx) => {
        await lock(tx, [newest])
        if (!isSame(await newestOf(tx), newest)) return
        for (const table of TABLES)
          await run(tx, `ALTER TABLE ${table}_${newest.suffix} DROP CONSTRAINT IF EXISTS ${endName(toUs)}`)
      }, signal)
    if (await drop()) return
    // Beyond the bound no event could be written, and so no mail be accepted.
    await endForgotten(store.db, newest, forgottenMs).catch((error) =>
      log.error({ err: error }, 'cannot end sessions that hold the table of events'),
    )
    if (!(await drop()))
      throw new Error('Cannot take back the bound of a partition of events: the table is in use')
  }

  return { change, end, announce, finish, takeBack }
}

const run = (on: Run, text: string) => sql.raw<Record<string, unknown>>(text).execute(on)

/** The parent tables and these partitions, in the order of writers; other partitions stay in use. */
async function lock(tx: Tx, partitions: readonly Partition[]): Promise<void> {
  const names = TABLES.flatMap((table) => [
    `ONLY ${table}`,
    ...partitions.map(({ suffix }) => `${table}_${suffix}`),
  ])
  await run(tx, `LOCK TABLE ${names.join(', ')} IN ACCESS EXCLUSIVE MODE`)
}

async function attach(tx: Tx, table: string, { suffix, fromUs, toUs }: Partition): Promise<void> {
  const bounds = `FROM (${fromUs ?? 'MINVALUE'}) TO (${toUs ?? 'MAXVALUE'})`
  await run(tx, `ALTER TABLE ${table} ATTACH PARTITION ${table}_${suffix} FOR VALUES ${bounds}`)
}

/** Ends the newest partition of a table at `toUs`, where the next one begins. */
async function split(tx: Tx, table: string, newest: Partition, toUs: number): Promise<void> {
  const ended = `${table}_${newest.suffix}`
  const next = `${table}_${suffixOf(toUs)}`
  await run(tx, `ALTER TABLE ${table} DETACH PARTITION ${ended}`)
  if (!(await hasConstraint(tx, ended, endName(toUs))))
    await run(tx, `ALTER TABLE ${ended} ADD CONSTRAINT ${endName(toUs)} CHECK (timestamp_us < ${toUs})`)
  await attach(tx, table, { ...newest, toUs })
  await run(tx, `CREATE TABLE ${next} (LIKE ${ended} INCLUDING ALL EXCLUDING IDENTITY)`)
  await run(tx, `ALTER TABLE ${next} DROP CONSTRAINT ${endName(toUs)}`)
  if (newest.fromUs !== null)
    await run(tx, `ALTER TABLE ${next} DROP CONSTRAINT IF EXISTS ${startName(newest.fromUs)}`)
  await run(tx, `ALTER TABLE ${next} ADD CONSTRAINT ${startName(toUs)} CHECK (timestamp_us >= ${toUs})`)
  await attach(tx, table, { suffix: suffixOf(toUs), fromUs: toUs, toUs: null })
}

/** The oldest partition takes whatever is older. Its other constraint proves the bound that it keeps. */
async function reachToTheBeginning(tx: Tx, table: string, partition: Partition): Promise<void> {
  const { suffix, fromUs } = partition
  await run(tx, `ALTER TABLE ${table} DETACH PARTITION ${table}_${suffix}`)
  await run(tx, `ALTER TABLE ${table}_${suffix} DROP CONSTRAINT IF EXISTS ${startName(fromUs ?? 0)}`)
  await attach(tx, table, { ...partition, fromUs: null })
}

/** In order of time. */
export async function partitionsOf(on: Run): Promise<Partition[]> {
  const { rows } = await run(on, `${PARTITIONS_OF}('events')`)
  return rows
    .map((row) => ({
      suffix: String(row['name']).slice('events_'.length),
      ...parseBounds(String(row['bound'])),
    }))
    .sort((a, b) => (a.fromUs ?? Number.NEGATIVE_INFINITY) - (b.fromUs ?? Number.NEGATIVE_INFINITY))
}

async function newestOf(on: Run): Promise<Partition> {
  const newest = (await partitionsOf(on)).at(-1)
  if (newest?.toUs !== null)
    throw new Error('The newest partition of events does not reach to the end of time')
  return newest
}

const isSame = (a: Partition | undefined, b: Partition) =>
  a?.suffix === b.suffix && a.fromUs === b.fromUs && a.toUs === b.toUs

async function hasConstraint(on: Run, table: string, name: string): Promise<boolean> {
  const { rows } = await run(
    on,
    `SELECT 1 FROM pg_constraint WHERE conrelid = to_regclass('${table}') AND conname = '${name}'`,
  )
  return rows.length > 0
}

/** The bound that the newest partition is to have; null: nothing was begun. */
async function announced(on: Run, { suffix }: Partition): Promise<number | null> {
  const { rows } = await run(
    on,
    `SELECT conname AS name FROM pg_constraint
      WHERE conrelid = to_regclass('events_${suffix}') AND starts_with(conname, 'ends_at_')`,
  )
  const [row] = rows
  return row ? Number(String(row['name']).slice('ends_at_'.length)) : null
}

async function sizeOf(
  store: Store,
  { suffix }: Partition,
): Promise<{ totalBytes: number; rowBytes: number }> {
  const names = TABLES.map((table) => `to_regclass('${table}_${suffix}')`)
  const sum = (size: string) => names.map((name) => `${size}(${name})`).join(' + ')
  const { rows } = await run(
    store.db,
    `SELECT ${sum('pg_total_relation_size')} AS total, ${sum('pg_relation_size')} AS rows`,
  )
  return { totalBytes: Number(rows[0]?.['total']), rowBytes: Number(rows[0]?.['rows']) }
}

/** The latest time of its events, 0 without any; reads all of them. */
async function lastEvent(store: Store, { suffix }: Partition, signal?: AbortSignal): Promise<number> {
  const rows = await cancellable(store, `SELECT max(timestamp_us) AS us FROM events_${suffix}`, signal)
  return Number(rows[0]?.['us'] ?? 0)
}

/** What may take minutes: ends early, with no rows, when `signal` aborts. */
async function cancellable(
  store: Store,
  text: string,
  signal?: AbortSignal,
): Promise<Record<string, unknown>[]> {
  let cancel = () => {}
  try {
    return await store.transaction(async (tx) => {
      const { rows } = await run(tx, 'SELECT pg_backend_pid() AS pid')
      cancel = () =>
        void run(store.db, `SELECT pg_cancel_backend(${Number(rows[0]?.['pid'])})`).catch(() => {})
      signal?.addEventListener('abort', cancel)
      signal?.throwIfAborted()
      return (await run(tx, text)).rows
    })
  } catch (error) {
    if (signal?.aborted) return []
    throw error
  } finally {
    signal?.removeEventListener('abort', cancel)
  }
}

/** Ends sessions that hold these tables in a transaction in which they have done nothing for `idleMs`. */
async function endForgotten(on: Run, { suffix }: Partition, idleMs: number): Promise<void> {
  const names = TABLES.flatMap((table) => [`to_regclass('${table}')`, `to_regclass('${table}_${suffix}')`])
  await run(
    on,
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE state LIKE 'idle in transaction%' AND state_change <= clock_timestamp() - interval '${idleMs} ms'
        AND pid IN (SELECT pid FROM pg_locks WHERE granted AND relation IN (${names.join(', ')}))`,
  )
}

/** The server analyses partitions by itself, but not the tables that they belong to, whose figures its planner needs for joins. */
async function analyse(on: Run): Promise<void> {
  for (const table of TABLES) {
    const { rows } = await run(
      on,
      `SELECT 1 FROM pg_stat_user_tables
        WHERE relid = to_regclass('${table}') AND last_analyze > now() - interval '1 day'`,
    )
    if (rows.length === 0) await run(on, `ANALYZE ${table}`)
  }
}

async function hasRows(on: Run, { suffix }: Partition): Promise<boolean> {
  return (await run(on, `SELECT 1 FROM events_${suffix} LIMIT 1`)).rows.length > 0
}

async function hasRowsAfter(on: Run, { suffix }: Partition, { tx, seq }: CommitPosition): Promise<boolean> {
  const { rows } = await run(on, `SELECT 1 FROM events_${suffix} WHERE (tx, seq) > (${tx}, ${seq}) LIMIT 1`)
  return rows.length > 0
}
