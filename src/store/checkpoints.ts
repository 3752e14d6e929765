/**
 * Carries what is committed from SQLite's log (the WAL) over into the database file, beside the writer. Left to
 * itself SQLite does that within the COMMIT that makes the log too long, and all that is being accepted waits for it
 * (p99 31 ms; 25 ms without any checkpoint, decision 33).
 *
 * 1. After so much has been written, the reader's thread checkpoints, while the writer goes on.
 * 2. The log can begin anew only when nothing is left in it, which never happens beside a busy writer. So once it is
 *    long, the writer itself checkpoints the little that has come since.
 */

/** The log grows by about this much between two checkpoints. */
const CHECKPOINT_BYTES = 8 * 1024 * 1024
/** Pages of 4 KB from which on the writer makes the log begin anew. */
const LOG_PAGES_MAX = 8_000
/** What a group of units writes beside its values: pages of trees, whole although little in them has changed. */
const GROUP_BYTES = 48 * 1024
/** What a row takes with its indexes; more if it is deleted, less if it is one of many that are inserted. */
const ROW_BYTES = 3 * 1024

export interface Checkpoints {
  /** A group of units, or a transaction, was committed: so many rows, and so many bytes of BLOBs among their values. */
  wrote(rows: number, bytes: number): void
}

/**
 * @param checkpoint what `PRAGMA wal_checkpoint(PASSIVE)` does on another connection; resolves the pages in the log
 * @param beginAnew the same on the writer, between two groups
 */
export function createCheckpoints(
  checkpoint: () => Promise<number>,
  beginAnew: () => Promise<void>,
): Checkpoints {
  let written = 0
  let running = false

  async function run(): Promise<void> {
    const pages = await checkpoint()
    if (pages >= LOG_PAGES_MAX) await beginAnew()
  }

  return {
    wrote(rows, bytes) {
      written += GROUP_BYTES + ROW_BYTES * rows + bytes
      if (running || written < CHECKPOINT_BYTES) return
      running = true
      written = 0
      // One that fails is tried again after the next so many bytes; meanwhile the log keeps everything, and SQLite's
      // own checkpoint comes in when it is eight times as long.
      run()
        .catch(() => {})
        .finally(() => {
          running = false
        })
    },
  }
}
