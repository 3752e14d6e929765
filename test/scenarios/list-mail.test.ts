/** Posts to mailing lists by mail from outside: a real client sends them in, members' servers get the copies. */
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { authenticate } from 'mailauth'
import { createTransport } from 'nodemailer'
import { splitMessage } from '../../src/mime/split.ts'
import { createReceiver, type ReceivedPost } from '../support/http-receiver.ts'
import { createInternet, type Internet } from '../support/internet.ts'
import { postedForm } from '../support/posted-form.ts'
import { eventually, ownAddress, startTestService, type TestService } from '../support/service.ts'
import type { Sink, SinkMessage } from '../support/smtp-sink.ts'

type Event = Record<string, unknown> & { event: string; recipient: string; storage: { key: string } }

/** A mail of a stranger. */
interface Mail {
  to: string
  /** Whole From field; also the envelope sender, unless there is one. */
  from?: string
  sender?: string
  /** Further fields. */
  fields?: readonly string[]
  id?: string
  text?: string
  dkim?: { domainName: string; keySelector: string; privateKey: string }
}

interface Scene {
  internet: Internet
  service: TestService
  sink: Sink
  newList(name: string, fields: Record<string, string>, members: readonly unknown[]): Promise<string>
  /** The reply to the final dot, or to what was refused before. */
  post(mail: Mail): Promise<string>
}

const KEY = generateKeyPairSync('rsa', { modulusLength: 2048 })
const PRIVATE = KEY.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
const PUBLIC = KEY.publicKey.export({ type: 'spki', format: 'der' }).toString('base64')

/** A string of a TXT record has at most 255 bytes. */
const inStrings = (text: string): string[] => text.match(/.{1,250}/g) ?? []

/** Authors at `good.example` are proven by SPF; its policy is to reject. `plain.example` is proven, and asks for nothing. */
async function startScene(
  t: TestContext,
  database: 'sqlite' | 'postgres' = 'sqlite',
  env: Record<string, string> = {},
): Promise<Scene> {
  const internet = await createInternet(t)
  const { dns } = internet
  const spf = 'v=spf1 ip4:127.0.0.0/8 -all'
  for (const name of ['good.example', 'plain.example', 'evil.example']) dns.set(name, 'TXT', [spf])
  for (const name of ['good.example', 'signed.example'])
    dns.set(`_dmarc.${name}`, 'TXT', ['v=DMARC1; p=reject'])
  dns.set('k1._domainkey.signed.example', 'TXT', [inStrings(`v=DKIM1; k=rsa; p=${PUBLIC}`)])
  const sink = await internet.site(['members.example'])
  const settings = { ...internet.env, SENDWRIGHT_SMTP_PORT: String(internet.port), ...env }
  const service = await startTestService(t, settings, { database })
  internet.host(service.domain, 'mx.lists.example', service.config.smtpHost)
  return {
    internet,
    service,
    sink,
    async newList(name, fields, members) {
      const address = `${name}@${service.domain}`
      const made = await service.call('POST', '/v3/lists', { form: { address, ...fields } })
      assert.equal(made.status, 200, made.text)
      const form = { members: JSON.stringify(members) }
      const added = await service.call('POST', `/v3/lists/${address}/members.json`, { form })
      assert.equal(added.status, 200, added.text)
      return address
    },
    post: (mail) => post(service, mail),
  }
}

let posted = 0

async function post(service: TestService, mail: Mail): Promise<string> {
  const { to, from = 'Ann Lee <ann@good.example>', id = `<post-${++posted}@client.example>` } = mail
  const sender = mail.sender ?? /<([^>]*)>/.exec(from)?.[1] ?? from
  const fields = [`From: ${from}`, `To: ${to}`, 'Subject: lunch', `Message-Id: ${id}`, ...(mail.fields ?? [])]
  const raw = [...fields, 'Date: Mon, 1 Jun 2026 12:00:00 +0000', '', mail.text ?? 'At one?', ''].join('\r\n')
  const transport = createTransport({
    host: service.config.smtpHost,
    port: service.service.smtp.port,
    name: 'client.example',
    tls: { rejectUnauthorized: false },
    ...(mail.dkim && { dkim: mail.dkim }),
  })
  try {
    const envelope = { from: sender, to: [to] }
    return String((await transport.sendMail({ envelope, raw })).response)
  } catch (error) {
    return (error as { response?: string }).response ?? String(error)
  } finally {
    transport.close()
  }
}

