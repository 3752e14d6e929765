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

export interface Checkpoints {
  /** Records a committed group of units or transaction: its rows, and the bytes of BLOBs among their values. */
  wrote(rows: number, bytes: number): void
  /** Whether the disk is short of space. */
  setShort(short: boolean): void
  /** Resolves when no checkpoint is running. */
  idle(): Promise<void>
}

interface CheckpointParts {
  /** `PRAGMA wal_checkpoint(PASSIVE)` on another connection than the writer's; resolves to the pages in the log. */
  checkpoint(): Promise<number>
  /** Syncs the checkpointed pages to disk. */
  syncFile(): Promise<void>
  /** A checkpoint by the writer, between two groups; after it the log restarts. */
  restartLog(): Promise<void>
}

export function createCheckpoints({ checkpoint, syncFile, restartLog }: CheckpointParts): Checkpoints {
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
    wrote(rows, bytes) {
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
    setShort(short) {
      checkpointBytes = short ? SHORT.checkpointBytes : CHECKPOINT_BYTES
      logPagesMax = short ? SHORT.logPagesMax : LOG_PAGES_MAX
    },
    idle: async () => void (await running),
  }
}
