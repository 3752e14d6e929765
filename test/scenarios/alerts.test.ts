/** From a real cause to the mail, the webhook and the call to Slack, once; then to the notices of its end, once. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { simpleParser } from 'mailparser'
import { selfSignedCertificate } from '../../src/base/net/certificate.ts'
import type { ServiceOverrides } from '../../src/service.ts'
import { createTestClock } from '../support/clock.ts'
import { eachDatabase } from '../support/databases.ts'
import { createReceiver } from '../support/http-receiver.ts'
import { createInternet, type Internet } from '../support/internet.ts'
import { eventually, ownAddress, startTestService } from '../support/service.ts'
import { assertSigned, signingKey } from '../support/signed-posts.ts'
import { temporaryFolder } from '../support/stores.ts'

// biome-ignore lint/suspicious/noExplicitAny: a test reaches into bodies freely and asserts on what it finds
type Json = any
type Database = 'sqlite' | 'postgres'
type Scene = Awaited<ReturnType<typeof startScene>>

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
const MEGABYTE = 1024 * 1024
const TOO_MANY = 11 // connections that an unknown provider gets, and one more

interface Notice {
  name: string
  value: string
  triggered: boolean
}

async function startScene(
  t: TestContext,
  internet: Internet,
  env: Record<string, string>,
  overrides: ServiceOverrides & { database: Database },
) {
  const clock = createTestClock()
  // A stop waits for what the clock ends.
  const ticking = Promise.withResolvers<NodeJS.Timeout>()
  t.after(() => ticking.resolve(setInterval(() => void clock.advance(1_000), 10)))
  const ops = await internet.site(['ops.example'])
  const receiver = await createReceiver({ host: ownAddress() })
  t.after(() => receiver.close())
  const service = await startTestService(
    t,
    { ...internet.env, ...env },
    { clock, random: () => 0, ...overrides },
  )
  t.after(async () => clearInterval(await ticking.promise))
  const key = await signingKey(service)
  for (const [channel, settings] of [
    ['email', { emails: ['ops@ops.example'] }],
    ['webhook', { url: `${receiver.url}/hook` }],
    ['slack', { url: `${receiver.url}/slack` }],
  ]) {
    const json = { event_type: 'send_alert', channel, settings }
    const made = await service.call('POST', '/v1/alerts/settings/events', { json })
    assert.equal(made.status, 200, made.text)
  }

  /** Lets time pass slowly until something is so. */
  const until = <T>(what: string, look: () => Promise<T | null | undefined | false>) =>
    eventually(what, async () => {
      await clock.advance(50)
      return look()
    })

  async function state(job: string): Promise<Json> {
    const { jobs } = (await service.call('GET', '/sendwright/v1/system')).body
    const found = jobs.find(({ name }: Json) => name === job)
    assert.equal(found.last_error, null)
    return found
  }

  /** When the last run of the job began; null while it runs, and before its first one has ended. */
  async function lastRun(job: string): Promise<number | null> {
    const found = await state(job)
    return found.running || found.last_ended_at === null ? null : Date.parse(found.last_started_at)
  }

  const noticesOf = new Map<string, number>() // by hit, also of hits that have been removed
  /**
   * No notice is on its way: time that passes at once would make its mail overdue. Each beginning and end that the
   * service has written has its post, each post has its mail, and each mail is delivered.
   */
  async function noNoticeInFlight(): Promise<boolean> {
    const { items } = (await service.call('GET', '/v1/thresholds/hits?limit=100')).body
    for (const { id, triggered } of items) noticesOf.set(id, triggered ? 1 : 2)
    const written = [...noticesOf.values()].reduce((sum, count) => sum + count, 0)
    if (hooks().length !== written) return false
    if (ops.messages.filter(({ raw }) => raw.includes('The alert "')).length !== written) return false
    const mails = async (event: string) =>
      (await service.events(`?event=${event}&recipient=ops@ops.example&limit=300`)).length
    return (await mails('accepted')) === (await mails('delivered'))
  }

  /** Lets `ms` pass at once; resolves when the job has run after that. */
  async function runAfter(job: string, ms: number): Promise<void> {
    // A run in progress would put off the next one.
    await until(`the end of the job ${job}`, async () => (await lastRun(job)) !== null)
    await until('no notice in flight', noNoticeInFlight)
    clock.leap(ms)
    const since = Math.floor(clock.now())
    await until(`the job ${job}`, async () => ((await lastRun(job)) ?? 0) >= since)
  }

  const posts = (path: string) =>
    receiver.posts.filter((post) => post.method === 'POST' && post.path === path)
  const hooks = (): Notice[] =>
    posts('/hook').map((post) => {
      assertSigned(post, key)
      const { event, alert, hit } = post.body['event-data']
      assert.deepEqual([event, alert.name], ['send_alert', hit.name])
      return { name: hit.name, value: hit.dimension_value ?? '', triggered: hit.triggered }
    })

  /** The notices on each channel, once it has `count` of them about the alert. */
  async function told(name: string, count: number): Promise<{ text: string; hook: Json; slack: string }> {
    const about = () => posts('/hook').filter((post) => post.body['event-data'].hit.name === name)
    const slacks = () => posts('/slack').filter((post) => post.body.text.includes(`"${name}"`))
    const mails = () => ops.messages.filter(({ raw }) => raw.includes(`"${name}"`))
    const all = () => [mails().length, about().length, slacks().length]
    await until(`${count} notices about ${name}`, async () => all().every((found) => found >= count))
    assert.deepEqual(all(), [count, count, count], `notices about ${name}`)
    const { text = '' } = await simpleParser((mails().at(-1) as { raw: Buffer }).raw)
    const hook = about().at(-1)?.body['event-data']
    return { text, hook, slack: slacks().at(-1)?.body.text }
  }

  const hits = async (name: string) =>
    (await service.call('GET', '/v1/thresholds/hits')).body.items.filter((hit: Json) => hit.name === name)

  return { service, clock, receiver, until, runAfter, told, hits, hooks }
}

