/** Validation of single addresses over HTTP (validation.md sections 1, 2 and 4). */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { eachDatabase } from '../../../test/support/databases.ts'
import { createDnsServer, type DnsServer } from '../../../test/support/dns-server.ts'
import { ManualClock } from '../../../test/support/http-server.ts'
import { eventually, ownAddress, startTestService, type TestService } from '../../../test/support/service.ts'
import { createSink } from '../../../test/support/smtp-sink.ts'

const PATH = '/v4/address/validate'

async function start(
  t: TestContext,
  env: Record<string, string> = {},
  overrides: Parameters<typeof startTestService>[2] = {},
): Promise<{ service: TestService; dns: DnsServer }> {
  const dns = await createDnsServer()
  t.after(() => dns.close())
  dns.set('example.org', 'MX', [[10, 'mx.example.org']])
  dns.set('mx.example.org', 'A', ['127.0.0.1'])
  const service = await startTestService(t, { SENDWRIGHT_DNS: `${dns.host}:${dns.port}`, ...env }, overrides)
  return { service, dns }
}

const validate = (service: TestService, address: string, more = '', key = service.key) =>
  service.call('GET', `${PATH}?address=${encodeURIComponent(address)}${more}`, { key })

/** Calls in a new subaccount. */
async function subaccount(service: TestService) {
  const made = await service.call('POST', '/v5/accounts/subaccounts', { form: { name: 'child' } })
  const { id } = made.body.subaccount as { id: string }
  const headers = { 'x-service-on-behalf-of': id }
  const query = (address: string) => `${PATH}?address=${encodeURIComponent(address)}`
  return { id, validate: (address: string) => service.call('GET', query(address), { headers }) }
}

const usageOf = async (service: TestService, ...metrics: string[]) => {
  const { body } = await service.call('POST', '/v1/analytics/usage/metrics', { json: { metrics } })
  return metrics.map((name) => body.items[0]?.metrics[`${name}`])
}

eachDatabase((database) => {
  test('deliveries, openings and bounces of the account decide', async (t) => {
    const { service } = await start(t, {}, { database })
    const before = (await validate(service, 'Ann@example.org')).body
    assert.deepEqual(before, {
      address: 'Ann@example.org',
      is_disposable_address: false,
      is_role_address: false,
      reason: ['unknown_provider'],
      result: 'unknown',
      risk: 'unknown',
    })

    await service.send({ to: 'ann@example.org' })
    const delivered = await eventually('delivered', async () => {
      const { body } = await validate(service, 'Ann@example.org')
      return body.result === 'deliverable' && body
    })
    assert.deepEqual([delivered.risk, delivered.reason], ['low', []])
    assert.ok(Math.abs(delivered.last_seen - Date.now() / 1000) < 600, 'in seconds')

    const { key: publicKey } = (await service.call('POST', '/v1/keys/public')).body
    const shown = await service.call('GET', '/v4/address/validate?address=ann@example.org', {
      key: publicKey,
    })
    assert.deepEqual([shown.body.result, 'last_seen' in shown.body], ['deliverable', false])

    const other = await subaccount(service)
    const foreign = await other.validate('ann@example.org')
    assert.equal(foreign.body.result, 'unknown', "another account's deliveries are its own")

    const faults = [{ recipient: 'eve@example.org', stage: 'rcpt', reply: '550 5.1.1 no such user' }]
    await service.call('PUT', '/sendwright/v1/inbox/faults', { json: faults })
    await service.send({ to: 'eve@example.org' })
    const bounced = await eventually('bounced', async () => {
      const { body } = await validate(service, 'eve@example.org')
      return body.result === 'undeliverable' && body
    })
    assert.deepEqual([bounced.risk, bounced.reason], ['high', ['mailbox_does_not_exist']])
    await service.call('DELETE', `/v3/${service.domain}/bounces/eve@example.org`)
    assert.equal((await validate(service, 'eve@example.org')).body.result, 'undeliverable', 'by its event')

    await service.call('POST', `/v3/${service.domain}/bounces`, { form: { address: 'Bob@example.org' } })
    assert.equal((await validate(service, 'bob@example.org')).body.result, 'undeliverable', 'by the list')
  })
})

