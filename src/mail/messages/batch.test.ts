import assert from 'node:assert/strict'
import { test } from 'node:test'
import Mailgun from 'mailgun.js'
import { simpleParser } from 'mailparser'
import { eachDatabase } from '../../../test/support/databases.ts'
import { eventually, startTestService } from '../../../test/support/service.ts'
import { createSink } from '../../../test/support/smtp-sink.ts'

eachDatabase((database) => {
  test('1,000 recipients with variables are one stored body and 1,000 different mails', async (t) => {
    const sink = await createSink()
    t.after(() => sink.close())
    const service = await startTestService(
      t,
      { SENDWRIGHT_DELIVERY: `smtp://127.0.0.1:${sink.port}` },
      { database },
    )
    const addresses = Array.from({ length: 1000 }, (_, n) => `reader-${n}@example.org`)
    const variables = Object.fromEntries(addresses.map((address, n) => [address, { name: `Reader ${n}`, n }]))
    const answer = await service.send({
      to: addresses,
      subject: 'News for %recipient.name%',
      text: 'Number %recipient.n%',
      'v:reader': '%recipient.n%',
      'recipient-variables': JSON.stringify(variables),
    })
    assert.equal(answer.status, 200)
    const messages = await sink.waitFor(1000)
    const texts = new Map(messages.map(({ envelope, raw }) => [envelope.to[0], raw.toString()]))
    for (const [n, address] of addresses.entries()) {
      const raw = texts.get(address) ?? ''
      assert.match(raw, new RegExp(`^To: ${address}\r$`, 'm'))
      assert.match(raw, new RegExp(`^Subject: News for Reader ${n}\r$`, 'm'))
      assert.match(raw, new RegExp(`\r\n\r\nNumber ${n}\r\n$`))
      assert.ok(raw.includes(`X-Service-Variables: {"reader":"${n}"}\r\n`))
      assert.equal(raw.match(/example\.org/g)?.length, 1)
    }
    const [accepted] = await service.events('?event=accepted')
    const storage = accepted?.['storage'] as { key: string }
    const stored = await service.call('GET', `/v3/domains/${service.domain}/messages/${storage.key}`)
    assert.equal(stored.status, 200)
    assert.equal(stored.body.recipients, accepted?.['recipient'])
    assert.match(stored.body['body-plain'], /^Number \d+$/)
    const own = accepted?.['user-variables'] as { reader: string } | undefined
    assert.equal(stored.body.Subject, `News for Reader ${own?.reader}`)
    const ids = (await service.events('?limit=300')).map((event) => (event['batch'] as { id: string }).id)
    assert.equal(new Set(ids).size, 1, 'all events of the batch name it')
  })
})

eachDatabase((database) => {
  test('values for all recipients count where a recipient has none of its own', async (t) => {
    const sink = await createSink()
    t.after(() => sink.close())
    const service = await startTestService(
      t,
      { SENDWRIGHT_DELIVERY: `smtp://127.0.0.1:${sink.port}` },
      { database },
    )
    const addresses = Array.from({ length: 1000 }, (_, n) => `reader-${n}@example.org`)
    const city = 'Florence '.repeat(20).trim()
    const batch = {
      to: addresses,
      subject: 'News from %recipient.city%',
      'h:Message-Id': '<%recipient.id%.%recipient_email%>',
      'v:reader': '%recipient.name%',
      text: '%recipient.name%, %recipient.city%, %recipient.other%',
    }
    const variables = { '*': { name: 'Reader', city, id: 'n' }, 'reader-7@example.org': { city: 'Rome' } }
    const answer = await service.send({ ...batch, 'recipient-variables': JSON.stringify(variables) })
    assert.equal(answer.status, 200, answer.text)
    const messages = await sink.waitFor(addresses.length)
    for (const { envelope, raw } of messages) {
      const own = envelope.to[0] === 'reader-7@example.org' ? 'Rome' : city
      const mail = await simpleParser(raw)
      assert.equal(mail.text?.trimEnd(), `Reader, ${own}, %recipient.other%`)
      assert.equal(mail.subject, `News from ${own}`)
      assert.equal(mail.messageId, `<n.${envelope.to[0]}>`)
      assert.ok(raw.includes('X-Service-Variables: {"reader":"Reader"}'))
    }
    const [rome] = await service.events('?event=delivered&recipient=reader-7@example.org')
    const { headers } = (rome as { message: { headers: Record<string, string> } }).message
    assert.equal(headers['subject'], 'News from Rome')
    assert.equal(headers['message-id'], 'n.reader-7@example.org')

    const tooLarge = JSON.stringify({ '*': { city: 'x'.repeat(16_384) } })
    const refused = await service.send({ ...batch, 'recipient-variables': tooLarge })
    assert.equal(refused.status, 400)
    assert.equal(refused.body.message, "The entry '*' of 'recipient-variables' is limited to 16KB")
  })
})