const counts = (values: Record<string, number>) =>
  new Proxy(values, { get: (all, name) => all[String(name)] ?? 0 }) as Json

eachDatabase((database) => {
  test('a rate over its limit is told once, and its end once', async (t) => {
    const internet = await createInternet(t)
    const asked: Json[] = []
    let rows: Json[] = []
    const figures = {
      read: async (query: Json) => {
        asked.push(query)
        return rows
      },
    }
    const scene = await startScene(t, internet, {}, { database, figures })
    const { service, clock, runAfter, told, hits } = scene
    const alert = {
      name: 'Bounces',
      metric: 'hard_bounce_rate',
      comparator: '>',
      limit: '.05',
      dimension: 'domain',
    }
    const json = { ...alert, alert_channels: ['email', 'webhook', 'slack'], period: '2h' }
    assert.equal((await service.call('POST', '/v1/thresholds/alerts/send', { json })).status, 200)
    const bad = (bounced: number, delivered = 90) => ({
      values: ['a.example'],
      counts: counts({ delivered_smtp: delivered, failed_permanent: bounced, failed_bounce: bounced }),
    })

    rows = [bad(49, 0), { values: ['b.example'], counts: counts({ delivered_smtp: 100 }) }]
    await runAfter('alert-checks', 5 * MINUTE_MS)
    assert.deepEqual(await hits('Bounces'), [], '49 messages are too few to judge')
    const hour = Math.floor(clock.now() / HOUR_MS) * HOUR_MS
    const { startMs, endMs, resolution, dimensions, accountIds } = asked.at(-1)
    assert.deepEqual([startMs <= clock.now() - 2 * HOUR_MS, endMs], [true, hour + HOUR_MS])
    assert.deepEqual([resolution, dimensions, accountIds.length], ['hour', ['domain'], 1])

    rows = [bad(10)]
    await runAfter('alert-checks', 5 * MINUTE_MS)
    const first = await told('Bounces', 1)
    assert.match(first.text, /hard_bounce_rate for domain a\.example: 0\.1 \(the alert is for > \.05\)/)
    assert.match(first.text, /^Since: 2026-06-01T12:1\d/m)
    assert.match(first.slack, /&gt; \.05/)
    const [hit] = await hits('Bounces')
    assert.deepEqual(first.hook.hit, hit)
    assert.deepEqual(
      [hit.triggered, hit.latest_value, hit.dimension, hit.dimension_value, hit.limit, hit.expires_at],
      [true, '0.1', 'domain', 'a.example', '.05', '0001-01-01T00:00:00Z'],
    )
    const read = (await service.call('GET', '/v1/thresholds/alerts/send/Bounces')).body
    assert.deepEqual(first.hook.alert, { ...read, last_checked: first.hook.alert.last_checked })

    rows = [bad(30)]
    await runAfter('alert-checks', 5 * MINUTE_MS)
    assert.equal((await hits('Bounces'))[0].latest_value, '0.25')
    rows = []
    await runAfter('alert-checks', 5 * MINUTE_MS)
    assert.equal((await hits('Bounces'))[0].triggered, true, 'once is not enough')
    rows = [bad(30)]
    await runAfter('alert-checks', 5 * MINUTE_MS)
    rows = []
    await runAfter('alert-checks', 5 * MINUTE_MS)
    assert.equal((await hits('Bounces'))[0].triggered, true, 'twice in a row only')
    await told('Bounces', 1)
    await runAfter('alert-checks', 5 * MINUTE_MS)
    const end = await told('Bounces', 2)
    assert.match(end.text, /The alert "Bounces" is over.*Until: 2026-06-01T12:35/s)
    const [ended] = await hits('Bounces')
    assert.deepEqual([ended.id, ended.triggered, end.hook.hit.triggered], [hit.id, false, false])
    assert.equal(Date.parse(ended.expires_at), Date.parse(ended.updated_at) + 7 * DAY_MS)

    await runAfter('alert-checks', 8 * DAY_MS)
    assert.deepEqual(await hits('Bounces'), [])
    rows = [bad(10)]
    await runAfter('alert-checks', 5 * MINUTE_MS)
    await told('Bounces', 3)
    await service.call('DELETE', '/v1/thresholds/alerts/send/Bounces')
    assert.deepEqual(await hits('Bounces'), [])
  })

  test('refused mail is counted and told, and its end too', async (t) => {
    const internet = await createInternet(t)
    const env = { SENDWRIGHT_ALERT_MIN_VOLUME: '10' }
    const scene = await startScene(t, internet, env, { database })
    const { service, runAfter, told, until } = scene
    const sink = await internet.site(['people.example'])
    sink.on('RCPT TO', (_session, line) =>
      line.includes('gone') ? '550 5.1.1 No such user' : '250 2.1.5 OK',
    )
    for (const metric of ['hard_bounce_rate', 'delivered_rate']) {
      const comparator = metric === 'delivered_rate' ? '<' : '>'
      const alert = { name: metric, metric, comparator, limit: '0.9', dimension: 'domain' }
      const json = { ...alert, limit: metric === 'delivered_rate' ? '0.9' : '0.2', period: '1h' }
      const given = { ...json, alert_channels: ['email', 'webhook', 'slack'] }
      assert.equal((await service.call('POST', '/v1/thresholds/alerts/send', { json: given })).status, 200)
    }
    const to = Array.from({ length: 20 }, (_, at) => `${at % 4 === 0 ? 'gone' : 'ann'}${at}@people.example`)
    assert.equal((await service.send({ to })).status, 200)
    await until('the outcomes', async () => {
      const events = await service.events('?event=delivered%20OR%20failed&limit=100')
      return events.length === 20
    })
    await until('the counters', async () => {
      const json = { metrics: ['processed_count'], resolution: 'hour', duration: '1h' }
      const { body } = await service.call('POST', '/v1/analytics/metrics', { json })
      return body.items[0].metrics.processed_count === 20
    })
    await runAfter('alert-checks', 5 * MINUTE_MS)
    const bounces = await told('hard_bounce_rate', 1)
    assert.match(bounces.text, /hard_bounce_rate for domain sandbox.*: 0\.25/)
    const delivered = await told('delivered_rate', 1)
    assert.equal(delivered.hook.hit.latest_value, '0.75')
    for (const _ of [1, 2]) await runAfter('alert-checks', 2 * HOUR_MS)
    for (const name of ['hard_bounce_rate', 'delivered_rate']) {
      const end = await told(name, 2)
      assert.equal(end.hook.hit.triggered, false)
    }
  })

  test('what the operator has to know is told once, and its end once', async (t) => {
    const internet = await createInternet(t)
    const folder = await temporaryFolder(t)
    const source = ownAddress()
    const certificate = async (days: number) => {
      const to = new Date(Date.UTC(2026, 5, 1) + days * DAY_MS)
      const { cert, key } = selfSignedCertificate(['mail.test.example'], { from: new Date(0), to })
      await writeFile(join(folder, 'tls.crt'), cert)
      await writeFile(join(folder, 'tls.key'), key)
    }
    await certificate(365)
    const disk = { free: 3_000 * MEGABYTE }
    const env = {
      SENDWRIGHT_TLS_CERT: join(folder, 'tls.crt'),
      SENDWRIGHT_TLS_KEY: join(folder, 'tls.key'),
      SENDWRIGHT_IPS: `${source}@${SEEN}`,
      SENDWRIGHT_ALERT_DNSBL_ZONES: 'list.example',
    }
    // Looked up soon after the start: its test entry (RFC 5782 section 5), and the address.
    internet.dns.set('2.0.0.127.list.example', 'A', ['127.0.0.2'], 1)
    internet.dns.set(LISTED, 'A', ['127.0.0.2'], 1)
    const scene = await startScene(t, internet, env, { database, freeBytes: async () => disk.free })
    await t.test('a certificate near its end', () => certificateEnds(scene, certificate))
    await t.test('a disk that fills up', () => diskFills(scene, disk))
    await t.test('a provider that refuses', () => providerRefuses(scene, internet))
    await t.test('a webhook endpoint that fails for an hour', () => endpointFails(scene))
    await t.test('mail that is due and not sent', () => mailWaits(scene, internet))
    await t.test('a source address on a blocklist', () => listed(scene, internet))
    const told = scene.hooks()
    assert.deepEqual(
      told
        .filter(({ triggered }) => triggered)
        .map(({ name }) => name)
        .sort(),
      [
        'blocked-addresses',
        'blocklists',
        'certificate-ends',
        'disk-space',
        'oldest-due-mail',
        'provider-refusals',
        'webhook-endpoint',
      ].map((name) => `sendwright:${name}`),
      'and nothing else',
    )
  })
})

