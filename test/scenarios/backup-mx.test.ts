/** A domain's first mail host answers, but accepts no mail (RFC 5321 §5.1). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createInternet, type Internet } from '../support/internet.ts'
import { eventually, startTestService, type TestService } from '../support/service.ts'
import type { Sink } from '../support/smtp-sink.ts'

interface Item {
  recipient: string
  state: string
  attempts: number
  last_reply: { code: number; text: string } | null
}

async function deliveryOf(service: TestService, id: string): Promise<Item[]> {
  const path = `/sendwright/v1/messages/${encodeURIComponent(id)}/deliveries?limit=1000`
  return ((await service.call('GET', path)).body as { items: Item[] }).items
}

const afterFirstAttempt = (service: TestService, id: string) =>
  eventually('first attempts', async () => {
    const items = await deliveryOf(service, id)
    return items.every(({ attempts, state }) => attempts > 0 && state !== 'sending') ? items : null
  })

/** A domain with a first mail host and a backup. */
async function twoHosts(internet: Internet, domain: string): Promise<{ first: Sink; backup: Sink }> {
  const first = await internet.site([`first.${domain}`])
  const backup = await internet.site([`backup.${domain}`])
  internet.host(domain, `first.${domain}`, first.host, 10)
  internet.host(domain, `backup.${domain}`, backup.host, 20)
  return { first, backup }
}

/** How the first host rejects a client before any transaction. */
const UNWILLING: Record<string, (first: Sink) => void> = {
  'a 421 greeting': (first) => first.on('CONNECT', '421 4.3.2 all server ports are busy'),
  'a 554 greeting': (first) => first.on('CONNECT', '554 no SMTP service here'),
  'a 521 greeting': (first) => first.on('CONNECT', '521 this host accepts no mail'),
  'a 554 to EHLO': (first) => first.on('EHLO', '554 5.7.1 go away'),
  'a 421 to EHLO': (first) => first.on('EHLO', '421 4.3.2 shutting down'),
  'a connection closed at the greeting': (first) => first.dropAt('CONNECT'),
  'a connection closed at MAIL': (first) => first.dropAt('MAIL'),
}

test('when the first mail host rejects us, the backup gets the mail in the same attempt', async (t) => {
  const internet = await createInternet(t)
  const service = await startTestService(t, internet.env)
  for (const [name, spoil] of Object.entries(UNWILLING)) {
    await t.test(name, async () => {
      const domain = `d${Object.keys(UNWILLING).indexOf(name)}.example`
      const { first, backup } = await twoHosts(internet, domain)
      spoil(first)
      const { body } = await service.send({ to: `user@${domain}` })
      const [item] = await afterFirstAttempt(service, body.id)
      assert.equal(item?.state, 'delivered', item?.last_reply?.text)
      assert.equal(item?.attempts, 1)
      assert.equal(backup.messages.length, 1)
      assert.equal(first.connections.total, 1)
    })
  }
})

test('a host that rejected us is tried last for a while, and the lane of its site keeps its speed', async (t) => {
  const internet = await createInternet(t)
  const { first, backup } = await twoHosts(internet, 'busy.example')
  first.on('CONNECT', '421 4.3.2 too many connections, slow down')
  const service = await startTestService(t, internet.env)
  await afterFirstAttempt(service, (await service.send({ to: 'user@busy.example' })).body.id)
  const to = Array.from({ length: 40 }, (_, n) => `user${n}@busy.example`)
  const { body } = await service.send({ to })
  const items = await afterFirstAttempt(service, body.id)
  assert.ok(items.every(({ state }) => state === 'delivered'))
  assert.equal(first.connections.total, 1, 'the first host is not asked for each message')
  assert.ok(backup.connections.total <= 20, `${backup.connections.total} connections for 41 messages`)
  const lanes = (await service.call('GET', '/sendwright/v1/queue/lanes')).body.items as {
    site: string
    backed_off_why: string | null
  }[]
  for (const lane of lanes) assert.equal(lane.backed_off_why, null)
})

test('every host rejects us: deferred with the most hopeful reply, and not all are tried again', async (t) => {
  const internet = await createInternet(t)
  const { first, backup } = await twoHosts(internet, 'closed.example')
  first.on('CONNECT', '554 no SMTP service here')
  backup.on('CONNECT', '451 4.3.0 try again later')
  const service = await startTestService(t, internet.env)
  const one = await service.send({ to: 'user@closed.example' })
  const [item] = await afterFirstAttempt(service, one.body.id)
  assert.equal(item?.state, 'queued')
  assert.deepEqual(item?.last_reply, { code: 451, text: '4.3.0 try again later' })
  const two = await service.send({ to: 'other@closed.example' })
  const [other] = await afterFirstAttempt(service, two.body.id)
  assert.equal(other?.state, 'queued')
  assert.equal(first.connections.total + backup.connections.total, 3, 'one of both is tried again')
})

test('all hosts greet with 554: the mail waits, and its event names the reply', async (t) => {
  const internet = await createInternet(t)
  const { first, backup } = await twoHosts(internet, 'none.example')
  for (const sink of [first, backup]) sink.on('CONNECT', '554 no SMTP service here')
  const service = await startTestService(t, internet.env)
  const { body } = await service.send({ to: 'user@none.example' })
  const [item] = await afterFirstAttempt(service, body.id)
  assert.equal(item?.state, 'queued')
  const [event] = await service.events('?event=failed')
  assert.equal(event?.['severity'], 'temporary')
  const status = event?.['delivery-status'] as Record<string, unknown>
  assert.equal(status['code'], 554)
  assert.equal(status['message'], 'no SMTP service here')
})

test('a reply to the transaction settles the attempt: the backup is not tried', async (t) => {
  const internet = await createInternet(t)
  const service = await startTestService(t, internet.env)
  for (const [domain, command, reply, state] of [
    ['grey.example', 'RCPT TO', '451 4.7.1 greylisted', 'queued'],
    ['slow.example', 'MAIL', '421 4.7.0 slow down', 'queued'],
    ['unknown.example', 'RCPT TO', '550 5.1.1 no such user', 'bounced'],
  ] as const) {
    const { first, backup } = await twoHosts(internet, domain)
    first.on(command, reply)
    const { body } = await service.send({ to: `user@${domain}` })
    const [item] = await afterFirstAttempt(service, body.id)
    assert.equal(item?.state, state)
    assert.equal(backup.connections.total, 0)
  }
})
