/** Backups of the running service, one at a time, requested by the command line on this machine. */
import { newId } from '../../base/ids.ts'
import { Conflict } from '../../base/process/errors.ts'
import type { Of } from '../../base/shape.ts'
import type { Core } from '../../core.ts'
import { BackupError } from './manifest.ts'
import { type RunningBackup, runBackup } from './run-backup.ts'
import type { BACKUP } from './shapes.ts'

export type BackupState = Of<typeof BACKUP>

type Changing = { -readonly [K in keyof BackupState]: BackupState[K] }

export type Backups = ReturnType<typeof createBackups>

interface BackupParts extends Pick<Core, 'blobs' | 'log'> {
  dataFolder: string
  secret: string
  version: string
}

export function createBackups({ dataFolder, secret, version, blobs, log }: BackupParts) {
  let last: BackupState | null = null
  let running: RunningBackup | null = null
  let ended: Promise<void> = Promise.resolve()

  async function follow(state: Changing, backup: RunningBackup, release: () => Promise<void>) {
    try {
      state.manifest = await backup.result
      state.state = 'done'
      const { madeAt, sizeBytes } = state.manifest
      log.info({ madeAt, sizeBytes }, 'backup made')
    } catch (error) {
      state.state = 'failed'
      state.error = error instanceof BackupError ? error.message : 'The backup failed; see the log'
      log.error({ err: error }, 'cannot make a backup')
    }
    running = null
    await release().catch((err: unknown) =>
      log.error({ err }, 'cannot remove blobs that were held for a backup'),
    )
  }

  return {
    /** @throws Conflict while another one runs */
    start(target: string, withSecret: boolean): BackupState {
      if (running) throw new Conflict('Another backup is running')
      const state: Changing = { id: newId(), state: 'running', progress: null, manifest: null, error: null }
      // Before the database is copied: the blobs that the copy names must exist until they are copied too.
      const release = blobs.hold()
      running = runBackup({ dataFolder, target, secret: withSecret ? secret : null, version }, (progress) => {
        state.progress = progress
      })
      last = state
      ended = follow(state, running, release)
      return state
    },
    /** The last backup, if it has this id. */
    find: (id: string) => (last?.id === id ? last : null),
    /** Aborts a running backup. */
    async stop(): Promise<void> {
      running?.stop()
      await ended
    },
  }
}
