import { mkdirSync } from 'node:fs'
import type { Config } from '../config.ts'
import type { LeaseTimes } from './lease-times.ts'
import { openPostgres } from './postgres.ts'
import { lockFolder, openSqlite, type SqliteOptions } from './sqlite.ts'
import type { Store } from './store.ts'

export interface OpenOptions extends SqliteOptions {
  leaseTimes?: LeaseTimes
}

/**
 * The store that the configuration names: PostgreSQL when it gives a URL, else SQLite in the data folder. Either way the
 * data folder belongs to one process: large bodies lie there, and a start empties the folder of those half written.
 * @throws StoreUnavailable
 */
export async function openStore(
  config: Pick<Config, 'databaseUrl' | 'dataFolder'>,
  options: OpenOptions = {},
): Promise<Store> {
  if (!config.databaseUrl) return openSqlite(config.dataFolder, options)
  mkdirSync(config.dataFolder, { recursive: true, mode: 0o700 })
  const lock = lockFolder(config.dataFolder)
  try {
    const store = await openPostgres(config.databaseUrl, options)
    return { ...store, close: () => store.close().finally(() => lock.close()) }
  } catch (error) {
    lock.close()
    throw error
  }
}
