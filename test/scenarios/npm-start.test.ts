/** `npm start` as run by a process manager: a signal to npm's process must end the service. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { test } from 'node:test'
import { killGroup } from '../support/kill-group.ts'
import { eventually, ownAddress } from '../support/service.ts'
import { temporaryFolder } from '../support/stores.ts'

const ROOT = join(import.meta.dirname, '../..')

test('SIGTERM to the process of npm start stops the service', async (t) => {
  const host = ownAddress()
  const child = spawn('npm', ['start'], {
    cwd: ROOT,
    detached: true, // a separate group, so that nothing of it outlives the test
    stdio: ['ignore', 'pipe', 'ignore'],
    env: {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      SENDWRIGHT_HOST: host,
      SENDWRIGHT_DATA: await temporaryFolder(t),
      SENDWRIGHT_LOG_LEVEL: 'info',
      SENDWRIGHT_HOSTNAME: 'mail.test.example',
    },
  })
  t.after(() => killGroup(child))
  let output = ''
  child.stdout.on('data', (bytes: Buffer) => {
    output += bytes.toString()
  })
  const isUp = () =>
    fetch(`http://${host}:8080/health/ready`).then(
      ({ ok }) => ok,
      () => false,
    )
  // The last step of a start.
  await eventually('the welcome', async () => output.includes('Send a message:'))
  assert.equal(await isUp(), true)
  const ended = once(child, 'exit')
  // The output is complete once every process that holds the pipe has ended: npm's and the service's.
  const closed = once(child.stdout, 'close')
  child.kill('SIGTERM')
  await ended
  await closed
  assert.match(output, /"signal":"SIGTERM".*"stopping"/)
  assert.equal(await isUp(), false)
})
