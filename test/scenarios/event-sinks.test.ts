/** Event sinks: what they get, what a sink that fails gets later, and what their operations refuse. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { before, type TestContext, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { eachDatabase } from '../support/databases.ts'
import { createReceiver, type Receiver } from '../support/http-receiver.ts'
import { startS3 } from '../support/s3-server.ts'
import { eventually, startTestService, type TestService } from '../support/service.ts'

const PATH = '/sendwright/v1/event-sinks'
const ENV = { SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8', SENDWRIGHT_DELIVERY: 'capture' }

type Event = Record<string, unknown> & { id: string }

const linesOf = (text: string): Event[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Event)

const eventsIn = ({ posts }: Pick<Receiver, 'posts'>): Event[] =>
  posts.flatMap(({ raw, headers }) =>
    linesOf((headers['content-encoding'] === 'gzip' ? gunzipSync(raw) : raw).toString()),
  )

const put = async (service: TestService, name: string, json: object) => {
  const answer = await service.call('PUT', `${PATH}/${name}`, { json })
  assert.equal(answer.status, 200, answer.text)
  return answer.body
}

function hasSecret({ config }: TestService, name: string): boolean {
  const database = new DatabaseSync(join(config.dataFolder, 'sendwright.db'), { readOnly: true })
  const row = database.prepare('SELECT secret_sealed FROM event_sinks WHERE name = ?').get(name)
  database.close()
  return row?.['secret_sealed'] != null
}

const sinkOf = async (service: TestService, name: string) =>
  (await service.call('GET', `${PATH}/${name}`)).body

eachDatabase((database) => {
  test('a sink gets every event once and in order, as events and webhooks show them', async (t) => {
    const service = await startTestService(t, ENV, { database })
    const receiver = await createReceiver()
    t.after(() => receiver.close())
    const made = await put(service, 'all', {
      kind: 'http',
      url: `${receiver.url}/in`,
      secret: 'Bearer of news',
    })
    assert.equal(made.secret, undefined)
    for (let n = 0; n < 5; n++) await service.send({ to: `user${n}@example.org` })
    await eventually('all are delivered', async () => (await service.events('?event=delivered')).length === 5)
    await eventually('all are sent', async () => eventsIn(receiver).length >= 10)
    const listed = await service.events('?ascending=yes&limit=100')
    const sent = eventsIn(receiver)
    assert.deepEqual(sent.map(({ id }) => id).sort(), listed.map(({ id }) => String(id)).sort())
    for (const event of listed) {
      const { account, domain, ...rest } = sent.find(({ id }) => id === event['id']) as Event
      assert.deepEqual(rest, event)
      assert.deepEqual([domain, typeof account], [{ name: service.domain }, 'object'])
    }
    const [post] = receiver.posts
    assert.equal(post?.headers.authorization, 'Bearer of news')
    assert.equal(post?.headers['content-type'], 'application/x-ndjson')
    await eventually(
      'it is behind by nothing',
      async () => (await sinkOf(service, 'all')).behind_seconds === 0,
    )
    const shown = await sinkOf(service, 'all')
    assert.deepEqual([shown.sent, shown.skipped, shown.failing_since], [sent.length, 0, null])
  })
})

test('a sink that fails gets the same events again, in order, and others do not wait', async (t) => {
  const service = await startTestService(t, ENV)
  const [failing, sound] = [await createReceiver(), await createReceiver()]
  t.after(() => Promise.all([failing.close(), sound.close()]))
  failing.answer = (response) => response.writeHead(503).end('no room')
  await put(service, 'failing', { kind: 'http', url: `${failing.url}/in`, gzip: true })
  await put(service, 'sound', { kind: 'http', url: `${sound.url}/in`, events: ['delivered'] })
  for (const to of ['a', 'b', 'c']) await service.send({ to: `${to}@example.org` })
  await eventually('the sound one has its events', async () => eventsIn(sound).length === 3)
  assert.deepEqual([...new Set(eventsIn(sound).map(({ event }) => event))], ['delivered'])
  // It is on this machine.
  assert.equal(sound.posts[0]?.headers['content-encoding'], undefined)
  await eventually('the failing one is known', async () =>
    /503 .*no room/.test((await sinkOf(service, 'failing')).last_error ?? ''),
  )
  assert.notEqual((await sinkOf(service, 'failing')).failing_since, null)
  const refused = eventsIn(failing)
  assert.equal(failing.posts[0]?.headers['content-encoding'], 'gzip')
  failing.posts.length = 0
  failing.answer = 200
  await eventually('it has all', async () => new Set(eventsIn(failing).map(({ id }) => id)).size === 6)
  const ids = eventsIn(failing).map(({ id }) => id)
  assert.deepEqual(ids.slice(0, 1), refused.map(({ id }) => id).slice(0, 1))
  assert.equal(ids.length, 6)
  await eventually('it works', async () => (await sinkOf(service, 'failing')).failing_since === null)

  const metrics = (await service.call('GET', '/metrics')).text
  assert.match(metrics, /sendwright_event_sink_events_total\{sink="failing",result="sent"\} 6/)
  assert.match(metrics, /sendwright_event_sink_failing\{sink="sound"\} 0/)
})

test('neither a view nor an error shows what the address of a sink or its secret may hold', async (t) => {
  const service = await startTestService(t, ENV)
  const receiver = await createReceiver()
  t.after(() => receiver.close())
  const echo = (response: ServerResponse) =>
    response.writeHead(403).end(`no: ${response.req.url} ${response.req.headers.authorization}`)
  receiver.answer = echo
  const url = `${receiver.url}/in?query=INSERT%20INTO%20planted&token=planted-2`
  const sink = { kind: 'http', url, secret: 'Bearer planted-3' }
  const made = await put(service, 'asked', sink)
  assert.equal(made.url, `${receiver.url}/in?query=...&token=...`)
  await service.send({ to: 'a@example.org' })
  await eventually('it has failed', async () => (await sinkOf(service, 'asked')).last_error !== null)
  const shown = await sinkOf(service, 'asked')
  assert.match(shown.last_error, /^403 .*no: \/in/)
  assert.doesNotMatch(JSON.stringify(shown), /planted/)
  receiver.answer = 200
  await put(service, 'asked', { kind: 'http', url: shown.url, events: ['accepted'] })
  receiver.posts.length = 0
  await eventually('it has the event', async () => receiver.posts.length > 0)
  assert.deepEqual(
    [receiver.posts[0]?.path, receiver.posts[0]?.headers.authorization],
    [new URL(url).pathname + new URL(url).search, 'Bearer planted-3'],
  )
})

test('objects of JSON lines in a bucket, and lines of syslog', async (t) => {
  const service = await startTestService(t, ENV)
  const s3 = await startS3(t)
  const lines: string[] = []
  const server = createServer((socket: Socket) => void socket.on('data', (data) => lines.push(String(data))))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const { port } = server.address() as { port: number }
  await put(service, 'log', { kind: 'syslog', servers: [`127.0.0.1:${port}`] })
  await service.send({ to: 'alice@example.org' })
  await eventually('syslog has both events', async () => frames(lines.join('')).length >= 2)
  const [first = ''] = frames(lines.join(''))
  assert.match(first, /^<134>1 \d{4}-\d\d-\d\dT[\d:.]+Z mail\.test\.example sendwright - accepted - \{/)

  await put(service, 'lake', {
    ...{ kind: 's3', url: s3.env['SENDWRIGHT_BLOBS_ENDPOINT'], bucket: 'mail-blobs', prefix: 'events/' },
    ...{ access_key_id: 'S3RVER', secret: 'S3RVER', from: 'oldest' },
  })
  await eventually('the bucket has both', async () => (await sinkOf(service, 'lake')).sent >= 2)
  const folder = join(s3.folder, 'mail-blobs/events')
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    /gz[^/]*$/.test(name),
  )
  const object = files.find((name) => name.includes('.jsonl.gz') && /_object$|\.gz$/.test(name)) ?? ''
  assert.match(object, /^date=\d{4}-\d\d-\d\d\/hour=\d\d\/[\w-]+\.jsonl\.gz/)
  assert.equal(linesOf(gunzipSync(readFileSync(join(folder, object))).toString()).length, 2)
})

/** Messages with counted octets (RFC 6587 §3.4.1). */
function frames(text: string): string[] {
  const found: string[] = []
  for (let at = 0; at < text.length; ) {
    const [head = '', length = ''] = /^(\d+) /.exec(text.slice(at)) ?? []
    if (head === '') break
    const start = at + head.length
    found.push(text.slice(start, start + Number(length)))
    at = start + Number(length)
  }
  return found
}

