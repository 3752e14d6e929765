/**
 * Watches the room for data: the disk's free space, and the free pages within the database.
 *
 * 1. Below the floor new mail is refused (507, SMTP 452). Free pages count: what retention empties can be written anew.
 * 2. What was accepted goes on being delivered: its outcomes and events need a little of the room below the floor. Only
 *    when that is nearly gone is nothing claimed any more, so that outcomes of what is in flight can be recorded;
 *    an outcome that cannot be is a message sent twice.
 * 3. While the disk is short, SQLite's log is kept small and free pages are given back to the disk, a few at a time. Of a
 *    database that is mostly free pages some are given back at any time.
 */
import { statfs } from 'node:fs/promises'
import type { Clock, Timer } from '../base/clock.ts'
import { InsufficientStorage } from '../base/errors.ts'
import type { DatabaseFiles } from './store.ts'

export interface FreeSpace {
  /** False: below the floor at the last look. */
  readonly enough: boolean
  /** False: outcomes might not be recorded. */
  readonly mayClaim: boolean
  /** @throws InsufficientStorage below the floor */
  check(): void
  close(): Promise<void>
}

export interface FreeSpaceParts {
  /** The data folder. */
  folder: string
  /** Below this much room nothing is accepted; 0: until a write fails. */
  floorBytes: number
  clock: Clock
  /** Of SQLite. */
  files?: DatabaseFiles | undefined
  /** Told when the floor is crossed, in either direction. */
  onChange(enough: boolean): void
  onError(error: unknown): void
  /** Free bytes of the disk that the folder is on; replaced in tests. */
  freeBytes?: (() => Promise<number>) | undefined
}

const MEGABYTE = 1024 * 1024
/** A look costs some 20 us, and 0.2 ms more when the database is asked too, as it always is while the disk is short. */
const LOOK_EVERY_MS = { short: 250, ample: 1_000 }
/** Looks after which the database is asked although the disk has room. */
const MEASURE_EVERY = 60
/** So close above the floor the log is kept small already: at its full length it takes 80 MB. */
const SHORT_MARGIN_BYTES = 64 * MEGABYTE
/** What the log may need of the disk before it begins anew, where free pages take the rows themselves. */
const LOG_ROOM_BYTES = 8 * MEGABYTE
/** Longer than this the log is cut while the disk is short. */
const LOG_SHORT_MAX_BYTES = 4 * MEGABYTE
/** Pages given back in one transaction: 1 to 8 ms, for which everybody who writes waits. */
const SHRINK_PAGES = 64
/** Transactions between two looks: at most 5 MB a second while the disk is short, else 2.5. */
const SHRINK_STEPS = { short: 5, ample: 10 }
/** Free pages that are kept for what comes next. While the disk has room: a quarter of the file, and at least 64 MB. */
const KEPT_SHORT_BYTES = 4 * MEGABYTE
const KEPT_AMPLE_BYTES = 64 * MEGABYTE

/** `spareBytes`: free pages within the database; `logBytes`: its log, which may have to be carried over into new pages. */
export function judgeSpace(
  { diskBytes, spareBytes, logBytes }: { diskBytes: number; spareBytes: number; logBytes: number },
  floorBytes: number,
): { enough: boolean; mayClaim: boolean; short: boolean } {
  const logRoom = Math.min(LOG_ROOM_BYTES, floorBytes / 8)
  const room = diskBytes + spareBytes
  return {
    enough: diskBytes >= logRoom && room >= floorBytes,
    // Twice what accepting needs of the disk: deliveries must not use up what gets it going again.
    mayClaim: floorBytes === 0 || room - logBytes >= 2 * logRoom,
    short: diskBytes < floorBytes + SHORT_MARGIN_BYTES,
  }
}

/** Pages to give back now. */
export function pagesToGiveBack(
  { pageBytes, pages, freePages }: { pageBytes: number; pages: number; freePages: number },
  short: boolean,
  diskBytes: number,
): number {
  const kept = short ? KEPT_SHORT_BYTES / pageBytes : Math.max(KEPT_AMPLE_BYTES / pageBytes, pages / 4)
  // They pass through the log first.
  const room = Math.max(SHRINK_PAGES, diskBytes / pageBytes / 2)
  const max = Math.min((short ? SHRINK_STEPS.short : SHRINK_STEPS.ample) * SHRINK_PAGES, room)
  return Math.floor(Math.max(0, Math.min(freePages - kept, max)))
}

export async function watchFreeSpace(parts: FreeSpaceParts): Promise<FreeSpace> {
  const { folder, floorBytes, clock, files, freeBytes = () => freeOn(folder) } = parts
  let state = { enough: true, mayClaim: true, short: false }
  let timer: Timer | null = null
  let closed = false
  let looks = 0
  let diskBytes = 0
  /** Within the database; null: not looked at, since the disk has room. */
  let room: Awaited<ReturnType<DatabaseFiles['measure']>> | null = null
  let looking: Promise<void> = Promise.resolve()
  /** The last look failed, and that was told. */
  let failing = false

  async function look(): Promise<void> {
    diskBytes = await freeBytes()
    const { short } = judgeSpace({ diskBytes, spareBytes: 0, logBytes: 0 }, floorBytes)
    if (short !== state.short) files?.setShort(short)
    room = files && (short || looks++ % MEASURE_EVERY === 0) ? await files.measure() : null
    const spareBytes = room ? room.freePages * room.pageBytes : 0
    settle(judgeSpace({ diskBytes, spareBytes, logBytes: short ? (room?.logBytes ?? 0) : 0 }, floorBytes))
  }

  function settle(now: typeof state): void {
    const changed = now.enough !== state.enough
    state = now
    if (changed) parts.onChange(now.enough)
  }

  /** What the look has found. */
  async function giveBack(): Promise<void> {
    if (!files || !room) return
    const { short, mayClaim } = state
    const pages = files.shrinks ? pagesToGiveBack(room, short, diskBytes) : 0
    // There may be more to give back.
    if (pages > 0) looks = 0
    try {
      for (let left = pages; left > 0 && !closed; left -= SHRINK_PAGES)
        await files.shrink(Math.min(left, SHRINK_PAGES))
    } finally {
      // However short the log is, it may be what claims wait for.
      const isLong = room.logBytes > (mayClaim ? LOG_SHORT_MAX_BYTES : 0)
      if (short && !closed && (pages > 0 || isLong)) await files.trimLog()
    }
  }

  function arm(): void {
    timer = clock.setTimer(state.short ? LOOK_EVERY_MS.short : LOOK_EVERY_MS.ample, () => {
      looking = look()
        .then(giveBack)
        .then(
          () => {
            failing = false
          },
          (error: unknown) => {
            if (!failing) parts.onError(error)
            failing = true
          },
        )
        .finally(() => {
          if (!closed) arm()
        })
    })
  }
  await look()
  arm()
  return {
    get enough() {
      return state.enough
    },
    get mayClaim() {
      return state.mayClaim
    },
    check() {
      if (!state.enough) throw new InsufficientStorage()
    },
    async close() {
      closed = true
      timer?.cancel()
      await looking
    },
  }
}

async function freeOn(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}
