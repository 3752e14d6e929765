/** Fields of bulk mail that ask receivers for complaints, and a complaint that comes back by them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { splitMessage } from '../../src/protocols/mime/split.ts'
import { Returner } from '../support/reports/returning.ts'
import { eventually, ownAddress, startTestService } from '../support/service.ts'
import { createSink, type SinkMessage } from '../support/smtp-sink.ts'

const NAMES = ['cfbl-address', 'cfbl-feedback-id', 'feedback-id'] as const

function fieldsOf({ raw }: SinkMessage) {
  const headers = new Map<string, string>()
  for (const { name, value } of splitMessage(Buffer.from(raw)).headers)
    headers.set(name.toLowerCase(), value.trim())
  const signed =
    /\bh=([^;]+)/
      .exec(headers.get('dkim-signature') ?? '')?.[1]
      ?.replace(/\s/g, '')
      .split(':') ?? []
  return {
    values: NAMES.map((name) => headers.get(name)),
    headers,
    signed: NAMES.filter((name) => signed.includes(name)),
  }
}

test('bulk mail of a domain that wants it has signed fields for complaints, and one comes back by them', async (t) => {
  const sink = await createSink({ host: ownAddress() })
  t.after(() => sink.close())
  const service = await startTestService(t, {
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_SMTP_PORT: '0',
    SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
  })
  const { domain } = service
  let sent = 0
  async function send(form: Record<string, string | string[]>, recipients: readonly string[]) {
    const variables = Object.fromEntries(recipients.map((to) => [to, {}]))
    const { status, text } = await service.call('POST', `/v3/${domain}/messages`, {
      form: {
        ...{ from: `Shop <news@${domain}>`, to: [...recipients], subject: 'News', text: 'Hello' },
        'recipient-variables': JSON.stringify(variables),
        ...form,
      },
    })
    assert.equal(status, 200, text)
    sent += recipients.length
    await eventually('the copies', async () => sink.messages.length === sent)
    return sink.messages.slice(-recipients.length).map(fieldsOf)
  }
  const two = ['ann@example.org', 'bob@example.org']

  for (const { values } of await send({}, two)) assert.deepEqual(values, [undefined, undefined, undefined])
  const changed = await service.call('PUT', `/v4/domains/${domain}`, {
    form: { cfbl_address: 'true', feedback_id: 'true' },
  })
  assert.deepEqual(
    [changed.status, changed.body.domain.cfbl_address, changed.body.domain.feedback_id],
    [200, true, true],
  )

  const copies = await send({ 'o:tag': ['Spring Sale: 2026', 'other'] }, two)
  for (const { values, signed } of copies) {
    const [address, id, feedbackId] = values
    assert.equal(address, `fbl@${domain}; report=arf`)
    assert.match(id ?? '', /^[a-z2-7]{39}$/)
    assert.match(feedbackId ?? '', /^spring-sale-2026:[^:\s]+:batch:[0-9a-z]{5,15}$/)
    assert.deepEqual(signed, [...NAMES])
  }
  assert.notEqual(copies[0]?.values[1], copies[1]?.values[1])
  assert.equal(copies[0]?.values[2], copies[1]?.values[2])

  // One recipient is no bulk mail; what the sender wrote stays; a signature is needed; so is a From of the domain.
  for (const { values } of await send({}, ['joe@example.org']))
    assert.deepEqual(values, [undefined, undefined, undefined])
  const own = { 'h:Feedback-ID': 'a:b:c:mine1', 'h:CFBL-Address': `abuse@${domain}` }
  for (const { values, signed } of await send(own, two)) {
    assert.deepEqual(values, [`abuse@${domain}`, undefined, 'a:b:c:mine1'])
    assert.deepEqual(signed, ['cfbl-address', 'feedback-id'])
  }
  for (const { values } of await send({ 'o:dkim': 'no' }, two))
    assert.deepEqual(values, [undefined, undefined, undefined])
  for (const { values } of await send({ from: 'a@elsewhere.example' }, two))
    assert.deepEqual(values.slice(0, 2), [undefined, undefined])

  // A report that returns Message-Id and CFBL-Feedback-ID alone (RFC 9477 §3.5.1).
  const { headers } = copies[1] as (typeof copies)[number]
  const returner = await Returner.connect(service)
  t.after(() => returner.close())
  const report = `From: fbl@receiver.example
Subject: complaint
MIME-Version: 1.0
Content-Type: multipart/report; report-type=feedback-report; boundary=b

--b
Content-Type: text/plain

A complaint.
--b
Content-Type: message/feedback-report

Feedback-Type: abuse
User-Agent: receiver/1
Version: 1

--b
Content-Type: text/rfc822-headers

Message-ID: ${headers.get('message-id')}
CFBL-Feedback-ID: ${headers.get('cfbl-feedback-id')}

--b--
`
  assert.match(await returner.give(`fbl@${domain}`, report, 'fbl@receiver.example'), /^250/)
  const events = await eventually('the complaint', async () => {
    const found = await service.events('?event=complained', domain)
    return found.length > 0 ? found : null
  })
  assert.deepEqual(
    events.map(({ recipient }) => recipient),
    [(headers.get('to') ?? '').replace(/[<>]/g, '')],
  )
})
