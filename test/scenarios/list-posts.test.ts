import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { splitMessage } from '../../src/protocols/mime/split.ts'
import { eachDatabase } from '../support/databases.ts'
import { eventually, startTestService, type TestService } from '../support/service.ts'
import { openDialogue, plainLogin } from '../support/smtp-dialogue.ts'
import { createSink, type Sink, type SinkMessage } from '../support/smtp-sink.ts'

type Event = Record<string, unknown> & { event: string; recipient: string; storage: { key: string } }

interface Scene {
  service: TestService
  sink: Sink
  /** Creates a list with these members and resolves its address. */
  newList(name: string, fields: Record<string, string>, members: readonly unknown[]): Promise<string>
  /** Posts, and resolves all events of the message once `finals` recipients have their final one. */
  post(form: Record<string, string | string[]>, finals: number): Promise<{ id: string; events: Event[] }>
}

async function startScene(
  t: TestContext,
  database: 'sqlite' | 'postgres' = 'sqlite',
  env: Record<string, string> = {},
): Promise<Scene> {
  const sink = await createSink()
  t.after(() => sink.close())
  const settings = { SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`, ...env }
  const service = await startTestService(t, settings, { database })
  return {
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
    async post(form, finals) {
      const sent = await service.send(form)
      assert.equal(sent.status, 200, sent.text)
      const id = (sent.body.id as string).slice(1, -1)
      const events = await eventually('final events', async () => {
        const all = (await service.events(`?message-id=${id}`)) as Event[]
        const final = all.filter(({ event, severity }) => event === 'delivered' || severity === 'permanent')
        return final.length === finals && all
      })
      return { id, events }
    },
  }
}

const to = (sink: Sink, address: string): SinkMessage => {
  const found = sink.messages.filter(({ envelope }) => envelope.to.includes(address))
  assert.equal(found.length, 1, `copies to ${address}`)
  return found[0] as SinkMessage
}

/** Unfolded values of a field. */
const fields = ({ raw }: SinkMessage, name: string) =>
  splitMessage(raw)
    .headers.filter((field) => field.name.toLowerCase() === name)
    .map(({ value }) => value)

const named = (events: Event[], name: string) => events.filter(({ event }) => event === name)

eachDatabase((database) => {
  test('a post reaches each subscribed member once, as mail of the list', async (t) => {
    const { service, sink, newList, post } = await startScene(t, database)
    const list = await newList('devs', { access_level: 'members' }, [
      { address: 'Ann@example.org', name: 'Ann Lee', vars: { team: 'core' } },
      { address: 'bob@example.org', name: 'Bob' },
      { address: 'cleo@example.org', subscribed: false },
      'direct@example.org',
    ])
    const { id, events } = await post(
      {
        to: [list, 'direct@example.org'],
        subject: 'For %recipient_fname%',
        text: 'Dear %recipient_name%, %recipient.team%',
      },
      3,
    )

    assert.deepEqual(sink.messages.map(({ envelope }) => envelope.to).sort(), [
      ['Ann@example.org'],
      ['bob@example.org'],
      ['direct@example.org'],
    ])
    const ann = to(sink, 'Ann@example.org')
    assert.match(ann.raw.toString(), /Dear Ann Lee, core\r\n/)
    assert.match(to(sink, 'bob@example.org').raw.toString(), /Dear Bob, %recipient\.team%/)
    assert.deepEqual(fields(ann, 'subject'), ['For Ann'])
    assert.deepEqual(fields(ann, 'from'), [`Sender <sender@${service.domain}>`])
    assert.deepEqual(fields(ann, 'to'), [`${list}, direct@example.org`])
    assert.deepEqual(fields(ann, 'message-id'), [`<${id}>`])
    assert.deepEqual(fields(ann, 'sender'), [list])
    assert.deepEqual(fields(ann, 'list-id'), [`<devs.${service.domain}>`])
    assert.deepEqual(fields(ann, 'list-post'), [`<mailto:${list}>`])
    assert.equal(fields(ann, 'list-unsubscribe').length, 1)
    assert.deepEqual(fields(ann, 'list-unsubscribe-post'), ['List-Unsubscribe=One-Click'])
    assert.deepEqual(fields(ann, 'precedence'), ['list'])
    assert.deepEqual(fields(ann, 'reply-to'), [list])
    assert.match(
      fields(ann, 'dkim-signature')[0] ?? '',
      new RegExp(`d=${service.domain.replaceAll('.', '\\.')}`),
    )
    const senders = new Set(sink.messages.map(({ envelope }) => envelope.from))
    assert.equal(senders.size, 3, 'each copy has its own bounce address')
    for (const sender of senders) assert.match(sender, new RegExp(`^bounce\\+[^@]+@.*${service.domain}$`))
    const direct = to(sink, 'direct@example.org')
    for (const name of ['list-id', 'sender', 'precedence']) assert.deepEqual(fields(direct, name), [])

    const ofList = (event: Event) => event['mailing-list']
    assert.deepEqual(
      named(events, 'accepted')
        .map(({ recipient }) => recipient)
        .sort(),
      ['Ann@example.org', 'bob@example.org', list, 'direct@example.org'],
    )
    for (const event of events) {
      const isCopy = ['Ann@example.org', 'bob@example.org'].includes(event.recipient)
      const { sid, ...shown } = (ofList(event) ?? {}) as Record<string, unknown>
      assert.deepEqual(shown, isCopy ? { address: list, 'list-id': `devs.${service.domain}` } : {})
      assert.equal(typeof sid, isCopy ? 'string' : 'undefined')
    }
    const found = await service.events(`?list=${list}&event=delivered`)
    assert.deepEqual(found.map((event) => event['recipient']).sort(), ['Ann@example.org', 'bob@example.org'])
    for (const { storage } of named(events, 'accepted')) {
      const stored = await service.call('GET', `/v3/domains/${service.domain}/messages/${storage.key}`)
      assert.equal(stored.status, 200, 'one message is stored for all')
    }
  })
})

test('list fields follow the access level, the preference and the call', async (t) => {
  const { service, sink, newList, post } = await startScene(t)
  const member = (name: string) => [`${name}@example.org`]
  const quiet = await newList('quiet', { reply_preference: 'list' }, member('quiet'))
  await service.call('PUT', `/v3/lists/${quiet}`, { form: { list_id: 'news.shop.example' } })
  await post({ to: quiet }, 1)
  const readonly = to(sink, 'quiet@example.org')
  assert.deepEqual(fields(readonly, 'list-id'), ['<news.shop.example>'])
  assert.deepEqual(fields(readonly, 'list-post'), [])
  assert.deepEqual(fields(readonly, 'reply-to'), [], 'a readonly list acts as if it preferred the sender')

  const sender = { access_level: 'everyone', reply_preference: 'sender' }
  await post({ to: await newList('sender', sender, member('sender')) }, 1)
  assert.deepEqual(fields(to(sink, 'sender@example.org'), 'reply-to'), [])

  const open = { access_level: 'everyone', reply_preference: 'list' }
  const own = { 'h:Reply-To': 'me@example.org', 'h:List-Unsubscribe': '<https://shop.example/u>' }
  await post({ to: await newList('own', open, member('own')), ...own }, 1)
  const kept = to(sink, 'own@example.org')
  assert.deepEqual(fields(kept, 'reply-to'), ['me@example.org'])
  assert.deepEqual(fields(kept, 'list-unsubscribe'), ['<https://shop.example/u>'])
})

test('recipient-variables override those of members; every event refers to a stored message', async (t) => {
  const { service, sink, newList, post } = await startScene(t)
  const list = await newList('vars', {}, [
    { address: 'ann@example.org', vars: { a: 'member', b: 'member' } },
    { address: 'bob@example.org', vars: { a: 'member' } },
  ])
  const variables = { 'ann@example.org': { a: 'call' }, 'direct@example.org': { a: 'direct' } }
  const form = {
    to: [list, 'direct@example.org'],
    text: 'a=%recipient.a% b=%recipient.b%',
    'recipient-variables': JSON.stringify(variables),
  }
  const { events } = await post(form, 3)
  assert.match(to(sink, 'ann@example.org').raw.toString(), /a=call b=member/)
  assert.match(to(sink, 'bob@example.org').raw.toString(), /a=member b=%recipient\.b%/)
  assert.match(to(sink, 'direct@example.org').raw.toString(), /a=direct b=%recipient\.b%/)
  for (const { event, recipient, storage } of events) {
    const stored = await service.call('GET', `/v3/domains/${service.domain}/messages/${storage.key}`)
    assert.equal(stored.status, 200, `${event} ${recipient}`)
  }
})

test('suppressions of the domain stop copies, test mode sends none, and tags count', async (t) => {
  const { service, sink, newList, post } = await startScene(t)
  const put = (kind: string, form: Record<string, string>) =>
    service.call('POST', `/v3/${service.domain}/${kind}`, { form })
  await put('bounces', { address: 'bounced@example.org' })
  await put('unsubscribes', { address: 'left@example.org' })
  await put('unsubscribes', { address: 'tagged@example.org', tag: 'promo' })
  await put('complaints', { address: 'angry@example.org' })
  const names = ['bounced', 'left', 'tagged', 'angry', 'fine']
  const list = await newList(
    'stops',
    {},
    names.map((name) => `${name}@example.org`),
  )
  const { events } = await post({ to: list, 'o:tag': 'promo' }, 5)
  const reasons = named(events, 'failed').map(({ recipient, reason }) => [recipient, reason])
  assert.deepEqual(reasons.sort(), [
    ['angry@example.org', 'suppress-complaint'],
    ['bounced@example.org', 'suppress-bounce'],
    ['left@example.org', 'suppress-unsubscribe'],
    ['tagged@example.org', 'suppress-unsubscribe'],
  ])
  for (const event of named(events, 'failed')) assert.ok(event['mailing-list'])
  assert.deepEqual(
    sink.messages.map(({ envelope }) => envelope.to),
    [['fine@example.org']],
  )
  assert.equal(named((await post({ to: list }, 5)).events, 'delivered').length, 2, 'tagged gets other mail')
  const seen = sink.messages.length
  await post({ to: list, 'o:testmode': 'yes' }, 5)
  assert.equal(sink.messages.length, seen)
})

test('mail from a list is accepted but not distributed; a list within a list gets one mail', async (t) => {
  const { service, sink, newList, post } = await startScene(t)
  const inner = await newList('inner', {}, ['deep@example.org'])
  const outer = await newList('outer', {}, [inner, 'ann@example.org'])
  await post({ to: outer }, 2)
  assert.deepEqual(sink.messages.map(({ envelope }) => envelope.to).sort(), [['ann@example.org'], [inner]])
  const looped = await service.send({ to: outer, 'h:List-Id': `<outer.${service.domain}>` })
  assert.equal(looped.status, 200)
  const empty = await service.send({ to: await newList('empty', {}, []) })
  assert.equal(empty.status, 200)
  await post({ to: outer }, 2)
  assert.equal(sink.messages.length, 4, 'the two posts between made no copies')
})

test('a scheduled post is cancelled with all its copies, and dropping the queue ends its expansion', async (t) => {
  const { service, sink, newList } = await startScene(t)
  const members = Array.from({ length: 90 }, (_, n) => `m${n}@example.org`)
  const list = await newList('later', {}, members)
  const later = new Date(Date.now() + 3_600_000).toUTCString()
  const first = await service.send({ to: list, 'o:deliverytime': later })
  const path = `/sendwright/v1/scheduled/${encodeURIComponent(first.body.id)}`
  const cancelled = await service.call('DELETE', path)
  assert.equal(cancelled.status, 200, 'at once, whether or not copies are made yet')
  await service.send({ to: list, 'o:deliverytime': later })
  await service.call('DELETE', `/v3/${service.domain}/envelopes`)
  const { body } = await service.call('GET', '/sendwright/v1/scheduled')
  assert.deepEqual(body.items, [])
  const marker = await newList('marker', {}, ['marker@example.org'])
  await service.send({ to: marker })
  await sink.waitFor(1)
  assert.deepEqual((await service.call('GET', '/sendwright/v1/scheduled')).body.items, [])
  assert.equal(sink.messages.length, 1)
})

test('a list outlives its domain and works again with a new one; posts of the deleted domain through other lists end', async (t) => {
  const { service, newList } = await startScene(t, 'sqlite', { SENDWRIGHT_DELIVERY: 'capture' })
  const name = 'lists.example.com'
  assert.equal((await service.call('POST', '/v4/domains', { form: { name } })).status, 200)
  const path = `/v3/domains/${name}`
  const address = `news@${name}`
  const created = await service.call('POST', '/v3/lists', { form: { address } })
  assert.equal(created.status, 200, created.text)
  await service.call('POST', `/v3/lists/${address}/members`, { form: { address: 'ann@example.org' } })

  const other = await newList('other', {}, ['bob@example.org'])
  const later = new Date(Date.now() + 3_600_000).toUTCString()
  const form = { from: `me@${name}`, to: other, subject: 's', text: 't', 'o:deliverytime': later }
  const sent = await service.call('POST', `/v3/${name}/messages`, { form })
  assert.equal(sent.status, 200, sent.text)
  assert.equal((await service.call('DELETE', path)).status, 200)
  await eventually('nothing waits any more', async () => {
    const { body } = await service.call('GET', '/sendwright/v1/scheduled')
    return body.items.length === 0
  })
  const kept = await service.call('GET', `/v3/lists/${address}`)
  assert.equal(kept.body.list.members_count, 1)
  await eventually('the name is free', async () => {
    return (await service.call('POST', '/v4/domains', { form: { name } })).status === 200
  })
  const post = { from: `me@${name}`, to: address, subject: 'again', text: 't' }
  assert.equal((await service.call('POST', `/v3/${name}/messages`, { form: post })).status, 200)
  await eventually("the member's copy", async () => {
    const { body } = await service.call('GET', '/sendwright/v1/inbox?subject=again')
    return body.items.some(
      (item: { envelope: { to: string[] } }) => item.envelope.to[0] === 'ann@example.org',
    )
  })
})

test('a post over SMTP submission is distributed too; the list replaces its Reply-To', async (t) => {
  const { service, sink, newList } = await startScene(t)
  const fieldsOf = { access_level: 'everyone', reply_preference: 'list' }
  const list = await newList('smtp', fieldsOf, [{ address: 'ann@example.org', name: 'Ann' }])
  const login = { login: 'poster', password: 'secret-12' }
  await service.call('POST', `/v3/domains/${service.domain}/credentials`, { form: login })
  const { host, smtpPort: port } = service.config
  const dialogue = await openDialogue(t, { host, port })
  const content = [
    `From: Poster <poster@${service.domain}>`,
    `To: ${list}`,
    'Subject: by SMTP',
    'Reply-To: me@example.org',
    '',
    'Hi %recipient_name%',
    '.',
  ].join('\r\n')
  assert.match((await dialogue.reply()) ?? '', /^220/)
  await dialogue.say('EHLO client.example.org')
  assert.match((await dialogue.say('STARTTLS')) ?? '', /^220/)
  await dialogue.secure()
  await dialogue.say('EHLO client.example.org')
  const auth = plainLogin(`poster@${service.domain}`, login.password)
  assert.match((await dialogue.say(`AUTH PLAIN ${auth}`)) ?? '', /^235/)
  assert.match((await dialogue.say(`MAIL FROM:<poster@${service.domain}>`)) ?? '', /^250/)
  assert.match((await dialogue.say(`RCPT TO:<${list}>`)) ?? '', /^250/)
  assert.match((await dialogue.say('DATA')) ?? '', /^354/)
  assert.match((await dialogue.say(content)) ?? '', /^250/)
  await sink.waitFor(1)
  const ann = to(sink, 'ann@example.org')
  assert.deepEqual(fields(ann, 'reply-to'), [list])
  assert.deepEqual(fields(ann, 'list-id'), [`<smtp.${service.domain}>`])
  assert.match(ann.raw.toString(), /Hi Ann\r\n/)

  // Automatic mail has the null sender: accepted, but not distributed (mailing-lists.md rule 20).
  await dialogue.say('MAIL FROM:<>')
  await dialogue.say(`RCPT TO:<${list}>`)
  await dialogue.say('DATA')
  const id = /<([^>]+)>/.exec((await dialogue.say(content.replace('by SMTP', 'automatic'))) ?? '')?.[1]
  const events = await eventually('accepted', async () => {
    const found = (await service.events(`?message-id=${id}`)) as Event[]
    return found.length > 0 && found
  })
  assert.deepEqual(
    events.map(({ event, recipient }) => [event, recipient]),
    [['accepted', list]],
  )
  const rows = new DatabaseSync(join(service.config.dataFolder, 'sendwright.db'), { readOnly: true })
  const { posts } = rows.prepare('SELECT count(*) AS posts FROM list_expansions').get() as { posts: number }
  rows.close()
  assert.equal(posts, 1)
})

test('members get a post at their own best time, the others at once', async (t) => {
  const sink = await createSink()
  t.after(() => sink.close())
  const best = Math.ceil(Date.now() / 1000) * 1000 + 3_600_000
  const habits = {
    bestTimes: async () => new Map([['ann@example.org', best]]),
    timeZones: async () => new Map<string, string>(),
  }
  const settings = { SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}` }
  const service = await startTestService(t, settings, { sending: { habits } })
  const list = `best@${service.domain}`
  await service.call('POST', '/v3/lists', { form: { address: list } })
  const members = JSON.stringify(['Ann@example.org', 'ben@example.org'])
  await service.call('POST', `/v3/lists/${list}/members.json`, { form: { members } })
  const sent = await service.send({ to: list, 'o:deliverytime-optimize-period': '24h' })
  assert.equal(sent.status, 200, sent.text)
  await sink.waitFor(1)
  const accepted = (await service.events('?event=accepted')) as (Event & { message: object })[]
  const times = accepted.map(({ recipient, message }) => [recipient, 'scheduled-for' in message])
  assert.deepEqual(Object.fromEntries(times), {
    [list]: false,
    'Ann@example.org': true,
    'ben@example.org': false,
  })
})

test('variables of one member that are too large for an event do not hold up the mail of a list', async (t) => {
  const { sink, newList, post } = await startScene(t)
  const list = await newList('large', {}, [
    { address: 'ann@x.example', vars: { a: 'x'.repeat(4_000) } },
    { address: 'ben@x.example', vars: { a: 'short' } },
  ])
  await post({ to: list, subject: '%recipient.a%'.repeat(70), text: 'Hi.' }, 2)
  assert.match(to(sink, 'ben@x.example').raw.toString(), /^Subject: short/m)
  to(sink, 'ann@x.example')
})
