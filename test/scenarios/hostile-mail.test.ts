/** Mail that is made to harm: what it is answered with, that nothing follows from it, and that the service goes on. */
import assert from 'node:assert/strict'
import { isUtf8 } from 'node:buffer'
import { type TestContext, test } from 'node:test'
import { createDnsServer } from '../support/dns-server.ts'
import { createReceiver, type Receiver } from '../support/http-receiver.ts'
import { postedForm } from '../support/posted-form.ts'
import { eventually, ownAddress, startTestService, type TestService } from '../support/service.ts'
import { Dialogue } from '../support/smtp-dialogue.ts'
import { createSink, type Sink } from '../support/smtp-sink.ts'

// biome-ignore lint/suspicious/noExplicitAny: a test reaches into events freely and asserts on what it finds
type Json = any

interface Rig {
  service: TestService
  sink: Sink
  receiver: Receiver
  /** A client within the transaction, before its content. */
  open(to?: string, from?: string): Promise<Dialogue>
  /** The reply to a whole mail, given with a character for each byte. */
  give(content: string, to?: string, from?: string): Promise<string | null>
  route(expression: string, action: string): Promise<{ status: number; body: Json }>
  events(event: string): Promise<Json[]>
}

async function start(t: TestContext, env: Record<string, string> = {}): Promise<Rig> {
  const sink = await createSink({ host: ownAddress() })
  const receiver = await createReceiver({ host: ownAddress() })
  const service = await startTestService(t, {
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_SMTP_PORT: '0',
    SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
    SENDWRIGHT_SANDBOX_RECIPIENTS: '*',
    SENDWRIGHT_DNS: '127.0.0.1:9',
    ...env,
  })
  const clients: Dialogue[] = []
  t.after(async () => {
    for (const client of clients) client.destroy()
    await Promise.all([sink.close(), receiver.close()])
  })
  const open: Rig['open'] = async (to = 'in', from = 'stranger@example.org') => {
    const client = await Dialogue.open({ host: service.config.smtpHost, port: service.service.smtp.port })
    clients.push(client)
    await client.reply()
    await client.say('EHLO client.example')
    await client.say(`MAIL FROM:<${from}>`)
    assert.equal(await client.say(`RCPT TO:<${to}@${service.domain}>`), '250 2.1.5 OK')
    assert.match((await client.say('DATA')) ?? '', /^354/)
    return client
  }
  return {
    ...{ service, sink, receiver, open },
    async give(content, to, from) {
      const client = await open(to, from)
      client.write(Buffer.from(`${content}\r\n.\r\n`, 'latin1'))
      const reply = await client.reply()
      client.destroy()
      return reply
    },
    route: (expression, action) => service.call('POST', '/v3/routes', { form: { expression, action } }),
    events: async (event) => service.events(`?event=${event}`) as Promise<Json[]>,
  }
}

const TAKEN = '250 2.0.0 Received'
const PLAIN = 'From: a@example.org\r\nSubject: plain\r\n\r\nHello'

const BARE_ENDS = ['\n.\n', '\n.\r\n', '\r\n.\n', '\r.\r', '\r.\r\n', '\r\n.\r', '\r\n.\r\r\n', '\r\n.\r\0\n']

test('no line end but CRLF ends a mail: nothing is smuggled behind it', async (t) => {
  const { service, open, give, route, events } = await start(t)
  await route('catch_all()', 'store()')
  const { domain } = service
  const smuggled = `MAIL FROM:<evil@example.com>\r\nRCPT TO:<victim@${domain}>\r\nDATA\r\nSubject: smuggled\r\n\r\n.\r\n`
  for (const end of BARE_ENDS) {
    const client = await open()
    client.write(`Subject: first\r\n\r\nx${end}${smuggled}`)
    assert.deepEqual(await client.rest(), ['554 5.6.0 Line ends must be CRLF'], JSON.stringify(end))
  }
  // A dot that was doubled in transport is content.
  assert.equal(await give('Subject: dots\r\n\r\n..\r\n..MAIL FROM:<evil@example.com>'), TAKEN)
  const stored = await events('stored')
  assert.deepEqual(
    stored.map(({ message }) => message.headers.subject),
    ['dots'],
  )
})

const nested = (depth: number) => {
  const level = (at: number) => `Content-Type: multipart/mixed; boundary=b${at}\r\n\r\n--b${at}\r\n`
  return `From: a@example.org\r\n${Array.from({ length: depth }, (_, at) => level(at)).join('')}\r\nx`
}
const wide = (parts: number) =>
  `From: a@example.org\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n${'--b\r\nContent-Disposition: attachment\r\n\r\nx\r\n'.repeat(parts)}--b--`