/** The check is true, stays true without another notice, and ends. */
async function begins(scene: Scene, name: string, everyMs: number) {
  const [job, alert] = [`alert-${name}`, `sendwright:${name}`]
  await scene.runAfter(job, everyMs)
  const notice = await scene.told(alert, 1)
  const own = (await scene.service.call('GET', '/sendwright/v1/alerts')).body.items
  const [hit] = own.find((check: Json) => check.name === alert).hits
  assert.equal(hit.triggered, true)
  assert.ok(notice.text.replaceAll('\n', ' ').includes(hit.advice), notice.text)
  const { alerts } = (await scene.service.call('GET', '/sendwright/v1/system')).body
  assert.equal(alerts.find((one: Json) => one.name === alert)?.advice, hit.advice)
  return { hit, text: notice.text }
}

async function ends(scene: Scene, name: string, everyMs: number): Promise<void> {
  const [job, alert] = [`alert-${name}`, `sendwright:${name}`]
  await scene.runAfter(job, everyMs)
  await scene.told(alert, 1)
  await scene.runAfter(job, everyMs)
  await scene.told(alert, 2)
  const [hit] = await scene.hits(alert)
  assert.equal(hit.triggered, false)
  const { alerts } = (await scene.service.call('GET', '/sendwright/v1/system')).body
  assert.deepEqual(
    alerts.filter((one: Json) => one.name === alert),
    [],
  )
}

