/**
 * Feedback on delivered mail, end to end: from the action of a recipient or a foreign server to the event, the webhook
 * with valid signatures, the stored message, statistics, the suppression, and the next mail.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { simpleParser } from 'mailparser'
import { splitMessage } from '../../src/protocols/mime/split.ts'
import { samplePayload } from '../../src/watching/webhooks/sample.ts'
import { WEBHOOK_TYPES, type WebhookType } from '../../src/watching/webhooks/types.ts'
import { eachDatabase } from '../support/databases.ts'
import { createReceiver, type Receiver } from '../support/http-receiver.ts'
import { FAULTS } from '../support/reports/mail.ts'
import { COMPLAINTS } from '../support/reports/other-mail.ts'
import { Returner, subjectOf } from '../support/reports/returning.ts'
import { STATUS_FORMATS } from '../support/reports/status-reports.ts'
import { eventually, ownAddress, startTestService, type TestService } from '../support/service.ts'
import { assertSigned, signingKey } from '../support/signed-posts.ts'
import { createSink, type Sink, type SinkMessage } from '../support/smtp-sink.ts'
import { assertFigures, type Figures } from '../support/statistics.ts'

type Event = Record<string, unknown> & { id: string; event: string }
// biome-ignore lint/suspicious/noExplicitAny: a test reaches into events freely and asserts on what it finds
type Json = any

interface Scene {
  service: TestService
  sink: Sink
  receiver: Receiver
  returner: Returner
  key: string
}

async function startScene(t: TestContext, database: 'sqlite' | 'postgres'): Promise<Scene> {
  const sink = await createSink({ host: ownAddress() })
  const receiver = await createReceiver()
  const env = {
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_SMTP_PORT: '0',
    SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
    SENDWRIGHT_RETRY_SCHEDULE: '1s',
  }
  const service = await startTestService(t, env, { database })
  const returner = await Returner.connect(service)
  t.after(async () => {
    returner.close()
    await Promise.all([sink.close(), receiver.close()])
  })
  for (const id of WEBHOOK_TYPES) {
    const form = { id, url: `${receiver.url}/${id}` }
    assert.equal((await service.call('POST', `/v3/domains/${service.domain}/webhooks`, { form })).status, 200)
  }
  for (const kind of ['open', 'click', 'unsubscribe']) {
    const path = `/v3/domains/${service.domain}/tracking/${kind}`
    assert.equal((await service.call('PUT', path, { form: { active: 'yes' } })).status, 200)
  }
  return { service, sink, receiver, returner, key: await signingKey(service) }
}

/** A mail as received. */
interface Mail {
  recipient: string
  message: SinkMessage
  pixel: string
  links: string[]
  /** Of the footer. */
  page: string
  /** Of List-Unsubscribe. */
  oneClick: string
  mailto: string
  field(name: string): string
}

async function read(message: SinkMessage): Promise<Mail> {
  const { html } = await simpleParser(message.raw)
  assert.ok(html)
  const headers = splitMessage(message.raw).headers.map((header) => [header.name.toLowerCase(), header.value])
  const field = (name: string) => headers.flatMap(([own, value]) => (own === name ? [value] : [])).join()
  const list = field('list-unsubscribe')
  return {
    recipient: message.envelope.to[0] as string,
    message,
    pixel: /<img src="([^"]+\/o\/[^"]+)"/.exec(html)?.[1] ?? '',
    links: [...html.matchAll(/href="([^"]+\/c\/[^"]+)"/g)].map((match) => match[1] as string),
    page: /href="([^"]+\/u\/[^"]+)"/.exec(html)?.[1] ?? '',
    oneClick: /<(https?:[^>]+)>/.exec(list)?.[1] ?? '',
    mailto: /<mailto:([^>?]+)/.exec(list)?.[1] ?? '',
    field,
  }
}

const eventsOf = ({ service }: Scene, event: string, recipient: string) =>
  service.events(`?event=${event}&recipient=${recipient}`) as Promise<Event[]>

