/** A log that cannot be written: the service works on, and SIGTERM ends it as ever. */
// Slow: it kills processes of the service, again and again.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, openSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { commandEnvironment } from '../support/command.ts'
import { MAIN } from '../support/program.ts'
import { ownAddress } from '../support/service.ts'
import { startProcess } from '../support/service-process.ts'
import { temporaryFolder } from '../support/stores.ts'

const { O_RDONLY, O_WRONLY, O_NONBLOCK } = constants

/** Starts the service with `stdout`; each call that it refuses is a line of its log. */
async function start(t: TestContext, stdout: number) {
  const env = { SENDWRIGHT_DATA: await temporaryFolder(t), SENDWRIGHT_LOG_LEVEL: 'info' }
  const service = await startProcess(ownAddress(), env, { stdout })
  t.after(() => service.end('SIGKILL'))
  const refused = async (count: number) => {
    for (let call = 0; call < count; call++) {
      const response = await fetch(`${service.url}/none`)
      await response.arrayBuffer()
      assert.equal(response.status, 404)
    }
  }
  return { service, refused }
}

async function pipe(t: TestContext) {
  const path = join(await temporaryFolder(t), 'log')
  assert.equal(spawnSync('mkfifo', [path]).status, 0)
  const reader = openSync(path, O_RDONLY | O_NONBLOCK)
  return { reader, writer: openSync(path, O_WRONLY) }
}

test('a full disk from the start on: it serves, and ends with 0', async (t) => {
  const { service, refused } = await start(t, openSync('/dev/full', 'w'))
  await refused(20)
  assert.equal((await fetch(`${service.url}/health`)).status, 200)
  assert.equal(await service.end('SIGTERM'), 0)
})

test('a pipe whose reader is gone from the start on, and one whose reader leaves', async (t) => {
  for (const leaves of ['before', 'after']) {
    const { reader, writer } = await pipe(t)
    if (leaves === 'before') closeSync(reader)
    const { service, refused } = await start(t, writer)
    if (leaves === 'after') closeSync(reader)
    await refused(20)
    assert.equal(await service.end('SIGTERM'), 0, leaves)
    assert.equal(service.output(), '', leaves)
  }
})

test('a pipe that is full and not read', async (t) => {
  const { reader, writer } = await pipe(t)
  t.after(() => closeSync(reader))
  const { service, refused } = await start(t, writer)
  // Each line has over 200 characters, the pipe holds 64 KB.
  await refused(400)
  assert.equal(await service.end('SIGTERM'), 0)
})

const command = (shell: string) =>
  spawnSync('sh', ['-c', shell], {
    encoding: 'utf8',
    env: { ...commandEnvironment(), MAIN, NODE: process.execPath },
  })

test('a command whose reader has seen enough ends without a word; one whose output is lost fails', () => {
  const piped = command('{ "$NODE" "$MAIN" --help; echo "code $?" >&2; } | true')
  assert.equal(piped.stderr, 'code 0\n')
  const full = command('"$NODE" "$MAIN" --help > /dev/full')
  assert.deepEqual(
    [full.status, full.stderr],
    [1, 'Cannot write the output: ENOSPC: no space left on device, write\n'],
  )
})

test('SIGUSR1 opens no debugger', async (t) => {
  const { reader, writer } = await pipe(t)
  t.after(() => closeSync(reader))
  const { service, refused } = await start(t, writer)
  service.child.kill('SIGUSR1')
  await refused(1)
  assert.equal(await service.end('SIGTERM'), 0)
  assert.equal(service.output(), '')
})

const python = spawnSync('python3', ['--version']).status === 0

/** The controlling side of a terminal; hangs up when its standard input ends. */
const TERMINAL = `
import os, pty, sys
master, slave = pty.openpty()
print(os.ttyname(slave), flush=True)
sys.stdin.read()
`

async function hangUp(t: TestContext): Promise<void> {
  const terminal = spawn('python3', ['-c', TERMINAL], { stdio: ['pipe', 'pipe', 'inherit'] })
  t.after(() => terminal.kill())
  const [name] = (await once(terminal.stdout, 'data')) as [Buffer]
  const { service, refused } = await start(t, openSync(name.toString().trim(), O_WRONLY | constants.O_NOCTTY))
  const gone = once(terminal, 'exit')
  terminal.stdin.end()
  await gone
  await refused(20)
  assert.equal(await service.end('SIGTERM'), 0)
}

// Node cannot open the controlling side of a terminal. Where there is no Python the other tests have to do.
if (python) test('a terminal that hangs up', hangUp)
