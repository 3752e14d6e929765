/** Mail returned over SMTP for delivered mail: bounces, complaints, unsubscribes, and forgeries of them. */
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { eachDatabase } from '../support/databases.ts'
import { createReceiver, type Receiver } from '../support/http-receiver.ts'
import { HOSTILE, SAMPLES } from '../support/reports/corpus.ts'
import { FAULTS, type Subject } from '../support/reports/mail.ts'
import { COMPLAINTS, HARMLESS } from '../support/reports/other-mail.ts'
import { Returner, smtpOf, subjectOf } from '../support/reports/returning.ts'
import { STATUS_FORMATS } from '../support/reports/status-reports.ts'
import { eventually, ownAddress, startTestService, type TestService } from '../support/service.ts'
import { openDialogue } from '../support/smtp-dialogue.ts'
import { createSink, type Sink } from '../support/smtp-sink.ts'

const TAKEN = '250 2.0.0 Received'

interface Rig {
  service: TestService
  sink: Sink
  returner: Returner
}

async function start(t: TestContext, database: 'sqlite' | 'postgres' = 'sqlite', env = {}): Promise<Rig> {
  const sink = await createSink({ host: ownAddress() })
  const service = await startTestService(
    t,
    {
      SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
      SENDWRIGHT_SMTP_PORT: '0',
      SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
      ...env,
    },
    { database },
  )
  const returner = await Returner.connect(service)
  t.after(async () => {
    returner.close()
    await sink.close()
  })
  return { service, sink, returner }
}

/** Sends a separate copy to each recipient, and waits until all are delivered. */
async function deliver({ service, sink }: Rig, recipients: readonly string[], more = {}): Promise<Subject[]> {
  const before = sink.messages.length
  const variables = Object.fromEntries(recipients.map((address) => [address, {}]))
  const sent = await service.send({
    to: recipients,
    'recipient-variables': JSON.stringify(variables),
    ...more,
  })
  assert.equal(sent.status, 200, sent.text)
  await sink.waitFor(before + recipients.length)
  await settled(service, recipients)
  return sink.messages.slice(before).map(subjectOf)
}

/** The outcomes are written after the sink's replies. */
const settled = (service: TestService, recipients: readonly string[]) =>
  eventually('the deliveries are settled', async () => {
    const events = await service.events('?event=delivered&limit=300')
    const delivered = new Set(events.map(({ recipient }) => recipient))
    return recipients.slice(-50).every((address) => delivered.has(address))
  })

const failures = (service: TestService, recipient: string) =>
  service.events(`?event=failed&recipient=${encodeURIComponent(recipient)}`)

const listed = async (service: TestService, kind: string, address: string) =>
  (await service.call('GET', `/v3/${service.domain}/${kind}/${address}`)).status === 200

async function addresses(service: TestService, kind: string): Promise<string[]> {
  const { body } = await service.call('GET', `/v3/${service.domain}/${kind}?limit=1000`)
  return body.items.map(({ address }: { address: string }) => address)
}

async function codeOfNext({ service }: Rig, recipient: string, more = {}): Promise<unknown> {
  await service.send({ to: recipient, ...more })
  return eventually(`the next mail to ${recipient} is stopped`, async () => {
    const statuses = (await failures(service, recipient)).map(
      ({ 'delivery-status': s }) => s as { code: number },
    )
    return statuses.find(({ code }) => code >= 600)?.code
  })
}

async function hooks(t: TestContext, service: TestService): Promise<Receiver> {
  const receiver = await createReceiver()
  t.after(() => receiver.close())
  for (const id of ['permanent_fail', 'complained', 'unsubscribed']) {
    const form = { id, url: `${receiver.url}/${id}` }
    assert.equal((await service.call('POST', `/v3/domains/${service.domain}/webhooks`, { form })).status, 200)
  }
  return receiver
}

async function assertPosted(
  service: TestService,
  receiver: Receiver,
  event: Record<string, unknown>,
  type: string,
) {
  const { body: key } = await service.call('GET', '/v5/accounts/http_signing_key')
  const post = await eventually(`the webhook ${type}`, async () =>
    receiver.posts.find(({ body }) => body['event-data'].id === event['id']),
  )
  assert.equal(post.path, `/${type}`)
  const { timestamp, token, signature } = post.body.signature
  const expected = createHmac('sha256', key.http_signing_key)
    .update(timestamp + token)
    .digest('hex')
  assert.equal(signature, expected)
}