const encapsulated = (depth: number) =>
  `From: a@example.org\r\n${'Content-Type: message/rfc822\r\n\r\n'.repeat(depth)}Subject: inside\r\n\r\nx`

test('mail of too many parts, levels or fields is refused; within the bounds it is posted', async (t) => {
  const { receiver, give, route, events } = await start(t)
  await route('catch_all()', `forward("${receiver.url}/in")`)
  const refused: Record<string, string> = {
    'levels of multiparts': nested(1_000),
    parts: wide(1_001),
    fields: `${'X-A: b\r\n'.repeat(1_001)}\r\nx`,
    'a header of 1 MB': `Subject: ${`${'x'.repeat(900)}\r\n `.repeat(1_200)}\r\n\r\nx`,
    'a header without an end': 'X-A: b\r\n'.repeat(150_000),
  }
  for (const [what, content] of Object.entries(refused))
    assert.match((await give(content)) ?? '', /^554 /, what)
  assert.equal(await give(wide(1_000)), TAKEN)
  // A mail within a mail is an attachment, however deep.
  assert.equal(await give(encapsulated(1_000)), TAKEN)
  await eventually('both posts', async () => receiver.posts.length === 2)
  const forms = await Promise.all(receiver.posts.map(postedForm))
  assert.deepEqual(forms.map((form) => form.text('attachment-count')).sort(), ['1', '1000'])
  assert.equal((await events('accepted')).length, 2)
})

test('hostile mail of 8-bit content is posted in the raw form too, as UTF-8 where that is possible', async (t) => {
  const { receiver, give, route } = await start(t)
  await route('catch_all()', `forward("${receiver.url}/mime")`)
  const latin = (mail: string) => mail.replaceAll(/\r\n\r\nx(?=\r\n|$)/g, '\r\n\r\n\xe4')
  // Content within too many messages cannot be encoded, and stays.
  const mails = {
    parts: latin(wide(1_000)),
    shallow: latin(encapsulated(5)),
    deep: latin(encapsulated(1_000)),
  }
  for (const [local, mail] of Object.entries(mails)) assert.equal(await give(mail, local), TAKEN, local)
  await eventually('all posts', async () => receiver.posts.length === 3)
  for (const { raw } of receiver.posts) {
    const recipient = /name="recipient"\r\n\r\n(\w+)@/.exec(raw.toString('latin1'))?.[1]
    assert.equal(isUtf8(raw), recipient !== 'deep', recipient)
    if (recipient === 'parts') assert.equal(raw.toString().match(/\r\n=E4\r\n/g)?.length, 1_000)
  }
})

test('patterns that would explode elsewhere are matched or given up, and other routes go on', async (t) => {
  const { give, route, events } = await start(t)
  const patterns = ['(a+)+$', '(a|aa)+$', '(a*)*b', '(.*a){12}x', '(?:a?){30}a{30}x', '([a-z]+)*=']
  for (const pattern of patterns)
    assert.equal((await route(`match_header("subject", "${pattern}")`, 'store()')).status, 200, pattern)
  assert.equal((await route('match_recipient("in@")', 'store()')).status, 200)
  const line = `${'a'.repeat(900)}\r\n `
  assert.equal(await give(`From: a@example.org\r\nSubject: ${line.repeat(60)}!\r\n\r\nx`), TAKEN)
  const [accepted] = await events('accepted')
  assert.equal(accepted.routes.at(-1).expression, 'match_recipient("in@")')
})

test('two routes that forward to each other end, and so does a mail that came through here too often', async (t) => {
  const { service, sink, give, route, events } = await start(t)
  const { domain } = service
  await route('match_recipient("one@")', `forward("two@${domain}")`)
  await route('match_recipient("two@")', `forward("one@${domain}")`)
  assert.equal(await give(PLAIN, 'one'), TAKEN)
  // What is forwarded comes back, as another server would bring it.
  for (let hop = 1; hop <= 2; hop++) {
    await sink.waitFor(hop)
    const { raw, envelope } = sink.messages[hop - 1] as Sink['messages'][number]
    const [local = ''] = envelope.to[0]?.split('@') ?? []
    assert.equal(await give(raw.toString('latin1').replace(/\r\n$/, ''), local, envelope.from), TAKEN)
  }
  const loops = () => events('failed')
  const [loop] = await eventually('the end of the loop', async () => {
    const found = await loops()
    return found.length > 0 && found
  })
  assert.deepEqual([loop.reason, loop.severity, loop.recipient], ['loop', 'permanent', `two@${domain}`])
  const trace = `Received: from a by ${service.config.hostname} with ESMTP id 1; Mon, 1 Jun 2026 10:00:00 +0000\r\n`
  assert.equal(await give(trace.repeat(21) + PLAIN, 'one'), TAKEN)
  await eventually('a second loop', async () => (await loops()).length === 2)
  assert.equal(sink.messages.length, 2)
})

