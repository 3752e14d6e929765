/** Starts of the service that end on their own, or are stopped at once. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import type { TestContext } from 'node:test'
import { commandEnvironment } from './command.ts'
import { HANG_MS } from './hang.ts'
import { MAIN } from './program.ts'
import { eventually, ownAddress } from './service.ts'
import { type ServiceProcess, startProcess } from './service-process.ts'

/** A service that is killed when the test ends. */
export async function startFor(t: TestContext, env: Record<string, string>): Promise<ServiceProcess> {
  const service = await startProcess(ownAddress(), env)
  t.after(() => service.end('SIGKILL'))
  // It answers a moment before it handles signals; its welcome follows that.
  await eventually('its welcome', async () => service.output().includes('Send a message'))
  return service
}

/** Starts and stops it, so that there is an installation. */
export async function installed(t: TestContext, env: Record<string, string>): Promise<void> {
  const service = await startFor(t, env)
  assert.equal(await service.end('SIGTERM'), 0)
}

export interface Refusal {
  code: number | null
  said: string
}

/** A start that is expected to end on its own. */
export function refusedStart(env: Record<string, string>): Promise<Refusal> {
  const options = {
    env: { ...commandEnvironment(), SENDWRIGHT_HOST: ownAddress(), ...env },
    timeout: 3 * HANG_MS,
  }
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [MAIN, 'serve'], options, (_error, _stdout, stderr) =>
      resolve({ code: child.exitCode, said: stderr }),
    )
  })
}

/** Exit code 1 and one line, without a stack. */
export function assertPlain({ code, said }: Refusal, expected: RegExp): void {
  assert.equal(code, 1, said)
  assert.match(said, expected)
  assert.equal(said.trim().split('\n').length, 1, said)
}
