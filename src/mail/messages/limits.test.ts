/** What an account may send: recipients and bytes per minute, tags, and whom its sandbox domain reaches. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { eachDatabase } from '../../../test/support/databases.ts'
import { eventually, startTestService, type TestService } from '../../../test/support/service.ts'
import { openDialogue, plainLogin } from '../../../test/support/smtp-dialogue.ts'

const addresses = (count: number) => Array.from({ length: count }, (_, n) => `r${n}@example.org`)

const refusal = (domain: string, why: string, seconds: number) =>
  `Domain ${domain} is not allowed to send: ${why} limit exceeded, try again after ${seconds} seconds`

/** Answers to one submission: to MAIL FROM, and to the final dot. */
async function submit(t: Parameters<typeof openDialogue>[0], service: TestService, lines: string[]) {
  const credential = await service.call('PUT', `/v3/domains/${service.domain}/credentials/postmaster`, {
    form: { password: 'correct-horse' },
  })
  assert.equal(credential.status, 200, credential.text)
  const client = await openDialogue(t, { host: service.config.host, port: service.config.smtpPort })
  await client.reply()
  await client.say('EHLO client.example')
  await client.say(`AUTH PLAIN ${plainLogin(`postmaster@${service.domain}`, 'correct-horse')}`)
  await client.say('MAIL FROM:<a@example.com>')
  await client.say('RCPT TO:<b@example.org>')
  await client.say('DATA')
  client.write(Buffer.from(`${[`From: a@${service.domain}`, '', ...lines, '.', ''].join('\r\n')}`))
  return client.reply()
}

test('recipients and bytes per minute: the 429 names the limit and the wait, and nothing is sent', async (t) => {
  const clock = createTestClock()
  const env = {
    SENDWRIGHT_RATE_LIMIT: '100',
    SENDWRIGHT_RECIPIENTS_PER_MINUTE: '60',
    SENDWRIGHT_BYTES_PER_MINUTE: '600',
  }
  const service = await startTestService(t, env, { clock })
  const { domain } = service
  const send = (count: number, text = 'x', path = `/v3/${domain}/messages`) =>
    service.call('POST', path, { form: { from: `a@${domain}`, to: addresses(count), subject: 's', text } })

  const first = await send(40)
  assert.equal(first.status, 200)
  assert.equal(first.headers.get('x-recipient-limit'), '60')
  assert.equal(first.headers.get('x-recipient-remaining'), '20')
  assert.ok(Number(first.headers.get('x-recipient-reset')) >= Math.floor(clock.now() / 1000))
  assert.equal(first.headers.get('x-ratelimit-limit'), '100')

  const crowd = await send(30)
  assert.deepEqual([crowd.status, crowd.body], [429, { message: refusal(domain, 'recipient', 10) }])
  assert.equal(crowd.headers.get('retry-after'), '10')
  assert.equal(Number(crowd.headers.get('x-ratelimit-reset')), Math.ceil(clock.now() / 1000) + 10)

  const large = await send(20, 'x'.repeat(600))
  assert.deepEqual([large.status, large.body], [429, { message: refusal(domain, 'bytes', 1) }])
  const mime = new File([`From: a@${domain}\r\n\r\n${'x'.repeat(700)}\r\n`], 'm', { type: 'message/rfc822' })
  const whole = await service.call('POST', `/v3/${domain}/messages.mime`, {
    form: { to: 'a@example.org', message: mime },
  })
  assert.equal(whole.status, 429)

  assert.equal((await send(20)).status, 200, 'a refusal takes nothing from either limit')
  assert.equal((await service.events('?event=accepted')).length, 60)
  assert.equal(await submit(t, service, ['Hello']), `451 4.7.1 ${refusal(domain, 'recipient', 1)}`)

  const [{ storage }] = (await service.events('?event=accepted')) as [{ storage: { key: string } }]
  const again = () =>
    service.call('POST', `/v3/domains/${domain}/messages/${storage.key}`, { form: { to: 'x@example.org' } })
  assert.equal((await again()).status, 429)
  await clock.advance(1_000)
  assert.equal((await again()).headers.get('x-recipient-limit'), '60')
})

eachDatabase((database) => {
  test('a new tag over the limit is dropped from the message; its events do not carry it', async (t) => {
    const env = { SENDWRIGHT_MAX_TAGS_PER_DOMAIN: '2' }
    const service = await startTestService(t, env, { database })
    assert.equal((await service.send({ 'o:tag': ['One', 'two', 'three'] })).status, 200)
    const second = await service.send({ 'o:tag': ['four', 'ONE'], to: 'second@example.org' })
    assert.equal(second.status, 200)
    const events = await service.events('?event=accepted')
    assert.deepEqual(
      events.map((event) => event['tags']),
      [['ONE'], ['One', 'two']],
    )
    const raw = await eventually('the mail', async () => {
      const { body } = await service.call('GET', '/sendwright/v1/inbox')
      const [item] = (body.items as { id: string }[]).slice(0, 1)
      return item && body.items.length === 2
        ? (await service.call('GET', `/sendwright/v1/inbox/${item.id}/raw`)).text
        : null
    })
    assert.doesNotMatch(raw, /^X-Service-Tag: (?:three|four)\r$/m)
  })
})

test('in direct mode a sandbox domain sends only to those who are named', async (t) => {
  const env = {
    SENDWRIGHT_DELIVERY: 'direct',
    SENDWRIGHT_SANDBOX_RECIPIENTS: 'ann@example.org,@team.example',
  }
  const service = await startTestService(t, env)
  const send = (to: string) => service.send({ to, 'o:testmode': 'yes' })
  assert.equal((await send('Ann@example.org, anyone@team.example')).status, 200)
  const { status, body } = await send('ann@example.org, bob@example.org')
  const why =
    'Sandbox subdomains are for test purposes only. Please add your own domain or add the address to authorized recipients in Account Settings.'
  assert.deepEqual([status, body.message], [403, `Domain ${service.domain} is not allowed to send: ${why}`])
  const [{ storage }] = (await service.events('?event=accepted')) as [{ storage: { key: string } }]
  const path = `/v3/domains/${service.domain}/messages/${storage.key}`
  assert.equal((await service.call('POST', path, { form: { to: 'bob@example.org' } })).status, 403)

  const list = `all@${service.domain}`
  assert.equal((await service.call('POST', '/v3/lists', { form: { address: list } })).status, 200)
  const members = JSON.stringify(['bob@example.org', 'ann@example.org'])
  await service.call('POST', `/v3/lists/${list}/members.json`, { form: { members } })
  assert.equal((await send(list)).status, 200, 'the list is at the sandbox domain itself')
  const ends = await eventually('both ends', async () => {
    const events = (await service.events()) as { event: string; reject?: object; recipient?: string }[]
    const rejected = events.find(({ event }) => event === 'rejected')
    const delivered = events.filter(
      ({ event, recipient }) => event === 'delivered' && recipient === 'ann@example.org',
    )
    return rejected && delivered.length === 1 && { rejected, delivered }
  })
  assert.deepEqual(ends.rejected.reject, {
    reason: 'Sandbox subdomains are for test purposes only.',
    description: '',
  })
})