const received = ({ sink }: Scene, recipient: string) =>
  sink.messages.filter(({ envelope }) => envelope.to.includes(recipient))

const TARGET = 'https://shop.example.com/a?x=1&y=2'
const HTML = `<html><body><a href="${TARGET.replace('&', '&amp;')}">A</a></body></html>`

async function deliver(scene: Scene, recipient: string, form: Record<string, string> = {}): Promise<Mail> {
  const tags = [tagOf(recipient), ...(form['o:tag'] ? [form['o:tag']] : [])]
  const sent = await scene.service.send({
    to: recipient,
    html: HTML,
    'v:order': '17',
    ...form,
    'o:tag': tags,
  })
  assert.equal(sent.status, 200, sent.text)
  return delivered(scene, recipient)
}

/** The mail of each scenario has its own tag, to separate its figures. */
const tagOf = (recipient: string) => recipient.slice(0, recipient.indexOf('@'))

/** The statistics of a scenario's mail, except that it was sent and delivered. */
const assertCounted = ({ service }: Scene, recipient: string, figures: Figures) =>
  assertFigures(service, `/v3/${service.domain}/tags/${tagOf(recipient)}/stats`, { ...SENT, ...figures })

const SENT: Figures = {
  'accepted.outgoing': 1,
  'accepted.total': 1,
  'delivered.smtp': 1,
  'delivered.total': 1,
}

async function delivered(scene: Scene, recipient: string): Promise<Mail> {
  await deliveries(scene, recipient, 1)
  return read(received(scene, recipient)[0] as SinkMessage)
}

const deliveries = (scene: Scene, recipient: string, count: number) =>
  eventually(
    `${count} deliveries to ${recipient}`,
    async () => (await eventsOf(scene, 'delivered', recipient)).length === count,
  )

/** No list has an entry: the next mail arrives. */
async function nextArrives(scene: Scene, recipient: string): Promise<void> {
  await scene.service.send({ to: recipient })
  await deliveries(scene, recipient, 2)
}

/** The one event of this name, with its webhook and its stored message. */
async function reported(scene: Scene, type: WebhookType, mail: Mail): Promise<Event> {
  const { service, receiver, key } = scene
  const name = type === 'permanent_fail' ? 'failed' : type
  const [event, ...more] = await eventually(`${name} of ${mail.recipient}`, async () => {
    const found = await eventsOf(scene, name, mail.recipient)
    return found.length > 0 && found
  })
  assert.ok(event)
  assert.deepEqual(more, [])
  const post = await eventually(`the webhook of ${name}`, async () =>
    receiver.posts.find(({ body }) => body['event-data'].id === event.id),
  )
  assert.equal(post.path, `/${type}`)
  assertSigned(post, key)
  const { account, domain, ...data } = post.body['event-data']
  assert.deepEqual([account, domain], [{ id: service.service.first.accountId }, { name: service.domain }])
  assert.deepEqual(data, event)
  assertShape(data, samplePayload(type, service.domain, '', Date.now()), type)
  // Opens, clicks and unsubscribes name the message; its other events have the storage.
  const messageId = (event as Json).message.headers['message-id']
  assert.equal(`<${messageId}>`, mail.field('message-id'))
  const [first] = await eventsOf(scene, 'delivered', mail.recipient)
  const url = (event as Json).storage?.url ?? (first as Json).storage.url
  const stored = await service.call('GET', new URL(url).pathname)
  assert.equal(stored.body['Message-Id'], `<${messageId}>`)
  return event
}

/** Every field of a webhook's test call is in the real webhook too, with the same JSON type. */
function assertShape(data: Json, sample: Json, at: string): void {
  for (const [name, value] of Object.entries(sample)) {
    // Details of an attempt's connection are unknown to a later report.
    if (name === 'delivery-status' || name === 'user-variables') continue
    const path = `${at}.${name}`
    assert.equal(typeof data[name], typeof value, path)
    assert.equal(Array.isArray(data[name]), Array.isArray(value), path)
    if (typeof value === 'object' && !Array.isArray(value)) assertShape(data[name], value, path)
  }
}