test('syntax, DNS, lists and suggestions', async (t) => {
  const { service, dns } = await start(t)
  dns.set('null.example', 'MX', [[0, '']])
  dns.set('plain.example', 'A', ['192.0.2.1'])
  dns.set('mailinator.com', 'MX', [[10, 'mx.example.org']])
  const cases: [address: string, result: string, reason: string[], more?: object][] = [
    ['nobody', 'undeliverable', ['malformed address; missing @ sign']],
    ['a@b@c', 'undeliverable', ['malformed address']],
    ['ann@absent.example', 'undeliverable', ['no_mx']],
    ['ann@null.example', 'undeliverable', ['no_mx']],
    ['ann@plain.example', 'unknown', ['unknown_provider']],
    ['ann@mailinator.com', 'do_not_send', ['mailbox_is_disposable_address'], { is_disposable_address: true }],
    [
      'info@example.org',
      'unknown',
      ['unknown_provider', 'mailbox_is_role_address'],
      { is_role_address: true, risk: 'medium' },
    ],
    ['ann@gmial.com', 'undeliverable', ['no_mx'], { did_you_mean: 'ann@gmail.com' }],
  ]
  for (const [address, result, reason, more] of cases) {
    const { status, body } = await validate(service, address)
    assert.deepEqual([status, body.address, body.result, body.reason], [200, address, result, reason])
    for (const [name, value] of Object.entries(more ?? {}))
      assert.equal(body[name], value, `${address} ${name}`)
  }
  const without = await validate(service, 'ann@example.org', '&provider_lookup=false')
  assert.deepEqual([without.body.result, without.body.reason], ['unknown', ['no_data']])
  const posted = await service.call('POST', `${PATH}?provider_lookup=no`, {
    form: { address: 'ann@example.org' },
  })
  assert.deepEqual(posted.body, without.body)
})

test('errors of the contract', async (t) => {
  const { service } = await start(t)
  const cases: [query: string, status: number, message: string][] = [
    ['', 400, "'address' parameter is required"],
    ['?address=', 400, "'address' parameter is required"],
    [`?address=${'a'.repeat(513)}`, 400, 'address is too long'],
    ['?address=a&provider_lookup=perhaps', 400, 'Invalid format for parameter provider_lookup: perhaps'],
  ]
  for (const [query, status, message] of cases) {
    const answer = await service.call('GET', PATH + query)
    assert.deepEqual([answer.status, answer.body], [status, { message }])
  }
  const child = await subaccount(service)
  const features = `/v5/accounts/subaccounts/${child.id}/features`
  await service.call('PUT', features, { form: { validations: '{"enabled": false}' } })
  const refused = await child.validate('ann@example.org')
  assert.deepEqual([refused.status, refused.body], [403, { message: 'Forbidden' }])
  assert.equal((await service.call('GET', '/v3/address/validate?address=a')).status, 404)
  const noPreview = await service.call('GET', '/v1/preview/tests/some-id/results')
  assert.deepEqual([noPreview.status, noPreview.body], [404, { message: 'preview test not found' }])
})

test('usage counts single, public and valid ones by the day', async (t) => {
  const { service } = await start(t)
  const { key } = (await service.call('POST', '/v1/keys/public')).body
  await service.send({ to: 'ann@example.org' })
  await eventually('delivered', async () => {
    const { body } = await service.call('GET', `/v3/${service.domain}/events?event=delivered`)
    return body.items.length === 1
  })
  await validate(service, 'ann@example.org')
  await validate(service, 'nobody')
  assert.equal((await validate(service, 'ann@example.org', '', key)).status, 200)
  const names = ['count', 'single_count', 'bulk_count', 'public_count', 'valid_count', 'mailgun_count']
  assert.deepEqual(
    await usageOf(service, ...names.map((name) => `email_validation_${name}`)),
    [3, 3, 0, 1, 2, 0],
  )
  const byTime = {
    metrics: ['email_validation_count'],
    dimensions: ['time', 'subaccount'],
    resolution: 'month',
  }
  const { body } = await service.call('POST', '/v1/analytics/usage/metrics', {
    json: { ...byTime, include_aggregates: true, pagination: { sort: 'email_validation_count:desc' } },
  })
  assert.deepEqual(
    [body.items.length, body.items[0].metrics, body.aggregates.metrics],
    [1, { email_validation_count: 3 }, { email_validation_count: 3 }],
  )
  const filtered = { AND: [{ attribute: 'domain', comparator: '=', values: [{ value: 'x' }] }] }
  const none = await service.call('POST', '/v1/analytics/usage/metrics', {
    json: { metrics: ['email_validation_count'], filter: filtered },
  })
  assert.equal(none.body.items[0].metrics.email_validation_count, 0)
})