test('fields of the service that a sender has forged are not passed on', async (t) => {
  const { service, receiver, give, route } = await start(t)
  await service.call('PUT', `/v4/domains/${service.domain}`, { form: { spam_action: 'tag' } })
  await route('catch_all()', `forward("${receiver.url}/in")`)
  const forged = [
    'X-Service-Incoming: forged',
    'x-service-SPF: forged',
    'X-Service-Spf : forged',
    'X-Service-Dkim-Check-Result:\r\n forged',
    'X-Service-Sflag: forged',
    'X-Mailgun-Sflag: forged',
    'x-mailgun-sscore : forged',
    'X-Mailgun-Spf: forged',
    'X-Mailgun-Incoming: forged',
    'X-Envelope-From: <forged@example.org>',
    'Authentication-Results: mail.test.example; dmarc=pass (forged)',
    'Authentication-Results: (comment) "MAIL.test.example" 1; dmarc=pass (forged)',
    'recipient: forged',
    'signature: forged',
    'timestamp: forged',
  ]
  assert.equal(await give(`${forged.join('\r\n')}\r\n${PLAIN}`), TAKEN)
  const post = await eventually('the post', async () => receiver.posts[0])
  const form = await postedForm(post)
  const own = form.fields.filter(([name]) =>
    /^(?:x-service-|x-mailgun-|x-envelope|authentication-results)/i.test(name),
  )
  assert.doesNotMatch(JSON.stringify(own), /forged/)
  // The service's own fields come last, so that they win over fields of the mail.
  for (const name of ['signature', 'timestamp']) assert.doesNotMatch(form.text(name) ?? '', /forged/)
})

test('routes reach no address that is not public', async (t) => {
  const dns = await createDnsServer()
  t.after(() => dns.close())
  const env = { SENDWRIGHT_ALLOW_NETWORKS: '', SENDWRIGHT_DNS: `${dns.host}:${dns.port}` }
  const { receiver, give, route, events } = await start(t, env)
  const hosts = [
    '127.0.0.1',
    '169.254.169.254',
    '10.0.0.1',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '2130706433',
    '0x7f.1',
    'localhost',
  ]
  for (const host of hosts)
    assert.equal((await route('catch_all()', `forward("http://${host}/in")`)).status, 400, host)
  dns.set('inside.example', 'A', [receiver.host])
  assert.equal((await route('catch_all()', 'forward("http://inside.example/in")')).status, 400)
  // A name that is public when the route is made, and inside when it is used.
  dns.set('later.example', 'A', ['93.184.216.34'], 0)
  assert.equal(
    (await route('catch_all()', `forward("http://later.example:${receiver.port}/in")`)).status,
    200,
  )
  dns.set('later.example', 'A', [receiver.host])
  assert.equal(await give(PLAIN), TAKEN)
  const [failed] = await eventually('the failure', async () => {
    const found = await events('failed')
    return found.length > 0 && found
  })
  assert.match(JSON.stringify(failed['delivery-status']), /not allowed/)
  assert.deepEqual([receiver.posts.length, receiver.connections.total], [0, 0])
})

test('strangers get no bounce, whatever becomes of their mail', async (t) => {
  const { service, sink, give, route, events } = await start(t)
  await route('match_recipient("in@")', 'forward("gone@example.net")')
  sink.on('RCPT TO:<gone@example.net>', '550 5.1.1 no such user')
  assert.equal(await give(PLAIN), TAKEN)
  assert.equal(await give('From: a@example.org\r\n\r\nno report', 'dmarc-reports'), TAKEN)
  await eventually('the failure', async () => (await events('failed')).length === 1)
  await eventually('an empty queue', async () => {
    const { queue } = (await service.call('GET', '/sendwright/v1/system')).body
    return queue.queued + queue.sending + queue.scheduled === 0
  })
  assert.deepEqual(
    sink.commands.filter(([, line]) => /^RCPT/i.test(line)).map(([, line]) => line.toLowerCase()),
    ['rcpt to:<gone@example.net>'],
  )
  assert.equal(sink.messages.length, 0)
})
