/** Bounces and complaints of Amazon SES through Amazon SNS: what counts, what follows, and what attackers send. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { SnsMessage } from '../../src/receiving/sns/message.ts'
import { eachDatabase } from '../support/databases.ts'
import type { Subject } from '../support/reports/mail.ts'
import { subjectOf } from '../support/reports/returning.ts'
import { eventually, ownAddress, startTestService, type TestService } from '../support/service.ts'
import { createSink } from '../support/smtp-sink.ts'
import { CERTIFICATE_URL, createSns, type Sns, signerOf, subscription, TOPIC_ARN } from '../support/sns.ts'

const TOPICS = '/sendwright/v1/sns/topics'
const TOPIC = `${TOPICS}/${encodeURIComponent(TOPIC_ARN)}`
const HOUR_MS = 3_600_000

interface Scene {
  service: TestService
  sns: Sns
  /** Path of the topic's endpoint. */
  endpoint: string
  /** The status of the response to a message. */
  post(message: object | string, path?: string): Promise<number>
  /** One copy to each recipient, as SES got it. */
  deliver(recipients: readonly string[]): Promise<Subject[]>
}

async function start(t: TestContext, database: 'sqlite' | 'postgres' = 'sqlite'): Promise<Scene> {
  const sns = createSns()
  const sink = await createSink({ host: ownAddress() })
  const service = await startTestService(
    t,
    { SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}` },
    { database, areas: [sns.area] },
  )
  t.after(() => sink.close())
  const named = await service.call('PUT', TOPIC)
  assert.equal(named.status, 200, named.text)
  const endpoint = new URL(named.body.endpoint).pathname
  return {
    service,
    sns,
    endpoint,
    async post(message, path = endpoint) {
      const body = typeof message === 'string' ? message : JSON.stringify(message)
      const headers = {
        'content-type': 'text/plain; charset=UTF-8',
        'user-agent': 'Amazon Simple Notification Service Agent',
      }
      return (await service.call('POST', path, { body, headers, key: null })).status
    },
    async deliver(recipients) {
      const variables = JSON.stringify(Object.fromEntries(recipients.map((address) => [address, {}])))
      assert.equal((await service.send({ to: recipients, 'recipient-variables': variables })).status, 200)
      await eventually('the deliveries', async () => {
        const events = await service.events('?event=delivered&limit=300')
        return recipients.every((address) => events.some(({ recipient }) => recipient === address))
      })
      const subjects = sink.messages.map(subjectOf)
      return recipients.map((address) => subjects.find(({ recipient }) => recipient === address) as Subject)
    },
  }
}

/** The `mail` of a notification; `withHeader`: the topic is set to include it. */
const mailOf = ({ recipient, returnPath, header }: Subject, withHeader = false) => ({
  timestamp: '2026-11-20T10:00:00.000Z',
  messageId: '0102018f6f3f0000-00000000-0000-4000-8000-000000000000-000000',
  source: withHeader ? 'bounces@corporate.example' : returnPath,
  sourceArn: 'arn:aws:ses:eu-west-1:123456789012:identity/example.com',
  destination: [recipient],
  ...(withHeader && {
    headersTruncated: false,
    headers: header
      .split('\r\n')
      .map((line) => ({ name: line.split(': ', 1)[0], value: line.slice(line.indexOf(': ') + 2) })),
  }),
})

const bounceOf = (
  subject: Subject,
  given: { recipient?: object; named?: string; header?: boolean } = {},
) => ({
  notificationType: 'Bounce',
  bounce: {
    bounceType: 'Permanent',
    bounceSubType: 'General',
    bouncedRecipients: [
      {
        emailAddress: given.named ?? subject.recipient,
        action: 'failed',
        status: '5.1.1',
        diagnosticCode: 'smtp; 550 5.1.1 user unknown',
        ...given.recipient,
      },
    ],
    timestamp: '2026-11-20T10:00:05.000Z',
    feedbackId: '0102018f6f3f1111-00000000-0000-4000-8000-000000000000-000000',
    reportingMTA: 'dsn; a8-70.smtp-out.eu-west-1.amazonses.com',
    remoteMtaIp: '192.0.2.25',
  },
  mail: mailOf(subject, given.header),
})

const published = (sns: Sns, document: object, given: Partial<SnsMessage> = {}) =>
  sns.message({ Message: JSON.stringify(document), Subject: 'Amazon SES Email Event Notification', ...given })

async function listed(service: TestService, kind: string): Promise<string[]> {
  const { body } = await service.call('GET', `/v3/${service.domain}/${kind}?limit=1000`)
  return body.items.map(({ address }: { address: string }) => address).sort()
}

eachDatabase((database) => {
  test('a subscription is confirmed, and what SES reports suppresses the right recipient and nobody else', async (t) => {
    const { service, sns, post, deliver } = await start(t, database)
    assert.equal(await post(subscription(sns)), 200)
    assert.deepEqual(
      sns.fetched.map((url) => new URL(url).pathname + new URL(url).searchParams.get('Action')),
      [`${new URL(CERTIFICATE_URL).pathname}null`, '/ConfirmSubscription'],
    )
    const { items } = (await service.call('GET', TOPICS)).body
    assert.match(items[0].confirmed_at, /^20/)

    const people = [
      'gone@there.example',
      'angry@there.example',
      'third@there.example',
      'fourth@there.example',
    ]
    const [gone, angry, third] = (await deliver(people)) as [Subject, Subject, Subject]
    // The address in the notification is another recipient's: it decides nothing.
    assert.equal(
      await post(published(sns, bounceOf(gone, { named: third.recipient }), { SignatureVersion: '1' })),
      200,
    )
    const [failed = {}] = await service.events('?event=failed')
    assert.deepEqual(
      [failed['recipient'], failed['severity'], failed['i-classification-rule-id']],
      [gone.recipient, 'permanent', 'generic-no-user'],
    )
    assert.equal((failed['flags'] as Record<string, unknown>)['is-delayed-bounce'], true)
    assert.deepEqual(await listed(service, 'bounces'), [gone.recipient])

    // As an event of a configuration set, with the header in place of our return path.
    const complaint = {
      eventType: 'Complaint',
      complaint: {
        complainedRecipients: [{ emailAddress: third.recipient }, { emailAddress: angry.recipient }],
        complaintFeedbackType: 'abuse',
      },
      mail: mailOf(angry, true),
    }
    assert.equal(await post(published(sns, complaint)), 200)
    assert.deepEqual(await listed(service, 'complaints'), [angry.recipient])
    assert.deepEqual(await listed(service, 'bounces'), [gone.recipient])
    assert.deepEqual(await listed(service, 'unsubscribes'), [])

    // One certificate for all.
    assert.equal(sns.fetched.length, 2)
    const ended = subscription(sns, { Type: 'UnsubscribeConfirmation' })
    assert.equal(await post(ended), 200)
    assert.equal((await service.call('GET', TOPICS)).body.items[0].confirmed_at, null)
    assert.equal(sns.fetched.length, 2)
  })
})

test('what is not signed by SNS for this topic in this hour is refused, and changes nothing', async (t) => {
  const { service, sns, post, deliver, endpoint } = await start(t)
  const [subject] = (await deliver(['gone@there.example'])) as [Subject]
  const bounce = bounceOf(subject)
  const good = published(sns, bounce)
  const stranger = createSns()
  const age = (ms: number) => ({ Timestamp: new Date(Date.now() - ms).toISOString() })
  const refused: Record<string, object> = {
    'a changed message': { ...good, Message: good.Message.replace('Permanent', 'permanent') },
    'a changed time': { ...good, ...age(-1_000) },
    'the signature of another version': { ...good, SignatureVersion: '1' },
    'no signature': { ...good, Signature: '' },
    'the key of a stranger': published(stranger, bounce),
    'another topic': published(sns, bounce, { TopicArn: `${TOPIC_ARN}2` }),
    'an old message': published(sns, bounce, age(HOUR_MS + 60_000)),
    'a message from the future': published(sns, bounce, age(-HOUR_MS)),
    'no time': published(sns, bounce, { Timestamp: 'yesterday' }),
  }
  const otherCertificates = [
    CERTIFICATE_URL.replace('https:', 'http:'),
    CERTIFICATE_URL.replace('sns.', 'sns.evil.'),
    CERTIFICATE_URL.replace('amazonaws.com', 'amazonaws.com.evil.example'),
    CERTIFICATE_URL.replace('amazonaws.com', 'amazonaws.com@evil.example'),
    CERTIFICATE_URL.replace('amazonaws.com', 'amazonaws.com:8443'),
    CERTIFICATE_URL.replace('eu-west-1', 'us-east-1'),
    CERTIFICATE_URL.replace('.pem', '.pem?x=1'),
    CERTIFICATE_URL.replace('.pem', '.pem#x'),
    CERTIFICATE_URL.replace('.pem', ''),
    CERTIFICATE_URL.replace('/Simple', '/../bucket/Simple'),
    'file:///etc/ssl/cert.pem',
    'x.pem',
  ]
  for (const url of otherCertificates)
    refused[`a certificate at ${url}`] = published(sns, bounce, { SigningCertURL: url })
  for (const [name, message] of Object.entries(refused)) assert.equal(await post(message), 403, name)
  assert.deepEqual(new Set(sns.fetched), new Set([CERTIFICATE_URL]))

  for (const url of [
    'https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription',
    'https://sns.eu-west-1.amazonaws.com.evil.example/',
    'http://127.0.0.1/',
    'x',
    '',
  ]) {
    assert.equal(await post(subscription(sns, { SubscribeURL: url })), 403, url)
  }
  assert.deepEqual(new Set(sns.fetched), new Set([CERTIFICATE_URL]))
  assert.equal((await service.call('GET', TOPICS)).body.items[0].confirmed_at, null)

  for (const body of [
    '',
    '[]',
    '{}',
    '"x"',
    JSON.stringify({ ...good, Type: 'Other' }),
    JSON.stringify({ ...good, SignatureVersion: '3' }),
    `${'['.repeat(200)}${']'.repeat(200)}`,
  ])
    assert.equal(await post(body), 400, body)
  assert.equal(await post(JSON.stringify({ ...good, more: 'x'.repeat(128 * 1024) })), 413)
  // Who does not know the URL: the body is not read.
  for (const token of ['x', 'a'.repeat(26)])
    assert.equal(
      await post(JSON.stringify({ more: 'x'.repeat(256 * 1024) }), endpoint.replace(/[^/]+$/, token)),
      404,
    )

  assert.deepEqual(await service.events('?event=failed OR complained'), [])
  for (const kind of ['bounces', 'complaints']) assert.deepEqual(await listed(service, kind), [])
  assert.equal(await post(good), 200)
  assert.deepEqual(await listed(service, 'bounces'), [subject.recipient])
})

test('certificates of others, of another time and none are refused; one that cannot be fetched now is asked for again', async (t) => {
  const { sns, post } = await start(t)
  const day = 86_400_000
  const bad: Record<string, () => string> = {
    'of another name': () => signerOf('sns.example.com').certificate,
    'of a name that ends alike': () => signerOf('evil-sns.amazonaws.com').certificate,
    none: () => 'x',
    'a page': () => `<html>${'x'.repeat(70_000)}`,
  }
  let at = 0
  const urlOf = () => CERTIFICATE_URL.replace('.pem', `${++at}.pem`)
  for (const [name, certificate] of Object.entries(bad)) {
    sns.answer = certificate
    assert.equal(await post(sns.message({ SigningCertURL: urlOf() })), 403, name)
  }
  for (const [from, to] of [
    [-3 * day, -day],
    [day, 3 * day],
  ] as const) {
    sns.signer = signerOf('sns.amazonaws.com', Date.now() + from, Date.now() + to)
    sns.answer = () => sns.signer.certificate
    assert.equal(await post(sns.message({ SigningCertURL: urlOf() })), 403)
  }
  sns.signer = signerOf('sns-signing.eu-south-1.amazonaws.com')
  const url = urlOf()
  for (const status of [0, 404, 500, 302]) {
    sns.answer = () => status
    assert.equal(await post(sns.message({ SigningCertURL: url })), 503, String(status))
  }
  sns.answer = () => sns.signer.certificate
  assert.equal(await post(sns.message({ SigningCertURL: url })), 200)
})

test('repetitions change nothing: of a report, of a confirmation, after an address was removed, after a restart', async (t) => {
  const { service, sns, post, deliver } = await start(t)
  const confirmation = subscription(sns)
  sns.answer = (url) => (url === CERTIFICATE_URL ? sns.signer.certificate : 500)
  assert.equal(await post(confirmation), 503)
  assert.equal((await service.call('GET', TOPICS)).body.items[0].confirmed_at, null)
  sns.answer = (url) => (url === CERTIFICATE_URL ? sns.signer.certificate : 200)
  assert.equal(await post(confirmation), 200)
  const fetched = sns.fetched.length
  const [subject] = (await deliver(['gone@there.example'])) as [Subject]
  const message = published(sns, bounceOf(subject))
  assert.equal(await post(message), 200)
  assert.equal(
    (await service.call('DELETE', `/v3/${service.domain}/bounces/${subject.recipient}`)).status,
    200,
  )
  // The same message, the same bounce as an event of a configuration set, and both after a restart.
  const { notificationType: eventType, ...rest } = bounceOf(subject)
  for (const again of [message, published(sns, { eventType, ...rest })]) assert.equal(await post(again), 200)
  await service.restart()
  for (const again of [message, confirmation]) assert.equal(await post(again), 200)
  assert.equal((await service.events('?event=failed')).length, 1)
  assert.deepEqual(await listed(service, 'bounces'), [])
  // The restart needs the certificate again, and nothing is confirmed twice.
  assert.deepEqual(sns.fetched.slice(fetched), [CERTIFICATE_URL])
})

test('only bounces, complaints and rejections count, and only for a delivery that an authentic token names', async (t) => {
  const { service, sns, post, deliver } = await start(t)
  const [subject] = (await deliver(['someone@there.example'])) as [Subject]
  const mail = mailOf(subject)
  const token = /bounce\+([a-z2-7]{39})@/.exec(subject.returnPath)?.[1] as string
  const forged = JSON.parse(JSON.stringify(bounceOf(subject)).replaceAll(token, `${token.slice(0, -2)}aa`))
  const none: object[] = [
    forged,
    { ...bounceOf(subject), mail: { ...mail, source: 'shop@example.com' } },
    { notificationType: 'Bounce', mail },
    {
      notificationType: 'Bounce',
      mail,
      bounce: {
        bounceType: 'Transient',
        bounceSubType: 'General',
        bouncedRecipients: [{ emailAddress: subject.recipient }],
      },
    },
    { notificationType: 'Complaint', mail, complaint: { complaintFeedbackType: 'not-spam' } },
    { eventType: 'Delivery', mail, delivery: { recipients: [subject.recipient], smtpResponse: '250 ok' } },
    {
      eventType: 'DeliveryDelay',
      mail,
      deliveryDelay: { delayType: 'MailboxFull', delayedRecipients: [{ emailAddress: subject.recipient }] },
    },
    { eventType: 'Open', mail, open: {} },
    { eventType: 'Bounce' },
    {},
    { eventType: { toString: 'x' }, mail: [], bounce: null },
  ]
  for (const document of none)
    assert.equal(await post(published(sns, document)), 200, JSON.stringify(document))
  assert.equal(
    await post(sns.message({ Message: 'Successfully validated SNS topic for Amazon SES event publishing.' })),
    200,
  )
  assert.equal(await post(sns.message({ Message: '{"mail":' })), 400)
  assert.equal(await post(sns.message({ Message: `{"mail":${'['.repeat(1_000)}` })), 400)
  assert.deepEqual(await service.events('?event=failed OR complained'), [])

  assert.equal(
    await post(published(sns, { eventType: 'Reject', mail, reject: { reason: 'Bad content' } })),
    200,
  )
  const [rejected = {}] = await service.events('?event=failed')
  assert.match((rejected['delivery-status'] as { message: string }).message, /Bad content/)
  assert.deepEqual(await listed(service, 'bounces'), [])
})

test('only the operator names topics, and a removed one is no longer heard', async (t) => {
  const { service, sns, post } = await start(t)
  const again = await service.call('PUT', TOPIC)
  assert.equal((await service.call('GET', TOPICS)).body.items.length, 1)
  const other = (arn: string) => service.call('PUT', `${TOPICS}/${encodeURIComponent(arn)}`)
  for (const arn of [
    'x',
    `${TOPIC_ARN}:sub`,
    TOPIC_ARN.replace('sns', 'sqs'),
    TOPIC_ARN.replace('eu-west-1', 'eu.evil'),
  ])
    assert.equal((await other(arn)).status, 400, arn)
  assert.equal((await service.call('GET', TOPICS, { key: null })).status, 401)
  assert.equal(
    (await other(TOPIC_ARN.replace(':sns:eu-west-1', ':sns:cn-north-1').replace('arn:aws:', 'arn:aws-cn:')))
      .status,
    200,
  )
  assert.equal((await service.call('DELETE', TOPIC)).status, 200)
  assert.equal((await service.call('DELETE', TOPIC)).status, 404)
  assert.equal(await post(sns.message()), 404)
  const anew = await service.call('PUT', TOPIC)
  assert.notEqual(anew.body.endpoint, again.body.endpoint)
})
