/** Store tests run on both databases: `eachStore('name', async (store) => ...)`. */
import { rmSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { openPostgres } from '../../src/platform/store/postgres/postgres.ts'
import { openSqlite, type SqliteOptions } from '../../src/platform/store/sqlite/sqlite.ts'
import { ownLeaseTimes, type Store } from '../../src/platform/store/store.ts'
import { type Database, eachDatabase } from './databases.ts'
import { connectInProcess } from './in-process-sqlite.ts'
import { createMigratedDatabase, prepareDataFolder } from './migrated.ts'

const folders: string[] = []

/**
 * A new folder that is removed when the process ends. Not with the test: what the test stops afterwards would find its
 * database gone, which is a fault of its own (`platform/store/sqlite/sqlite.ts`).
 */
export async function temporaryFolder(_t: Pick<TestContext, 'after'>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-test-'))
  if (folders.push(folder) === 1)
    process.once('exit', () => {
      for (const each of folders) rmSync(each, { recursive: true, force: true, maxRetries: 10 })
    })
  return folder
}

/** The embedded store with syncs (unsynced.ts). Commits that need not wait for a disk leave its checkpoints no time, and the log grows. */
export async function openSyncedSqlite(folder: string): Promise<Store> {
  process.env['SENDWRIGHT_TEST_SYNCED'] = 'yes'
  try {
    return await openSqlite(folder)
  } finally {
    delete process.env['SENDWRIGHT_TEST_SYNCED']
  }
}

/** An embedded store with today's schema and nothing in it, in a new folder; the caller closes it. */
export async function openNewSqlite(
  t: Pick<TestContext, 'after'>,
  options: SqliteOptions = {},
): Promise<Store> {
  const folder = await temporaryFolder(t)
  await prepareDataFolder(folder)
  return openSqlite(folder, { connect: connectInProcess, ...options })
}

/** The same test on each database, each time with a new one without data. */
export function eachStore(name: string, run: (store: Store, t: TestContext) => Promise<void>): void {
  eachDatabase((database) => test(name, (t) => OPEN[database](t, run)))
}

const OPEN: Record<Database, (t: TestContext, run: Parameters<typeof eachStore>[1]) => Promise<void>> = {
  async sqlite(t, run) {
    const store = await openNewSqlite(t)
    try {
      await run(store, t)
    } finally {
      await store.close()
    }
  },
  async postgres(t, run) {
    const database = await createMigratedDatabase()
    // Tests pass their own times.
    const store = await openPostgres(database.url, { leaseTimes: ownLeaseTimes })
    try {
      await run(store, t)
    } finally {
      await store.close()
      await database.drop()
    }
  },
}
