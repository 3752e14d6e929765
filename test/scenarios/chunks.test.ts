/** Servers that accept envelope and content in one write (RFC 3030), and one that only claims to. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { eventually, startTestService } from '../support/service.ts'
import { createSink, DEFAULT_EXTENSIONS } from '../support/smtp-sink.ts'

async function startRig(t: TestContext) {
  const sink = await createSink({ extensions: [...DEFAULT_EXTENSIONS, 'CHUNKING'] })
  t.after(() => sink.close())
  const service = await startTestService(t, {
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_RETRY_SCHEDULE: '1s',
  })
  const verbs = () => sink.commands.map(([, line]) => line.split(' ', 1)[0])
  return { sink, service, verbs }
}

test('a small message is sent with BDAT, one with a large attachment with DATA, and both arrive complete', async (t) => {
  const { sink, service, verbs } = await startRig(t)
  await service.send({ subject: 'small', text: '.one\n..two\n.\nthree' })
  await sink.waitFor(1)
  assert.match(sink.messages[0]?.raw.toString() ?? '', /\r\n\r\n\.one\r\n\.\.two\r\n\.\r\nthree\r\n$/)
  assert.deepEqual([verbs().includes('BDAT'), verbs().includes('DATA')], [true, false])
  await service.send({ subject: 'large', text: 'line\n'.repeat(20_000) })
  await sink.waitFor(2)
  assert.equal(verbs().filter((verb) => verb === 'DATA').length, 1)
  assert.equal(sink.messages[1]?.raw.toString().split('\r\nline').length, 20_001)
})

test('a server that offers chunks but does not know BDAT gets its mail with DATA from then on', async (t) => {
  const { sink, service, verbs } = await startRig(t)
  sink.on('BDAT', '502 5.5.2 what?')
  await service.send({ subject: 'first' })
  await sink.waitFor(1)
  await service.send({ subject: 'second' })
  await sink.waitFor(2)
  assert.deepEqual(
    verbs().filter((verb) => verb === 'BDAT' || verb === 'DATA'),
    ['BDAT', 'DATA', 'DATA'],
  )
  const failed = await service.events('?event=failed')
  assert.deepEqual(
    failed.map(({ severity }) => severity),
    ['temporary'],
  )
})

async function afterRefusedRecipient(t: TestContext) {
  const rig = await startRig(t)
  rig.sink.on('RCPT', '550 5.1.1 nobody', { times: 1 })
  await rig.service.send({ subject: 'first', to: 'nobody@example.org' })
  await eventually('refused', async () => (await rig.service.events('?event=failed')).length === 1)
  const outcomes = () =>
    eventually('delivered', async () => {
      const events = await rig.service.events('?recipient=other@example.org')
      const done = events.filter(({ event }) => event !== 'accepted')
      return done.some(({ event, severity }) => event === 'delivered' || severity === 'permanent') && done
    })
  return { ...rig, outcomes }
}

test('a server that refuses RSET and accepts what follows it has the message', async (t) => {
  const { sink, service, outcomes } = await afterRefusedRecipient(t)
  sink.on('RSET', '502 5.5.1 what?')
  await service.send({ subject: 'second', to: 'other@example.org' })
  assert.deepEqual(
    (await outcomes()).map(({ event }) => event),
    ['delivered'],
  )
  assert.equal(sink.messages.length, 1)
})

test('if a server refuses RSET and everything after it, the message is deferred', async (t) => {
  const { sink, service, outcomes } = await afterRefusedRecipient(t)
  sink.on('RSET', '554 5.7.0 too many errors')
  for (const verb of ['MAIL', 'RCPT', 'BDAT']) sink.on(verb, '503 5.5.1 no', { times: 1 })
  await service.send({ subject: 'second', to: 'other@example.org' })
  assert.deepEqual((await outcomes()).map(({ event, severity }) => [event, severity]).toSorted(), [
    ['delivered', undefined],
    ['failed', 'temporary'],
  ])
  assert.equal(sink.messages.length, 1)
})
