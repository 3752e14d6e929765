// Slow: it makes three pods with a hundred tables each.
/** Several pods in one PostgreSQL: none sees, wakes or holds up another one, and a directory says what each has. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import pino from 'pino'
import { readConfig } from '../../src/platform/config/config.ts'
import { completeEntries, SOURCES } from '../../src/platform/store/pods/directory.ts'
import { advisoryKey, schemaOf } from '../../src/platform/store/pods/pod.ts'
import { COPY_LOCK } from '../../src/platform/store/postgres/advisory-locks.ts'
import { openPostgres } from '../../src/platform/store/postgres/postgres.ts'
import { startService } from '../../src/service.ts'
import { runCommand } from '../support/command.ts'
import { createTestDatabase } from '../support/postgres.ts'
import { eventually, startTestService, type TestService } from '../support/service.ts'
import { temporaryFolder } from '../support/stores.ts'

const SECRET = 'secret-of-all-pods-0123456789abcdef'
const NAMES = ['a', 'b', 'c'] as const

async function database(t: TestContext): Promise<{ url: string; query: Query }> {
  const { url, drop } = await createTestDatabase()
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  t.after(async () => {
    await client.end()
    await drop()
  })
  return { url, query: async (sql, values = []) => (await client.query(sql, values)).rows }
}

type Query = (sql: string, values?: unknown[]) => Promise<Record<string, unknown>[]>

const startPod = (t: TestContext, url: string, pod: string, env: Record<string, string> = {}) =>
  startTestService(t, {
    SENDWRIGHT_DATABASE_URL: url,
    SENDWRIGHT_POD: pod,
    SENDWRIGHT_SECRET: SECRET,
    SENDWRIGHT_API_KEY: keyOf(pod),
    SENDWRIGHT_DELIVERY: 'capture',
    ...env,
  })

const keyOf = (pod: string) => `key-of-the-pod-${pod}-0123456789`

async function delivered(pod: TestService, key: string): Promise<unknown[]> {
  return eventually('an event', async () => {
    const answer = await pod.call('GET', `/v3/${pod.domain}/events?event=delivered`, { key })
    return answer.body.items.length > 0 && answer.body.items
  })
}

test('three pods share one PostgreSQL', async (t) => {
  const { url, query } = await database(t)
  const pods: TestService[] = []
  for (const name of NAMES) pods.push(await startPod(t, url, name))
  const [a, b] = pods as [TestService, TestService, TestService]
  const as = (pod: TestService, method: string, path: string, form?: Record<string, string>) =>
    pod.call(method, path, { key: pod.config.apiKey, ...(form && { form }) })

  await t.test('each sends mail of its own, and has no other events', async () => {
    for (const pod of pods) {
      const form = { from: `s@${pod.domain}`, to: 'alice@example.org', subject: pod.domain, text: 'Hi.' }
      assert.equal((await as(pod, 'POST', `/v3/${pod.domain}/messages`, form)).status, 200)
    }
    for (const pod of pods) assert.equal((await delivered(pod, String(pod.config.apiKey))).length, 1)
    for (const name of NAMES) {
      const rows = await query(`SELECT DISTINCT domain_name FROM ${schemaOf(name)}.events`)
      assert.equal(rows.length, 1)
    }
    assert.deepEqual(await query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'"), [])
  })

  await t.test('a key, a domain and an account say their pod', async () => {
    const read = await a.call('GET', `/v4/domains/${a.domain}?h:extended=true`, { key: a.config.apiKey })
    assert.equal(read.body.domain.pod, 'a')
    assert.deepEqual(
      (await as(a, 'GET', '/v1/keys')).body.items.map(({ pod }: { pod: string }) => pod),
      ['a'],
    )
    const made = await as(b, 'POST', '/v5/accounts/subaccounts', { name: 'Acme' })
    assert.equal(made.body.subaccount.pod, 'b')
  })

  await t.test('the cookie of a session begins with its pod', async () => {
    const form = { key: String(a.config.apiKey) }
    const opened = await a.call('POST', '/sendwright/v1/session', { key: null, form })
    const cookie = String(opened.headers.get('set-cookie')).split(';')[0] as string
    assert.match(cookie, /^[\w-]+=a\.[\w-]{43}$/)
    const read = await a.call('GET', '/v4/domains', { key: null, headers: { cookie } })
    assert.equal(read.status, 200)
  })

  await t.test('a key of one pod is none of another', async () => {
    const refused = await a.call('GET', '/v4/domains', { key: String(b.config.apiKey) })
    assert.equal(refused.status, 401)
  })

  await t.test('a domain that another pod has is taken, until it is deleted there', async () => {
    assert.equal((await as(a, 'POST', '/v4/domains', { name: 'one.example' })).status, 200)
    const taken = await as(b, 'POST', '/v4/domains', { name: 'one.example' })
    assert.deepEqual([taken.status, taken.body.message], [400, 'This domain name is already taken'])
    const host = await as(b, 'POST', '/v4/domains', { name: 'email.one.example', web_prefix: 'x' })
    assert.equal(host.status, 200, 'a tracking host is no domain')
    const prefix = await as(b, 'PUT', '/v4/domains/email.one.example', { web_prefix: 'y' })
    assert.equal(prefix.status, 200)
    assert.deepEqual((await as(b, 'GET', '/v4/domains')).body.total_count, 2)
    assert.equal((await as(a, 'DELETE', '/v3/domains/one.example')).status, 200)
    await eventually('the name to be free', async () => {
      const again = await as(b, 'POST', '/v4/domains', { name: 'one.example' })
      if (again.status !== 200) assert.equal(again.body.message, 'This domain name is already taken')
      return again.status === 200
    })
  })

  await t.test('an address of a user, a login and a public key are in the directory', async () => {
    assert.equal(
      (await as(a, 'POST', `/v3/domains/${a.domain}/credentials`, { login: 'bob', password: 'long-enough' }))
        .status,
      200,
    )
    await as(a, 'POST', '/v1/keys/public')
    await as(a, 'POST', '/v1/keys/public')
    const made = await as(a, 'POST', '/v1/keys', { role: 'sending', kind: 'domain', domain_name: a.domain })
    assert.equal((await as(a, 'DELETE', `/v1/keys/${made.body.key.id}`)).status, 200)
    const rows = await query("SELECT pod FROM sendwright_pods.entries WHERE kind = 'login' AND value = $1", [
      `bob@${a.domain}`,
    ])
    assert.deepEqual(rows, [{ pod: 'a' }])
  })

  await t.test('the directory has what the tables have, nothing more and nothing less', async () => {
    for (const name of NAMES) {
      await query(`SET search_path = ${schemaOf(name)}`)
      for (const [kind, values] of SOURCES) {
        const wanted = await query(`SELECT value FROM (${values}) AS found (value) ORDER BY 1`)
        const found = await query(
          'SELECT value FROM sendwright_pods.entries WHERE pod = $1 AND kind = $2 ORDER BY 1',
          [name, kind],
        )
        assert.deepEqual(found, wanted, `${name} ${kind}`)
      }
    }
    await query('RESET search_path')
  })

  await t.test('the directory has the addresses of the live nodes', async () => {
    const rows = await query('SELECT name, http, smtp, state FROM sendwright_pods.pods ORDER BY name')
    const wanted = pods.map((pod, at) => ({
      name: NAMES[at],
      http: JSON.stringify([new URL(pod.url).host]),
      smtp: JSON.stringify([`${pod.config.smtpHost}:${pod.service.smtp.port}`]),
      state: 'open',
    }))
    assert.deepEqual(rows, wanted)
  })

  await t.test(
    'the directory has the hosts of public URLs, also one that is older than they are',
    async () => {
      await b.service.stop()
      await query('ALTER TABLE sendwright_pods.pods DROP COLUMN hosts')
      await b.restart()
      const rows = await query("SELECT hosts FROM sendwright_pods.pods WHERE name = 'b'")
      assert.deepEqual(rows, [{ hosts: JSON.stringify([new URL(b.config.publicUrl).hostname]) }])
    },
  )

  await t.test('a lock of one pod does not hold up another', async () => {
    const holder = new pg.Client({ connectionString: url })
    await holder.connect()
    await holder.query('SET search_path = pod_a')
    await holder.query(`SELECT pg_advisory_lock(${advisoryKey(COPY_LOCK)})`)
    await (await openPostgres(url, { pod: 'b' })).close()
    await assert.rejects(openPostgres(url, { pod: 'a' }), {
      detail: /is copying it/,
    })
    await holder.end()
  })

  await t.test('a pod that stops leaves the directory, and starts again with what it had', async () => {
    await a.service.stop()
    const there = () => query("SELECT http, smtp FROM sendwright_pods.pods WHERE name = 'a'")
    assert.deepEqual(await there(), [{ http: '[]', smtp: '[]' }])
    await a.restart()
    assert.equal((await as(a, 'GET', '/v4/domains')).body.total_count, 1)
    assert.notDeepEqual(await there(), [{ http: '[]', smtp: '[]' }])
  })

  await t.test('a new pod with another secret is refused', async () => {
    const env = {
      SENDWRIGHT_DATA: await temporaryFolder(t),
      SENDWRIGHT_DATABASE_URL: url,
      SENDWRIGHT_POD: 'other',
      SENDWRIGHT_SECRET: 'another-secret-0123456789abcdefghij',
    }
    await assert.rejects(startService(readConfig(env), pino({ level: 'silent' })), /is not the secret/)
  })

  await t.test('the command lists pods and makes them', async () => {
    const env = { SENDWRIGHT_DATABASE_URL: url }
    const made = await runCommand(env, 'pods', 'create', 'd', '--json')
    assert.deepEqual(JSON.parse(made.out).items, [
      { name: 'd', state: 'open', nodes: 0, http: [], smtp: [], entries: { pod: 1 } },
    ])
    const listed = await runCommand(env, 'pods', 'list')
    assert.deepEqual(
      listed.out.split('\n').map((line) => line.split(/ +/).slice(0, 5).join(' ')),
      [
        'pod state nodes accounts domains',
        'a open 1 1 1',
        'b open 1 2 3',
        'c open 1 1 1',
        'd open 0 0 0',
        'other open 0 0 0',
        '',
      ],
    )
  })

  await t.test('all of one pod moves to another, and the directory with it', async () => {
    const c = pods[2] as TestService
    const settings = {
      SENDWRIGHT_DATA: c.config.dataFolder,
      SENDWRIGHT_DATABASE_URL: url,
      SENDWRIGHT_POD: 'c',
      SENDWRIGHT_SECRET: SECRET,
    }
    const move = () => runCommand({ ...settings, SENDWRIGHT_MIGRATE_TO: url }, 'migrate', '--to-pod', 'd')
    assert.match((await move()).err, /pod "c" of .* is in use: a node/)
    const stateOf = async (pod: string) =>
      (await query('SELECT state FROM sendwright_pods.pods WHERE name = $1', [pod]))[0]?.['state']
    assert.equal(await stateOf('c'), 'open')
    await c.service.stop()
    const moved = await move()
    assert.equal(moved.code, 0, moved.err)
    assert.equal(await stateOf('c'), 'moved')
    await assert.rejects(c.restart(), { detail: /^Cannot open pod "c": all that it had was moved/ })
    const d = await startPod(t, url, 'd', { SENDWRIGHT_API_KEY: keyOf('c') })
    assert.equal(d.domain, c.domain)
    assert.equal((await delivered(d, keyOf('c'))).length, 1)
    const [row] = await query('SELECT pod FROM sendwright_pods.entries WHERE value = $1', [d.domain])
    assert.equal(row?.['pod'], 'd')
    assert.deepEqual(await query("SELECT 1 FROM sendwright_pods.entries WHERE pod = 'c'"), [])
  })

  await t.test('a copy into a pod completes the directory, and names what another pod has', async () => {
    await query("DELETE FROM sendwright_pods.entries WHERE pod = 'd' AND kind = 'account'")
    const domain = pods[2]?.domain
    await query("UPDATE sendwright_pods.entries SET pod = 'b' WHERE kind = 'domain' AND value = $1", [domain])
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    await client.query('SET search_path = pod_d')
    const clashes = await completeEntries(client, 'd')
    await client.end()
    assert.deepEqual(clashes, [{ kind: 'domain', value: domain, pod: 'b' }])
    const found = await query("SELECT 1 FROM sendwright_pods.entries WHERE pod = 'd' AND kind = 'account'")
    assert.equal(found.length, 1)
  })
})