eachDatabase((database) => {
  test('a bounce, a complaint and an unsubscribe are returned: event, webhook, list, and the next mail is stopped', async (t) => {
    const rig = await start(t, database)
    const { service, sink, returner } = rig
    const receiver = await hooks(t, service)
    const people = [
      'bounce@there.example',
      'complain@there.example',
      'leave@there.example',
      'tag@there.example',
    ]
    const [gone, angry, leaving, choosy] = (
      await deliver(rig, people, {
        'o:tag': ['news', 'Weekly'],
        text: 'all %unsubscribe_email%\ntags %tag_unsubscribe_email%\n',
      })
    ).sort((a, b) => people.indexOf(a.recipient) - people.indexOf(b.recipient)) as [
      Subject,
      Subject,
      Subject,
      Subject,
    ]

    assert.equal(
      await returner.give(gone.returnPath, STATUS_FORMATS['postfix']?.(gone, FAULTS[0] as never) ?? ''),
      TAKEN,
    )
    // Committed with the reply: no waiting.
    const [failed] = await failures(service, gone.recipient)
    assert.ok(failed)
    assert.deepEqual(
      [failed['severity'], failed['reason'], failed['log-level'], failed['tags'], failed['recipient-domain']],
      ['permanent', 'generic', 'error', ['news', 'Weekly'], 'there.example'],
    )
    assert.equal((failed['flags'] as Record<string, unknown>)['is-delayed-bounce'], true)
    assert.equal(failed['i-classification-rule-id'], 'generic-no-user')
    assert.deepEqual(failed['delivery-status'], {
      code: 550,
      'attempt-no': 1,
      message: `5.1.1 <${gone.recipient}>: Recipient address rejected: User unknown in local table`,
      description: '',
      'session-seconds': 0,
      'enhanced-code': '5.1.1',
      'mx-host': 'mx.there.example',
      'bounce-type': 'hard',
    })
    await assertPosted(service, receiver, failed, 'permanent_fail')
    const { body: statistics } = await service.call('GET', '/v1/bounce-classification/stats')
    const [counted] = statistics.items
    assert.deepEqual([counted['rule-id'], counted.bounced], ['generic-no-user', { total: 1 }])
    const bounce = await service.call('GET', `/v3/${service.domain}/bounces/${gone.recipient}`)
    assert.deepEqual([bounce.body.code, /User unknown/.test(bounce.body.error)], ['550', true])
    assert.equal(await codeOfNext(rig, gone.recipient), 605)

    assert.equal(
      await returner.give(`fbl@${service.domain}`, COMPLAINTS['aol']?.(angry) ?? '', 'fbl@provider.example'),
      TAKEN,
    )
    const [complained] = await service.events('?event=complained')
    assert.equal(complained?.['recipient'], angry.recipient)
    assert.equal(complained?.['log-level'], 'warn')
    await assertPosted(service, receiver, complained as Record<string, unknown>, 'complained')
    assert.ok(await listed(service, 'complaints', angry.recipient))
    assert.equal(await codeOfNext(rig, angry.recipient), 607)

    // The addresses are in the mail, visible to anybody.
    const addressesIn = ({ recipient }: Subject) => {
      const raw = sink.messages.find(({ envelope }) => envelope.to[0] === recipient)?.raw.toString() ?? ''
      const text = raw.replaceAll('=\r\n', '').replaceAll('=2B', '+').replaceAll('=40', '@')
      return [...text.matchAll(/(?:all|tags) mailto:(\S+@\S+)/g)].map(([, address]) => address as string)
    }
    const [everything = ''] = addressesIn(leaving)
    assert.match(everything, /^unsub\+[a-z2-7]+@/)
    assert.equal(
      await returner.give(everything.toUpperCase(), 'Subject: unsubscribe\r\n\r\n', leaving.recipient),
      TAKEN,
    )
    const [left] = await service.events('?event=unsubscribed')
    assert.deepEqual([left?.['recipient'], left?.['tags']], [leaving.recipient, ['*']])
    await assertPosted(service, receiver, left as Record<string, unknown>, 'unsubscribed')
    assert.equal(await codeOfNext(rig, leaving.recipient), 606)

    const [, tagsOnly = ''] = addressesIn(choosy)
    assert.equal(await returner.give(tagsOnly, 'x'), TAKEN)
    assert.equal(await returner.give(tagsOnly, 'x'), TAKEN)
    const entry = await service.call('GET', `/v3/${service.domain}/unsubscribes/${choosy.recipient}`)
    assert.deepEqual(entry.body.tags.sort(), ['Weekly', 'news'])
    assert.equal((await service.events('?event=unsubscribed')).length, 2)
    assert.equal(await codeOfNext(rig, choosy.recipient, { 'o:tag': 'weekly' }), 606)
  })
})