let service: TestService
before(async (t) => {
  service = await startTestService(t as TestContext, { SENDWRIGHT_DELIVERY: 'capture' })
})

test('bad settings are refused with the reason, and a secret stays where it was for', async () => {
  const cases: [json: object, message: RegExp][] = [
    [{}, /Missing mandatory parameter: kind/],
    [{ kind: 'pigeon' }, /Invalid parameter: kind/],
    [{ kind: 'http' }, /Missing mandatory parameter: url/],
    [{ kind: 'http', url: 'ftp://example.org/' }, /url/],
    [{ kind: 'http', url: 'http://127.0.0.1/' }, /SENDWRIGHT_ALLOW_NETWORKS/],
    [{ kind: 'http', url: 'http://example.org/', secret: 'Bearer x' }, /Invalid parameter: url/],
    [{ kind: 'http', url: 'https://example.org/', topic: 'a' }, /topic is not for http/],
    [{ kind: 'stdout', secret: 'a' }, /secret is not for stdout/],
    [{ kind: 'kafka', servers: ['a:9092'] }, /Missing mandatory parameter: topic/],
    [{ kind: 'kafka', servers: ['a b'], topic: 'a' }, /Invalid parameter: servers/],
    [
      { kind: 's3', url: 'https://s3.example.org/x', bucket: 'abc', access_key_id: 'abc', secret: 'a' },
      /url/,
    ],
    [{ kind: 's3', url: 'https://s3.example.org', bucket: 'abc', access_key_id: 'abc' }, /parameter: secret/],
    [{ kind: 'stdout', behind_max_seconds: 60 }, /behind_max_seconds/],
    // A pattern that can match in many ways would hold the process for hours.
    [
      {
        ...{ kind: 's3', url: 'https://s3.example.org', bucket: 'abc', access_key_id: 'abc', secret: 'a' },
        prefix: `${'a'.repeat(60)}!`,
      },
      /prefix/,
    ],
  ]
  for (const [json, message] of cases) {
    const answer = await service.call('PUT', `${PATH}/one`, { json })
    assert.equal(answer.status, 400, answer.text)
    assert.match(answer.body.message, message)
  }
  assert.equal((await service.call('PUT', `${PATH}/Upper`, { json: { kind: 'stdout' } })).status, 400)
  const nats = { kind: 'nats', servers: ['127.0.0.1:1'], topic: 'mail', user: 'a' }
  // Who does not know the secret must not have it sent as it is, where it was proven only.
  const kafka = {
    kind: 'kafka',
    servers: ['127.0.0.1:1'],
    topic: 'mail',
    user: 'a',
    mechanism: 'scram-sha-256',
  }
  await put(service, 'proven', { ...kafka, secret: 'hidden' })
  assert.equal(hasSecret(service, 'proven'), true)
  assert.equal((await sinkOf(service, 'proven')).warning, null)
  await put(service, 'proven', { ...kafka, mechanism: 'plain' })
  assert.equal(hasSecret(service, 'proven'), false)
  await put(service, 'kept', { ...nats, secret: 'hidden' })
  assert.doesNotMatch(JSON.stringify(await sinkOf(service, 'kept')), /hidden/)
  assert.equal((await put(service, 'kept', { ...nats, events: ['failed'] })).events[0], 'failed')
  assert.equal((await service.call('PUT', `${PATH}/kept`, { json: { ...nats, from: 'now' } })).status, 400)
  const far = { ...nats, servers: ['127.0.0.1:1', 'broker.example.org'] }
  assert.match((await put(service, 'kept', { ...far, secret: 'hidden' })).warning, /without TLS/)
  for (const safe of [
    { ...far, tls: true, secret: 'hidden' },
    far,
    { ...nats, servers: ['[::1]:1'], secret: 'hidden' },
  ])
    assert.equal((await put(service, 'kept', safe)).warning, null)
  assert.equal((await service.call('DELETE', `${PATH}/kept`)).status, 200)
  assert.equal((await service.call('GET', `${PATH}/kept`)).status, 404)
})
