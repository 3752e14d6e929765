/** Whose fault a refusal is, in a reply to RCPT TO and in a report about the same reply: event, class and bounces table. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type ForeignReply, REPLIES, reportOf, spoken } from '../support/reports/replies.ts'
import { Returner, subjectOf } from '../support/reports/returning.ts'
import { eventually, ownAddress, startTestService, type TestService } from '../support/service.ts'
import { createSink } from '../support/smtp-sink.ts'

const TAKEN = '250 2.0.0 Received'

interface Case extends ForeignReply {
  kind: string
  refused: string
  returned: string
}

/** Domains of their own: a reply may slow down or stop mail to its domain. */
const CASES: readonly Case[] = Object.entries(REPLIES)
  .flatMap(([kind, list]) => list.map((one) => ({ kind, ...one })))
  .map((one, at) => ({ ...one, refused: `bob@refused${at}.example`, returned: `bob@returned${at}.example` }))

/** A service whose mail goes to the sink, and a client that returns mail to it. */
async function start(t: TestContext) {
  const sink = await createSink({ host: ownAddress() })
  const service = await startTestService(t, {
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_SMTP_PORT: '0',
    SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
  })
  const returner = await Returner.connect(service)
  t.after(async () => {
    returner.close()
    await sink.close()
  })
  return { sink, service, returner }
}

test('a fault of the sender, the host, the session, the content or the receiver never suppresses; a missing mailbox does, in a reply and in a report', async (t) => {
  const { sink, service, returner } = await start(t)
  for (const { refused, reply } of CASES) {
    sink.on(`RCPT TO:<${refused}>`, ({ connection }) => {
      const line = sink.commands.findLast(([of, text]) => of === connection && /^MAIL FROM:/i.test(text))?.[1]
      const returnPath = /<(.*)>/.exec(line ?? '')?.[1] ?? ''
      return spoken(reply, { recipient: refused, returnPath })
    })
  }
  const recipients = CASES.flatMap(({ refused, returned }) => [refused, returned])
  for (let at = 0; at < recipients.length; at += 500) {
    const to = recipients.slice(at, at + 500)
    const variables = JSON.stringify(Object.fromEntries(to.map((address) => [address, {}])))
    assert.equal((await service.send({ to, 'recipient-variables': variables })).status, 200)
  }
  const ended = await eventually('all are refused or delivered', async () => {
    const events = await allEvents(service, 'failed OR delivered')
    return events.length >= recipients.length && events
  })
  const subjects = new Map(sink.messages.map(subjectOf).map((subject) => [subject.recipient, subject]))
  for (const [at, { returned, reply }] of CASES.entries()) {
    const subject = subjects.get(returned)
    assert.ok(subject, returned)
    const status = ['5.1.1', '5.2.1', '5.0.0'][at % 3] as string
    assert.equal(
      await returner.give(subject.returnPath, reportOf(subject, spoken(reply, subject), status)),
      TAKEN,
    )
  }
  const failed = new Map(
    [...ended, ...(await allEvents(service, 'failed'))]
      .filter(({ event }) => event === 'failed')
      .map((event) => [event['recipient'], event]),
  )
  const { body: rules } = await service.call('GET', '/v1/bounce-classification/config/rules')
  const suppressed = new Set(await bouncesOf(service))
  const wrong: string[] = []
  for (const one of CASES) {
    for (const address of [one.refused, one.returned]) {
      const event = failed.get(address)
      const rule = String(event?.['i-classification-rule-id'])
      const category = rules[rule]?.class
      const type = (event?.['delivery-status'] as Record<string, unknown> | undefined)?.['bounce-type']
      const right =
        one.categories.includes(category) &&
        suppressed.has(address) === one.suppressed &&
        type === (one.suppressed ? 'hard' : 'soft') &&
        (address === one.returned || (event?.['reason'] === 'bounce') === one.suppressed)
      if (!right) wrong.push(`${one.kind}, ${address}: ${one.reply}: ${rule} ${suppressed.has(address)}`)
    }
  }
  assert.deepEqual(wrong, [])

  await t.test("the status of the event is the reply's own, not the reporter's guess", () => {
    const listed = CASES.find(({ reply }) => reply.includes('blacklisted by recipient'))
    const status = failed.get(listed?.returned)?.['delivery-status'] as Record<string, unknown>
    assert.equal(status['enhanced-code'], '5.7.1')
  })
})

async function allEvents(service: TestService, event: string): Promise<Record<string, unknown>[]> {
  const found: Record<string, unknown>[] = []
  let path = `/v3/${service.domain}/events?event=${encodeURIComponent(event)}&limit=300`
  for (;;) {
    const { body } = await service.call('GET', path)
    if (body.items.length === 0) return found
    found.push(...body.items)
    path = new URL(body.paging.next).pathname
  }
}

async function bouncesOf(service: TestService): Promise<string[]> {
  const { body } = await service.call('GET', `/v3/${service.domain}/bounces?limit=1000`)
  return body.items.map(({ address }: { address: string }) => address)
}

test("a word of the recipient's own filter, in reply to the content, suppresses in no way", async (t) => {
  const { sink, service, returner } = await start(t)
  const failedOf = (recipient: string) =>
    eventually(
      `${recipient} fails`,
      async () => (await service.events(`?event=failed&recipient=${recipient}`))[0],
    )
  await service.send({ to: 'returned@there.example' })
  await sink.waitFor(1)
  await eventually('it is delivered', async () => (await service.events('?event=delivered')).length === 1)
  const { returnPath } = subjectOf(sink.messages[0] as (typeof sink.messages)[number])
  const report = `From: MAILER-DAEMON@relay.example\r\nSubject: failure notice\r\n\r\n<returned@there.example>: host mx.there.example[192.0.2.1] said: 550 Unknown user returned@there.example (in reply to end of DATA command)\r\n`
  assert.equal(await returner.give(returnPath, report), TAKEN)
  await failedOf('returned@there.example')

  sink.on('DATA-DOT', '550 Unknown user')
  await service.send({ to: 'refused@there.example' })
  assert.equal((await failedOf('refused@there.example'))['reason'], 'generic')
  assert.deepEqual(await bouncesOf(service), [])

  sink.on('RCPT TO:<gone@there.example>', '550 Unknown user')
  await service.send({ to: 'gone@there.example' })
  assert.equal((await failedOf('gone@there.example'))['reason'], 'bounce')
  assert.deepEqual(await bouncesOf(service), ['gone@there.example'])
})
