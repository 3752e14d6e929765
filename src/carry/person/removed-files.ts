/**
 * Files of erased people on the disks of other nodes: the only ones, where nodes share no blob store, or copies of what is
 * there. An erasure writes down which it has removed, and each node removes what it has of them.
 */
import { DAY_MS, MINUTE_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import { createJob } from '../../platform/jobs/job.ts'

/** A node that was away for longer keeps its files. */
const KEPT_MS = 30 * DAY_MS
/** Clocks of nodes differ, and a commit takes a while. */
const OVERLAP_MS = 5 * MINUTE_MS
const PORTION = 500

export type RemovedFiles = ReturnType<typeof createRemovedFiles>

type RemovedFileParts = Pick<Core, 'store' | 'blobs' | 'clock'>

export function createRemovedFiles({ store, blobs, clock }: RemovedFileParts) {
  /** All before that are removed here. */
  let seenTo = 0

  async function removeHere(signal: AbortSignal): Promise<void> {
    const begunAt = Math.floor(clock.now())
    for (let after = ''; !signal.aborted; ) {
      const rows = await store.db
        .selectFrom('removed_files')
        .select('name')
        .where('removed_at', '>=', seenTo)
        .where('name', '>', after)
        .orderBy('name')
        .limit(PORTION)
        .execute()
      for (const { name } of rows) await blobs.remove(name)
      const last = rows.at(-1)
      if (rows.length === PORTION && last) after = last.name
      else break
    }
    if (!signal.aborted) seenTo = begunAt - OVERLAP_MS
    await store.commit([
      { sql: 'DELETE FROM removed_files WHERE removed_at < ?', values: [begunAt - KEPT_MS] },
    ])
  }

  return {
    /** Removes a file here, and soon on the other nodes. */
    async remove(name: string): Promise<void> {
      // On SQLite there is one node.
      if (store.kind === 'postgres') {
        const sql = 'INSERT INTO removed_files (name, removed_at) VALUES (?, ?) ON CONFLICT (name) DO NOTHING'
        await store.commit([{ sql, values: [name, Math.floor(clock.now())] }])
      }
      await blobs.remove(name)
    },
    /** Runs in every process. */
    job: createJob({
      ...{ name: 'removed-files', everyMs: MINUTE_MS, scope: 'process' },
      work: (signal) => (store.kind === 'postgres' ? removeHere(signal) : Promise.resolve()),
    }),
  }
}
