import type { Config } from '../config.ts'
import type { LeaseTimes } from './lease-times.ts'
import { openPostgres } from './postgres.ts'
import { openSqlite } from './sqlite.ts'
import type { Store } from './store.ts'

/** The store that the configuration names: PostgreSQL when it gives a URL, else SQLite in the data folder. */
export function openStore(
  config: Pick<Config, 'databaseUrl' | 'dataFolder'>,
  options: { leaseTimes?: LeaseTimes } = {},
): Promise<Store> {
  return config.databaseUrl ? openPostgres(config.databaseUrl, options) : openSqlite(config.dataFolder)
}
