/** Mail that waits, is moved, cancelled, dropped, sent again, archived and at last removed. */
// Both databases: a message is locked against its delivery.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { eachDatabase } from '../../../test/support/databases.ts'
import { eventually, startTestService, type TestService } from '../../../test/support/service.ts'
import { createSink } from '../../../test/support/smtp-sink.ts'
import { nextLocalTime } from '../accept/timing.ts'

const HOUR_MS = 3_600_000

function storagePath(event: Record<string, unknown> | undefined): string {
  const storage = event?.['storage'] as { url: string } | undefined
  return new URL(storage?.url ?? '').pathname
}
const START = Date.UTC(2026, 5, 1, 12)

async function relayed(
  t: Parameters<typeof startTestService>[0],
  database: 'sqlite' | 'postgres' = 'sqlite',
) {
  const sink = await createSink()
  t.after(() => sink.close())
  const clock = createTestClock(START)
  const service = await startTestService(
    t,
    { SENDWRIGHT_DELIVERY: `smtp://127.0.0.1:${sink.port}` },
    { clock, database },
  )
  return { sink, clock, service }
}

const scheduled = async (service: TestService, query = '') =>
  (await service.call('GET', `/sendwright/v1/scheduled${query}`)).body.items

eachDatabase((database) => {
  test('a scheduled message waits, shows, moves and goes out at its time', async (t) => {
    const { sink, clock, service } = await relayed(t, database)
    const at = new Date(START + 2 * HOUR_MS)
    const sent = await service.send({
      'o:deliverytime': at.toUTCString(),
      'o:tag': 'Later',
      to: ['a@example.org', 'b@example.org'],
    })
    const id = sent.body.id.slice(1, -1)
    const [item] = await scheduled(service, '?tag=later&recipient=a@example.org')
    assert.deepEqual([item.message_id, item.deliverytime, item.recipients], [id, '2026-06-01T14:00:00Z', 1])
    assert.deepEqual(await scheduled(service, '?tag=other'), [])
    const [accepted] = await service.events()
    const message = accepted?.['message'] as Record<string, unknown> | undefined
    assert.equal(message?.['scheduled-for'], (START + 2 * HOUR_MS) / 1000)
    const path = `/sendwright/v1/scheduled/${encodeURIComponent(id)}`
    assert.equal(
      (await service.call('PATCH', path, { json: { deliverytime: String((START + HOUR_MS) / 1000) } }))
        .status,
      200,
    )
    clock.leap(HOUR_MS - 2_000)
    await clock.advance(1_000)
    assert.equal(sink.messages.length, 0)
    await eventually('delivery at its time', async () => {
      await clock.advance(1000)
      return sink.messages.length === 2
    })
    assert.match(
      sink.messages[0]?.raw.toString() ?? '',
      /^X-Service-Deliver-By: Mon, 01 Jun 2026 14:00:00 \+0000\r$/m,
    )
    assert.equal((await service.call('PATCH', path, { json: { deliverytime: '1' } })).status, 404)
  })

  test('cancelling and dropping leave nothing behind to send', async (t) => {
    const { sink, clock, service } = await relayed(t, database)
    const later = { 'o:deliverytime': String(START / 1000 + 3600) }
    const cancelled = await service.send({ ...later, to: 'c@example.org' })
    await service.send({ ...later, to: 'd@example.org' })
    const path = `/sendwright/v1/scheduled/${encodeURIComponent(cancelled.body.id.slice(1, -1))}`
    assert.equal((await service.call('DELETE', path)).status, 200)
    assert.equal((await service.call('DELETE', path)).status, 404)
    const rejected = (await service.events()).filter((event) => event['event'] === 'rejected')
    assert.deepEqual(
      rejected.map((event) => event['reject']),
      [{ reason: 'cancelled', description: '' }],
    )
    const dropped = await service.call('DELETE', `/v3/${service.domain}/envelopes`)
    assert.deepEqual([dropped.status, dropped.body], [200, { message: 'done' }])
    assert.deepEqual((await service.call('DELETE', '/v3/unknown.example/envelopes')).body, {
      message: 'domain not found',
    })
    clock.leap(2 * HOUR_MS)
    await clock.advance(1_000)
    await service.send({ to: 'last@example.org' })
    await sink.waitFor(1)
    assert.deepEqual(
      sink.messages.map(({ envelope }) => envelope.to[0]),
      ['last@example.org'],
    )
  })
})

