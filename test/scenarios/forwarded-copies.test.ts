/** How many copies routes make of one mail, whatever they forward it to: the sink stands for the servers in between. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { eachDatabase } from '../support/databases.ts'
import { ownAddress, startTestService, type TestService } from '../support/service.ts'
import { Dialogue } from '../support/smtp-dialogue.ts'
import { createSink, type Sink, type SinkMessage } from '../support/smtp-sink.ts'

interface Rig {
  service: TestService
  sink: Sink
  /** The reply to a mail. */
  give(content: string, to: string): Promise<string>
  route(expression: string, action: string): Promise<void>
  /** Gives every copy back to the service, and what follows from that, until nothing comes any more. */
  returnAll(): Promise<SinkMessage[]>
}

async function start(t: TestContext, database: 'sqlite' | 'postgres' = 'sqlite'): Promise<Rig> {
  const sink = await createSink({ host: ownAddress() })
  const service = await startTestService(
    t,
    {
      SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
      SENDWRIGHT_SMTP_PORT: '0',
      SENDWRIGHT_SANDBOX_RECIPIENTS: '*',
      SENDWRIGHT_DNS: '127.0.0.1:9',
    },
    { database },
  )
  t.after(() => sink.close())
  async function give(content: string, to: string): Promise<string> {
    const client = await Dialogue.open({ host: service.config.smtpHost, port: service.service.smtp.port })
    await client.reply()
    await client.say('EHLO client.example')
    await client.say('MAIL FROM:<stranger@example.org>')
    assert.equal(await client.say(`RCPT TO:<${to}>`), '250 2.1.5 OK')
    await client.say('DATA')
    client.write(`${content}\r\n.\r\n`)
    const reply = await client.reply()
    client.destroy()
    return reply ?? ''
  }
  return {
    ...{ service, sink, give },
    async route(expression, action) {
      const answer = await service.call('POST', '/v3/routes', { form: { expression, action } })
      assert.equal(answer.status, 200, answer.text)
    },
    async returnAll() {
      for (let at = 0; ; at++) {
        await isIdle(service)
        const message = sink.messages[at]
        if (!message) return sink.messages
        const content = message.raw.toString('latin1').replace(/\r\n$/, '')
        assert.equal(await give(content, message.envelope.to[0] as string), TAKEN)
      }
    },
  }
}

/** Nothing waits or is under way. */
async function isIdle(service: TestService): Promise<void> {
  for (;;) {
    const { queue } = (await service.call('GET', '/sendwright/v1/system')).body
    if (queue.queued + queue.sending + queue.scheduled === 0) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

const TAKEN = '250 2.0.0 Received'
const ROUTES = 6
const mail = (fields: string) => `From: a@example.org\r\nSubject: s\r\n${fields}\r\nHello`

for (const [what, fields] of [
  ['with a Message-Id', 'Message-Id: <one@example.org>\r\n'],
  ['without one', ''],
] as const) {
  test(`routes that forward to each other's addresses: a mail ${what} comes to each address once`, async (t) => {
    const { service, route, give, returnAll } = await start(t)
    const addresses = Array.from({ length: ROUTES }, (_, at) => `r${at}@${service.domain}`)
    for (const [at, address] of addresses.entries()) {
      const others = addresses.filter((other) => other !== address)
      await route(`match_recipient("r${at}@")`, `forward("${others.join(', ')}")`)
    }
    assert.equal(await give(mail(fields), addresses[0] as string), TAKEN)
    const copies = await returnAll()
    // Not one for each order in which the routes can follow each other, which are 325.
    assert.deepEqual(copies.map(({ envelope }) => envelope.to[0]).sort(), [...addresses].sort())
  })
}

eachDatabase((database) => {
  test('one person behind two addresses gets a mail once, and the next mail too', async (t) => {
    const { service, sink, route, give } = await start(t, database)
    await route('match_recipient("(?:sales|info)@")', 'forward("boss@example.net")')
    const first = mail('Message-Id: <1@example.org>\r\n')
    const all = ['sales', 'info', 'sales'].map((local) => give(first, `${local}@${service.domain}`))
    assert.deepEqual(await Promise.all(all), [TAKEN, TAKEN, TAKEN])
    // The same id, for another mail.
    assert.equal(await give(first.replace('Subject: s', 'Subject: other'), `sales@${service.domain}`), TAKEN)
    await isIdle(service)
    assert.deepEqual(sink.messages.map(({ raw }) => /^Subject: (.*)\r$/m.exec(raw.toString())?.[1]).sort(), [
      'other',
      's',
    ])
  })
})

test('forwarded copies count for the message limit of the account', async (t) => {
  const { service, sink, route, give } = await start(t)
  await route('catch_all()', 'forward("a@example.net, b@example.net")')
  const form = { limit: '1000' }
  assert.equal((await service.call('PUT', '/v5/accounts/limit/custom/monthly', { form })).status, 200)
  const others = Array.from({ length: 996 }, (_, n) => `u${n}@example.net`)
  const sent = await service.send({ from: `a@${service.domain}`, to: others, subject: 's', text: 't' })
  assert.equal(sent.status, 200, sent.text)
  const to = `x@${service.domain}`
  const replies: string[] = []
  for (let id = 1; id <= 3; id++) replies.push(await give(mail(`Message-Id: <${id}@example.org>\r\n`), to))
  assert.deepEqual(replies, [
    TAKEN,
    TAKEN,
    '451 4.7.1 The message limit of the account is reached, try again later',
  ])
  await isIdle(service)
  assert.equal(sink.messages.length, 1_000)
})