const READER = {
  'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
  'content-type': 'application/x-www-form-urlencoded',
}
const get = (url: string) => fetch(url, { redirect: 'manual', headers: READER })
const post = (url: string, body: string) => fetch(url, { method: 'POST', body, headers: READER })

/** Presses the button on the link's page. */
async function press(url: string): Promise<void> {
  const page = await (await get(url)).text()
  const action = /<form method="post"><input type="hidden" name="action" value="(\w+)"/.exec(page)?.[1]
  assert.equal(action, 'unsubscribe')
  assert.equal((await post(url, `action=${action}`)).status, 200)
}

async function oneClick(mail: Mail): Promise<void> {
  assert.equal(mail.field('list-unsubscribe-post'), 'List-Unsubscribe=One-Click')
  const answer = await post(mail.oneClick, 'List-Unsubscribe=One-Click')
  assert.deepEqual([answer.status, await answer.text()], [200, ''])
}

async function writeTo({ returner }: Scene, address: string, sender: string): Promise<void> {
  assert.equal(await returner.give(address, 'Subject: unsubscribe\r\n\r\n', sender), '250 2.0.0 Received')
}

/** The next mail only causes a failed event; resolves that event's code. */
async function codeOfNext(scene: Scene, recipient: string): Promise<number> {
  const before = received(scene, recipient).length
  await scene.service.send({ to: recipient })
  const code = await eventually(`the next mail to ${recipient} is stopped`, async () => {
    const statuses = (await eventsOf(scene, 'failed', recipient)).map(
      (event: Json) => event['delivery-status'],
    )
    return statuses.find((status) => status.code >= 600)?.code
  })
  assert.equal(received(scene, recipient).length, before)
  return code
}

async function entry({ service }: Scene, kind: string, address: string): Promise<Json> {
  const answer = await service.call('GET', `/v3/${service.domain}/${kind}/${address}`)
  return answer.status === 404 ? null : answer.body
}

const statistics = async ({ service }: Scene, path: string) => {
  const { status, text, body } = await service.call('GET', `/v1/bounce-classification${path}`)
  assert.equal(status, 200, text)
  return body
}