test('over 50 lookups of an account at once: 429, and another account is not affected', async (t) => {
  const { service, dns } = await start(t, { SENDWRIGHT_RATE_LIMIT: '1000' })
  const other = await subaccount(service)
  const release = dns.hold()
  const running = Array.from({ length: 50 }, (_, n) => validate(service, `ann@d${n}.example`))
  const refused = await eventually('the limit', async () => {
    const answer = await validate(service, 'nobody')
    return answer.status === 429 && answer
  })
  assert.deepEqual(
    [refused.body, refused.headers.get('retry-after')],
    [{ message: 'Too Many Requests' }, '1'],
  )
  assert.equal((await other.validate('nobody')).status, 200)
  release()
  // Queries that were held may have been given up and repeated.
  for (const answer of await Promise.all(running)) assert.equal(answer.status, 200)
  assert.equal((await validate(service, 'nobody')).status, 200)
})

test('the probe asks the receiving server, rarely, and remembers its answers', async (t) => {
  const sink = await createSink({ host: ownAddress() })
  t.after(() => sink.close())
  const clock = new ManualClock(Date.now())
  const env = {
    SENDWRIGHT_VALIDATION_SMTP_PROBE: 'on',
    SENDWRIGHT_MX_PORT: String(sink.port),
    SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
  }
  const { service, dns } = await start(t, env, { clock })
  const domain = (name: string) => {
    dns.set(name, 'MX', [[10, `mx.${name}`]])
    dns.set(`mx.${name}`, 'A', [sink.host])
    return name
  }
  const found = async (address: string, more = '') => {
    const { body } = await validate(service, address, more)
    return [body.result, body.risk, body.reason]
  }
  const recipients = () =>
    sink.commands.filter(([, line]) => line.startsWith('RCPT TO')).map(([, line]) => line)

  domain('strict.example')
  sink.on('RCPT TO', (_, event) =>
    event.startsWith('RCPT TO:<ann@strict.example>') ? '250 ok' : '550 5.1.1 no such user',
  )
  assert.deepEqual(await found('ann@strict.example', '&provider_lookup=no'), [
    'unknown',
    'unknown',
    ['no_data'],
  ])
  assert.equal(recipients().length, 0, 'nobody is asked against the wish of the caller')
  assert.deepEqual(await found('Ann@strict.example'), ['deliverable', 'low', []])
  assert.equal(recipients().length, 2)
  assert.match(recipients()[1] as string, /^RCPT TO:<[0-9a-z]{24}@strict\.example>/)
  assert.deepEqual(
    sink.commands.filter(([, line]) => /^(MAIL|DATA|BDAT)/.test(line)).map(([, line]) => line),
    ['MAIL FROM:<>'],
  )
  assert.equal(sink.messages.length, 0, 'no mail is sent')

  await found('ann@strict.example')
  assert.equal(recipients().length, 2, 'the answer is kept')
  assert.deepEqual(await found('bob@strict.example'), ['unknown', 'unknown', ['unknown_provider']])
  assert.equal(recipients().length, 2, 'the same server is asked after 10 seconds at the earliest')
  clock.advance(10_001)
  assert.deepEqual(await found('bob@strict.example'), ['undeliverable', 'high', ['mailbox_does_not_exist']])

  domain('all.example')
  sink.clearRules()
  assert.deepEqual(await found('ann@all.example'), ['catch_all', 'medium', ['catch_all']])
  const asked = recipients().length
  assert.deepEqual(await found('bob@all.example'), ['catch_all', 'medium', ['catch_all']])
  assert.equal(recipients().length, asked, 'a domain that takes everything is asked once')

  domain('picky.example')
  sink.on('RCPT TO', '550 5.7.1 listed by a blocklist')
  assert.deepEqual(await found('ann@picky.example'), ['unknown', 'unknown', ['unknown_provider']])
})