test('a bounce that lost its return path at a relay, forwarded to fbl@, fails its own delivery and no other', async (t) => {
  const rig = await start(t)
  const { service, returner } = rig
  const people = ['gone@there.example', 'stays@there.example']
  const [gone, stays] = (await deliver(rig, people)).sort((a, b) =>
    a.recipient.localeCompare(b.recipient),
  ) as [Subject, Subject]
  const fault = FAULTS[0] as never
  const relayed = { ...gone, returnPath: '0102018f-000000@eu-west-1.amazonses.example' }
  // The report names the other recipient: the address in it decides nothing.
  for (const about of [relayed, { ...relayed, recipient: stays.recipient }]) {
    const raw = STATUS_FORMATS['postfix']?.(about, fault) ?? ''
    assert.equal(await returner.give(`fbl@${service.domain}`, raw, 'bounces@relay.example'), TAKEN)
  }
  const failed = await service.events('?event=failed')
  assert.deepEqual(
    failed.map(({ recipient }) => recipient),
    [gone.recipient],
  )
  assert.deepEqual(await addresses(service, 'bounces'), [gone.recipient])
})

test('R27: every report sample gets the right class and recipient', async (t) => {
  const rig = await start(t)
  const { service, returner } = rig
  assert.ok(SAMPLES.length >= 250)
  const subjects = await deliver(
    rig,
    SAMPLES.map((_, at) => `r${at}@there.example`),
  )
  const byAddress = new Map(subjects.map((subject) => [subject.recipient, subject]))
  for (const [at, { name, raw }] of SAMPLES.entries()) {
    const subject = byAddress.get(`r${at}@there.example`) as Subject
    assert.equal(await returner.give(subject.returnPath, raw(subject)), TAKEN, name)
  }
  const events = new Map<unknown, Record<string, unknown>[]>()
  for (const path of ['failed', 'complained']) {
    for (const event of await allEvents(service, path)) {
      events.set(event['recipient'], [...(events.get(event['recipient']) ?? []), event])
    }
  }
  const bounces = new Set(await addresses(service, 'bounces'))
  const complaints = new Set(await addresses(service, 'complaints'))
  const wrong = SAMPLES.flatMap(({ name, expect }, at) => {
    const recipient = `r${at}@there.example`
    const found = events.get(recipient) ?? []
    const status =
      (found[0]?.['delivery-status'] as Record<string, unknown> | undefined)?.['enhanced-code'] ?? null
    const kinds = found.map(({ event }) => (event === 'failed' ? 'bounce' : 'complaint'))
    const right =
      kinds.join() === (expect.kind === 'nothing' ? '' : expect.kind) &&
      bounces.has(recipient) === (expect.kind === 'bounce' && expect.hard) &&
      complaints.has(recipient) === (expect.kind === 'complaint') &&
      (expect.kind !== 'bounce' || expect.status === null || status === expect.status)
    return right ? [] : [`${name}: ${kinds} ${status}`]
  })
  t.diagnostic(`${SAMPLES.length - wrong.length} of ${SAMPLES.length} samples`)
  assert.deepEqual(wrong, [])
})

async function allEvents(service: TestService, event: string): Promise<Record<string, unknown>[]> {
  const found: Record<string, unknown>[] = []
  let path = `/v3/${service.domain}/events?event=${event}&limit=300`
  for (;;) {
    const { body } = await service.call('GET', path)
    if (body.items.length === 0) return found
    found.push(...body.items)
    path = new URL(body.paging.next).pathname
  }
}