test('a delivery time beyond seven days, or beyond the message_ttl of the domain, is refused', async (t) => {
  const { service } = await relayed(t)
  const far = await service.send({ 'o:deliverytime': String(START / 1000 + 8 * 86_400) })
  assert.deepEqual(
    [far.status, far.body.message],
    [400, 'o:deliverytime is too far in the future, max is 168 hours'],
  )
})

test('values that cannot be used answer with the texts of the contract', async (t) => {
  const { service } = await relayed(t)
  const cases: [Record<string, string>, string][] = [
    [{ 'o:deliverytime': 'tomorrow' }, 'tomorrow is not an RFC-2822 compliant date'],
    [{ 'o:deliverytime-optimize-period': '12h' }, 'invalid delivery time format'],
    [{ 'o:time-zone-localize': '25:00' }, "25:00 invalid 24 hour time(value of 'o:time-zone-localize')"],
    [
      { 'o:time-zone-localize': '13:00PM' },
      "13:00PM is not a valid time to send (value of 'o:time-zone-localize')",
    ],
    [{ 'recipient-variables': '[]' }, "'recipient-variables' parameter is not a valid JSON"],
    [{ template: 'x', 't:variables': '1', text: '' }, "'t:variables' parameter is not a valid JSON"],
    [{ 'o:secondary-dkim': 'a.example/b' }, 'a.example/b is not a valid secondary dkim domain name'],
    [{ 'o:secondary-dkim': 'nonsense' }, 'nonsense is not a valid secondary dkim domain name'],
    [{ 'o:tracking': 'maybe' }, "'maybe' is not a valid value for o:tracking"],
    [{ 'o:tracking-opens': 'htmlonly' }, 'Invalid format for parameter o:tracking-opens: htmlonly'],
    [{ template: 'absent' }, "template 'absent' not found"],
    [
      { 'o:tag': 'x'.repeat(16_384) },
      'Send options (parameters starting with o:, h:, or v:) are limited to 16KB total',
    ],
    [{ 'h:Größe': 'x' }, 'Header name must be pure ASCII: Größe'],
  ]
  for (const [form, message] of cases) {
    const answer = await service.send(form)
    assert.deepEqual([answer.status, answer.body?.message], [400, message])
  }
  const mime = `/v3/${service.domain}/messages.mime`
  const mimeCases: [Record<string, string>, string][] = [
    [{ to: 'a@example.org' }, 'message parameter is missing'],
    [{ to: 'a@example.org', message: '' }, "'message' parameter is not a file"],
    [{ message: 'x' }, 'to parameter is missing'],
    [{ to: 'a@example.org', message: 'Subject: x\r\n\r\nb' }, 'cannot parse from address'],
    [
      {
        to: 'a@example.org',
        message: 'Content-Type: multipart/mailgun-variables; boundary=b\r\n\r\n--b\r\n\r\nx\r\n--b--',
      },
      'malformed multipart',
    ],
  ]
  for (const [form, message] of mimeCases) {
    const answer = await service.call('POST', mime, { form })
    assert.deepEqual([answer.status, answer.body?.message], [400, message])
  }
  const urlencoded = await service.call('POST', mime, {
    body: new URLSearchParams({ to: 'a@example.org', message: 'x' }),
  })
  assert.equal(
    urlencoded.body.message,
    "Invalid request content type. Expecting 'multipart/form-data' but got 'application/x-www-form-urlencoded'",
  )
})

