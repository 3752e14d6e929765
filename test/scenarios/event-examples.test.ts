/**
 * docs/api/event-examples.md has each type of event as a service writes it, and each webhook as it posts it. The page is made
 * here: `RECORD=1 npm test -- event-examples`. What differs from run to run is replaced by fixed values.
 */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { simpleParser } from 'mailparser'
import { WEBHOOK_TYPES } from '../../src/watching/webhooks/types.ts'
import { createReceiver } from '../support/http-receiver.ts'
import { COMPLAINTS } from '../support/reports/other-mail.ts'
import { Returner, subjectOf } from '../support/reports/returning.ts'
import { eventually, ownAddress, startTestService, type TestService } from '../support/service.ts'
import { createSink } from '../support/smtp-sink.ts'

const PAGE = join(import.meta.dirname, '../../docs/api/event-examples.md')
const DOMAIN = 'mail.example.com'
/** 2026-06-01 12:00 UTC, in seconds. */
const FIRST_SECOND = 1_780_315_200
const READER = { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0' }

// biome-ignore lint/suspicious/noExplicitAny: events of every type
type Json = any

const TITLES = [
  'accepted',
  'delivered',
  'failed, temporary',
  'failed, permanent',
  'rejected',
  'opened',
  'clicked',
  'unsubscribed',
  'complained',
  'stored',
  'list_member_uploaded',
  'list_member_upload_error',
  'list_uploaded',
]

const HEAD = `# Events and webhooks: a full example of each

Recorded from a running service by \`test/scenarios/event-examples.test.ts\`, which also compares them; ids, times and addresses are replaced.
What each member means: [events.md](events.md). A list of events has the objects below under "Events" as its \`items\`.
`

test('docs/api/event-examples.md has what a running service writes and posts', async (t) => {
  const { events, posts } = await record(t)
  const page = [
    HEAD,
    '## Events\n',
    ...TITLES.map((title, index) => section(title, events.get(title), index)),
    '## Webhooks\n',
    'A webhook posts `signature`, and under `event-data` the event with `account` and `domain`. One example of each type:\n',
    ...WEBHOOK_TYPES.map((type, index) => section(`Webhook: ${type}`, posts.get(type), index)),
  ].join('\n')
  if (process.env['RECORD']) await writeFile(PAGE, page)
  assert.equal(await readFile(PAGE, 'utf8'), page)
})

function section(title: string, example: Json, index: number): string {
  assert.ok(example, `no example of ${title}`)
  return `### ${title}\n\n\`\`\`json\n${JSON.stringify(fixed(example, index), null, 2)}\n\`\`\`\n`
}

/** Causes one event of each type, and collects them and what the webhooks post. */
async function record(t: TestContext): Promise<{ events: Map<string, Json>; posts: Map<string, Json> }> {
  const sink = await createSink({ host: ownAddress() })
  const receiver = await createReceiver()
  const service = await startTestService(t, {
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_SMTP_PORT: '0',
    SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
    SENDWRIGHT_RETRY_SCHEDULE: '1h',
  })
  const returner = await Returner.connect(service)
  t.after(async () => {
    returner.close()
    await Promise.all([sink.close(), receiver.close()])
  })
  const { domain } = service
  for (const id of WEBHOOK_TYPES)
    await done(service, 'POST', `/v3/domains/${domain}/webhooks`, { id, url: `${receiver.url}/${id}` })
  for (const kind of ['open', 'click', 'unsubscribe'])
    await done(service, 'PUT', `/v3/domains/${domain}/tracking/${kind}`, { active: 'yes' })
  sink.on('RCPT TO:<full@example.org>', '452 4.2.2 mailbox full')
  sink.on('RCPT TO:<nobody@example.org>', '550 5.1.1 no such user')

  const message = {
    from: `Shop <shop@${domain}>`,
    ...{ subject: 'Welcome', text: 'Welcome', html: '<a href="https://shop.example.com/a">A</a>' },
    ...{ 'o:tag': 'welcome', 'v:order': '17' },
  }
  const send = (to: string, more = {}) => service.send({ ...message, to, ...more })
  await send('Alice <alice@example.org>')
  await send('full@example.org')
  await send('nobody@example.org')
  const scheduled = await send('later@example.org', {
    'o:deliverytime': new Date(Date.now() + 86_400_000).toUTCString(),
  })
  const id = scheduled.body.id.slice(1, -1)
  assert.equal((await service.call('DELETE', `/sendwright/v1/scheduled/${id}`)).status, 200)

  const [mail] = await sink.waitFor(1)
  assert.ok(mail)
  const html = String((await simpleParser(mail.raw)).html)
  const linked = (kind: string) => new RegExp(`"([^"]+/${kind}/[^"]+)"`).exec(html)?.[1] as string
  await waitForEvents(service, 'delivered', 1)
  await fetch(linked('o'), { headers: READER })
  await fetch(linked('c'), { headers: READER, redirect: 'manual' })
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  await fetch(linked('u'), { method: 'POST', body: 'action=unsubscribe', headers: { ...READER, ...form } })
  const complaint = COMPLAINTS['RFC 5965']?.(subjectOf(mail)) ?? ''
  assert.match(await returner.give(`fbl@${domain}`, complaint, 'fbl@provider.example'), /^250/)

  await done(service, 'POST', '/v3/routes', {
    expression: `match_recipient("info@${domain}")`,
    action: 'store()',
  })
  const received = `From: Bob <bob@example.org>\r\nTo: info@${domain}\r\nSubject: A question\r\nMessage-ID: <question-1@example.org>\r\n\r\nHello\r\n`
  assert.match(await returner.give(`info@${domain}`, received, 'bob@example.org'), /^250/)

  const list = `devs@${domain}`
  await done(service, 'POST', '/v3/lists', { address: list })
  const members = new File(['address,name\nalice@example.org,Alice\nnobody,Nobody\n'], 'members.csv')
  await done(service, 'POST', `/v3/lists/${list}/members.csv`, { members })

  const events = await eventually('each event', async () => {
    const found = new Map((await service.events('?limit=300')).map((event) => [titleOf(event), event]))
    return TITLES.every((title) => found.has(title)) && found
  })
  const accepted = (await service.events('?event=accepted&recipient=alice@example.org'))[0]
  const posts = await eventually('each webhook', async () => {
    const found = new Map(receiver.posts.map(({ path, body }) => [path.slice(1), body]))
    return found.size === WEBHOOK_TYPES.length && found
  })
  posts.set('accepted', receiver.posts.find(({ body }) => body['event-data'].id === accepted?.id)?.body)
  return { events: events.set('accepted', accepted as Json), posts }
}

const titleOf = (event: Json) => (event.event === 'failed' ? `failed, ${event.severity}` : event.event)

async function done(service: TestService, method: string, path: string, form: Json): Promise<void> {
  const { status, text } = await service.call(method, path, { form })
  assert.equal(status, 200, text)
}

const waitForEvents = (service: TestService, event: string, count: number) =>
  eventually(event, async () => (await service.events(`?event=${event}`)).length >= count)

const STORED_KEY = 'Qk3sLr0fT9yXv2a7HdPq1x'
/** By name of member: what stands for a value that another run has otherwise. */
const FIXED: Readonly<Record<string, unknown>> = {
  key: STORED_KEY,
  url: `https://${DOMAIN}/v3/domains/${DOMAIN}/messages/${STORED_KEY}`,
  'message-id': `20260601120000.4be1a07c55d2f310@${DOMAIN}`,
  'api-key-id': '1f0c2d3e-5a6b7c8d',
  'originating-ip': '198.51.100.7',
  'sending-ip': '203.0.113.7',
  ip: '198.51.100.23',
  'mx-host': 'mx.example.org',
  'session-seconds': 0.412,
  'delivered-at': FIRST_SECOND + 1.2,
  'scheduled-for': FIRST_SECOND + 86_400,
  'retry-seconds': 3600,
  bot: '', // of a visit right after the delivery it is `generic`
  'task-id': '235f',
  token: '7c1f0d93ab42e65d08b7a1c9f3e2544d6a80be17d9c2f5a304',
  signature: '18de98732dc963b1e01a1ccab349fc7c057a83230b08b131d4302d4a2440c725',
}

/** The example with fixed values; a link that was clicked stays. */
function fixed(example: Json, index: number): Json {
  return JSON.parse(
    JSON.stringify(example, function (this: Json, name, value) {
      if (name === 'id' && typeof this.event === 'string') return `Qk3sLr0fT9yXv2a7HdPq${10 + index}`
      if (name === 'id') return '5f0c1b2a39d84e7f6a1b2c3d'
      if (name === 'timestamp')
        return typeof value === 'string' ? String(FIRST_SECOND) : FIRST_SECOND + index + 0.104511
      if (name === 'url' && value.startsWith('https://shop.')) return value
      if (name === 'message-id' && value.startsWith('question')) return value
      if (name === 'signature' && typeof value === 'object') return value
      if (name === 'size' && typeof value === 'number') return 1204
      return Object.hasOwn(FIXED, name) ? FIXED[name] : value
    }).replaceAll(/[\w-]+\.sendwright\.localhost/g, DOMAIN),
  )
}