const RECEIVED = '250 2.0.0 Received'
const NOT_ALLOWED = '550 5.7.1 posting to this list is not allowed'

const fieldsOf = ({ raw }: SinkMessage, name: string) =>
  splitMessage(raw)
    .headers.filter((field) => field.name.toLowerCase() === name)
    .map(({ value }) => value)

const recipientsOf = (messages: readonly SinkMessage[]) =>
  messages.flatMap(({ envelope }) => envelope.to).sort()

const eventsOf = async ({ service }: Scene, query: string, count: number): Promise<Event[]> =>
  eventually(`${count} events ${query}`, async () => {
    const found = (await service.events(query)) as Event[]
    return found.length === count && found
  })

/** What a receiver of the copy says of it. */
async function judged({ internet: { dns }, service }: Scene, copy: SinkMessage) {
  const { body } = await service.call('GET', `/v4/domains/${service.domain}`)
  for (const { name, value } of body.sending_dns_records as { name: string; value: string }[])
    if (name.includes('_domainkey')) dns.set(name, 'TXT', [inStrings(value)])
  const { Resolver } = await import('node:dns/promises')
  const resolver = new Resolver()
  resolver.setServers([`${dns.host}:${dns.port}`])
  const { dmarc, dkim } = await authenticate(copy.raw, {
    ...{ ip: '127.9.9.9', helo: 'x.example', sender: copy.envelope.from, mta: 'mx.members.example' },
    ...{ disableBimi: true, disableArc: true },
    resolver: ((name: string, type: string) => resolver.resolve(name, type)) as never,
  })
  return {
    dmarc: dmarc ? dmarc.status.result : null,
    dkim: dkim.results.map(({ signingDomain, status }) => `${signingDomain} ${status.result}`),
  }
}