test('a container of variables makes a batch of the message in it', async (t) => {
  const { sink, service } = await relayed(t)
  const variables = Buffer.from('{"alice@example.org":{"name":"Alice"}}').toString('base64')
  const message = [
    'X-Service-Tag: outer',
    'Content-Type: multipart/mailgun-variables; boundary="b1"',
    '',
    '--b1',
    'Content-Type: application/json',
    'Content-Transfer-Encoding: base64',
    '',
    variables,
    '--b1',
    'Content-Type: message/rfc822',
    '',
    `From: shop@${service.domain}`,
    'To: %recipient%',
    'Subject: Hello %recipient.name%',
    '',
    'Your news.',
    '--b1--',
    '',
  ].join('\r\n')
  const form = { to: 'Alice <alice@example.org>', message: new File([message], 'm') }
  assert.equal((await service.call('POST', `/v3/${service.domain}/messages.mime`, { form })).status, 200)
  const [got] = await sink.waitFor(1)
  const raw = got?.raw.toString() ?? ''
  assert.match(raw, /^To: Alice <alice@example\.org>\r\nSubject: Hello Alice\r$/m)
  assert.match(raw, /^X-Service-Tag: outer\r$/m)
  assert.ok(raw.endsWith('\r\n\r\nYour news.\r\n'), JSON.stringify(raw.slice(-60)))
})

test('a stored message is sent again as it was, to others', async (t) => {
  const { sink, service } = await relayed(t)
  const sent = await service.send({
    html: '<p>ä</p>',
    attachment: new File(['x'.repeat(300_000)], 'big.txt'),
    'o:tag': 'kept',
    'v:a': 'b',
  })
  await sink.waitFor(1)
  const [event] = await service.events()
  const path = storagePath(event)
  const again = await service.call('POST', path, {
    form: { to: 'x@example.net,y@example.net' },
  })
  assert.deepEqual([again.status, again.body.id], [200, sent.body.id])
  const messages = await sink.waitFor(3)
  const plain = (raw: Buffer) =>
    raw
      .toString()
      .replace(/^DKIM-Signature[\s\S]*?(?=^From)/m, '')
      .split('\r\n')
      .filter((line) => !/^X-Service-Sid|^Mime-Version|^Content-Type: multipart|boundary=/.test(line))
      .sort()
  assert.deepEqual(
    messages
      .slice(1)
      .map(({ envelope }) => envelope.to[0])
      .sort(),
    ['x@example.net', 'y@example.net'],
  )
  assert.deepEqual(plain(messages[1]?.raw as Buffer), plain(messages[0]?.raw as Buffer))
  const wrong = await service.call('POST', `/v3/domains/${service.domain}/messages/${path.slice(-21)}!`, {
    form: { to: 'a@b.c' },
  })
  assert.deepEqual([wrong.status, wrong.body.message], [400, 'Invalid storage key'])
})

test('a queue with too many messages is disabled for an hour', async (t) => {
  const sink = await createSink()
  t.after(() => sink.close())
  const clock = createTestClock(START)
  const env = { SENDWRIGHT_DELIVERY: `smtp://127.0.0.1:${sink.port}` }
  const service = await startTestService(t, env, { clock, sending: { queuedMax: 2 } })
  const later = { 'o:deliverytime': String(START / 1000 + 7200) }
  await service.send({ ...later, to: ['a@example.org', 'b@example.org', 'c@example.org'] })
  const refused = await service.send({})
  const text = `Domain ${service.domain} is not allowed to send: You have too many messages in queue, try again after 3600 seconds`
  assert.deepEqual([refused.status, refused.body.message], [429, text])
  const { body } = await service.call('GET', `/v3/domains/${service.domain}/sending_queues`)
  assert.deepEqual(body, {
    regular: { is_disabled: false, disabled: { until: '', reason: '' } },
    scheduled: {
      is_disabled: true,
      disabled: { until: 'Mon, 01 Jun 2026 13:00:00 GMT', reason: 'You have too many messages in queue' },
    },
  })
  await service.call('DELETE', `/v3/${service.domain}/envelopes`)
  assert.equal((await service.send({})).status, 200)
})

test('a post to a list reaches its members, each with values of their own', async (t) => {
  const { sink, service } = await relayed(t)
  const list = `devs@${service.domain}`
  await service.call('POST', '/v3/lists', { form: { address: list } })
  const members = JSON.stringify([
    { address: 'm1@example.org', name: 'Mia One', vars: { n: 1 } },
    { address: 'm2@example.org', vars: { n: 2 } },
  ])
  await service.call('POST', `/v3/lists/${list}/members.json`, { form: { members } })
  const sent = await service.send({ to: list, subject: 'For %recipient_fname% %recipient.n%' })
  assert.equal(sent.status, 200)
  const messages = await sink.waitFor(2)
  const raw = messages.find(({ envelope }) => envelope.to[0] === 'm1@example.org')?.raw.toString() ?? ''
  assert.match(raw, /^Subject: For Mia 1\r$/m)
  assert.match(raw, new RegExp(`^To: ${list}\r$`, 'm'))
  assert.match(raw, /^List-Id: <devs\./m)
  const accepted = (await service.events())
    .filter((event) => event['event'] === 'accepted')
    .map((event) => event['recipient'])
  assert.deepEqual(accepted.sort(), [list, 'm1@example.org', 'm2@example.org'].sort())
})

