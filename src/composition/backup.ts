/** Puts backups of the running service together. */
import { type Backups, createBackups } from '../backup/backups.ts'
import type { Closers, Core } from './core.ts'
import { VERSION } from './system.ts'

/** Null with PostgreSQL, which has means of its own. */
export function startBackups(
  { config, store, blobs, log }: Core,
  secret: string,
  open: Closers,
): Backups | null {
  if (store.kind !== 'sqlite') return null
  const { dataFolder } = config
  const backups = createBackups({ dataFolder, secret, version: VERSION, blobs, log })
  open.push(() => backups.stop())
  return backups
}
