/**
 * Carries what is committed from SQLite's log (the WAL) over into the database file, beside the writer. Left to
 * itself SQLite does that within the COMMIT that makes the log too long, and all that is being accepted waits for it
 * (p99 31 ms; 25 ms without any checkpoint, decision 33).
 *
 * 1. After so much has been written, the reader's thread checkpoints, while the writer goes on.
 * 2. The log can begin anew only when nothing is left in it, which never happens beside a busy writer. So once it is
 *    long, the writer itself checkpoints the little that has come since.
 * 3. Only a checkpoint that leaves nothing behind syncs the database file, and all that the others have written to it:
 *    20 to 50 ms. So the file is synced beside the writer, whenever so much has been carried over: 10 ms of disk at a
 *    time, for which the log's own syncs wait. Once for all of them before the log begins anew it took 30 ms, and a call
 *    in a hundred 32 ms instead of 22.
 */

/** The log grows by about this much between two checkpoints; pages that change again and again are carried over once. */
const CHECKPOINT_BYTES = 16 * 1024 * 1024
/** Pages of 4 KB from which on the writer makes the log begin anew. */
const LOG_PAGES_MAX = 16_000
/**
 * The same while the disk is short of space: the log takes some 4 MB instead of 80, for more work per message. Below
 * this the fixed costs of a checkpoint (a sync each) would count.
 */
const SHORT = { checkpointBytes: 2 * 1024 * 1024, logPagesMax: 1_000 }
/**
 * Pages of the log at which a COMMIT checkpoints after all: a safety net, far above where the log is kept. Not so far
 * where space is short: a slow disk may keep the reader's thread from its work for as long as it takes to fill up.
 */
export const LOG_PAGES_NET = { ample: 64_000, short: 2_000 }
/** What a group of units writes beside its values: pages of trees, whole although little in them has changed. */
const GROUP_BYTES = 48 * 1024
/** What a row takes with its indexes; more if it is deleted, less if it is one of many that are inserted. */
const ROW_BYTES = 3 * 1024

export interface Checkpoints {
  /** A group of units, or a transaction, was committed: so many rows, and so many bytes of BLOBs among their values. */
  wrote(rows: number, bytes: number): void
  /** Whether the disk is short of space. */
  setShort(short: boolean): void
  /** Resolves when none is under way. */
  idle(): Promise<void>
}

export interface CheckpointParts {
  /** What `PRAGMA wal_checkpoint(PASSIVE)` does on another connection; resolves the pages in the log. */
  checkpoint(): Promise<number>
  /** Waits until what has been carried over is on the disk. */
  syncFile(): Promise<void>
  /** A checkpoint of the writer, between two groups. */
  beginAnew(): Promise<void>
}

export function createCheckpoints({ checkpoint, syncFile, beginAnew }: CheckpointParts): Checkpoints {
  let written = 0
  let checkpointBytes = CHECKPOINT_BYTES
  let logPagesMax = LOG_PAGES_MAX
  let running: Promise<void> | null = null

  async function run(): Promise<void> {
    const pages = await checkpoint()
    await syncFile()
    if (pages < logPagesMax) return
    await checkpoint() // what has come meanwhile
    await beginAnew()
  }

  return {
    wrote(rows, bytes) {
      written += GROUP_BYTES + ROW_BYTES * rows + bytes
      if (running || written < checkpointBytes) return
      written = 0
      // One that fails is tried again after the next so many bytes; meanwhile the log keeps everything, and SQLite's
      // own checkpoint comes in when it is four times as long.
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
