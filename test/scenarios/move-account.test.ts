// By name: it starts two pods and a front, and runs the command beside them.
/** An account moves from one pod to another behind a front, while a client sends. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { blobPath } from '../../src/platform/store/blobs/blobs.ts'
import { BLOB_FOLDER } from '../../src/platform/store/blobs/data-folder.ts'
import { SOURCES } from '../../src/platform/store/pods/directory.ts'
import { runCommand } from '../support/command.ts'
import { basic, testFront } from '../support/front.ts'
import { createTestDatabase } from '../support/postgres.ts'
import { eventually, ownAddress, startTestService, type TestService } from '../support/service.ts'
import { createSink, type Sink, type SinkMessage } from '../support/smtp-sink.ts'
import { onBehalf, SUBACCOUNTS } from '../support/subaccounts.ts'

const SECRET = 'secret-of-all-pods-0123456789abcdef'
const BUSY = 'busy.example'
const QUIET = 'quiet.example'
const LINK = 'https://shop.example.org/a'
/** Between calls of a client that was told to come again. */
const TRY_AGAIN_MS = 50

type Query = (sql: string, values?: unknown[]) => Promise<Record<string, unknown>[]>

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

const startPod = (t: TestContext, url: string, pod: string, sink: Sink) =>
  startTestService(t, {
    ...{ SENDWRIGHT_DATABASE_URL: url, SENDWRIGHT_POD: pod, SENDWRIGHT_SECRET: SECRET },
    ...{ SENDWRIGHT_API_KEY: `key-of-the-pod-${pod}-0123456789`, SENDWRIGHT_DNS: '127.0.0.1:9' },
    ...{ SENDWRIGHT_HTTP_PROXY_PROTOCOL: '127.0.0.1', SENDWRIGHT_SMTP_PROXY_PROTOCOL: '127.0.0.1' },
    ...{ SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`, SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8' },
    ...{ SENDWRIGHT_PUBLIC_URL: 'http://links.example', SENDWRIGHT_TRACKING_URL: 'http://links.example' },
  })

const subjectOf = ({ raw }: SinkMessage) => /^subject: *(\S+)/im.exec(raw.toString('latin1'))?.[1]

/** Of a mail with quoted-printable text. */
const textOf = ({ raw }: SinkMessage) =>
  raw
    .toString('latin1')
    .replace(/=\r\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))

test('an account moves to another pod: nothing is lost, nothing is twice, and old links work', async (t) => {
  const sink = await createSink({ host: ownAddress() })
  t.after(() => sink.close())
  sink.on('RCPT TO:<slow@example.org>', '451 4.3.0 not now')
  const { url, query } = await database(t)
  const a = await startPod(t, url, 'a', sink)
  const b = await startPod(t, url, 'b', sink)
  const { url: address } = await testFront(t, undefined, {
    ...{ SENDWRIGHT_DATABASE_URL: url, SENDWRIGHT_SECRET: SECRET },
  })
  let headers: Record<string, string> = { authorization: basic(String(a.config.apiKey)) }

  /** Through the front. */
  async function call(method: string, path: string, body?: URLSearchParams | FormData) {
    const answer = await fetch(address + path, { method, headers, ...(body && { body }) })
    const text = await answer.text()
    return { status: answer.status, retryAfter: answer.headers.get('retry-after'), text }
  }
  /** Called again while no node is reached: nothing was sent then. */
  async function ok(method: string, path: string, form?: Record<string, string> | FormData) {
    const body = form === undefined || form instanceof FormData ? form : new URLSearchParams(form)
    const { status, text } = await eventually(`${method} ${path}`, async () => {
      const answer = await call(method, path, body)
      return answer.status !== 503 && answer
    })
    assert.ok(status < 300, `${method} ${path}: ${status} ${text}`)
    return JSON.parse(text)
  }
  const allOf = async (domain: string): Promise<Record<string, unknown>[]> =>
    (await ok('GET', `/v3/${domain}/events?limit=300&ascending=yes`)).items.map(
      // Its parent is another one in another pod.
      ({ account: _, ...event }: Record<string, unknown>) => event,
    )
  const figuresOf = (domain: string) =>
    ok(
      'GET',
      `/v3/${domain}/stats/total?event=accepted&event=delivered&event=failed&event=opened&duration=1d`,
    )

  const opened = await ok('POST', SUBACCOUNTS, { name: 'Acme' })
  const account: string = opened.subaccount.id
  headers = { ...headers, ...onBehalf(account) }
  // From now on a client of the account.
  headers = { authorization: basic((await ok('POST', '/v1/keys', { role: 'admin' })).key.secret) }
  for (const name of [BUSY, QUIET]) {
    await ok('POST', '/v4/domains', { name })
    await query("UPDATE pod_a.domains SET verified = 1, state = 'active' WHERE name = $1", [name])
    for (const kind of ['open', 'click', 'unsubscribe'])
      await ok('PUT', `/v3/domains/${name}/tracking/${kind}`, { active: 'yes' })
  }
  const from = `shop@${QUIET}`
  await ok('POST', `/v3/domains/${QUIET}/credentials`, { login: 'app', password: 'long enough' })
  await ok('POST', `/v3/${QUIET}/templates`, { name: 'hello', description: 'd', template: '<p>{{name}}</p>' })
  await ok('POST', '/v3/lists', { address: `news@${QUIET}` })
  await ok('POST', `/v3/lists/news@${QUIET}/members`, { address: 'reader@example.org', vars: '{"a":1}' })
  await ok('POST', `/v3/${QUIET}/bounces`, { address: 'bounced@example.org' })
  await ok('POST', `/v3/domains/${QUIET}/webhooks`, { id: 'delivered', url: 'http://127.0.0.1:9/hook' })
  await ok('POST', '/v3/routes', { expression: 'match_recipient("x@")', action: 'store()' })
  const mail = { from, subject: 'first', text: 'Hi.', html: `<a href="${LINK}">x</a>`, 'o:tag': 'one' }
  await ok('POST', `/v3/${QUIET}/messages`, { ...mail, to: 'alice@example.org' })
  await ok('POST', `/v3/${QUIET}/messages`, { ...mail, subject: 'slow', to: 'slow@example.org' })
  const later = new Date(Date.now() + 86_400_000).toUTCString()
  await ok('POST', `/v3/${QUIET}/messages`, { ...mail, to: 'later@example.org', 'o:deliverytime': later })
  const large = new FormData()
  for (const [name, value] of Object.entries({ ...mail, subject: 'large', to: 'bob@example.org' }))
    large.set(name, value)
  large.set('attachment', new File(['y'.repeat(700_000)], 'large.txt'))
  await ok('POST', `/v3/${QUIET}/messages`, large)
  await eventually('deliveries', async () => {
    const names = (await allOf(QUIET)).map(({ event }) => event)
    return names.filter((name) => name === 'delivered').length === 2 && names.includes('failed')
  })
  await eventually('figures', async () => JSON.stringify(await figuresOf(QUIET)).includes('"smtp":2'))
  const read = async () => ({
    events: await allOf(QUIET),
    figures: await figuresOf(QUIET),
    members: await ok('GET', `/v3/lists/news@${QUIET}/members`),
    bounces: await ok('GET', `/v3/${QUIET}/bounces`),
    template: await ok('GET', `/v3/${QUIET}/templates/hello?active=yes`),
    routes: await ok('GET', '/v3/routes'),
    webhooks: await ok('GET', `/v3/domains/${QUIET}/webhooks`),
    logins: await ok('GET', `/v3/domains/${QUIET}/credentials`),
  })
  const before = await read()

  const blobs = (await query(`SELECT blobs_json FROM pod_a.messages WHERE blobs_json <> '[]'`)).flatMap(
    ({ blobs_json }) => JSON.parse(String(blobs_json)) as string[],
  )
  assert.ok(blobs.length > 0, 'a message has a file')
  const has = (pod: TestService) =>
    blobs.filter((name) => existsSync(join(pod.config.dataFolder, BLOB_FOLDER, blobPath(name)))).length

  const client = sendAlways()
  await client.more(3)
  const settings = { SENDWRIGHT_DATABASE_URL: url, SENDWRIGHT_DATA: a.config.dataFolder }
  const move = (env: Record<string, string> = {}, ...more: string[]) =>
    runCommand({ ...settings, ...env }, ...['pods', 'move-account', account, '--to', 'b'], ...more)
  const toData = ['--to-data', b.config.dataFolder]

  try {
    await t.test('it is refused while a node runs, and without the folder for its files', async () => {
      assert.match((await move()).err, /pod "a" of .* is in use: a node/)
      await a.service.stop()
      await b.service.stop()
      assert.match((await move()).err, /name the data folder of pod "b" with --to-data/)
    })

    await t.test('it moves: files are in one place, and nothing of it is left', async () => {
      const done = await move({}, ...toData, '--json')
      assert.equal(done.code, 0, done.err)
      assert.deepEqual([has(a), has(b)], [0, blobs.length])
      const states = await query('SELECT DISTINCT state FROM sendwright_pods.pods')
      assert.deepEqual(states, [{ state: 'open' }])
      assert.deepEqual(await query("SELECT 1 FROM sendwright_pods.entries WHERE kind = 'files'"), [])
      const tables = await query(
        "SELECT table_name FROM information_schema.columns WHERE table_schema = 'pod_a' AND column_name = 'account_id'",
      )
      for (const { table_name } of tables)
        assert.deepEqual(
          await query(`SELECT 1 FROM pod_a.${table_name} WHERE account_id = $1`, [account]),
          [],
          String(table_name),
        )
      for (const pod of ['a', 'b']) {
        await query(`SET search_path = pod_${pod}`)
        for (const [kind, values] of SOURCES)
          assert.deepEqual(
            await query(
              `SELECT value FROM (${values}) AS wanted (value) EXCEPT SELECT value FROM sendwright_pods.entries WHERE pod = $1 AND kind = $2`,
              [pod, kind],
            ),
            [],
            `${pod} ${kind}`,
          )
      }
      await query('RESET search_path')
    })

    await b.restart()
    await a.restart()
    await client.more(3)
  } finally {
    await client.stop()
  }

  await t.test('what it had is there, as it was', async () => {
    const after = await read()
    // A mail that waits may have been tried again.
    const known = new Set(before.events.map(({ id }) => id))
    assert.deepEqual(
      after.events.filter(({ id }) => known.has(id)),
      before.events,
    )
    const { events: _, ...rest } = before
    const { events: __, ...found } = after
    assert.deepEqual(found, rest)
    const [queued] = await query(
      "SELECT count(*)::int AS n FROM pod_b.deliveries WHERE recipient IN ('later@example.org', 'slow@example.org')",
    )
    assert.equal(queued?.['n'], 2)
  })

  await t.test('each accepted mail has arrived once', async () => {
    const arrived = () => sink.messages.map((message) => subjectOf(message) ?? '')
    while (!client.accepted.every((subject) => arrived().includes(subject)))
      await sink.waitFor(sink.messages.length + 1)
    for (const subject of client.accepted)
      assert.equal(arrived().filter((one) => one === subject).length, 1, subject)
    assert.equal(arrived().filter((one) => one === 'first').length, 1)
    assert.ok(client.refusals.length > 0)
    for (const { status, retryAfter } of client.refusals)
      if (status === 503) assert.ok(Number(retryAfter) > 0)
      // The node stopped with the request in its hands.
      else assert.equal(status, 502)
  })

  await t.test('links in mail of before lead to the new pod', async () => {
    const message = sink.messages.find((one) => subjectOf(one) === 'first') as SinkMessage
    const links = [...textOf(message).matchAll(/http:\/\/links\.example(\/[cou]\/a\.[\w-]+)/g)].map(
      ([, path]) => String(path),
    )
    const visit = (kind: string, method: string) => {
      const path = links.find((one) => one.startsWith(`/${kind}/`))
      assert.ok(path, `${kind} in ${links}`)
      // RFC 8058 §3.1.
      const body = method === 'POST' ? new URLSearchParams({ 'List-Unsubscribe': 'One-Click' }) : null
      return fetch(address + path, { method, redirect: 'manual', body })
    }
    assert.equal((await visit('c', 'GET')).headers.get('location'), LINK)
    await eventually('the click', async () => (await allOf(QUIET)).some(({ event }) => event === 'clicked'))
    assert.equal((await visit('u', 'POST')).status, 200)
    const { items } = await ok('GET', `/v3/${QUIET}/unsubscribes`)
    assert.deepEqual(
      items.map((item: { address: string }) => item.address),
      ['alice@example.org'],
    )
  })

  /** A client that sends one mail after another, whatever becomes of those before. */
  function sendAlways() {
    const accepted: string[] = []
    const refusals: { status: number; retryAfter: string | null }[] = []
    let isOver = false
    let wake = Promise.withResolvers<void>()
    const run = async () => {
      for (let number = 0; !isOver; number++) {
        const subject = `busy-${number}`
        const form = { from: `a@${BUSY}`, to: 'carol@example.org', subject, text: 'Hi.' }
        const answer = await call('POST', `/v3/${BUSY}/messages`, new URLSearchParams(form))
        if (answer.status !== 200) {
          refusals.push(answer)
          await sleep(TRY_AGAIN_MS)
          continue
        }
        accepted.push(subject)
        wake.resolve()
        wake = Promise.withResolvers()
      }
    }
    const running = run()
    return {
      ...{ accepted, refusals },
      async more(count: number) {
        const wanted = accepted.length + count
        while (accepted.length < wanted) await Promise.race([wake.promise, running])
      },
      async stop() {
        isOver = true
        await running
      },
    }
  }
})