for (const database of ['sqlite', 'postgres'] as const) {
  test(`a member's mail is a post: each subscribed member gets one copy of the list (${database})`, async (t) => {
    const scene = await startScene(t, database)
    const { service, sink, newList } = scene
    const list = await newList('devs', { access_level: 'members', name: 'Developers' }, [
      { address: 'Ann@good.example', subscribed: true },
      { address: 'bob@members.example', name: 'Bob', vars: { secret: '7' } },
      'cleo@members.example',
      { address: 'dan@members.example', subscribed: false },
    ])
    scene.internet.host('good.example', 'mx.members.example', sink.host)
    const id = `<one-${database}@client.example>`
    const text = 'Hi %recipient_email% %recipient.secret% %unsubscribe_url%'
    const fields = [
      'Disposition-Notification-To: <ann@good.example>',
      'X-Service-Tag: forged',
      'X-Mine: kept',
    ]
    assert.equal(await scene.post({ to: list, id, text, fields }), RECEIVED)
    await sink.waitFor(3)
    assert.deepEqual(recipientsOf(sink.messages), [
      'Ann@good.example',
      'bob@members.example',
      'cleo@members.example',
    ])
    const bob = sink.messages.find(({ envelope }) => envelope.to[0] === 'bob@members.example') as SinkMessage
    const shown: Record<string, string[]> = {
      // good.example asks receivers to reject what it has not sent itself.
      from: [`Ann Lee via Developers <${list}>`],
      'x-original-from': ['Ann Lee <ann@good.example>'],
      to: [list],
      subject: ['lunch'],
      date: ['Mon, 1 Jun 2026 12:00:00 +0000'],
      'message-id': [id],
      sender: [list],
      'reply-to': [list],
      'list-id': [`<devs.${service.domain}>`],
      'list-post': [`<mailto:${list}>`],
      'list-unsubscribe-post': ['List-Unsubscribe=One-Click'],
      precedence: ['list'],
      'x-loop': [list],
      'x-mine': ['kept'],
      'disposition-notification-to': [],
      'x-service-tag': [],
      'x-service-incoming': [],
      'x-envelope-from': [],
    }
    for (const [name, values] of Object.entries(shown)) assert.deepEqual(fieldsOf(bob, name), values, name)
    assert.match(fieldsOf(bob, 'list-unsubscribe')[0] ?? '', /^<https?:.+>, <mailto:unsub\+.+>$/)
    assert.match(fieldsOf(bob, 'received').join(), /by mail\.test\.example/)
    assert.ok(
      bob.raw.toString().includes(`\r\n\r\n${text}\r\n`),
      'a stranger cannot read what is known of members',
    )
    assert.match(bob.envelope.from, new RegExp(`^bounce\\+[^@]+@.*${service.domain}$`))
    assert.deepEqual(await judged(scene, bob), { dmarc: 'none', dkim: [`${service.domain} pass`] })

    const accepted = await eventsOf(scene, '?event=accepted', 4)
    const own = accepted.find(({ recipient }) => recipient === list)
    assert.deepEqual(own?.['flags'], { 'is-authenticated': false, 'is-routed': true, 'is-test-mode': false })
    assert.deepEqual([own?.['method'], own?.['mailing-list']], ['smtp', undefined])
    const delivered = await eventsOf(scene, '?event=delivered', 3)
    for (const event of [...accepted.filter((one) => one !== own), ...delivered]) {
      const { sid, ...named } = event['mailing-list'] as Record<string, unknown>
      assert.deepEqual(named, { address: list, 'list-id': `devs.${service.domain}` })
      assert.equal(typeof sid, 'string')
      assert.equal((event['flags'] as Record<string, unknown>)['is-authenticated'], true)
    }
    const storage = new Set([...accepted, ...delivered].map(({ storage: { key } }) => key))
    assert.equal(storage.size, 1, 'one message is stored')
    const read = await service.call('GET', `/v3/domains/${service.domain}/messages/${[...storage][0]}`)
    assert.deepEqual([read.status, read.body.From], [200, 'Ann Lee <ann@good.example>'])

    // A client that got no reply to its final dot sends the mail again.
    assert.equal(await scene.post({ to: list, id, text, fields }), RECEIVED)
    assert.equal(await scene.post({ to: list, text: 'second' }), RECEIVED)
    await sink.waitFor(6)
    await eventsOf(scene, '?event=delivered', 6)
    assert.equal(sink.messages.length, 6)
  })
}

