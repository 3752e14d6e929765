/** The service as a separate process, for tests that end it: `kill -9`, SIGTERM, frozen workers. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { HANG_MS } from './hang.ts'
import { withinGroup } from './memory-group.ts'
import { COMPILE_CACHE, MAIN } from './program.ts'
import { TEST_KEY } from './service.ts'

export interface ServiceProcess {
  url: string
  /** The sandbox domain; known once the first start is ready. */
  domain: string
  child: ChildProcess
  /** Its output so far. */
  output(): string
  /** Sends a signal and resolves with the exit code once the process is gone. */
  end(signal: NodeJS.Signals): Promise<number | null>
}

/** The process ended before it was ready. */
export class EndedAtStart extends Error {
  constructor(output: string) {
    super(`the service ended at its start:\n${output}`)
  }
}

/** A start takes two seconds of a processor: three minutes with 60 others. Its output says why it hangs. */
const START_MAX_MS = 3 * HANG_MS
/** A look that nobody answers takes a millisecond of processor time. */
const READY_LOOK_MS = 30
const OUTPUT_MAX = 1_000_000

/**
 * Starts `sendwright serve` on `host`:8080 with the test key and resolves once it is ready.
 * @param options `probe`: file for the longest block of its main thread (block-probe.ts); `flags`: of node;
 *   `memoryGroup`: folder of the control group that it starts in (memory-group.ts); `openFiles`: limit of open files;
 *   `domain`: its sandbox domain, for a process without an API to ask; `root`: of another release's sources;
 *   `stdout`: its log goes to this descriptor, not to `output`; `synced`: also in a run of all tests (unsynced.ts);
 *   `startMaxMs`: Infinity for one that starts beside a full load, and is waited for until it is ready or has ended;
 *   `isReady`: for one whose address takes no calls of this process, in place of asking it; needs `domain`
 */
export async function startProcess(
  host: string,
  env: Record<string, string>,
  options: {
    probe?: string
    flags?: readonly string[]
    memoryGroup?: string
    openFiles?: number
    domain?: string
    root?: string
    stdout?: number
    synced?: boolean
    startMaxMs?: number
    isReady?: () => Promise<boolean>
  } = {},
): Promise<ServiceProcess> {
  const main = options.root === undefined ? MAIN : join(options.root, 'src/main.ts')
  const probing = options.probe === undefined ? [] : ['--import', join(import.meta.dirname, 'block-probe.ts')]
  const node = [process.execPath, ...(options.flags ?? []), ...unsynced(options), ...probing, main, 'serve']
  const limited = ['sh', '-c', `ulimit -n ${options.openFiles}; exec "$0" "$@"`, ...node]
  const started = options.openFiles === undefined ? node : limited
  const [command = '', ...args] =
    options.memoryGroup === undefined ? started : withinGroup(options.memoryGroup, started)
  const child = spawn(command, args, {
    env: {
      PATH: process.env['PATH'],
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      SENDWRIGHT_HOST: host,
      SENDWRIGHT_API_KEY: TEST_KEY,
      SENDWRIGHT_RATE_LIMIT: 'off',
      SENDWRIGHT_LOG_LEVEL: 'warn',
      SENDWRIGHT_HOSTNAME: 'mail.test.example',
      ...(options.probe !== undefined && { SENDWRIGHT_TEST_PROBE: options.probe }),
      ...env,
    },
    stdio: ['ignore', options.stdout ?? 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (bytes: Buffer) => {
      output = (output + bytes.toString()).slice(-OUTPUT_MAX)
    })
  }
  const url = `http://${host}:8080`
  const { startMaxMs = START_MAX_MS, isReady = () => isHealthy(url) } = options
  const from = performance.now()
  while (!(await isReady())) {
    if (child.exitCode !== null || child.signalCode !== null) throw new EndedAtStart(output)
    if (performance.now() - from > startMaxMs) {
      child.kill('SIGKILL')
      throw new Error(`the service is not ready after ${startMaxMs} ms:\n${output}`)
    }
    // Asking takes processor time that a slow start needs: a twentieth of the time already gone.
    await sleep(Math.max(READY_LOOK_MS, (performance.now() - from) / 20))
  }
  const domain =
    options.domain ??
    (await sandboxOf(url, authorizationOf(env['SENDWRIGHT_API_KEY'] ?? TEST_KEY)).catch((error: unknown) => {
      // A fail point may end it as soon as the service is ready.
      child.kill('SIGKILL')
      throw new EndedAtStart(`${error}\n${output}`)
    }))
  return {
    url,
    domain,
    child,
    output: () => output,
    async end(signal) {
      if (child.exitCode !== null || child.signalCode !== null) return child.exitCode
      const ended = once(child, 'exit')
      child.kill(signal)
      const [code] = (await ended) as [number | null]
      return code
    },
  }
}

const unsynced = ({ synced = false }) =>
  synced || !process.env['SENDWRIGHT_TEST_HOME'] ? [] : ['--import', join(import.meta.dirname, 'unsynced.ts')]

export const authorizationOf = (key: string) => `Basic ${Buffer.from(`api:${key}`).toString('base64')}`
export const AUTHORIZATION = authorizationOf(TEST_KEY)

async function isHealthy(url: string): Promise<boolean> {
  const answer = await fetch(`${url}/health/ready`).catch(() => null)
  return answer?.ok === true
}

async function sandboxOf(url: string, authorization: string): Promise<string> {
  const answer = await fetch(`${url}/v4/domains`, { headers: { authorization } })
  const { items } = (await answer.json()) as { items: { name: string; type: string }[] }
  const sandbox = items.find(({ type }) => type === 'sandbox')
  if (!sandbox) throw new Error('the service has no sandbox domain')
  return sandbox.name
}
