/** Backups of the running service. */
import type { Area } from '../../area.ts'
import { VERSION } from '../../base/process/version.ts'
import type { Core } from '../../core.ts'
import { createBackups } from './backups.ts'
import { backupRoutes } from './routes.ts'

export function backupArea({ config, store, blobs, log }: Core, secret: string): Area {
  // PostgreSQL has means of its own.
  if (store.kind !== 'sqlite') return { operations: backupRoutes(null) }
  const backups = createBackups({ dataFolder: config.dataFolder, secret, version: VERSION, blobs, log })
  return { operations: backupRoutes(backups), stop: () => backups.stop() }
}
