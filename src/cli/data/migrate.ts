/** `sendwright migrate`: copies everything to another database, or compares a copy with its source. */
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { isAbsolute } from 'node:path'
import { type BlobPlace, folderPlace, s3Place } from '../../carry/migrate/blobs.ts'
import {
  compareAll,
  copyAll,
  type Migration,
  type MigrationResult,
  type OnProgress,
  type Preview,
  type Progress,
  preview,
} from '../../carry/migrate/migration.ts'
import { podMove } from '../../carry/migrate/pod-move.ts'
import { openPostgresSource, openPostgresTarget } from '../../carry/migrate/postgres-side.ts'
import type { Source, Target } from '../../carry/migrate/side.ts'
import { openSqliteSource, openSqliteTarget } from '../../carry/migrate/sqlite-side.ts'
import { MigrationError } from '../../carry/migrate/values.ts'
import { type Config, readConfig } from '../../platform/config/config.ts'
import { createS3Client } from '../../platform/store/blobs/s3-client.ts'
import { podName } from '../../platform/store/pods/pod.ts'
import { readSecret, SecretFault, secretFile } from '../../platform/store/secrets/secret-file.ts'
import { StoreFull, StoreUnavailable, UnknownSchema } from '../../platform/store/store.ts'
import { CommandError, parseFlags, secretIn, switches, texts, wrongArguments } from '../usage.ts'

export const usage = `sendwright migrate --to postgres://USER@HOST/DATABASE [--dry-run] [--check] [--json]
sendwright migrate --to-file FILE [--dry-run] [--check] [--json]
sendwright migrate --to postgres://USER@HOST/DATABASE --to-pod NAME [--dry-run] [--check] [--json]
sendwright migrate --to sqlite:/FOLDER [--dry-run] [--check] [--json]

Copies everything from the database that the settings name into an empty one, and compares both row by row. Stop the
service first. A copy that was cut off continues when the same command runs again.

  --to        the new database, without a password, which other users would see: that is in PGPASSWORD, in ~/.pgpass, or
              part of the address in SENDWRIGHT_MIGRATE_TO or in a file
  --to-file   a file that holds nothing but that address
  --to-pod    the copy becomes a pod of that database; SENDWRIGHT_POD names the pod that is copied, if it is one. Between pods of
              one database, what the old one had leads to the new one at the end, and the old one does not start again
  --dry-run   says what would be copied, and writes nothing
  --check     only compares the source with a copy
  --json      prints the result as JSON
`

type Mode = 'copy' | 'check' | 'dry-run'

interface Arguments {
  to: { postgres: string; pod: string | null } | { folder: string }
  mode: Mode
  json: boolean
}

export async function run(args: string[]): Promise<void> {
  const { to, mode, json } = parse(args)
  const config = sourceConfig(to)
  const bar = process.stderr.isTTY ? createBar() : null
  try {
    const request = await open(config, to)
    try {
      if (mode === 'dry-run') return print(json, await preview(request), previewLines(request, to))
      const run = mode === 'check' ? compareAll : copyAll
      const result = await run(request, (progress) => bar?.show(progress))
      bar?.clear()
      print(json, result, () => resultLines(result, mode, request, config, to))
      if (!result.ok) throw new CommandError(json ? '' : failure(mode, request))
    } finally {
      await request.target.close()
      await request.source.close()
    }
  } catch (error) {
    bar?.clear()
    const expected = [MigrationError, SecretFault, StoreUnavailable, StoreFull, UnknownSchema].some(
      (type) => error instanceof type,
    )
    if (!expected) throw error
    const message = messageOf(error as Error)
    if (json) process.stdout.write(`${JSON.stringify({ ok: false, error: message })}\n`)
    throw new CommandError(message)
  }
}

function messageOf(error: Error): string {
  if (error instanceof StoreUnavailable) return error.detail
  return error instanceof StoreFull ? String((error.cause as Error).message) : error.message
}

function parse(args: string[]): Arguments {
  const values = parseFlags('migrate', args, {
    ...texts('to', 'to-file', 'to-pod'),
    ...switches('check', 'dry-run', 'json'),
  })
  const mode: Mode = values.check ? 'check' : values['dry-run'] ? 'dry-run' : 'copy'
  try {
    if (values.check && values['dry-run']) throw new Error('--check and --dry-run exclude each other')
    const to = targetOf(targetText(values.to, values['to-file']), values['to-pod'])
    return { to, mode, json: values.json ?? false }
  } catch (error) {
    throw wrongArguments('migrate', (error as Error).message)
  }
}

const TO_VARIABLE = 'SENDWRIGHT_MIGRATE_TO'

