/**
 * `sendwright backup`, `verify` and `restore`. A running service makes the backup itself, since only it knows what it is
 * about to delete; if none runs, the command locks the data folder.
 */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { VERSION } from '../../base/process/version.ts'
import type { BackupState } from '../../carry/backup/backups.ts'
import { BackupError, type OnProgress, type Progress } from '../../carry/backup/manifest.ts'
import { restoreBackup } from '../../carry/backup/restore.ts'
import { WITH_POSTGRES } from '../../carry/backup/routes.ts'
import { type BackupSummary, runBackup } from '../../carry/backup/run-backup.ts'
import { type Verdict, verifyBackup } from '../../carry/backup/verify.ts'
import { type Config, readConfig } from '../../platform/config/config.ts'
import { DATABASE_FILE, refuseHalfRestored } from '../../platform/store/blobs/data-folder.ts'
import { checkLog } from '../../platform/store/log-check.ts'
import { readSecret, SecretFault } from '../../platform/store/secrets/secret-file.ts'
import { lockFolder } from '../../platform/store/sqlite/sqlite.ts'
import { StoreUnavailable } from '../../platform/store/store.ts'
import { createClient, NotReached } from '../local/client.ts'
import { formOf } from '../operate/service.ts'
import { CommandError, parseWords, switches, wrongArguments } from '../usage.ts'

export const BACKUP_USAGE = `sendwright backup FOLDER [--with-secret] [--json]
sendwright verify FOLDER [--json]
sendwright restore FOLDER [--json]
`

/** Between two queries of the service's progress. */
const ASK_EVERY_MS = 200

export async function backupCommand(args: string[]): Promise<void> {
  const { folder, json, withSecret } = parse('backup', args)
  const config = readConfig(process.env)
  await reported(json, async (onProgress) => {
    if (config.databaseUrl) throw new BackupError(WITH_POSTGRES)
    if (!existsSync(join(config.dataFolder, DATABASE_FILE)))
      throw new BackupError(`There is nothing to back up: "${config.dataFolder}" holds no database`)
    const made =
      (await askService(folder, withSecret, onProgress)) ??
      (await backUpHere(config, folder, withSecret, onProgress))
    const { counts } = made
    return {
      result: { folder, ...made },
      lines: [
        `Backup made in ${folder}: ${megabytes(made.sizeBytes)}, ${counts.messages} messages (${counts.waiting} deliveries waiting), ${counts.events} events, ${counts.blobs} blobs.`,
        withSecret ? 'It holds the secret: keep it as safe as the service.' : 'It does not hold the secret.',
        ...(made.missingBlobs.length > 0 ? [`${made.missingBlobs.length} blobs were lost before.`] : []),
      ],
    }
  })
}

export async function verifyCommand(args: string[]): Promise<void> {
  const { folder, json } = parse('verify', args)
  await reported(json, async (onProgress) => {
    const verdict = await verifyBackup(folder, onProgress)
    const { faults, warnings } = verdict
    if (faults.length > 0)
      throw new BackupError(`The backup in "${folder}" is not whole: ${faults.join(' ')}`)
    return {
      result: { folder, ok: true, ...summaryOf(verdict) },
      lines: [`The backup of ${verdict.manifest.madeAt} is whole.`, ...warnings],
    }
  })
}

export async function restoreCommand(args: string[]): Promise<void> {
  const { folder, json } = parse('restore', args)
  const config = readConfig(process.env)
  await reported(json, async (onProgress) => {
    if (config.databaseUrl) throw new BackupError(WITH_POSTGRES)
    const verdict = await restoreBackup(folder, config.dataFolder, onProgress)
    const { counts, madeAt } = verdict.manifest
    const needsSecret = !verdict.manifest.withSecret && config.secret === null
    return {
      result: { folder, dataFolder: config.dataFolder, ...summaryOf(verdict) },
      lines: [
        `Restored the backup of ${madeAt} into ${config.dataFolder}.`,
        ...verdict.warnings,
        ...(needsSecret
          ? [
              `Put the secret into ${join(config.dataFolder, 'secret')}, or into SENDWRIGHT_SECRET, before the start.`,
            ]
          : []),
        `${counts.waiting} deliveries waited when it was made; a start sends them, also those that were sent since.`,
      ],
    }
  })
}

