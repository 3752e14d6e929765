import { mkdirSync } from 'node:fs'
import { systemFault } from '../../base/process/system-fault.ts'
import type { Config } from '../config/config.ts'
import type { LeaseTimes } from './lease-times.ts'
import { openPostgres } from './postgres/postgres.ts'
import { lockFolder, openSqlite, type SqliteOptions } from './sqlite/sqlite.ts'
import { type Store, StoreUnavailable } from './store.ts'

export interface OpenOptions extends SqliteOptions {
  leaseTimes?: LeaseTimes
}

/**
 * Opens the configured store: PostgreSQL if there is a URL, else SQLite in the data folder. In both cases the data folder
 * is locked for one process: it holds the blobs, and a start removes all spool files.
 * @throws StoreUnavailable
 */
export async function openStore(
  config: Pick<Config, 'databaseUrl' | 'dataFolder'>,
  options: OpenOptions = {},
): Promise<Store> {
  if (!config.databaseUrl) return openSqlite(config.dataFolder, options).catch(refuseFolder)
  const lock = lockedFolder(config.dataFolder)
  try {
    const store = await openPostgres(config.databaseUrl, options)
    return { ...store, close: () => store.close().finally(() => lock.close()) }
  } catch (error) {
    lock.close()
    throw error
  }
}

function lockedFolder(folder: string): ReturnType<typeof lockFolder> {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    return lockFolder(folder)
  } catch (error) {
    return refuseFolder(error)
  }
}

/** What the system refuses in the data folder becomes a sentence that names the setting. */
function refuseFolder(error: unknown): never {
  const fault = systemFault(error)
  if (fault === null) throw error
  throw new StoreUnavailable(`Cannot open the data folder, as SENDWRIGHT_DATA says: ${fault}`, {
    cause: error,
  })
}