const CASES: readonly [name: string, run: (scene: Scene, recipient: string) => Promise<void>][] = [
  [
    'opened',
    async (scene, recipient) => {
      const mail = await deliver(scene, recipient)
      assert.equal((await get(mail.pixel)).headers.get('content-type'), 'image/png')
      const event = await reported(scene, 'opened', mail)
      assert.deepEqual(event['user-variables'], { order: '17' })
      await assertCounted(scene, recipient, { 'opened.total': 1, 'opened.unique': 1 })
      await nextArrives(scene, recipient)
    },
  ],
  [
    'clicked',
    async (scene, recipient) => {
      const mail = await deliver(scene, recipient)
      assert.equal((await get(mail.links[0] ?? '')).headers.get('location'), TARGET)
      assert.equal((await reported(scene, 'clicked', mail))['url'], TARGET)
      await assertCounted(scene, recipient, { 'clicked.total': 1, 'clicked.unique': 1 })
      await nextArrives(scene, recipient)
    },
  ],
  [
    'unsubscribed by link',
    async (scene, recipient) => {
      const mail = await deliver(scene, recipient, { 'o:tag': 'news' })
      await press(mail.page)
      assert.deepEqual((await reported(scene, 'unsubscribed', mail))['tags'], ['*'])
      await assertCounted(scene, recipient, { 'unsubscribed.total': 1 })
      await assertCounted(scene, 'NEWS@', { 'unsubscribed.total': 1 })
      assert.deepEqual((await entry(scene, 'unsubscribes', recipient)).tags, ['*'])
      assert.equal(await codeOfNext(scene, recipient), 606)
    },
  ],
  [
    'unsubscribed by one click',
    async (scene, recipient) => {
      const mail = await deliver(scene, recipient)
      await oneClick(mail)
      await reported(scene, 'unsubscribed', mail)
      await assertCounted(scene, recipient, { 'unsubscribed.total': 1 })
      assert.deepEqual((await entry(scene, 'unsubscribes', recipient)).tags, ['*'])
      assert.equal(await codeOfNext(scene, recipient), 606)
    },
  ],
  [
    'unsubscribed by mail',
    async (scene, recipient) => {
      const mail = await deliver(scene, recipient)
      await writeTo(scene, mail.mailto, recipient)
      await reported(scene, 'unsubscribed', mail)
      await assertCounted(scene, recipient, { 'unsubscribed.total': 1 })
      assert.deepEqual((await entry(scene, 'unsubscribes', recipient)).tags, ['*'])
      assert.equal(await codeOfNext(scene, recipient), 606)
    },
  ],
  [
    'complained',
    async (scene, recipient) => {
      const mail = await deliver(scene, recipient)
      const report = COMPLAINTS['aol']?.(subjectOf(mail.message)) ?? ''
      const address = `fbl@${scene.service.domain}`
      assert.equal(await scene.returner.give(address, report, 'fbl@provider.example'), '250 2.0.0 Received')
      const event = await reported(scene, 'complained', mail)
      assert.equal(event['log-level'], 'warn')
      await assertCounted(scene, recipient, { 'complained.total': 1 })
      assert.equal((await entry(scene, 'complaints', recipient)).address, recipient)
      const path = `/sendwright/v1/domains/${scene.service.domain}/reports?type=complaint`
      const { totals, items } = (await scene.service.call('GET', path)).body
      assert.deepEqual(totals, {
        complaint: { complaints: 1, providers: [{ provider: items[0].sender, complaints: 1 }] },
      })
      assert.deepEqual([items.length, items[0].report_id], [1, event.id])
      assert.equal(await codeOfNext(scene, recipient), 607)
    },
  ],
  [
    'delayed bounce',
    async (scene, recipient) => {
      const { sink, returner, service } = scene
      sink.on(`RCPT TO:<${recipient}>`, '450 4.2.0 greylisted', { times: 1 })
      const mail = await deliver(scene, recipient, { 'o:tag': 'late' })
      const [first] = await eventsOf(scene, 'failed', recipient)
      assert.equal(first?.['severity'], 'temporary')
      const subject = subjectOf(mail.message)
      const [unknown] = FAULTS
      assert.ok(unknown)
      const report = STATUS_FORMATS['postfix']?.(subject, unknown) ?? ''
      assert.equal(await returner.give(subject.returnPath, report), '250 2.0.0 Received')
      const event = await eventually('the failed event', async () =>
        (await eventsOf(scene, 'failed', recipient)).find(({ severity }) => severity === 'permanent'),
      )
      const { 'delivery-status': status, flags, reason } = event as Json
      assert.deepEqual([reason, flags['is-delayed-bounce'], status['attempt-no']], ['generic', true, 2])
      assert.equal(
        event['primary-dkim'],
        (await eventsOf(scene, 'delivered', recipient))[0]?.['primary-dkim'],
      )
      const hook = await eventually('its webhook', async () =>
        scene.receiver.posts.find(({ body }) => body['event-data'].id === event.id),
      )
      assert.equal(hook.path, '/permanent_fail')
      assertSigned(hook, scene.key)
      assertShape(hook.body['event-data'], samplePayload('permanent_fail', service.domain, '', 0), 'failed')
      const stored = await service.call('GET', new URL((event as Json).storage.url).pathname)
      assert.equal(stored.body['Message-Id'], mail.field('message-id'))

      const record = await entry(scene, 'bounces', recipient)
      assert.deepEqual([record.code, record.error], ['550', status.message])
      assert.equal(await codeOfNext(scene, recipient), 605)

      await assertCounted(scene, recipient, {
        'failed.temporary.total': 1,
        'failed.permanent.delayed-bounce': 1,
        'failed.permanent.total': 1,
      })
      // Neither suppressed mails nor the first, temporary failure count here.
      const counted = { 'rule-id': 'generic-no-user', 'entity-id': 'generic', bounced: { total: 1 } }
      const { items } = await statistics(scene, '/stats?group=rule-id&group=entity-id')
      assert.deepEqual(items, [
        { ...counted, 'short-explanation': 'The mailbox does not exist or is switched off' },
      ])
      const path = `/domains/${service.domain}/entities`
      assert.deepEqual((await statistics(scene, '/domains')).items, [
        { domain: { name: service.domain }, bounced: { total: 1 } },
      ])
      assert.equal((await statistics(scene, path)).items[0]['entity-id'], 'generic')
      const [rule] = (await statistics(scene, `${path}/generic/rules`)).items
      assert.deepEqual(
        [rule['rule-id'], rule.category, rule.severity],
        ['generic-no-user', 'BOUNCE', 'PERMANENT'],
      )
      const json = { dimensions: ['tag'], filter: { AND: null } }
      const metrics = await service.call('POST', '/v2/bounce-classification/metrics', { json })
      const late = metrics.body.items.find(({ tag }: Json) => tag === 'late')
      assert.deepEqual(
        [late.metrics.non_critical_bounce_count, late.metrics.non_critical_delay_count],
        [1, 1],
        metrics.text,
      )
      assert.equal(late.metrics.delivered_smtp_count, 1)
    },
  ],
]