/** The settings without the variable that is none of them. */
function settings(): NodeJS.ProcessEnv {
  const { [TO_VARIABLE]: _to, ...env } = process.env
  return env
}

/** @throws Error for an address with a password in the arguments, and unless there is exactly one address */
function targetText(argument: string | undefined, file: string | undefined): string {
  const variable = process.env[TO_VARIABLE] || undefined
  if ([argument, file, variable].filter((one) => one !== undefined).length !== 1)
    throw new Error(`Name the new database in one of --to, --to-file and ${TO_VARIABLE}`)
  if (argument !== undefined && hasPassword(argument))
    throw new Error(
      `Other users see the arguments of a command: put the password into PGPASSWORD, or the whole address into ${TO_VARIABLE} or a file (--to-file), and change a password that was shown`,
    )
  if (file === undefined) return (argument ?? variable) as string
  return secretIn(file, `the address in "${file}"`)
}

/** Before the host, or as a parameter of libpq. */
const hasPassword = (address: string): boolean =>
  /^postgres(?:ql)?:\/\/(?:[^/?#]*:[^/?#]*@|[^#]*[?&]password=)/i.test(address)

function targetOf(text: string, pod: string | undefined): Arguments['to'] {
  if (/^postgres(ql)?:\/\/./.test(text) && URL.canParse(text))
    return { postgres: text, pod: pod === undefined ? null : podName(pod) }
  if (pod !== undefined) throw new Error('--to-pod needs PostgreSQL')
  const folder = /^sqlite:(?:\/\/(?=\/))?(.+)$/.exec(text)?.[1]
  if (folder !== undefined && isAbsolute(folder)) return { folder }
  throw new Error('The new database is postgres://USER@HOST/DATABASE or sqlite:/FOLDER')
}

/** Settings of the source. Settings for the nodes to be are allowed beside a source that is SQLite. */
function sourceConfig(to: Arguments['to']): Config {
  if (process.env['SENDWRIGHT_DATABASE_URL'] || !('postgres' in to)) return readConfig(settings())
  const { SENDWRIGHT_BLOBS: _, SENDWRIGHT_BLOBS_ENDPOINT: __, SENDWRIGHT_ROLES: ___, ...env } = settings()
  return readConfig(env)
}

async function open(config: Config, to: Arguments['to']): Promise<Migration> {
  const { databaseUrl, dataFolder } = config
  if (databaseUrl === null && 'folder' in to)
    throw new MigrationError('Source and target are both SQLite: use `sendwright backup` and `restore`.')
  const files = folderPlace(dataFolder)
  // Before anything is opened: settings may be wrong.
  const shared = 'postgres' in to ? bucketOf(targetConfig(to)) : null
  const from = bucketOf(config) ?? files
  const wanted = 'folder' in to ? folderPlace(to.folder) : (shared ?? files)
  const source: Source =
    databaseUrl === null ? openSqliteSource(dataFolder) : await openPostgresSource(databaseUrl, config.pod)
  try {
    const target: Target =
      'folder' in to ? openSqliteTarget(to.folder) : await openPostgresTarget(to.postgres, to.pod)
    const move = 'folder' in to ? null : await podMove({ source, from: config.pod }, { target, to: to.pod })
    return {
      source,
      target,
      blobs: { from, to: wanted.name === from.name ? null : wanted },
      ...(move && { beforeCopy: move.begin, withEnd: move.end }),
      ...('folder' in to && { beforeUse: () => copySecret(config, to.folder) }),
    }
  } catch (error) {
    await source.close()
    throw error
  }
}

function targetConfig({ postgres, pod }: { postgres: string; pod: string | null }): Config {
  const { SENDWRIGHT_POD: _, ...env } = settings()
  return readConfig({
    ...env,
    SENDWRIGHT_DATABASE_URL: postgres,
    ...(pod !== null && { SENDWRIGHT_POD: pod }),
  })
}

function bucketOf({ blobs }: Config): BlobPlace | null {
  if (blobs === null) return null
  const { prefix, ...options } = blobs
  return s3Place(createS3Client(options), options.bucket, prefix)
}

/** A secret that is a setting stays one. */
async function copySecret({ secret, dataFolder }: Config, folder: string): Promise<void> {
  const file = secretFile(folder)
  const own = secret === null ? readSecret(null, dataFolder) : null
  if (own !== null && !existsSync(file))
    await writeFile(file, `${own}\n`, { mode: 0o600, flush: true, flag: 'wx' })
}

function print(json: boolean, result: Preview | MigrationResult, lines: (result: Preview) => string[]): void {
  const text = json ? JSON.stringify(result) : lines(result as Preview).join('\n')
  process.stdout.write(`${text}\n`)
}

const thousands = (count: number) => count.toLocaleString('en-US')
const megabytes = (bytes: number) => `${(bytes / 1024 / 1024).toFixed(1)} MB`

function previewLines({ source, target, blobs }: Migration, to: Arguments['to']) {
  return ({ schema, state, tables, files }: Preview): string[] => {
    const rows = tables.reduce((sum, table) => sum + table.rows, 0)
    return [
      `From ${source.name} to ${'folder' in to ? to.folder : target.name}, schema version ${schema}.`,
      state === 'begun'
        ? 'The target holds the beginning of this copy, which is continued.'
        : 'The target is empty.',
      `${thousands(rows)} rows of ${tables.length} tables; most in ${largest(tables)}.`,
      `${thousands(files.files)} files, ${megabytes(files.bytes)}: ${blobs.to ? `copied to ${blobs.to.name}` : 'they stay where they are'}.`,
      ...lost(files),
    ]
  }
}

const largest = (tables: Preview['tables']): string =>
  tables
    .toSorted((a, b) => b.rows - a.rows)
    .slice(0, 5)
    .map(({ name, rows }) => `${name} (${thousands(rows)})`)
    .join(', ')

const lost = ({ missing }: MigrationResult['files']): string[] =>
  missing.length > 0
    ? [
        `${missing.length} files that rows name are not there: they were lost before, or are in the data folder of another node.`,
      ]
    : []

function resultLines(
  result: MigrationResult,
  mode: Mode,
  { source, target }: Migration,
  config: Config,
  to: Arguments['to'],
): string[] {
  const { tables, files, differences, notes } = result
  const rows = tables.reduce((sum, table) => sum + table.rows.source, 0)
  const lines = [...differences, ...notes, ...lost(files)]
  if (!result.ok) return lines
  lines.push(
    `${source.name} and ${target.name} are equal: ${thousands(rows)} rows of ${tables.length} tables and ${thousands(files.files)} files, compared in ${result.compareSeconds.toFixed(1)} s.`,
  )
  if (mode === 'check') return lines
  lines.unshift(`Copied ${thousands(result.copiedRows)} rows in ${result.copySeconds.toFixed(1)} s.`)
  if ('folder' in to) {
    lines.push(`Start the service with SENDWRIGHT_DATA=${to.folder} and without SENDWRIGHT_DATABASE_URL.`)
    if (config.secret !== null) lines.push('SENDWRIGHT_SECRET has to be the same there.')
  } else {
    lines.push(
      `Start the service with SENDWRIGHT_DATABASE_URL${to.pod === null ? '' : `, SENDWRIGHT_POD=${to.pod}`}, and with the same SENDWRIGHT_DATA${config.secret === null ? ', which has the secret' : ' and SENDWRIGHT_SECRET'}.`,
    )
  }
  lines.push('Do not start it on the old database again: it would send what is queued a second time.')
  return lines
}

const failure = (mode: Mode, { target }: Migration): string =>
  mode === 'check'
    ? 'They are not equal.'
    : `The copy is not equal to its source, so no service starts on it. Empty ${target.name} and run the command again.`

const STEPS: Record<Progress['step'], string> = {
  copy: 'copying',
  files: 'copying',
  finish: 'making',
  compare: 'comparing',
  'compare-files': 'comparing',
}

const BAR_CELLS = 24
/** A terminal shows no more. */
const SHOW_EVERY_MS = 100

function createBar() {
  const startedAt = performance.now()
  let shownAt = 0
  let step = ''
  let stepAt = startedAt
  let stepFrom = 0
  const show = ({ step: current, what, done, total }: Progress): void => {
    const now = performance.now()
    if (current !== step) [step, stepAt, stepFrom, shownAt] = [current, now, done, 0]
    if (now - shownAt < SHOW_EVERY_MS && done < total) return
    shownAt = now
    const share = total > 0 ? done / total : 0
    const cells = Math.round(share * BAR_CELLS)
    const picture =
      total > 0 ? `[${'#'.repeat(cells)}${'.'.repeat(BAR_CELLS - cells)}] ${Math.floor(share * 100)} % ` : ''
    const perSecond = Math.round(((done - stepFrom) * 1000) / Math.max(1, now - stepAt))
    const count =
      done > 0
        ? `, ${thousands(done)}${total > 0 ? ` of ${thousands(total)}` : ''}, ${thousands(perSecond)}/s`
        : ''
    process.stderr.write(`\r\x1b[K${picture}${STEPS[current]} ${what}${count}`)
  }
  return { show: show as OnProgress, clear: () => process.stderr.write('\r\x1b[K') }
}
