/**
 * How much space each kind of data takes, how fast it grows, and when the disk will be full (own-operations.md section
 * 6). A job measures at intervals and keeps samples; a request reads only those.
 */

import { hostname } from 'node:os'
import { join } from 'node:path'
import { createSideThread } from '../../../base/flow/side-thread.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../base/time/durations.ts'
import { type Sample, trendPerMs } from '../../../base/time/trend.ts'
import type { Core } from '../../../core.ts'
import { createJob } from '../../../platform/jobs/job.ts'
import { BLOB_FOLDER, DATABASE_FILE } from '../../../platform/store/blobs/data-folder.ts'
import { insert, type Store } from '../../../platform/store/store.ts'
import type { SIZE_FUNCTIONS, TableSize } from './sizes-thread.ts'
import { kindOf, type SizeKind, type StoredKind } from './table-kinds.ts'

export interface SizesReport {
  /** Unix milliseconds. */
  measuredAt: number
  kinds: { kind: StoredKind; bytes: number; rows: number; growthPerDay: number | null }[]
  disk: { freeBytes: number; growthPerDay: number | null; fullAt: number | null }
}

type Measured = Map<SizeKind, { bytes: number; rows: number }>

/** Measuring reads the whole database: it takes at most this share of the time, but happens once a day at least. */
const TIME_SHARE = 0.005
const MEASURE_MS_MAX = 10 * MINUTE_MS
const SAMPLES_KEPT_MS = 60 * DAY_MS
/** The trend: long enough for a week's rhythm, short enough to follow a change. */
const TREND_MS = 14 * DAY_MS
const TREND_SPAN_MIN_MS = 2 * HOUR_MS
/** A forecast beyond that says nothing. */
const FORECAST_MAX_MS = 3_650 * DAY_MS

/** Partitions have the name of their table. */
const POSTGRES_SIZES = `SELECT coalesce(parents.relname, tables.relname) AS name,
    sum(pg_total_relation_size(tables.oid)) AS bytes, sum(COALESCE(n_live_tup, 0)) AS row_count
  FROM pg_class AS tables LEFT JOIN pg_stat_user_tables ON relid = tables.oid
    LEFT JOIN pg_inherits ON inhrelid = tables.oid LEFT JOIN pg_class AS parents ON parents.oid = inhparent
  WHERE tables.relkind = 'r' AND tables.relnamespace = current_schema()::regnamespace
  GROUP BY 1`

const NEWEST = 'SELECT max(at) AS at FROM size_samples WHERE node = ?'

export function createSizes({ store, config, clock, space }: Core) {
  const node = hostname()
  const thread = createSideThread<typeof SIZE_FUNCTIONS>(join(import.meta.dirname, 'sizes-thread.ts'), {
    callMsMax: MEASURE_MS_MAX,
  })

  const tableSizes = (): Promise<TableSize[]> =>
    store.kind === 'postgres'
      ? postgresSizes(store)
      : thread.call('tableSizes', () => [join(config.dataFolder, DATABASE_FILE)])

  async function measure(): Promise<Measured> {
    const measured: Measured = new Map()
    const add = (kind: SizeKind, bytes: number, rows: number) => {
      const known = measured.get(kind) ?? { bytes: 0, rows: 0 }
      measured.set(kind, { bytes: known.bytes + bytes, rows: known.rows + rows })
    }
    for (const { name, bytes, rows } of await tableSizes()) add(kindOf(name), bytes, rows)
    const files = await thread.call('folderSize', () => [join(config.dataFolder, BLOB_FOLDER)])
    add('files', files.bytes, files.files)
    add('free', space.freeBytes, 0)
    return measured
  }

  async function sample(): Promise<{ againInMs: number }> {
    const startedAt = clock.monotonic()
    const measured = await measure()
    const tookMs = clock.monotonic() - startedAt
    const at = Math.floor(clock.now())
    const old = 'DELETE FROM size_samples WHERE node = ? AND at < ?'
    await store.commit([
      ...[...measured].map(([kind, { bytes, rows }]) =>
        insert('size_samples', { node, at, kind, bytes, row_count: rows }),
      ),
      { sql: old, values: [node, at - SAMPLES_KEPT_MS] },
    ])
    return { againInMs: Math.max(HOUR_MS, tookMs / TIME_SHARE) }
  }

  let known: SizesReport | null = null

  async function readSamples(): Promise<SizesReport | null> {
    const rows = await store.db
      .selectFrom('size_samples')
      .select(['at', 'kind', 'bytes', 'row_count'])
      .where('node', '=', node)
      .where('at', '>', Math.floor(clock.now() - TREND_MS))
      .orderBy('at')
      .execute()
    const samples = rows.map((row) => ({
      ...{ at: Number(row.at), kind: row.kind as SizeKind },
      ...{ value: Number(row.bytes), rows: Number(row.row_count) },
    }))
    return samples.length === 0 ? null : report(samples, config.freeSpaceMinBytes)
  }

  return {
    job: createJob({ name: 'sizes', everyMs: DAY_MS, scope: 'database', work: sample }),
    /** Null: nothing was measured yet. */
    async read(): Promise<SizesReport | null> {
      const [newest] = await store.read({ sql: NEWEST, values: [node] })
      const newestAt = Number(newest?.['at'] ?? 0)
      if (known?.measuredAt !== newestAt) known = await readSamples()
      return known
    },
    close: () => thread.close(),
  }
}
async function postgresSizes(store: Store): Promise<TableSize[]> {
  const rows = await store.read({ sql: POSTGRES_SIZES, values: [] })
  return rows.map((row) => ({
    name: String(row['name']),
    bytes: Number(row['bytes']),
    rows: Number(row['row_count']),
  }))
}

/** `samples` in order of time; at least one. */
export function report(
  samples: readonly (Sample & { kind: SizeKind; rows: number })[],
  floorBytes: number,
): SizesReport {
  const measuredAt = samples.at(-1)?.at ?? 0
  const byKind = Map.groupBy(samples, ({ kind }) => kind)
  const growth = (kind: SizeKind) => {
    const perMs = growthPerMs(byKind.get(kind) ?? [])
    return perMs === null ? null : Math.round(perMs * DAY_MS)
  }
  const free = byKind.get('free')?.at(-1)?.value ?? 0
  const kinds = [...byKind].flatMap(([kind, ofKind]) => {
    const last = ofKind.at(-1)
    if (kind === 'free' || !last || last.at !== measuredAt) return []
    return [{ kind, bytes: last.value, rows: last.rows, growthPerDay: growth(kind) }]
  })
  const freeGrowth = growth('free')
  const disk = { freeBytes: free, growthPerDay: freeGrowth === null ? null : -freeGrowth }
  return {
    measuredAt,
    kinds: kinds.sort((one, other) => other.bytes - one.bytes),
    disk: { ...disk, fullAt: fullAt(measuredAt, free - floorBytes, disk.growthPerDay) },
  }
}

function growthPerMs(samples: readonly Sample[]): number | null {
  const [first, last] = [samples[0], samples.at(-1)]
  if (!first || !last || last.at - first.at < TREND_SPAN_MIN_MS) return null
  return trendPerMs(samples)
}

/** When the room is used up at this rate; null: not within ten years. */
function fullAt(now: number, roomBytes: number, growthPerDay: number | null): number | null {
  if (roomBytes <= 0) return now
  if (growthPerDay === null || growthPerDay <= 0) return null
  const leftMs = (roomBytes / growthPerDay) * DAY_MS
  return leftMs > FORECAST_MAX_MS ? null : Math.round(now + leftMs)
}