test('values for all recipients reach templates, MIME messages and members of lists', async (t) => {
  const sink = await createSink()
  t.after(() => sink.close())
  const service = await startTestService(t, { SENDWRIGHT_DELIVERY: `smtp://127.0.0.1:${sink.port}` })
  const { domain } = service
  const variables = { 'recipient-variables': JSON.stringify({ '*': { city: 'Rome', name: 'all' } }) }
  await service.call('POST', `/v3/${domain}/templates`, {
    form: { name: 'city', template: '<p>{{city}}</p>' },
  })
  const withTemplate = {
    template: 'city',
    subject: 'template',
    'v:city': '%recipient.city%',
  }
  assert.equal((await service.send({ to: 'a@example.org', ...withTemplate, ...variables })).status, 200)
  const mime = new File(
    [
      `From: me@${domain}\r\nSubject: mime\r\nX-Service-Recipient-Variables: {"*": {"city": "Rome"}}\r\n\r\n%recipient.city%`,
    ],
    'message.eml',
  )
  const sent = await service.call('POST', `/v3/${domain}/messages.mime`, {
    form: { to: 'b@example.org', message: mime },
  })
  assert.equal(sent.status, 200, sent.text)
  const list = `team@${domain}`
  await service.call('POST', '/v3/lists', { form: { address: list } })
  const member = { address: 'c@example.org', vars: JSON.stringify({ name: 'member' }) }
  await service.call('POST', `/v3/lists/${list}/members`, { form: member })
  const text = '%recipient.city% %recipient.name%'
  assert.equal((await service.send({ to: list, subject: 'list', text, ...variables })).status, 200)
  const texts = Object.fromEntries(
    (await sink.waitFor(3)).map(({ envelope, raw }) => [envelope.to[0], raw.toString()]),
  )
  assert.match(texts['a@example.org'] ?? '', /<p>Rome<\/p>/)
  assert.match(texts['b@example.org'] ?? '', /\r\n\r\nRome/)
  assert.match(texts['c@example.org'] ?? '', /\r\n\r\nRome member/)
})

test('each recipient of a batch gets the value as given, whatever encoding it takes', async (t) => {
  const sink = await createSink()
  t.after(() => sink.close())
  const service = await startTestService(t, { SENDWRIGHT_DELIVERY: `smtp://127.0.0.1:${sink.port}` })
  const values = ['Ann', 'Ben', 'Cleo', 'Jürgen', 'two\nlines', 'x'.repeat(1_500), '', 'a=_b', 'Zoe']
  const address = (n: number) => `r${n}@example.org`
  const to = values.map((_, n) => address(n))
  const answer = await service.send({
    to,
    text: 'Dear %recipient.x%,\n.hello %recipient.x%',
    html: '<p title="%recipient.x%">Hello</p>',
    'recipient-variables': JSON.stringify(Object.fromEntries(values.map((x, n) => [address(n), { x }]))),
  })
  assert.equal(answer.status, 200)
  const messages = await sink.waitFor(values.length)
  const encodings = new Set<string>()
  for (const { envelope, raw } of messages) {
    const x = values[to.indexOf(envelope.to[0] ?? '')]
    const { text, html } = await simpleParser(raw)
    assert.equal(text?.trimEnd(), `Dear ${x},\n.hello ${x}`.trimEnd())
    assert.equal(html, `<p title="${x}">Hello</p>`)
    encodings.add(/^Content-Transfer-Encoding: (\S+)/m.exec(raw.toString())?.[1] ?? '')
  }
  assert.deepEqual([...encodings].sort(), ['7bit', 'quoted-printable'])
})