test('a stored template is rendered for each recipient', async (t) => {
  const { sink, service } = await relayed(t)
  const form = {
    name: 'welcome',
    template: '<p>Hi {{name}} {{order.id}}</p>',
    headers: '{"Subject":"Order {{order.id}}"}',
  }
  assert.equal((await service.call('POST', `/v3/${service.domain}/templates`, { form })).status, 200)
  const message = {
    to: ['a@example.org', 'b@example.org'],
    from: `s@${service.domain}`,
    template: 'Welcome',
    't:text': 'yes',
    'v:name': '%recipient.name%',
    't:variables': '{"order":{"id":7}}',
    'recipient-variables': '{"a@example.org":{"name":"A&B"},"b@example.org":{"name":"Ben"}}',
  }
  const sent = await service.call('POST', `/v3/${service.domain}/messages`, { form: message })
  assert.equal(sent.status, 200, sent.text)
  const raws = (await sink.waitFor(2)).map(({ raw }) => raw.toString()).sort()
  assert.ok(raws.every((raw) => /^Subject: Order 7\r$/m.test(raw)))
  assert.ok(
    raws.some((raw) => raw.includes('<p>Hi A&amp;B 7</p>')) && raws.some((raw) => raw.includes('Hi Ben 7')),
  )
  const [accepted] = (await service.events()).filter((event) => event['event'] === 'accepted')
  const stored = await service.call('GET', storagePath(accepted))
  assert.equal(stored.body.Subject, 'Order 7')
  assert.match(stored.body['body-html'], /Hi (A&amp;B|Ben) 7/)
})

test('the next local time is the first at or after the start, over changes of clocks too', () => {
  const at = (text: string) => Date.parse(text)
  const table: [start: string, minute: number, zone: string, next: string][] = [
    ['2026-06-01T12:00:00Z', 16 * 60, 'Europe/Berlin', '2026-06-01T14:00:00Z'],
    ['2026-06-01T14:00:00Z', 16 * 60, 'Europe/Berlin', '2026-06-01T14:00:00Z'],
    ['2026-06-01T14:00:01Z', 16 * 60, 'Europe/Berlin', '2026-06-02T14:00:00Z'],
    ['2026-10-24T20:00:00Z', 16 * 60, 'Europe/Berlin', '2026-10-25T15:00:00Z'],
    ['2026-03-28T20:00:00Z', 16 * 60, 'Europe/Berlin', '2026-03-29T14:00:00Z'],
    ['2026-06-01T12:00:00Z', 0, 'Pacific/Auckland', '2026-06-01T12:00:00Z'],
    ['2026-06-01T12:00:00Z', 60, 'No/Where', '2026-06-01T12:00:00Z'],
  ]
  for (const [start, minute, zone, next] of table) {
    assert.equal(
      new Date(nextLocalTime(at(start), minute, zone)).toISOString(),
      new Date(at(next)).toISOString(),
      `${start} ${zone}`,
    )
  }
})

test('stored messages go once their time is over, and never before the last recipient is done', async (t) => {
  const { sink, clock, service } = await relayed(t)
  await service.send({ to: 'done@example.org', attachment: new File(['y'.repeat(300_000)], 'a.bin') })
  await sink.waitFor(1)
  await eventually('delivered', async () =>
    (await service.events()).some((event) => event['event'] === 'delivered'),
  )
  const [event] = await service.events()
  const path = storagePath(event)
  await service.send({ to: 'waiting@example.org', 'o:deliverytime': String(START / 1000 + 6 * 86_400) })
  clock.leap(4 * 86_400_000)
  await eventually('removed', async () => {
    clock.leap(600_000)
    await clock.advance(1)
    return (await service.call('GET', path)).status === 404
  })
  assert.equal((await scheduled(service)).length, 1)
})
