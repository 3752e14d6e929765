/** After an erasure: what a database keeps of deleted rows outside of its tables. */
import { sql } from 'kysely'
import { pause } from '../../base/flow/pause.ts'
import type { Clock } from '../../base/time/clock.ts'
import type { Store } from '../../platform/store/store.ts'

/** Some milliseconds of SQLite's only writer. */
const PAGES = 64
const PAUSE_MS = 10
/** The log cannot be emptied while a reader is at it. */
const TRIES_MAX = 50
const TRY_AGAIN_MS = 100

export interface Cleaned {
  isDone: boolean
  /** Pages that may still be returned; null: not counted yet. Others free some meanwhile, so it would have no end. */
  pages: number | null
  /** What could not be done; empty: nothing. */
  left: string
}

/**
 * SQLite: returns free pages to the disk, which moves others over them, and empties the log. PostgreSQL: vacuums the tables.
 * Works for about `forMs`, in portions; to be called again until it is done.
 */
export async function clean(
  store: Store,
  clock: Clock,
  { tables, pages: given, forMs }: { tables: readonly string[]; pages: number | null; forMs: number },
  signal: AbortSignal,
): Promise<Cleaned> {
  const { files } = store
  if (files === undefined) {
    for (const table of tables) await sql.raw(`VACUUM ${table}`).execute(store.db)
    return { isDone: true, pages: 0, left: '' }
  }
  const endsAt = clock.monotonic() + forMs
  let pages = given ?? 2 * (await files.measure()).freePages
  while (files.shrinks && pages > 0 && (await files.measure()).freePages > 0) {
    if (signal.aborted || clock.monotonic() >= endsAt) return { isDone: false, pages, left: '' }
    await files.shrink(PAGES)
    pages -= PAGES
    await pause(clock, PAUSE_MS, signal)
  }
  const left = files.shrinks
    ? ''
    : 'Free pages of the database file: it was created without incremental vacuum. A restored backup has it.'
  for (let tries = 0; tries < TRIES_MAX && !signal.aborted; tries++) {
    const before = (await files.measure()).logBytes
    await files.trimLog()
    // Whatever others have written since is less than what was there.
    if (before === 0 || (await files.measure()).logBytes < before) return { isDone: true, pages, left }
    await pause(clock, TRY_AGAIN_MS, signal)
  }
  return { isDone: !signal.aborted, pages, left: `${left} The log of the database: it was in use.`.trim() }
}