/** Of all cases: seven mails, each followed by another one, of which suppressions stop five. */
const WHOLE: Figures = {
  'accepted.outgoing': 14,
  'accepted.total': 14,
  'delivered.smtp': 9,
  'delivered.total': 9,
  'failed.temporary.total': 1,
  'failed.permanent.suppress-bounce': 1,
  'failed.permanent.suppress-unsubscribe': 3,
  'failed.permanent.suppress-complaint': 1,
  'failed.permanent.delayed-bounce': 1,
  'failed.permanent.total': 6,
  'opened.total': 1,
  'opened.unique': 1,
  'clicked.total': 1,
  'clicked.unique': 1,
  'unsubscribed.total': 3,
  'complained.total': 1,
}

eachDatabase((database) => {
  test('actions of recipients and their servers reach event, webhook, list and next mail', async (t) => {
    const scene = await startScene(t, database)
    await Promise.all(CASES.map(([name, run], at) => t.test(name, () => run(scene, `r${at}@there.example`))))
    const { service } = scene
    for (const path of [`/v3/${service.domain}/stats/total`, '/v3/stats/total?resolution=hour'])
      await assertFigures(service, path, WHOLE)
  })

  test('the copies of a list have its fields, and link, one-click and mail unsubscribe from it', async (t) => {
    const scene = await startScene(t, database)
    const { service } = scene
    const list = `devs@${service.domain}`
    const access = { access_level: 'everyone', reply_preference: 'list' }
    assert.equal(
      (await service.call('POST', '/v3/lists', { form: { address: list, ...access } })).status,
      200,
    )
    const [ann, bob, cleo, dan] = ['ann', 'bob', 'cleo', 'dan'].map((name) => `${name}@there.example`) as [
      string,
      string,
      string,
      string,
    ]
    const form = { members: JSON.stringify([ann, bob, cleo, dan]) }
    assert.equal((await service.call('POST', `/v3/lists/${list}/members.json`, { form })).status, 200)
    const posted = await service.send({ to: list, subject: 'News', html: HTML })
    const mails = await Promise.all([ann, bob, cleo, dan].map((member) => delivered(scene, member)))
    const [annMail, bobMail, cleoMail] = mails as [Mail, Mail, Mail]
    for (const mail of mails) {
      const fields = ['from', 'to', 'subject', 'message-id', 'sender', 'list-id', 'list-post'].map(mail.field)
      assert.deepEqual(fields, [
        `Sender <sender@${service.domain}>`,
        list,
        'News',
        posted.body.id,
        list,
        `<devs.${service.domain}>`,
        `<mailto:${list}>`,
      ])
      assert.deepEqual(['precedence', 'reply-to'].map(mail.field), ['list', list])
      assert.match(
        mail.field('list-unsubscribe'),
        /^<http:\/\/[^<>]+\/u\/[-\w]+>, <mailto:unsub\+[a-z2-7]+@[^<>]+>$/,
      )
      assert.match(mail.field('dkim-signature'), /h=[^;]*list-unsubscribe[^;]*list-unsubscribe-post/i)
    }

    // GET only asks; the button, the POST of a mail client and a mail each remove their own member.
    await press(annMail.oneClick)
    await oneClick(bobMail)
    await writeTo(scene, cleoMail.mailto, cleo)
    for (const mail of [annMail, bobMail, cleoMail]) {
      const event = await reported(scene, 'unsubscribed', mail)
      const { sid, ...shown } = event['mailing-list'] as Record<string, unknown>
      assert.deepEqual(shown, { address: list, 'list-id': `devs.${service.domain}` })
      assert.equal(typeof sid, 'string')
      const { body } = await service.call('GET', `/v3/lists/${list}/members/${mail.recipient}`)
      assert.equal(body.member.subscribed, false)
      assert.equal(await entry(scene, 'unsubscribes', mail.recipient), null)
    }
    await service.send({ to: list, subject: 'More', html: HTML })
    await deliveries(scene, dan, 2)
    assert.deepEqual(
      [ann, bob, cleo, dan].map((member) => received(scene, member).length),
      [1, 1, 1, 2],
    )
    await assertFigures(service, `/v3/${service.domain}/stats/total`, {
      'accepted.outgoing': 2,
      'accepted.incoming': 5,
      'accepted.total': 7,
      'delivered.smtp': 5,
      'delivered.total': 5,
      'unsubscribed.total': 3,
    })
    // They still get mail of the domain itself.
    await nextArrives(scene, ann)
  })
})