const summaryOf = ({ manifest: { files, ...manifest }, warnings }: Verdict) => ({ ...manifest, warnings })

function parse(command: 'backup' | 'verify' | 'restore', args: string[]) {
  const { values, positionals } = parseWords(command, args, switches('json', 'with-secret'))
  const [folder, ...more] = positionals
  if (folder === undefined || more.length > 0) throw wrongArguments(command, 'Name one folder')
  if (values['with-secret'] && command !== 'backup')
    throw wrongArguments(command, '--with-secret is for backup only')
  return { folder: resolve(folder), json: values.json ?? false, withSecret: values['with-secret'] ?? false }
}

/** A backup made by the running service; null when none answers. */
async function askService(
  folder: string,
  withSecret: boolean,
  onProgress: OnProgress,
): Promise<BackupSummary | null> {
  const client = createClient()
  const form = formOf({ folder, with_secret: String(withSecret) })
  let state: BackupState
  try {
    state = (await client.call('POST', '/sendwright/v1/backups', form)) as unknown as BackupState
  } catch (error) {
    if (error instanceof NotReached) return null
    throw error
  }
  while (state.state === 'running') {
    await sleep(ASK_EVERY_MS)
    state = (await client.call('GET', `/sendwright/v1/backups/${state.id}`)) as unknown as BackupState
    if (state.progress) onProgress(state.progress)
  }
  if (state.manifest) return state.manifest
  throw new BackupError(state.error ?? 'The backup failed')
}

async function backUpHere(
  config: Config,
  target: string,
  withSecret: boolean,
  onProgress: OnProgress,
): Promise<BackupSummary> {
  const { dataFolder } = config
  refuseHalfRestored(dataFolder)
  const lock = lockFolder(dataFolder)
  try {
    checkLog(join(dataFolder, DATABASE_FILE))
    const secret = withSecret ? readSecret(config.secret, dataFolder) : null
    if (withSecret && secret === null) throw new BackupError('There is no secret to back up.')
    return await runBackup({ dataFolder, target, secret, version: VERSION }, onProgress).result
  } finally {
    lock.close()
  }
}

/** Prints the result, as lines or as JSON; on a terminal also the progress. */
async function reported(
  json: boolean,
  run: (onProgress: OnProgress) => Promise<{ result: Record<string, unknown>; lines: string[] }>,
): Promise<void> {
  const bar = process.stderr.isTTY ? process.stderr : null
  try {
    const { result, lines } = await run((progress) => void bar?.write(`\r\x1b[K${progressLine(progress)}`))
    bar?.write('\r\x1b[K')
    process.stdout.write(json ? `${JSON.stringify(result)}\n` : `${lines.join('\n')}\n`)
  } catch (error) {
    bar?.write('\r\x1b[K')
    const message = error instanceof StoreUnavailable ? error.detail : (error as Error).message
    const expected = [BackupError, CommandError, SecretFault, StoreUnavailable].some(
      (type) => error instanceof type,
    )
    if (!expected) throw error
    if (json) process.stdout.write(`${JSON.stringify({ ok: false, error: message })}\n`)
    throw new CommandError(message)
  }
}

const STEPS: Record<Progress['step'], string> = {
  database: 'copying the database',
  blobs: 'copying large bodies and attachments',
  checksums: 'computing checksums',
  integrity: 'checking the database',
  files: 'copying files',
}

function progressLine({ step, doneBytes, totalBytes }: Progress): string {
  const share = totalBytes > 0 ? ` ${Math.floor((100 * doneBytes) / totalBytes)} %` : ''
  return `${STEPS[step]}${share}`
}

const megabytes = (bytes: number) => `${(bytes / 1024 / 1024).toFixed(1)} MB`
