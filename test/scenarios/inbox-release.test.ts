/** Captured mail that is released to real addresses, through a server that the operator names. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Clock } from '../../src/base/time/clock.ts'
import { addAccount } from '../support/accounts.ts'
import { createTestClock } from '../support/clock.ts'
import { FAULTS, type Fault, type Subject } from '../support/reports/mail.ts'
import { COMPLAINTS } from '../support/reports/other-mail.ts'
import { Returner, subjectOf } from '../support/reports/returning.ts'
import { STATUS_FORMATS } from '../support/reports/status-reports.ts'
import { eventually, startTestService, type TestService } from '../support/service.ts'
import { createSink, type SinkMessage, type SinkOptions } from '../support/smtp-sink.ts'

const INBOX = '/sendwright/v1/inbox'

async function startRig(
  t: TestContext,
  given: { options?: SinkOptions; login?: string; env?: Record<string, string>; clock?: Clock } = {},
) {
  const sink = await createSink(given.options)
  t.after(() => sink.close())
  const server = `smtp://${given.login ?? ''}${sink.host}:${sink.port}`
  const { clock } = given
  const env = { SENDWRIGHT_INBOX_RELEASE: server, ...given.env }
  const service = await startTestService(t, env, { ...(clock && { clock }) })
  return { sink, service }
}

async function captured(service: TestService, form: Record<string, string>): Promise<string> {
  assert.equal((await service.send(form)).status, 200)
  return eventually('it is captured', async () => {
    const { body } = await service.call(
      'GET',
      `${INBOX}?subject=${encodeURIComponent(form['subject'] ?? '')}`,
    )
    return body.items[0]?.id as string | undefined
  })
}

const release = (service: TestService, id: string, to: readonly string[], key = service.key) =>
  service.call('POST', `${INBOX}/${id}/release`, { json: { to }, key })

/** Fetched as it is: text would not keep every byte. */
async function rawOf(service: TestService, id: string): Promise<Buffer> {
  const authorization = `Basic ${Buffer.from(`api:${service.key}`).toString('base64')}`
  const answer = await fetch(`${service.url}${INBOX}/${id}/raw`, { headers: { authorization } })
  return Buffer.from(await answer.arrayBuffer())
}

test('captured mail is released byte for byte after its own Sid, each recipient once', async (t) => {
  const account = { user: 'relay', password: 'p@ss word' }
  const login = `relay:${encodeURIComponent(account.password)}@`
  const { sink, service } = await startRig(t, { options: { auth: account }, login })
  // Above 64 KB it is in a file, and read from there.
  const large = Array.from({ length: 8_000 }, (_, line) => `.${line} Größe, and a dot before it`).join('\r\n')
  for (const form of [
    { subject: 'Small', text: '.one\r\n..two\r\nGrüße', 'h:X-Own': 'Zürich' },
    { subject: 'Large', text: large, html: `<p>${large}</p>` },
  ]) {
    const id = await captured(service, form)
    const { status, body } = await release(service, id, [
      'Ann <ann@example.org>',
      'bob@example.net',
      'ann@example.org',
    ])
    assert.equal(status, 200, JSON.stringify(body))
    assert.equal(body.accepted, 2)
    assert.deepEqual(
      body.recipients.map(({ address, accepted }: { address: string; accepted: boolean }) => [
        address,
        accepted,
      ]),
      [
        ['ann@example.org', true],
        ['bob@example.net', true],
      ],
    )
    assert.match(body.recipients[0].reply, /^250 /)
    const mail = sink.messages.at(-1)
    assert.deepEqual(mail?.envelope.to, ['ann@example.org', 'bob@example.net'])
    const bodyOffset = mail.raw.indexOf('\r\n') + 2
    assert.match(mail.raw.toString('latin1', 0, bodyOffset), /^X-Service-Sid: [a-z2-7]{39}\r\n$/)
    const isSame = mail.raw.subarray(bodyOffset).equals(await rawOf(service, id))
    assert.ok(isSame, `${form.subject}: the bytes differ`)
    assert.equal(mail.auth, account.user)
  }
  assert.equal(sink.messages.length, 2)
  await sink.idle()
  const { items } = (await service.call('GET', '/sendwright/v1/audit')).body
  const [row] = items.filter(({ action }: { action: string }) => action === 'inbox.release')
  assert.equal(row.detail.made.accepted, 2)
  assert.doesNotMatch(JSON.stringify(row), /example\.org/)
})

test('what comes back about a released copy does not count for the captured delivery', async (t) => {
  const { sink, service } = await startRig(t, { env: { SENDWRIGHT_SMTP_PORT: '0' } })
  const recipient = 'customer@there.example'
  const id = await captured(service, { to: recipient, subject: 'Returned' })
  assert.equal((await release(service, id, [recipient])).status, 200)
  const copy = subjectOf(sink.messages[0] as SinkMessage)
  const { from } = (await service.call('GET', `${INBOX}/${id}`)).body.envelope
  assert.equal(copy.returnPath.split('@')[1], from.split('@')[1])

  const returner = await Returner.connect(service)
  t.after(() => returner.close())
  const bounce = (about: Subject) => STATUS_FORMATS['postfix']?.(about, FAULTS[0] as Fault) ?? ''
  // Some reports return the header without the return path.
  const returned = [bounce(copy), ...Object.values(COMPLAINTS).map((write) => write(copy))]
  for (const to of [copy.returnPath, `fbl@${service.domain}`])
    for (const raw of returned) assert.equal(await returner.give(to, raw), '250 2.0.0 Received')
  assert.deepEqual(await service.events('?event=failed OR complained'), [])
  const list = (kind: string) => service.call('GET', `/v3/${service.domain}/${kind}`)
  for (const kind of ['bounces', 'complaints']) assert.deepEqual((await list(kind)).body.items, [], kind)

  await returner.give(from, bounce({ ...copy, returnPath: from }))
  assert.equal(
    (await service.events('?event=failed')).length,
    1,
    'a bounce of the captured mail itself counts',
  )
})