async function certificateEnds(scene: Scene, certificate: (days: number) => Promise<void>): Promise<void> {
  await certificate(10)
  const { hit, text } = await begins(scene, 'certificate-ends', HOUR_MS)
  assert.deepEqual([hit.dimension_value, hit.latest_value], ['mail.test.example', '9'])
  assert.match(text, /ends at 2026-06-11T00:00:00/)
  await scene.runAfter('alert-certificate-ends', HOUR_MS)
  await scene.told('sendwright:certificate-ends', 1)
  await certificate(365)
  await ends(scene, 'certificate-ends', HOUR_MS)
}

/** As receivers see the source address: lists are asked for public ones only. */
const SEEN = '8.8.4.4'
const LISTED = '4.4.8.8.list.example'

async function listed(scene: Scene, { dns }: Internet): Promise<void> {
  const { hit, text } = await begins(scene, 'blocklists', MINUTE_MS)
  assert.deepEqual([hit.dimension_value, hit.latest_value], [SEEN, '1'])
  assert.match(text, /is listed by list\.example/)
  dns.set(LISTED, 'A', ['127.255.255.254'], 1)
  for (const _ of [1, 2]) await scene.runAfter('blocklist-watch', 6 * HOUR_MS)
  await scene.runAfter('alert-blocklists', MINUTE_MS)
  assert.equal((await scene.hits('sendwright:blocklists'))[0].triggered, true, 'a refusal says nothing')
  dns.set(LISTED, 'A', [], 1)
  for (const _ of [1, 2]) await scene.runAfter('blocklist-watch', 2 * HOUR_MS)
  await ends(scene, 'blocklists', MINUTE_MS)
}

async function diskFills(scene: Scene, disk: { free: number }): Promise<void> {
  const job = 'alert-disk-space'
  for (let step = 0; step < 36; step++) {
    disk.free -= 20 * MEGABYTE
    // The watch over the space reads it before the check does.
    scene.clock.leap(MINUTE_MS)
    await scene.until('the disk to be read', async () => true)
    await scene.runAfter(job, 4 * MINUTE_MS)
    if ((await scene.hits('sendwright:disk-space')).length > 0) break
  }
  await scene.told('sendwright:disk-space', 1)
  const { hit, text } = await begins(scene, 'disk-space', 5 * MINUTE_MS)
  assert.ok(Number(hit.latest_value) < 24 && Number(hit.latest_value) > 1, hit.latest_value)
  assert.match(text, /By the trend of the last hours 100 MB are reached in \d+ hours/)
  disk.free = 8_000 * MEGABYTE
  scene.clock.leap(MINUTE_MS)
  await scene.until('the disk to be read', async () => true)
  await ends(scene, 'disk-space', 5 * MINUTE_MS)
}