test('who may post is judged by an author that the domain in From has proven', async (t) => {
  const scene = await startScene(t)
  const { newList, sink, internet } = scene
  const members = [
    'ann@good.example',
    'bob@members.example',
    'sue@signed.example',
    'eve@unproven.example',
    'ivo@broken.example',
  ]
  const list = await newList('closed', { access_level: 'members' }, members)
  const readonly = await newList('news', { access_level: 'readonly' }, members)
  const open = await newList('open', { access_level: 'everyone' }, ['bob@members.example'])
  const unsubscribed = await newList('left', { access_level: 'members' }, [
    { address: 'ann@good.example', subscribed: false },
  ])
  internet.dns.misbehave('broken.example', 'servfail')
  internet.dns.misbehave('_dmarc.broken.example', 'servfail')
  const dkim = { domainName: 'signed.example', keySelector: 'k1', privateKey: PRIVATE }
  const sue = 'Sue <sue@signed.example>'
  const cases: [what: string, mail: Mail, reply: string | RegExp][] = [
    ['readonly, to a member', { to: readonly }, NOT_ALLOWED],
    ['no member', { to: list, from: 'eve@evil.example' }, NOT_ALLOWED],
    ['unsubscribed', { to: unsubscribed }, NOT_ALLOWED],
    ['From forged, envelope proven', { to: list, sender: 'eve@evil.example' }, NOT_ALLOWED],
    ['From of a member without SPF, DKIM and DMARC', { to: list, from: 'eve@unproven.example' }, NOT_ALLOWED],
    [
      'signed by another domain',
      { to: list, sender: 'x@evil.example', dkim: { ...dkim, domainName: 'evil.example' } },
      NOT_ALLOWED,
    ],
    [
      'a forged signature',
      {
        to: list,
        from: sue,
        sender: 'x@evil.example',
        fields: [
          'DKIM-Signature: v=1; a=rsa-sha256; d=signed.example; s=k1; h=from; bh=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=; b=AAAA',
        ],
      },
      NOT_ALLOWED,
    ],
    [
      'results of its own',
      {
        to: list,
        sender: 'eve@evil.example',
        fields: ['Authentication-Results: mail.test.example; dmarc=pass header.from=good.example'],
      },
      NOT_ALLOWED,
    ],
    [
      'two From fields',
      { to: list, from: 'eve@evil.example', fields: ['From: <ann@good.example>'] },
      '554 5.6.0 cannot parse from address',
    ],
    [
      'a name that looks like a member',
      { to: list, from: '=?utf-8?q?ann=40good.example?= <eve@evil.example>' },
      NOT_ALLOWED,
    ],
    [
      'a group',
      { to: open, from: 'team: ann@good.example;', sender: 'ann@good.example' },
      '554 5.6.0 cannot parse from address',
    ],
    ['DNS fails', { to: list, from: 'ivo@broken.example' }, /^451 4\.7\.24 /],
  ]
  for (const [what, mail, reply] of cases) {
    const got = await scene.post(mail)
    if (typeof reply === 'string') assert.equal(got, reply, what)
    else assert.match(got, reply, what)
  }
  assert.deepEqual(
    await scene.service.events('?event=accepted OR rejected'),
    [],
    'refused posts leave nothing',
  )
  assert.equal(
    await scene.post({ to: list, from: sue, sender: 'news@evil.example', dkim }),
    RECEIVED,
    'by DKIM',
  )
  assert.equal(await scene.post({ to: open, from: 'eve@unproven.example' }), RECEIVED)
  await sink.waitFor(2)
  assert.deepEqual(recipientsOf(sink.messages), ['bob@members.example', 'bob@members.example'])
})

test('From of a copy passes DMARC: rewritten for strict policies, and for authors that nobody has proven', async (t) => {
  const scene = await startScene(t)
  const { newList, sink, internet, service } = scene
  const list = await newList('open', { access_level: 'everyone', reply_preference: 'sender' }, [
    'bob@members.example',
  ])
  internet.dns.set(`_dmarc.${service.domain}`, 'TXT', ['v=DMARC1; p=reject'])
  const rewritten = (name: string) => `${name} via open <${list}>`
  const cases: [what: string, mail: Omit<Mail, 'to'>, from: string, replyTo: string[]][] = [
    ['no policy', { from: 'Pat <pat@plain.example>' }, 'Pat <pat@plain.example>', []],
    ['a strict policy', {}, `"Ann Lee via open" <${list}>`, ['Ann Lee <ann@good.example>']],
    [
      'with Reply-To',
      { fields: ['Reply-To: <team@good.example>'] },
      rewritten('Ann Lee'),
      ['<team@good.example>'],
    ],
    // The list would vouch for it by its own signature.
    [
      "forged, of the list's domain",
      { from: `Boss <boss@${service.domain}>`, sender: 'x@evil.example' },
      rewritten('Boss'),
      [`Boss <boss@${service.domain}>`],
    ],
  ]
  for (const [what, mail, from, replyTo] of cases) {
    const before = sink.messages.length
    assert.equal(await scene.post({ to: list, ...mail }), RECEIVED, what)
    const copy = (await sink.waitFor(before + 1))[before] as SinkMessage
    assert.deepEqual(
      fieldsOf(copy, 'from').map((value) => value.replaceAll('"', '')),
      [from.replaceAll('"', '')],
      what,
    )
    assert.deepEqual(fieldsOf(copy, 'reply-to'), replyTo, what)
    const { dmarc } = await judged(scene, copy)
    assert.equal(dmarc, what === 'no policy' ? 'none' : 'pass', what)
  }
})

