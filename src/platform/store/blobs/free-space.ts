/**
 * Watches the space for data: the disk's free space, and the free pages within the database.
 *
 * 1. Below the floor new mail is refused (507, SMTP 452). Free pages count: pages that retention frees are reused.
 * 2. Accepted mail is still delivered: its outcomes and events need a little of the space below the floor. When that is
 *    nearly used up, claiming stops, so that outcomes of deliveries in flight can be recorded; an outcome that cannot be
 *    recorded is a message sent twice.
 * 3. While the disk is short of space, SQLite's log is kept small and free pages are released to the disk, a few at a
 *    time. A database that is mostly free pages releases some of them at any time.
 */
import { statfs } from 'node:fs/promises'
import { InsufficientStorage } from '../../../base/process/errors.ts'
import type { Clock, Timer } from '../../../base/time/clock.ts'
import type { DatabaseFiles } from '../store.ts'

export type FreeSpace = Awaited<ReturnType<typeof watchFreeSpace>>

interface FreeSpaceParts {
  /** The data folder. */
  folder: string
  /** Nothing is accepted below this much free space; 0: accept until a write fails. */
  floorBytes: number
  clock: Clock
  /** With SQLite only. */
  files?: DatabaseFiles | undefined
  /** Called when the floor is crossed, in either direction. */
  onChange(enough: boolean): void
  onError(error: unknown): void
  /** Free bytes of the disk that the folder is on; replaced in tests. */
  freeBytes?: (() => Promise<number>) | undefined
}

const MEGABYTE = 1024 * 1024
/** A check costs about 20 us, and 0.2 ms more if it queries the database, as every check does while the disk is short. */
const CHECK_EVERY_MS = { short: 250, ample: 1_000 }
/** While the disk is not short, every 60th check queries the database. */
const MEASURE_EVERY = 60
/** The log is kept small from this margin above the floor on: at its full length it takes 80 MB. */
const SHORT_MARGIN_BYTES = 64 * MEGABYTE
/** Disk space that the log may need before it restarts, where the rows themselves fit into free pages. */
const LOG_RESERVE_BYTES = 8 * MEGABYTE
/** A longer log is truncated while the disk is short. */
const LOG_SHORT_MAX_BYTES = 4 * MEGABYTE
/** Pages released in one transaction: 1 to 8 ms, for which all writers wait. */
const SHRINK_PAGES = 64
/** Transactions between two checks: at most 5 MB a second while the disk is short, else 2.5. */
const SHRINK_STEPS = { short: 5, ample: 10 }
/** Free pages that are kept for new rows. While the disk is not short: a quarter of the file, and at least 64 MB. */
const KEPT_SHORT_BYTES = 4 * MEGABYTE
const KEPT_AMPLE_BYTES = 64 * MEGABYTE

/** `spareBytes`: free pages within the database; `logBytes`: its log, which checkpoints may have to copy into new pages. */
export function judgeSpace(
  { diskBytes, spareBytes, logBytes }: { diskBytes: number; spareBytes: number; logBytes: number },
  floorBytes: number,
): { enough: boolean; mayClaim: boolean; short: boolean } {
  const logReserve = Math.min(LOG_RESERVE_BYTES, floorBytes / 8)
  const freeBytes = diskBytes + spareBytes
  return {
    enough: diskBytes >= logReserve && freeBytes >= floorBytes,
    // Twice what accepting needs: deliveries must leave enough space for accepting to resume.
    mayClaim: floorBytes === 0 || freeBytes - logBytes >= 2 * logReserve,
    short: diskBytes < floorBytes + SHORT_MARGIN_BYTES,
  }
}

/** How many free pages to release to the disk now. */
export function pagesToRelease(
  { pageBytes, pages, freePages }: { pageBytes: number; pages: number; freePages: number },
  short: boolean,
  diskBytes: number,
): number {
  const kept = short ? KEPT_SHORT_BYTES / pageBytes : Math.max(KEPT_AMPLE_BYTES / pageBytes, pages / 4)
  // Pages that move pass through the log, which needs disk space too.
  const logMax = Math.max(SHRINK_PAGES, diskBytes / pageBytes / 2)
  const max = Math.min((short ? SHRINK_STEPS.short : SHRINK_STEPS.ample) * SHRINK_PAGES, logMax)
  return Math.floor(Math.max(0, Math.min(freePages - kept, max)))
}

export async function watchFreeSpace(parts: FreeSpaceParts) {
  const { folder, floorBytes, clock, files, freeBytes = () => freeOn(folder) } = parts
  let state = { enough: true, mayClaim: true, short: false }
  let timer: Timer | null = null
  let closed = false
  let checks = 0
  let diskBytes = 0
  let knownSpareBytes = 0
  /** Space within the database; null: not measured by the last check. */
  let usage: Awaited<ReturnType<DatabaseFiles['measure']>> | null = null
  let pending: Promise<void> = Promise.resolve()
  /** The last check failed, and the error was reported. */
  let failing = false

  async function check(): Promise<void> {
    diskBytes = await freeBytes()
    const { short } = judgeSpace({ diskBytes, spareBytes: 0, logBytes: 0 }, floorBytes)
    if (short !== state.short) files?.setShort(short)
    usage = files && (short || checks++ % MEASURE_EVERY === 0) ? await files.measure() : null
    const spareBytes = usage ? usage.freePages * usage.pageBytes : 0
    if (usage) knownSpareBytes = spareBytes
    update(judgeSpace({ diskBytes, spareBytes, logBytes: short ? (usage?.logBytes ?? 0) : 0 }, floorBytes))
  }

  function update(now: typeof state): void {
    const changed = now.enough !== state.enough
    state = now
    if (changed) parts.onChange(now.enough)
  }

  /** Releases free pages and truncates the log, as the last check measured them. */
  async function release(): Promise<void> {
    if (!files || !usage) return
    const { short, mayClaim } = state
    const pages = files.shrinks ? pagesToRelease(usage, short, diskBytes) : 0
    // There may be more to release: the next check measures again.
    if (pages > 0) checks = 0
    try {
      for (let left = pages; left > 0 && !closed; left -= SHRINK_PAGES)
        await files.shrink(Math.min(left, SHRINK_PAGES))
    } finally {
      // While claiming is stopped even a short log may be what takes the missing space.
      const isLong = usage.logBytes > (mayClaim ? LOG_SHORT_MAX_BYTES : 0)
      if (short && !closed && (pages > 0 || isLong)) await files.trimLog()
    }
  }

  function arm(): void {
    timer = clock.setTimer(state.short ? CHECK_EVERY_MS.short : CHECK_EVERY_MS.ample, () => {
      pending = check()
        .then(release)
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
  await check()
  arm()
  return {
    /** False: below the floor at the last check. */
    get enough(): boolean {
      return state.enough
    },
    /** False: outcomes might not be recorded. */
    get mayClaim(): boolean {
      return state.mayClaim
    },
    /** Free space of the disk at the last check, and within the database when it was measured last. */
    get freeBytes(): number {
      return diskBytes + knownSpareBytes
    },
    /** @throws InsufficientStorage below the floor */
    check(): void {
      if (!state.enough) throw new InsufficientStorage()
    },
    async close(): Promise<void> {
      closed = true
      timer?.cancel()
      await pending
    },
  }
}

async function freeOn(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}
