/** PgBouncer (Debian's package `pgbouncer`) before a PostgreSQL of a drill. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ownAddress } from './service.ts'

export type PoolMode = 'session' | 'transaction' | 'statement'

export interface PgBouncer {
  /** The database's, through the pooler. */
  readonly url: string
  kill(): Promise<void>
  start(): Promise<void>
  close(): Promise<void>
}

const PORT = 6432
const NOBODY = 65_534

export const hasPgBouncer = (): boolean => spawnSync('pgbouncer', ['--version']).status === 0

export async function startPgBouncer(url: string, mode: PoolMode): Promise<PgBouncer> {
  const server = new URL(url)
  const address = ownAddress()
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-pgbouncer-'))
  const file = join(folder, 'pgbouncer.ini')
  const settings = [
    '[databases]',
    `* = host=${server.hostname} port=${server.port} user=${server.username} password=${server.password}`,
    '[pgbouncer]',
    `listen_addr = ${address}`,
    `listen_port = ${PORT}`,
    'unix_socket_dir =',
    'auth_type = any',
    `pool_mode = ${mode}`,
    'max_client_conn = 200',
    'default_pool_size = 60',
  ]
  await writeFile(file, `${settings.join('\n')}\n`)
  await chmod(folder, 0o755)
  // It refuses to run as root.
  const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
  let child: ChildProcess | null = null

  async function start(): Promise<void> {
    const started = spawn('pgbouncer', [file], { stdio: ['ignore', 'ignore', 'pipe'], ...user })
    child = started
    let said = ''
    await new Promise<void>((resolve, reject) => {
      started.once('error', reject)
      started.once('exit', () => reject(new Error(`pgbouncer ended: ${said}`)))
      started.stderr.on('data', (bytes: Buffer) => {
        said = (said + bytes.toString()).slice(-10_000)
        if (/process up/.test(said)) resolve()
      })
    })
  }

  async function kill(): Promise<void> {
    if (child === null || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }

  await start()
  const through = new URL(url)
  through.host = `${address}:${PORT}`
  return {
    url: through.href,
    start,
    kill,
    async close() {
      await kill()
      await rm(folder, { recursive: true })
    },
  }
}
