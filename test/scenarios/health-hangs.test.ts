/** Health is answered while what the service stores on hangs. */
// Slow: it freezes the database of a whole process.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { post } from '../support/crash-rig.ts'
import { HANG_MS } from '../support/hang.ts'
import { startPostgres } from '../support/postgres.ts'
import { eventually, ownAddress } from '../support/service.ts'
import { startProcess } from '../support/service-process.ts'
import { temporaryFolder } from '../support/stores.ts'
import { attachStrace, hasStrace } from '../support/strace.ts'

test('health says soon that a database hangs', async (t) => {
  const cluster = await startPostgres()
  t.after(() => cluster.stop())
  const service = await startProcess(ownAddress(), {
    SENDWRIGHT_DATA: await temporaryFolder(t),
    SENDWRIGHT_DATABASE_URL: cluster.url,
  })
  t.after(() => service.end('SIGKILL'))
  cluster.freeze()
  for (const path of ['/health', '/health/ready']) await eventuallyHangs(service.url + path)
  assert.equal((await fetch(`${service.url}/health/live`)).status, 200)
})

test('health says soon that a disk hangs', { skip: !hasStrace() && 'needs strace' }, async (t) => {
  const service = await startProcess(
    ownAddress(),
    { SENDWRIGHT_DATA: await temporaryFolder(t) },
    { synced: true },
  )
  t.after(() => service.end('SIGKILL'))
  const hanging = [
    '-o',
    '/dev/null',
    '-e',
    'trace=fdatasync,fsync,pwrite64',
    '-e',
    'inject=fdatasync,fsync,pwrite64:delay_enter=3000000',
  ]
  const strace = await attachStrace(service.child.pid as number, hanging)
  t.after(() => strace.detach())
  const sent = post(service, { to: 'alice@example.org', subject: 'Hello', text: 'Hi.' }).catch(() => null)
  // From the first write on.
  await eventuallyHangs(`${service.url}/health`)
  await service.end('SIGKILL')
  await sent
})

/** Each answer comes in time. */
async function eventuallyHangs(url: string): Promise<void> {
  await eventually('health says so', async () => {
    const answer = await fetch(url, { signal: AbortSignal.timeout(HANG_MS) })
    return answer.status === 503 && /storage does not answer/.test(await answer.text())
  })
}