test('automatic mail, reports and mail of lists are taken and dropped', async (t) => {
  const scene = await startScene(t)
  const { newList, sink, service } = scene
  const list = await newList('open', { access_level: 'everyone' }, ['bob@members.example'])
  await newList('other', { access_level: 'everyone' }, [])
  const automatic: [what: string, mail: Omit<Mail, 'to'>][] = [
    ['null sender', { sender: '' }],
    ['vacation', { fields: ['Auto-Submitted: auto-replied'] }],
    ['an old robot', { fields: ['Precedence: bulk'] }],
    ['another', { fields: ['X-Autoreply: yes'] }],
    [
      'a bounce with a sender',
      { fields: ['Content-Type: multipart/report; report-type=delivery-status; boundary=b'] },
    ],
    ['from a daemon', { from: 'Mail <MAILER-DAEMON@good.example>' }],
    ['its own List-Id', { fields: [`List-Id: <open.${service.domain}>`] }],
    ["another list's", { fields: [`List-Id: Words <OTHER.${service.domain}>`] }],
    ['its own X-Loop', { fields: [`X-Loop: ${list.toUpperCase()}`] }],
    [
      'many passes',
      { fields: Array.from({ length: 6 }, (_, n) => `Received: from a by mail.test.example id ${n};`) },
    ],
  ]
  for (const [what, mail] of automatic) assert.equal(await scene.post({ to: list, ...mail }), RECEIVED, what)
  assert.equal(
    await scene.post({ to: list, fields: ['List-Id: <foreign.example>', 'Auto-Submitted: no'] }),
    RECEIVED,
  )
  await sink.waitFor(1)
  await eventsOf(scene, '?event=delivered', 1)
  assert.equal((await eventsOf(scene, '?event=accepted', 2)).length, 2)
  assert.equal(sink.messages.length, 1)
})

test('lists that are members of each other and of themselves make no loop, and a robot that answers none', async (t) => {
  const scene = await startScene(t)
  const { newList, sink, service } = scene
  const [first, second] = [`first@${service.domain}`, `second@${service.domain}`]
  const open = { access_level: 'everyone' }
  await newList('first', open, [second, first, 'bob@members.example'])
  await newList('second', open, [first, second, 'cleo@members.example'])
  assert.equal(await scene.post({ to: first }), RECEIVED)
  await sink.waitFor(1)
  // The copy to the other list came in, and was taken.
  const delivered = await eventsOf(scene, '?event=delivered', 2)
  assert.deepEqual(delivered.map(({ recipient }) => recipient).sort(), ['bob@members.example', second])
  // A robot of a member answers the return path, then the list, in the ways that robots do.
  const [copy] = sink.messages as [SinkMessage]
  const robot = {
    from: 'Bob <bob@good.example>',
    fields: ['Auto-Submitted: auto-replied', 'In-Reply-To: <x@y>'],
  }
  assert.equal(await scene.post({ ...robot, to: copy.envelope.from, sender: '' }), RECEIVED)
  assert.equal(await scene.post({ ...robot, to: first }), RECEIVED)
  assert.equal(await scene.post({ to: second, text: 'marker' }), RECEIVED)
  await sink.waitFor(2)
  assert.deepEqual(recipientsOf(sink.messages), ['bob@members.example', 'cleo@members.example'])
  await eventsOf(scene, '?event=accepted', 6)
})