test('a batch whose texts are nothing but variables, or name none that has a value', async (t) => {
  const sink = await createSink()
  t.after(() => sink.close())
  const service = await startTestService(t, { SENDWRIGHT_DELIVERY: `smtp://127.0.0.1:${sink.port}` })
  const to = ['ann', 'ben', 'cleo', 'dora'].map((name) => `${name}@example.org`)
  const variables = JSON.stringify(Object.fromEntries(to.map((address) => [address, { x: address[0] }])))
  for (const text of ['%recipient.x%\n'.repeat(5_000), 'Hello %recipient.unknown%']) {
    const sent = await service.send({ to, text, 'recipient-variables': variables })
    assert.equal(sent.status, 200)
  }
  for (const { envelope, raw } of await sink.waitFor(8)) {
    const { text = '' } = await simpleParser(raw)
    const own = envelope.to[0]?.[0] ?? ''
    assert.equal(
      text.trimEnd(),
      text.startsWith('H') ? 'Hello %recipient.unknown%' : `${own}\n`.repeat(5_000).trimEnd(),
    )
  }
})

test('1,001 addresses are too many', async (t) => {
  const service = await startTestService(t)
  const to = Array.from({ length: 1001 }, (_, n) => `r${n}@example.org`).join(',')
  const { status, body } = await service.send({ to })
  assert.deepEqual([status, body.message], [400, 'Too many recipients, max is 1000'])
})