test('events without a webhook are still listed: rejected mail, and uploads to a list', async (t) => {
  const scene = await startScene(t, 'sqlite')
  const { service, receiver } = scene
  const later = new Date(Date.now() + 3_600_000).toUTCString()
  const sent = await service.send({ to: 'later@there.example', 'o:deliverytime': later })
  const id = sent.body.id.slice(1, -1)
  assert.equal((await service.call('DELETE', `/sendwright/v1/scheduled/${id}`)).status, 200)
  const [rejected] = (await service.events('?event=rejected')) as Json[]
  assert.deepEqual(rejected.reject, { reason: 'cancelled', description: '' })
  assert.equal(rejected.message.headers['message-id'], id)
  assert.equal('recipient' in rejected, false)
  const stored = await service.call('GET', new URL(rejected.storage.url).pathname)
  assert.equal(stored.body['Message-Id'], sent.body.id)

  const list = `devs@${service.domain}`
  await service.call('POST', '/v3/lists', { form: { address: list } })
  const members = JSON.stringify(['ann@there.example', 'ann(at)there.example'])
  const upload = await service.call('POST', `/v3/lists/${list}/members.json`, { form: { members } })
  const events = (await service.events()) as Json[]
  const ofUpload = events.filter(({ 'task-id': task }) => task === upload.body['task-id'])
  assert.deepEqual(ofUpload.map(({ event }) => event).sort(), [
    'list_member_upload_error',
    'list_member_uploaded',
    'list_uploaded',
  ])
  for (const event of ofUpload) assert.deepEqual(event['mailing-list'], { address: list })

  // The webhooks of later events have arrived, so theirs would have too.
  await deliver(scene, 'after@there.example')
  const paths = await eventually('the last webhook', async () => {
    const seen = receiver.posts.map(({ path }) => path)
    return seen.includes('/delivered') && seen
  })
  assert.deepEqual([...new Set(paths)].sort(), ['/accepted', '/delivered'])
})
