/** Posts to mailing lists by mail from outside: who may post, and what the copies are. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eachDatabase } from '../support/databases.ts'
import { createReceiver, type ReceivedPost } from '../support/http-receiver.ts'
import {
  eventsOf,
  fieldsOf,
  judged,
  type Mail,
  NOT_ALLOWED,
  RECEIVED,
  recipientsOf,
  SUES_DKIM,
  startScene,
} from '../support/list-mail.ts'
import { postedForm } from '../support/posted-form.ts'
import { eventually, ownAddress } from '../support/service.ts'
import type { SinkMessage } from '../support/smtp-sink.ts'

eachDatabase((database) => {
  test("a member's mail is a post: each subscribed member gets one copy of the list", async (t) => {
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
})

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
  const dkim = SUES_DKIM
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
    // Nobody learns who is a member, neither from the author's domain nor by a domain of the client's own that fails.
    ['DNS fails, no member', { to: list, from: 'nobody@broken.example' }, /^451 4\.7\.24 /],
    [
      'DNS of the sender alone fails',
      { to: list, from: 'ann@good.example', sender: 'eve@broken.example' },
      NOT_ALLOWED,
    ],
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
      'a name with variables',
      { from: '"%unsubscribe_url% %recipient%" <ann@good.example>' },
      rewritten('%unsubscribe_url% %recipient%'),
      ['%unsubscribe_url% %recipient% <ann@good.example>'],
    ],
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
    assert.deepEqual(
      fieldsOf(copy, 'reply-to').map((value) => value.replaceAll('"', '')),
      replyTo,
      what,
    )
    const { dmarc } = await judged(scene, copy)
    assert.equal(dmarc, what === 'no policy' ? 'none' : 'pass', what)
  }
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

test('a post is tracked as the domain says, without its text being searched for variables; a long one is not', async (t) => {
  const scene = await startScene(t)
  const { newList, sink, service } = scene
  const list = await newList('open', { access_level: 'everyone' }, ['bob@members.example'])
  for (const kind of ['click', 'open', 'unsubscribe']) {
    const path = `/v3/domains/${service.domain}/tracking/${kind}`
    assert.equal((await service.call('PUT', path, { form: { active: 'yes' } })).status, 200)
  }
  const fields = ['Mime-Version: 1.0', 'Content-Type: text/html; charset=utf-8']
  const link = '<p>%recipient_email%</p><a href="https://shop.example/a">a</a>'
  assert.equal(await scene.post({ to: list, fields, text: link }), RECEIVED)
  const [short] = (await sink.waitFor(1)) as [SinkMessage]
  // Quoted-printable breaks lines within words.
  const shown = short.raw.toString().replaceAll('=\r\n', '')
  assert.match(shown, /%recipient_email%/)
  assert.doesNotMatch(shown, /https:\/\/shop\.example/)
  assert.match(shown, /<img /)

  const long = `${`<p>${'x'.repeat(70)}</p>\r\n`.repeat(14_000)}${link}`
  assert.equal(await scene.post({ to: list, fields, text: long }), RECEIVED)
  const [, copy] = (await sink.waitFor(2)) as [SinkMessage, SinkMessage]
  assert.ok(copy.raw.toString().endsWith(`${long}\r\n`))
  assert.match(fieldsOf(copy, 'list-unsubscribe')[0] ?? '', /^<https?:/)
})
