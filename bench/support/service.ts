/** The service under measurement: a real process, started as by `npm start`. */
import { once } from 'node:events'
import { mkdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { withinGroup } from '../../test/support/memory-group.ts'
import { type PostgresCluster, startPostgres } from '../../test/support/postgres.ts'
import { startKept } from './kept-process.ts'
import { processTree } from './processes.ts'
import { type Rig, until } from './rig.ts'
import { monotonicMs } from './stats.ts'

export type Database = 'sqlite' | 'postgres'

export interface BenchService {
  host: string
  port: number
  smtpPort: number
  url: string
  /** The sandbox domain: active, with a DKIM key of RSA-2048. */
  domain: string
  authorization: string
  /** Process ids of the service, and of the database server if there is one. */
  roots: number[]
  pid: number
  dataFolder: string
  databaseUrl: string | null
  /** `monotonicMs` at the start of its process, and milliseconds from then until it was ready. */
  startedAt: number
  readyMs: number
  call(method: string, path: string, form?: Record<string, string>): Promise<unknown>
  stop(): Promise<void>
}

export interface ServiceOptions {
  database: Database
  env: Record<string, string>
  /** Data folder of an earlier start; default: a new one. */
  dataFolder?: string
  postgres?: BenchPostgres
  /** More flags for node, e.g. `--cpu-prof`; without spaces. */
  nodeFlags?: string[]
  /** `bin/sendwright` of a release; default: of the sources. */
  launcher?: string
  /** Folder of the control group that it starts in (test/support/memory-group.ts). */
  memoryGroup?: string
}

const API_KEY = 'bench-key-0123456789abcdef'
const ROOT = join(import.meta.dirname, '../..')
/** The words of `npm start`, without `exec`. */
const START = (
  JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: { start: string } }
).scripts.start
  .split(' ')
  .map((word) => (word.startsWith('bin/') ? join(ROOT, word) : word))
  .filter((word) => word !== 'exec')
/** A start takes a second, longer with a long queue. */
const READY_LIMIT_MS = 120_000
/** A stop waits for attempts in flight and writes profiles. */
const STOP_LIMIT_MS = 60_000
const CALL_LIMIT_MS = 60_000

let started = 0

export async function startService(rig: Rig, options: ServiceOptions): Promise<BenchService> {
  const number = ++started
  const dataFolder = options.dataFolder ?? join(rig.folder, `data-${number}`)
  mkdirSync(dataFolder, { recursive: true })
  const postgres =
    options.database === 'postgres' ? (options.postgres ?? (await startBenchPostgres(rig))) : null
  const [port, smtpPort] = [await freePort(), await freePort()]
  const host = '127.0.0.1'
  const startedAt = monotonicMs()
  const outputFile = join(rig.folder, `service-${number}.log`)
  const { launcher, memoryGroup } = options
  const command = launcher === undefined ? START : [launcher, 'serve']
  const kept = await startKept(memoryGroup === undefined ? command : withinGroup(memoryGroup, command), {
    cwd: dataFolder,
    outputFile,
    env: {
      PATH: process.env['PATH'],
      ...(options.nodeFlags && { NODE_OPTIONS: options.nodeFlags.join(' ') }),
      SENDWRIGHT_HOST: host,
      SENDWRIGHT_PORT: String(port),
      SENDWRIGHT_SMTP_PORT: String(smtpPort),
      SENDWRIGHT_DATA: dataFolder,
      SENDWRIGHT_API_KEY: API_KEY,
      SENDWRIGHT_RATE_LIMIT: 'off',
      SENDWRIGHT_HOSTNAME: 'mail.bench.example',
      ...(postgres && { SENDWRIGHT_DATABASE_URL: postgres.url }),
      ...options.env,
    },
  })
  rig.defer('the service', () => kept.end('SIGTERM', STOP_LIMIT_MS))
  const url = `http://${host}:${port}`
  await until(
    'start of the service',
    READY_LIMIT_MS,
    async () => {
      if (!kept.isRunning()) throw new Error(`the service ended at its start:\n${kept.output()}`)
      const answer = await fetch(`${url}/health/ready`).catch(() => null)
      await answer?.arrayBuffer()
      return answer?.ok === true
    },
    5,
  )
  const readyMs = monotonicMs() - startedAt
  const authorization = `Basic ${Buffer.from(`api:${API_KEY}`).toString('base64')}`
  const call: BenchService['call'] = async (method, path, form) => {
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: { authorization },
      ...(form && { body: new URLSearchParams(form) }),
      signal: AbortSignal.timeout(CALL_LIMIT_MS),
    })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 500)}`)
    return JSON.parse(text) as unknown
  }
  const { items } = (await call('GET', '/v4/domains?search=sandbox')) as {
    items: { name: string; type: string }[]
  }
  const domain = items.find(({ type }) => type === 'sandbox')?.name
  if (domain === undefined) throw new Error('the service has no sandbox domain')
  return {
    host,
    port,
    smtpPort,
    url,
    domain,
    authorization,
    roots: [kept.pid, ...(postgres ? [postgres.pid] : [])],
    pid: kept.pid,
    dataFolder,
    databaseUrl: postgres?.url ?? null,
    startedAt,
    readyMs,
    call,
    stop: () => kept.end('SIGTERM', STOP_LIMIT_MS),
  }
}

export interface BenchPostgres {
  url: string
  pid: number
}

/** A temporary PostgreSQL that is fully durable: everything as installed except the path of its files. */
export async function startBenchPostgres(rig: Rig): Promise<BenchPostgres> {
  const before = new Set(postgresServers())
  const cluster: PostgresCluster = await startPostgres({
    settings: { fsync: 'on', synchronous_commit: 'on', full_page_writes: 'on', max_connections: '100' },
  })
  rig.defer('PostgreSQL', () => cluster.stop())
  const pid = postgresServers().find((server) => !before.has(server))
  if (pid === undefined) throw new Error('PostgreSQL runs, but not as a child of this process')
  return { url: cluster.url, pid }
}

/** Main processes of the database servers started by this process. */
function postgresServers(): number[] {
  const tree = processTree([process.pid])
  const servers = new Set(tree.filter(({ name }) => name === 'postgres').map(({ pid }) => pid))
  return tree.filter(({ pid, parent }) => servers.has(pid) && !servers.has(parent)).map(({ pid }) => pid)
}

export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as { port: number }
  probe.close()
  await once(probe, 'close')
  return port
}
