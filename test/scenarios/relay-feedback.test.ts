/** Mail through relays that do not keep the return path, and its bounces by way of their mailbox (relays.md section 1). */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { FAULTS } from '../support/reports/mail.ts'
import { Returner, subjectOf } from '../support/reports/returning.ts'
import { STATUS_FORMATS } from '../support/reports/status-reports.ts'
import { ownAddress, startTestService, type TestService } from '../support/service.ts'
import { createSink, type Sink } from '../support/smtp-sink.ts'

const MAILBOX = 'news@tenant.example'

async function start(t: TestContext, relay: object): Promise<{ service: TestService; sink: Sink }> {
  const sink = await createSink({ host: ownAddress() })
  t.after(() => sink.close())
  const service = await startTestService(t, {
    ...{ SENDWRIGHT_DELIVERY: 'direct', SENDWRIGHT_SANDBOX_RECIPIENTS: '*', SENDWRIGHT_SMTP_PORT: '0' },
    SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
  })
  const call = async (method: string, path: string, json: object) => {
    const answer = await service.call(method, `/sendwright/v1/${path}`, { json })
    assert.equal(answer.status, 200, answer.text)
  }
  await call('POST', 'relays', { name: 'provider', host: sink.host, port: sink.port, tls: 'none', ...relay })
  await call('PUT', 'relay-rules', { items: [{ match: {}, levels: [[{ relay: 'provider' }]] }] })
  return { service, sink }
}

const sidsIn = (header: string) =>
  [...header.matchAll(/^X-[\w-]*Sid: ([a-z2-7]{39})\r?$/gim)].map(([, sid]) => sid)

/** What the relay gets of two messages, the second with all fields of the service suppressed. */
async function received({ service, sink }: { service: TestService; sink: Sink }) {
  assert.equal((await service.send({ to: 'open@there.example' })).status, 200)
  await sink.waitFor(1)
  assert.equal((await service.send({ to: 'bare@there.example', 'o:suppress-headers': 'all' })).status, 200)
  await sink.waitFor(2)
  return sink.messages.map(subjectOf)
}

test('a relay that keeps the return path gets mail as it is', async (t) => {
  const [open, bare] = await received(await start(t, {}))
  const token = /^bounce\+([a-z2-7]{39})@/.exec(open?.returnPath ?? '')?.[1]
  assert.deepEqual(sidsIn(open?.header ?? ''), [token])
  assert.match(bare?.returnPath ?? '', /^bounce\+[a-z2-7]{39}@/)
  assert.doesNotMatch(bare?.header ?? '', /^X-/im)
})

test('a relay that replaces the return path gets the token in the header, once and whatever the sender says', async (t) => {
  const [open, bare] = await received(await start(t, { alters: { return_path: true } }))
  for (const subject of [open, bare]) {
    const token = /^bounce\+([a-z2-7]{39})@/.exec(subject?.returnPath ?? '')?.[1]
    assert.deepEqual(sidsIn(subject?.header ?? ''), [token])
  }
})

test('a relay with an envelope sender of its own gets that one, and bounces from its mailbox find their deliveries', async (t) => {
  const scene = await start(t, { return_path: MAILBOX })
  const { service, sink } = scene
  const subjects = await received(scene)
  assert.deepEqual(
    subjects.map(({ returnPath }) => returnPath),
    [MAILBOX, MAILBOX],
  )
  const returner = await Returner.connect(service)
  t.after(() => returner.close())
  for (const subject of subjects) {
    const raw =
      STATUS_FORMATS['outlook']?.(subject, FAULTS[0] as never) ??
      STATUS_FORMATS['postfix']?.(subject, FAULTS[0] as never)
    assert.match(await returner.give(`fbl@${service.domain}`, raw ?? '', MAILBOX), /^250/)
  }
  const failed = await service.events('?event=failed')
  assert.deepEqual(failed.map(({ recipient }) => recipient).sort(), [
    'bare@there.example',
    'open@there.example',
  ])
  assert.equal(sink.messages.length, 2)
})
