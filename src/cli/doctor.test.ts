import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { runCommand } from '../../test/support/command.ts'
import { createDnsServer } from '../../test/support/dns-server.ts'
import { createTestDatabase } from '../../test/support/postgres.ts'
import { ownAddress, TEST_KEY } from '../../test/support/service.ts'
import { startProcess } from '../../test/support/service-process.ts'
import { temporaryFolder } from '../../test/support/stores.ts'

async function setUp(t: TestContext) {
  const dns = await createDnsServer()
  t.after(() => dns.close())
  const folder = await temporaryFolder(t)
  const host = ownAddress()
  const env = {
    SENDWRIGHT_HOST: host,
    SENDWRIGHT_DATA: folder,
    SENDWRIGHT_API_KEY: TEST_KEY,
    SENDWRIGHT_DNS: `${dns.host}:${dns.port}`,
  }
  return { folder, host, env }
}

const doctor = (env: Record<string, string>) => runCommand(env, 'doctor')

test('before the first start doctor runs the checks itself, and leaves no files', async (t) => {
  const { folder, env } = await setUp(t)
  const { code, out } = await doctor(env)
  assert.equal(code, 0, out)
  assert.match(out, /not running; looked from here/)
  assert.match(out, /ok +database +There is no database yet/)
  assert.match(out, /skipped +outbound-port-25 +Not needed: mail is captured/)
  assert.deepEqual(readdirSync(folder), [])
})

test('doctor lets a running service run the checks, and runs them itself once that has stopped', async (t) => {
  const { host, env } = await setUp(t)
  const service = await startProcess(host, env)
  t.after(() => service.end('SIGKILL'))
  assert.match((await doctor(env)).out, /running service says:[\s\S]*database \(sqlite\) can be written/)
  await service.end('SIGTERM')
  const stopped = await doctor(env)
  assert.match(stopped.out, /looked from here:[\s\S]*The SQLite database in .* can be written/)
  assert.match(stopped.out, /FAILED +service +The service does not run/)
  assert.deepEqual([stopped.code, stopped.err], [1, '1 of 23 checks failed.\n'])
})

test('doctor checks PostgreSQL itself: writable, read-only like a standby, unreachable', async (t) => {
  const { env } = await setUp(t)
  const database = await createTestDatabase()
  t.after(() => database.drop())
  const against = (url: string) => doctor({ ...env, SENDWRIGHT_DATABASE_URL: url })
  const standby = new URL(database.url)
  standby.searchParams.set('options', '-c default_transaction_read_only=on')
  const away = new URL(database.url)
  away.port = '1'
  const urls = [database.url, standby.href, away.href] as const
  const [writable, readOnly, refused] = await Promise.all(urls.map(against))
  assert.ok(writable && readOnly && refused)
  assert.equal(writable.code, 0, writable.out)
  assert.match(writable.out, /ok +database +PostgreSQL answers and can be written\./)
  assert.equal(readOnly.code, 1)
  assert.match(readOnly.out, /FAILED +database +.*PostgreSQL allows reading only: is this a standby\?/)
  assert.equal(refused.code, 1)
  assert.match(
    refused.out,
    /FAILED +database +The database cannot be written: Cannot reach PostgreSQL at .*: connect ECONNREFUSED/,
  )
})

test('a failed check gives exit status 1', async (t) => {
  const { env } = await setUp(t)
  const { code, out, err } = await doctor({ ...env, SENDWRIGHT_FREE_SPACE_MIN: '900000g' })
  assert.equal(code, 1)
  assert.match(out, /FAILED +disk/)
  assert.match(err, /1 of 22 checks failed/)
})