test('forged, repeated, hostile and misdirected mail changes nothing and is never answered by mail', async (t) => {
  const rig = await start(t)
  const { service, sink, returner } = rig
  const [subject, other] = (await deliver(rig, ['a@there.example', 'b@there.example'])) as [Subject, Subject]
  const bounce = (about: Subject) => STATUS_FORMATS['postfix']?.(about, FAULTS[0] as never) ?? ''
  const [local = '', host = ''] = subject.returnPath.split('@')
  const token = local.slice('bounce+'.length)
  const flipped = `${token.slice(0, -2)}${token.at(-2) === 'a' ? 'b' : 'a'}${token.at(-1)}`

  const refused: [address: string, reply: string][] = [
    [`bounce+${flipped}@${host}`, '550 5.1.1 Recipient not found'],
    [`bounce+${token}x@${host}`, '550 5.1.1 Recipient not found'],
    [`bounce+@${host}`, '550 5.1.1 Recipient not found'],
    [`bounce@${host}`, '550 5.1.1 Recipient not found'],
    [`bounce+${'a'.repeat(39)}@${host}`, '550 5.1.1 Recipient not found'],
    [`unsub+${token}@${host}`, '550 5.1.1 Recipient not found'],
    [`postmaster@${host}`, '550 5.1.1 Recipient not found'],
    ['fbl@elsewhere.example', '550 5.7.1 Relaying denied'],
    ['victim@elsewhere.example', '550 5.7.1 Relaying denied'],
    [`victim%elsewhere.example@${host}`, '550 5.1.1 Recipient not found'],
    [`"victim@elsewhere.example"@${host}`, '550 5.1.1 Recipient not found'],
    [`elsewhere.example!victim@${host}`, '550 5.1.1 Recipient not found'],
    [`@${host}:victim@elsewhere.example`, '501 5.1.3 cannot parse to address'],
    ['victim', '501 5.1.3 cannot parse to address'],
  ]
  for (const [address, reply] of refused) {
    assert.equal(await returner.give(address, bounce(subject)), reply, address)
  }

  // Reports that name no delivery, or one with an edited token.
  const edited = {
    ...subject,
    returnPath: `bounce+${flipped}@${host}`,
    header: subject.header.replaceAll(token, flipped),
  }
  for (const raw of [...Object.values(COMPLAINTS).map((write) => write(edited)), bounce(edited), 'x']) {
    assert.equal(await returner.give(`fbl@${service.domain}`, raw), TAKEN)
  }
  for (const [name, raw] of Object.entries(HOSTILE)) {
    assert.equal(await returner.give(other.returnPath, raw(other)), TAKEN, name)
  }
  for (const write of Object.values(HARMLESS))
    assert.equal(await returner.give(other.returnPath, write(other)), TAKEN)
  assert.deepEqual(await service.events('?event=failed OR complained'), [])
  for (const kind of ['bounces', 'complaints', 'unsubscribes'])
    assert.deepEqual(await addresses(service, kind), [])

  // The same report again, at once and after a restart; the local part may lose its letter case in transit.
  assert.equal(await returner.give(subject.returnPath.toUpperCase(), bounce(subject)), TAKEN)
  assert.equal(await returner.give(subject.returnPath, bounce(subject)), TAKEN)
  assert.equal(await returner.give(subject.returnPath, COMPLAINTS['minimal']?.(subject) ?? ''), TAKEN)
  await service.restart()
  const again = await Returner.connect(service)
  t.after(() => again.close())
  assert.equal(await again.give(subject.returnPath, bounce(subject)), TAKEN)
  assert.equal(await again.give(subject.returnPath, COMPLAINTS['minimal']?.(subject) ?? ''), TAKEN)
  assert.equal((await service.events('?event=failed')).length, 1)
  assert.equal((await service.events('?event=complained')).length, 1)

  // Other failures of the same delivery count, up to a limit.
  for (const fault of FAULTS) {
    assert.equal(
      await again.give(subject.returnPath, STATUS_FORMATS['postfix']?.(subject, fault) ?? ''),
      TAKEN,
    )
  }
  assert.equal((await service.events('?event=failed')).length, 4)
  // Not one mail but the two that were sent.
  assert.equal(sink.messages.length, 2)
})

test('a returned mail of 20 MB is read up to its report; clients without login are limited', async (t) => {
  const rig = await start(t, 'sqlite', { SENDWRIGHT_RATE_LIMIT: '100' })
  const { service, returner } = rig
  const [subject] = (await deliver(rig, ['large@there.example'])) as [Subject]
  const report = STATUS_FORMATS['postfix']?.(subject, FAULTS[1] as never) ?? ''
  const end = report.lastIndexOf('--=_')
  const raw = report.slice(0, end) + `${'x'.repeat(998)}\r\n`.repeat(20_000) + report.slice(end)
  assert.equal(await returner.give(subject.returnPath, raw), TAKEN)
  assert.equal((await failures(service, subject.recipient)).length, 1)

  let reply = ''
  for (let mails = 1; mails < 30 && !reply.startsWith('451'); mails++)
    reply = await returner.give(subject.returnPath, 'x')
  assert.equal(reply, '451 4.7.1 Too many messages, try again later')

  const prober = await openDialogue(t, smtpOf(service))
  await prober.reply()
  await prober.say('EHLO prober.example')
  await prober.say('MAIL FROM:<>')
  const replies: (string | null)[] = []
  // A hundred, and more than one every second.
  for (let guess = 0; guess < 1_000 && !replies.at(-1)?.startsWith('421'); guess++) {
    replies.push(await prober.say(`RCPT TO:<g${guess}@${service.domain}>`))
  }
  assert.match(replies.at(-1) ?? '', /^421 4\.7\.0 Too many/)
})