test('a newsletter sent with the public JavaScript client arrives as its product means it', async (t) => {
  const sink = await createSink()
  t.after(() => sink.close())
  const service = await startTestService(
    t,
    { SENDWRIGHT_DELIVERY: `smtp://127.0.0.1:${sink.port}` },
    {
      sending: {
        tracker: {
          trackingOf: async ({ tags }) => ({
            textsStay: false,
            variable: (name) => `mailto:${name}-${tags.join('+')}@track.example`,
            rewrite: async (parts) => parts,
            headers: () => [],
          }),
        },
      },
    },
  )
  const client = new Mailgun(FormData).client({ username: 'api', key: service.key, url: service.url })
  const sent = await client.messages.create(service.domain, {
    to: ['ann@example.org', 'ben@example.org'],
    from: `"Daily" <news@${service.domain}>`,
    'h:Reply-To': 'editor@example.com',
    subject: 'Issue 12',
    html: '<p>Hey %recipient.name%, <a href="%recipient.unsubscribe_url%">leave</a></p>',
    text: 'Hey %recipient.name%',
    'recipient-variables': JSON.stringify({
      'ann@example.org': {
        name: 'Ann',
        list_unsubscribe: 'https://blog.example/u?1',
        unsubscribe_url: 'https://blog.example/u?1',
      },
      'ben@example.org': {
        name: 'there',
        list_unsubscribe: 'https://blog.example/u?2',
        unsubscribe_url: 'https://blog.example/u?2',
      },
    }),
    'h:List-Unsubscribe': '<%recipient.list_unsubscribe%>, <%tag_unsubscribe_email%>',
    'h:List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
    'v:email-id': '64f0',
    'o:tag': ['bulk-email', 'blog'],
    'o:tracking-opens': true,
  })
  assert.equal(sent.status, 200)
  assert.match(String(sent.message), /^Queued/)
  const [ann] = (await sink.waitFor(2)).filter(({ envelope }) => envelope.to[0] === 'ann@example.org')
  const raw = ann?.raw.toString() ?? ''
  const mail = await simpleParser(raw)
  const field = (name: string) =>
    raw.match(new RegExp(`^${name}: (.*(?:\r\n[ \t].*)*)`, 'm'))?.[1]?.replace(/\r\n/g, '')
  assert.equal(
    field('List-Unsubscribe'),
    '<https://blog.example/u?1>, <mailto:tag_unsubscribe_email-bulk-email+blog@track.example>',
  )
  assert.equal(field('List-Unsubscribe-Post'), 'List-Unsubscribe=One-Click')
  assert.equal(mail.text?.trim(), 'Hey Ann')
  assert.match(String(mail.html), /Hey Ann, <a href="https:\/\/blog\.example\/u\?1">/)
  assert.equal(field('X-Service-Variables'), '{"email-id":"64f0"}')
  assert.deepEqual(raw.match(/^X-Service-Tag: \S+/gm), ['X-Service-Tag: bulk-email', 'X-Service-Tag: blog'])

  // Its product then reads what became of it, page by page.
  t.mock.method(console, 'warn', () => {}) // the client warns of every deprecated call
  const seconds = Math.floor(Date.now() / 1000)
  const begun = {
    begin: String(seconds - 3600),
    end: String(seconds + 60),
    ascending: 'yes' as const,
    event: 'delivered OR opened OR failed OR unsubscribed OR complained',
    tags: 'bulk-email AND blog',
    limit: 1,
  }
  const recipients = await eventually('both delivered', async () => {
    const found: { recipient: string; emailId: unknown }[] = []
    let page = await client.events.get(service.domain, begun)
    while (page.items.length > 0) {
      assert.equal(page.items.length, 1)
      for (const event of page.items) {
        assert.equal(event['event'], 'delivered')
        found.push({ recipient: String(event.recipient), emailId: event['user-variables']?.['email-id'] })
      }
      page = await client.events.get(service.domain, { page: page.pages.next.page })
    }
    return found.length === 2 && found
  })
  assert.deepEqual(
    recipients.toSorted((a, b) => a.recipient.localeCompare(b.recipient)),
    [
      { recipient: 'ann@example.org', emailId: '64f0' },
      { recipient: 'ben@example.org', emailId: '64f0' },
    ],
  )
  const others = await client.events.get(service.domain, { ...begun, tags: 'bulk-email AND other' })
  assert.deepEqual(others.items, [])
})

test('variables that make a copy larger than a message may be cost only its recipient the mail', async (t) => {
  const sink = await createSink()
  t.after(() => sink.close())
  const service = await startTestService(t, { SENDWRIGHT_DELIVERY: `smtp://127.0.0.1:${sink.port}` })
  // 10 GB, from a request of 1.4 MB.
  const large = 'x'.repeat(100_000)
  const form = {
    to: ['large@example.org', 'small@example.org'],
    text: '%recipient.a%'.repeat(100_000),
    'recipient-variables': JSON.stringify({
      'large@example.org': { a: large },
      'small@example.org': { a: 'y' },
    }),
  }
  assert.equal((await service.send(form)).status, 200)
  const [message] = await sink.waitFor(1)
  assert.deepEqual(message?.envelope.to, ['small@example.org'])
  const rejected = await eventually('the other fails', async () => {
    const events = await service.events()
    return events.find(({ event }) => event === 'rejected')
  })
  assert.deepEqual(rejected['reject'], { reason: 'Message is too large, max size is 25MB', description: '' })
  for (const field of ['subject', 'v:data']) {
    const { status, body } = await service.send({
      ...form,
      text: 'Hi.',
      [field]: form.text.slice(0, 13 * 70),
    })
    assert.deepEqual([status, body], [400, { message: 'Message is too large, max size is 25MB' }], field)
  }
})