test('a bounce of a copy is a bounce of its member in the domain of the list', async (t) => {
  const scene = await startScene(t)
  const { newList, sink, service } = scene
  const list = await newList('open', { access_level: 'everyone' }, [
    'bob@members.example',
    'cleo@members.example',
  ])
  sink.on('RCPT TO:<bob@members.example>', '550 5.1.1 no such user')
  assert.equal(await scene.post({ to: list }), RECEIVED)
  const [cleo] = (await sink.waitFor(1)) as [SinkMessage]
  const [failed] = (await eventsOf(scene, '?event=failed', 1)) as [Event]
  assert.deepEqual([failed.recipient, failed['severity']], ['bob@members.example', 'permanent'])
  assert.equal((failed['mailing-list'] as Record<string, unknown>)['address'], list)
  await eventually('suppression', async () => {
    const { status } = await service.call('GET', `/v3/${service.domain}/bounces/bob@members.example`)
    return status === 200
  })
  // A late bounce, to the return path of the copy.
  const report = [
    '--b',
    'Content-Type: text/plain',
    '',
    'Failed.',
    '--b',
    'Content-Type: message/delivery-status',
    '',
    'Reporting-MTA: dns; mx.members.example',
    '',
    'Final-Recipient: rfc822; cleo@members.example',
    'Action: failed',
    'Status: 5.1.1',
    '',
    '--b--',
  ]
  const bounce = {
    to: cleo.envelope.from,
    from: 'MAILER-DAEMON@members.example',
    sender: '',
    fields: ['Content-Type: multipart/report; report-type=delivery-status; boundary=b'],
    text: report.join('\r\n'),
  }
  assert.equal(await scene.post(bounce), RECEIVED)
  const late = await eventsOf(scene, '?event=failed', 2)
  assert.ok(late.some(({ recipient }) => recipient === 'cleo@members.example'))
  assert.equal(await scene.post({ to: list, text: 'again' }), RECEIVED)
  const stopped = await eventsOf(scene, '?event=failed', 4)
  assert.equal(stopped.filter(({ reason }) => reason === 'suppress-bounce').length, 2)
})

test('a list and a route share an address: both get the mail, and a route gets what the list refuses', async (t) => {
  const scene = await startScene(t)
  const { newList, sink, service } = scene
  const receiver = await createReceiver({ host: ownAddress() })
  t.after(() => receiver.close())
  const list = await newList('shared', { access_level: 'members' }, [
    'ann@good.example',
    'bob@members.example',
  ])
  scene.internet.host('good.example', 'mx.members.example', sink.host)
  const form = {
    expression: 'match_recipient("shared@")',
    action: [`forward("${receiver.url}/in, copy@members.example")`, 'store()'],
  }
  assert.equal((await service.call('POST', '/v3/routes', { form })).status, 200)
  assert.equal(await scene.post({ to: list, text: 'both' }), RECEIVED)
  await sink.waitFor(3)
  assert.deepEqual(recipientsOf(sink.messages), [
    'ann@good.example',
    'bob@members.example',
    'copy@members.example',
  ])
  const copyOf = (to: string) => sink.messages.find(({ envelope }) => envelope.to[0] === to) as SinkMessage
  const forward = copyOf('copy@members.example')
  assert.deepEqual(fieldsOf(forward, 'list-id'), [], 'a forward stays as it came')
  assert.deepEqual(fieldsOf(forward, 'from'), ['Ann Lee <ann@good.example>'])
  assert.deepEqual(fieldsOf(forward, 'dkim-signature'), [])
  assert.equal(fieldsOf(forward, 'arc-seal').length, 1)
  assert.equal(fieldsOf(forward, 'x-service-forwarded').length, 1)
  const bob = copyOf('bob@members.example')
  for (const name of ['arc-seal', 'x-service-forwarded']) assert.deepEqual(fieldsOf(bob, name), [], name)
  assert.equal(fieldsOf(bob, 'dkim-signature').length, 1)
  await eventually('the POST', async () => receiver.posts.length === 1)
  assert.equal((await postedForm(receiver.posts[0] as ReceivedPost)).text('recipient'), list)
  await eventsOf(scene, '?event=stored', 1)

  assert.equal(await scene.post({ to: list, from: 'eve@evil.example', text: 'stranger' }), RECEIVED)
  await eventually('the second POST', async () => receiver.posts.length === 2)
  await sink.waitFor(4)
  await eventsOf(scene, '?event=delivered', 6)
  assert.deepEqual(
    sink.messages.slice(3).map(({ envelope }) => envelope.to),
    [['copy@members.example']],
  )
})

