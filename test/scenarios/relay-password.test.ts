/** The relay's password is the operator's: no option of a message decides where it goes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { selfSigned } from '../support/certificates.ts'
import { eventually, startTestService } from '../support/service.ts'
import { createSink } from '../support/smtp-sink.ts'

const account = { user: 'user', password: 'password' }
const OPTIONS = { 'o:require-tls': 'yes', 'o:skip-verification': 'yes' }

test('a message that skips verification does not get the password sent to a server of another name', async (t) => {
  const sink = await createSink({ tls: selfSigned(['other.example']), auth: account })
  t.after(() => sink.close())
  const service = await startTestService(t, {
    SENDWRIGHT_DELIVERY: `smtp://user:password@${sink.host}:${sink.port}`,
  })
  await service.send(OPTIONS)
  const failed = await eventually('the failed attempt', async () =>
    (await service.events()).find(({ event }) => event === 'failed'),
  )
  const status = failed['delivery-status'] as { code: number; message: string }
  assert.deepEqual([failed['severity'], status.code], ['temporary', 680])
  assert.match(status.message, /certificate .*SENDWRIGHT_DELIVERY/)
  assert.ok(!sink.commands.some(([, line]) => line.startsWith('AUTH')))
  assert.equal(sink.messages.length, 0)
})

test('the operator of a relay may accept any certificate', async (t) => {
  const sink = await createSink({ tls: selfSigned(['other.example']), auth: account })
  t.after(() => sink.close())
  const service = await startTestService(t, {
    SENDWRIGHT_DELIVERY: `smtp://user:password@${sink.host}:${sink.port}?tls=unverified`,
  })
  await service.send({ 'o:require-tls': 'yes', 'o:skip-verification': 'no' })
  const [message] = await sink.waitFor(1)
  assert.deepEqual([message?.auth, message?.tls], ['user', true])
})
