import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { startTestService } from '../../../test/support/service.ts'
import { openDialogue } from '../../../test/support/smtp-dialogue.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { createGreylist, type GreylistAttempt } from './greylist.ts'

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS

eachStore('the first mail of a network has to be repeated, in time', async (store) => {
  const clock = createTestClock()
  const list = createGreylist(store, clock)
  const attempt: GreylistAttempt = {
    remoteAddress: '192.0.2.1',
    sender: 'ann@sender.example',
    recipient: { domain: 'rcpt.example' },
  }
  const isTaken = (change: Partial<GreylistAttempt> = {}) =>
    list.check({ ...attempt, ...change }).then(
      () => true,
      (error: Error) => {
        assert.match(error.message, /^451 4\.7\.1 Greylisted/)
        return false
      },
    )
  assert.equal(await isTaken(), false)
  clock.leap(MINUTE_MS - 1)
  assert.equal(await isTaken(), false, 'too early')
  clock.leap(1)
  assert.equal(await isTaken({ sender: 'ann@other.example' }), false, 'another mail')
  assert.equal(await isTaken({ remoteAddress: '192.0.3.1' }), false, 'another network')
  assert.equal(await isTaken({ remoteAddress: '192.0.2.99' }), true, 'from the same network')
  assert.equal(await isTaken({ sender: '', recipient: { domain: 'x.example' } }), true, 'it is known now')

  clock.leap(35 * DAY_MS)
  assert.equal(await isTaken(), true)
  clock.leap(35 * DAY_MS)
  assert.equal(await isTaken(), true, 'known again with each mail')
  clock.leap(36 * DAY_MS)
  assert.equal(await isTaken(), false, 'forgotten')

  const six: Partial<GreylistAttempt> = { remoteAddress: '2001:db8::1' }
  assert.equal(await isTaken(six), false)
  clock.leap(DAY_MS)
  assert.equal(await isTaken(six), false, 'too late')
  clock.leap(MINUTE_MS)
  assert.equal(await isTaken({ remoteAddress: '2001:db8::2' }), true)
})

eachStore('a flood from one network leaves few rows', async (store) => {
  const clock = createTestClock()
  const list = createGreylist(store, clock)
  for (let at = 0; at < 100; at++)
    await assert.rejects(
      list.check({
        remoteAddress: '192.0.2.1',
        sender: `a@s${at}.example`,
        recipient: { domain: 'r.example' },
      }),
    )
  const [found] = await store.read({ sql: 'SELECT count(*) AS n FROM greylist', values: [] })
  assert.equal(Number(found?.['n']), 20)
})

test('greylisting in the dialogue: of mail that a route wants, and of nothing else', async (t) => {
  const clock = createTestClock()
  const ticking = setInterval(() => void clock.advance(10), 5)
  t.after(() => clearInterval(ticking))
  const env = { SENDWRIGHT_GREYLIST: 'on', SENDWRIGHT_SMTP_PORT: '0' }
  const service = await startTestService(t, env, { clock })
  const form = { expression: 'match_recipient("bob@")', action: 'store()' }
  assert.equal((await service.call('POST', '/v3/routes', { form })).status, 200)
  const host = service.config.smtpHost
  const client = await openDialogue(t, { host, port: service.service.smtp.port })
  await client.reply()
  await client.say('EHLO client.example')
  const rcpt = async (local: string) => {
    await client.say('RSET')
    await client.say('MAIL FROM:<a@example.org>')
    return client.say(`RCPT TO:<${local}@${service.domain}>`)
  }
  assert.equal(await rcpt('bob'), '451 4.7.1 Greylisted, try again in a minute')
  assert.equal(await rcpt('eve'), '550 5.1.1 Recipient not found')
  assert.equal(await rcpt('dmarc-reports'), '250 2.1.5 OK')
  clock.leap(MINUTE_MS)
  assert.equal(await rcpt('bob'), '250 2.1.5 OK')
  await client.say('DATA')
  assert.equal(await client.say('Subject: hello\r\n\r\nx\r\n.'), '250 2.0.0 Received')
})