test('what the server refuses is said in its words, for each recipient', async (t) => {
  const { sink, service } = await startRig(t)
  const id = await captured(service, { subject: 'Refused' })
  sink.on('RCPT TO:<gone@example.org>', '550 5.1.1 No such user here')
  const some = await release(service, id, ['gone@example.org', 'ann@example.org'])
  assert.equal(some.status, 409)
  assert.equal(some.body.message, 'gone@example.org: 550 5.1.1 No such user here; sent to ann@example.org')
  assert.equal(some.body.accepted, 1)
  assert.deepEqual(sink.messages[0]?.envelope.to, ['ann@example.org'])
  const none = await release(service, id, ['gone@example.org'])
  assert.deepEqual([none.status, none.body.accepted], [409, 0])
  sink.on('DATA-DOT', '554 5.7.1 Looks like spam')
  const content = await release(service, id, ['ann@example.org'])
  assert.deepEqual(
    [content.status, content.body.message],
    [409, 'ann@example.org: 554 5.7.1 Looks like spam'],
  )
  sink.on('MAIL', '451 4.3.0 Later')
  assert.equal((await release(service, id, ['ann@example.org'])).body.message, '451 4.3.0 Later')
  sink.clearRules()
  sink.dropAt('DATA-DOT')
  assert.match((await release(service, id, ['ann@example.org'])).body.message, /may have it all the same$/)
  await sink.close()
  const away = await release(service, id, ['ann@example.org'])
  assert.equal(away.status, 409)
  assert.match(away.body.message, /^SMTP connect: /)
})

test('without the setting nothing is released, and the answer names it', async (t) => {
  const service = await startTestService(t)
  const id = await captured(service, { subject: 'Stays' })
  const { status, body } = await release(service, id, ['ann@example.org'])
  assert.equal(status, 403)
  assert.match(body.message, /SENDWRIGHT_INBOX_RELEASE names no server/)
  assert.equal((await service.call('GET', '/sendwright/v1/system')).body.inbox_release, false)
})

test('only allowed recipients, only own mail, only addresses, at most ten', async (t) => {
  const { sink, service } = await startRig(t, {
    env: { SENDWRIGHT_INBOX_RELEASE_TO: 'ann@example.org,@example.net' },
  })
  const id = await captured(service, { subject: 'Limited' })
  for (const to of [
    ['eve@example.org'],
    ['ann@example.org', 'x@sub.example.net'],
    ['ann@example.org.evil.example'],
  ]) {
    const { status, body } = await release(service, id, to)
    assert.equal(status, 403, to.join())
    assert.match(body.message, /SENDWRIGHT_INBOX_RELEASE_TO does not contain /)
  }
  for (const to of [
    [],
    ['nobody'],
    ['a@example.net\r\nRCPT TO:<eve@example.org>'],
    ['a@example.net> SIZE=1'],
    ['a@example.net, eve@example.org'],
    Array.from({ length: 11 }, (_, at) => `a${at}@example.net`),
  ])
    assert.equal((await release(service, id, to)).status, 400, to.join())
  // The log of a key's calls keeps error texts.
  const { body } = await release(service, id, ['ann@example.net', 'John Doe'])
  assert.equal(body.message, 'Invalid parameter: to: item 2 is not an address')
  assert.equal((await release(service, 'none', ['ann@example.org'])).status, 404)
  const stranger = addAccount(service)
  assert.equal((await release(service, id, ['ann@example.org'], stranger.key)).status, 404)
  assert.equal(sink.connections.total, 0, 'no refused request reached the server')
  assert.equal((await release(service, id, ['ANN@Example.ORG', 'x@EXAMPLE.net'])).status, 200)
  assert.equal((await service.call('GET', '/sendwright/v1/system')).body.inbox_release, true)
})

test('releases of an account run one after the other; beyond two that wait they are refused', async (t) => {
  const { sink, service } = await startRig(t)
  const id = await captured(service, { subject: 'Busy' })
  const held = sink.hold('DATA-DOT')
  const first = release(service, id, ['a1@example.org'])
  await held.reached
  const others = [2, 3, 4].map((at) => release(service, id, [`a${at}@example.org`]))
  const refused = await Promise.race(others)
  assert.equal(refused.status, 503)
  assert.equal(sink.connections.total, 1)
  held.release()
  const statuses = (await Promise.all([first, ...others])).map(({ status }) => status)
  assert.deepEqual(statuses.sort(), [200, 200, 200, 503])
})

test('an account releases twenty a minute', async (t) => {
  // One more is allowed every three seconds.
  const clock = createTestClock()
  const { service } = await startRig(t, { env: { SENDWRIGHT_RATE_LIMIT: '100' }, clock })
  const statuses: number[] = []
  for (let at = 0; at < 21; at++) statuses.push((await release(service, 'none', ['a@example.org'])).status)
  assert.deepEqual(statuses, [...Array(20).fill(404), 429])
})