async function providerRefuses(scene: Scene, internet: Internet): Promise<void> {
  const sink = await internet.site(['refusing.example'])
  // All attempts have begun when the first one is refused: after the third the address would be left for this provider.
  const gate = Promise.withResolvers<string>()
  sink.on('MAIL FROM', () => gate.promise)
  sink.on('RCPT TO', '550 5.7.1 Service unavailable; client host blocked using zen.spamhaus.org')
  const to = Array.from({ length: 5 }, (_, at) => `r${at}@refusing.example`)
  assert.equal((await scene.service.send({ to })).status, 200)
  await scene.until('all connections', async () => sink.connections.open === to.length)
  gate.resolve('250 2.1.0 Ok')
  await scene.until('the refusals', async () => (await scene.service.events('?event=failed')).length === 5)
  const { hit, text } = await begins(scene, 'provider-refusals', 5 * MINUTE_MS)
  assert.deepEqual([hit.dimension, hit.latest_value, hit.limit], ['recipient_provider', '5', '5'])
  assert.match(text, /5 messages to .+ were refused in the last hour/)
  await scene.runAfter('alert-provider-refusals', 5 * MINUTE_MS)
  await scene.told('sendwright:provider-refusals', 1)
  await ends(scene, 'provider-refusals', HOUR_MS)
}

async function endpointFails(scene: Scene): Promise<void> {
  const { service, runAfter, until } = scene
  const failing = await createReceiver({ host: ownAddress(), answer: 500 })
  try {
    const form = { id: 'accepted', url: `${failing.url}/events?token=secret` }
    assert.equal((await service.call('POST', `/v3/domains/${service.domain}/webhooks`, { form })).status, 200)
    assert.equal((await service.send({ to: 'x@ops.example' })).status, 200)
    await until('the first attempt', async () => failing.posts.length === 1)
    await until('the delivery', async () => (await service.events('?event=delivered')).length === 1)
    for (const [attempt, wait] of [5, 10, 15].entries()) {
      await runAfter('alert-webhook-endpoint', wait * MINUTE_MS)
      await until(`attempt ${attempt + 2}`, async () => failing.posts.length === attempt + 2)
    }
    assert.deepEqual(await scene.hits('sendwright:webhook-endpoint'), [], 'not for an hour yet')
    const { hit } = await begins(scene, 'webhook-endpoint', 31 * MINUTE_MS)
    assert.equal(hit.dimension_value, `${failing.url}/events`)
    assert.ok(Number(hit.latest_value) >= 60)
    failing.answer = 200
    await runAfter('alert-webhook-endpoint', 30 * MINUTE_MS)
    await until('the attempt that succeeds', async () => {
      const { items } = (await service.call('GET', '/sendwright/v1/webhooks/attempts?status=ok')).body
      return items.length === 1
    })
    // The check that ran with this attempt may have been before or after it.
    for (const _ of [1, 2]) await runAfter('alert-webhook-endpoint', 5 * MINUTE_MS)
    await scene.told('sendwright:webhook-endpoint', 2)
    // It would fail again.
    const webhook = `/v3/domains/${service.domain}/webhooks/accepted`
    assert.equal((await service.call('DELETE', webhook)).status, 200)
  } finally {
    await failing.close()
  }
}

async function mailWaits(scene: Scene, internet: Internet): Promise<void> {
  const sink = await internet.site(['slow.example'])
  const gate = Promise.withResolvers<string>()
  sink.on('MAIL FROM', () => gate.promise)
  for (let at = 0; at < TOO_MANY; at++)
    assert.equal((await scene.service.send({ to: `s${at}@slow.example` })).status, 200)
  await scene.until('all connections', async () => sink.connections.open === TOO_MANY - 1)
  const { hit, text } = await begins(scene, 'oldest-due-mail', 62_000)
  assert.ok(Number(hit.latest_value) > 60)
  assert.match(text, /A message to slow\.example has been due for \d+ seconds/)
  gate.resolve('250 2.1.0 Ok')
  await scene.until('all mail', async () => sink.messages.length === TOO_MANY)
  await ends(scene, 'oldest-due-mail', MINUTE_MS)
}