test('the limit of the account and those of a list hold for posts', async (t) => {
  const scene = await startScene(t, 'sqlite', { SENDWRIGHT_RATE_LIMIT: '100' })
  const { newList, service, sink } = scene
  const members = Array.from({ length: 1_001 }, (_, n) => `m${n}@members.example`)
  const list = await newList('open', { access_level: 'everyone' }, members.slice(1))
  await service.call('POST', `/v3/lists/${list}/members`, { form: { address: members[0] as string } })
  await eventually('all members', async () => {
    const { body } = await service.call('GET', `/v3/lists/${list}`)
    return body.list.members_count === members.length
  })
  const setLimit = async (limit: string) => {
    const set = await service.call('PUT', '/v5/accounts/limit/custom/monthly', { form: { limit } })
    assert.equal(set.status, 200, set.text)
  }
  await setLimit('1000')
  assert.equal(await scene.post({ to: list }), '451 4.7.1 The list takes no posts now, try again later')
  await setLimit('2000')
  const id = '<limited@client.example>'
  assert.equal(await scene.post({ to: list, id }), RECEIVED)
  const current = async () => (await service.call('GET', '/v5/accounts/limit/custom/monthly')).body.current
  await eventually('the copies count', async () => (await current()) === members.length)
  await sink.waitFor(members.length)
  const empty = await newList('empty', { access_level: 'everyone' }, [])
  for (let count = 0; count < 60; count++) assert.equal(await scene.post({ to: empty }), RECEIVED)
  assert.equal(await scene.post({ to: empty }), '451 4.7.1 Too many posts to this list, try again later')
  assert.equal(await scene.post({ to: empty, from: 'Pat <pat@plain.example>' }), RECEIVED, 'another author')
  assert.equal(sink.messages.length, members.length)
})

test('hostile headers: 1 MB of them, a name that is a header, no Message-Id and Date', async (t) => {
  const scene = await startScene(t)
  const { newList, sink } = scene
  const list = await newList('open', { access_level: 'everyone', name: 'Open "list", <all>' }, [
    'bob@members.example',
  ])
  const large = (bytes: number) =>
    Array.from({ length: Math.ceil(bytes / 1_000) }, (_, n) => `X-F${n}: ${'x'.repeat(990)}`)
  assert.match(await scene.post({ to: list, fields: large(1_100_000) }), /^554 5\.6\.0 /)
  assert.equal(await scene.post({ to: list, fields: large(900_000) }), RECEIVED)
  await sink.waitFor(1)
  assert.ok((sink.messages[0] as SinkMessage).raw.length > 900_000)
  const name = `=?utf-8?q?a=0D=0ABcc:_x=40y.example?= <ann@good.example>`
  assert.equal(await scene.post({ to: list, from: name }), RECEIVED)
  const [, copy] = (await sink.waitFor(2)) as [SinkMessage, SinkMessage]
  assert.deepEqual(fieldsOf(copy, 'bcc'), [])
  assert.equal(fieldsOf(copy, 'from').length, 1)
  assert.match(fieldsOf(copy, 'from')[0] ?? '', new RegExp(`<${list}>$`))
})
