import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createTestClock } from '../../../../test/support/clock.ts'
import { eachDatabase } from '../../../../test/support/databases.ts'
import { createDnsServer } from '../../../../test/support/dns-server.ts'
import {
  eventually,
  ownAddress,
  startTestService,
  type TestService,
} from '../../../../test/support/service.ts'
import { systemClock } from '../../../base/time/clock.ts'
import { createResolver } from '../../../protocols/dns/resolver.ts'
import { nextStep, parseInterval, RETIRE_MS } from './sender-security.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const NAME = 'secure.example'

async function start(t: TestContext, database: 'sqlite' | 'postgres' = 'sqlite') {
  const dns = await createDnsServer()
  t.after(() => dns.close())
  const clock = createTestClock()
  const zoneHost = ownAddress()
  const service = await startTestService(
    t,
    {
      SENDWRIGHT_DNS: `${dns.host}:${dns.port}`,
      SENDWRIGHT_DKIM_ZONE: 'dkim.service.example',
      SENDWRIGHT_DKIM_ZONE_LISTEN: `${zoneHost}:5353`,
      SENDWRIGHT_SPF_INCLUDE_HOST: 'spf.service.example',
    },
    { clock, database },
  )
  const zone = createResolver({ servers: [{ host: zoneHost, port: 5353 }], clock: systemClock, attempts: 1 })
  t.after(() => zone.close())
  dns.set(NAME, 'TXT', ['v=spf1 include:spf.service.example ~all'])
  dns.set('spf.service.example', 'TXT', ['v=spf1 ip4:192.0.2.0/24 -all'])
  /** Stands in for the delegation of the zone: the stub resolver returns the answers of our responder. */
  const delegate = async (targets: string[]) => {
    const keys: string[] = []
    for (const target of targets) {
      const answer = await zone.query(target, 'TXT', { fresh: true })
      dns.set(target, 'TXT', [...answer.records])
      keys.push(answer.records.join())
    }
    return keys
  }
  return { dns, clock, service, delegate }
}

const records = async (service: TestService) =>
  (await service.call('GET', `/v4/domains/${NAME}`)).body.sending_dns_records.filter(
    (record: { record_type: string; name: string }) => record.name.includes('_domainkey'),
  ) as { name: string; value: string; record_type: string; is_active: boolean; valid: string }[]
const verify = async (service: TestService) =>
  (await service.call('PUT', `/v4/domains/${NAME}/verify`)).body.domain.state as string
const rotation = (service: TestService, form: Record<string, string>) =>
  service.call('PUT', `/v1/dkim_management/domains/${NAME}/rotation`, { form })
const progress = async (service: TestService) =>
  (await service.call('GET', `/sendwright/v1/domains/${NAME}/key-rotation`)).body
const rotate = (service: TestService) => service.call('POST', `/v1/dkim_management/domains/${NAME}/rotate`)

eachDatabase((database) => {
  test('keys behind two CNAMEs are rotated without a gap', async (t) => {
    const { dns, clock, service, delegate } = await start(t, database)
    const made = await service.call('POST', '/v4/domains', {
      form: { name: NAME, use_automatic_sender_security: 'true' },
    })
    assert.equal(made.status, 200)
    const names = await records(service)
    assert.deepEqual(
      names.map(({ name, record_type, is_active }) => [name, record_type, is_active]),
      [
        ['pdk1._domainkey.secure.example', 'CNAME', false],
        ['pdk2._domainkey.secure.example', 'CNAME', false],
      ],
    )
    const targets = names.map((record) => record.value)
    assert.match(targets[0] as string, /^pdk1\._domainkey\.\d+\.dkim\.service\.example$/)
    const early = await rotate(service)
    assert.deepEqual(
      [early.status, early.body],
      [400, { Reason: 'only domains in enabled can rotate their keys. Current state: wait_verify' }],
    )
    assert.equal(await verify(service), 'unverified')

    for (const { name, value } of names) dns.set(name, 'CNAME', [value])
    const first = await delegate(targets)
    assert.match(first[0] as string, /^k=rsa; p=/)
    assert.equal(first[0], first[1], 'one key under both names at first')
    assert.equal(await verify(service), 'active')
    assert.deepEqual(
      (await records(service)).map((record) => record.is_active),
      [true, false],
    )

    const atRest = {
      ...{ state: 'enabled', active_selector: 'pdk1', rotation_enabled: false },
      ...{ rotation_interval: '120d', next_at: null, in_progress: null },
    }
    assert.deepEqual(await progress(service), atRest)
    await rotation(service, { rotation_enabled: 'true', rotation_interval: '30d' })
    const next = Date.parse((await progress(service)).next_at) - clock.now()
    assert.ok(next > 29 * DAY_MS && next <= 30 * DAY_MS, `${next} ms`)
    await rotation(service, { rotation_enabled: 'false' })
    atRest.rotation_interval = '30d'
    const inAnHour = new Date(Math.floor(clock.now()) + HOUR_MS).toISOString()
    assert.deepEqual((await rotate(service)).body, { message: 'ok' })
    assert.deepEqual(await progress(service), {
      ...atRest,
      in_progress: { phase: 'publishing', selector: 'pdk2', until: inAnHour },
    })
    const twice = await rotate(service)
    assert.deepEqual([twice.status, twice.body], [400, { Reason: 'rotation is already in progress' }])
    const active = async () => (await records(service)).map((record) => record.is_active)
    assert.deepEqual(await active(), [true, false], 'the new key is only published')
    clock.leap(HOUR_MS)
    await clock.advance(61_000)
    await eventually('a look at public DNS', async () => {
      clock.leap(10 * 60_000)
      await clock.advance(61_000)
      return dns.queries.some((query) => query.name === names[1]?.name && query.type === 'TXT')
    })
    assert.deepEqual(await active(), [true, false], 'public DNS still has the old key')
    const second = await delegate(targets)
    assert.notEqual(second[1], first[1])
    assert.equal(second[0], first[0], 'the old key stays published')
    await eventually('the new key to sign', async () => {
      clock.leap(10 * 60_000)
      await clock.advance(61_000)
      return (await active())[1]
    })
    assert.deepEqual(await active(), [false, true])
    const retiring = await progress(service)
    assert.equal(retiring.active_selector, 'pdk2')
    assert.deepEqual([retiring.in_progress.phase, retiring.in_progress.selector], ['retiring', 'pdk1'])
    const left = Date.parse(retiring.in_progress.until) - clock.now()
    assert.ok(left > RETIRE_MS - HOUR_MS && left <= RETIRE_MS, `${left} ms`)
    assert.equal((await rotate(service)).status, 400, 'until the old key may go')
    clock.leap(RETIRE_MS)
    await eventually('the rotation to end', async () => {
      await clock.advance(61_000)
      return (await rotate(service)).status === 200
    })
  })
})

test('managed keys are listed as CNAME and left alone by the other operations', async (t) => {
  const { service } = await start(t)
  await service.call('POST', '/v4/domains', { form: { name: NAME, use_automatic_sender_security: 'true' } })
  const { items } = (await service.call('GET', `/v1/dkim/keys?signing_domain=${NAME}`)).body
  assert.deepEqual(
    items.map((item: { selector: string; dns_record: { record_type: string } }) => [
      item.selector,
      item.dns_record.record_type,
    ]),
    [
      ['pdk1', 'CNAME'],
      ['pdk2', 'CNAME'],
    ],
  )
  const refused = [
    await service.call('DELETE', `/v1/dkim/keys?signing_domain=${NAME}&selector=pdk1`),
    await service.call('PUT', `/v4/domains/${NAME}/keys/pdk1/activate`),
    await service.call('PUT', `/v4/domains/${NAME}/keys/pdk1/deactivate`),
    await service.call('PUT', `/v3/domains/${NAME}/dkim_selector?dkim_selector=mine`),
  ]
  for (const answer of refused)
    assert.deepEqual([answer.status, answer.body], [400, { message: 'domain key is managed automatically' }])
})

test('when switched on or off the former key signs until the new records are found', async (t) => {
  const { dns, clock, service, delegate } = await start(t)
  await service.call('POST', '/v4/domains', { form: { name: NAME } })
  for (const { name, value } of await records(service)) dns.set(name, 'TXT', [value])
  assert.equal(await verify(service), 'active')
  const put = (value: string) =>
    service.call('PUT', `/v4/domains/${NAME}`, { form: { use_automatic_sender_security: value } })
  const on = await put('true')
  assert.deepEqual([on.body.domain.state, on.body.domain.use_automatic_sender_security], ['unverified', true])
  const keys = async () =>
    (await service.call('GET', `/v4/domains/${NAME}/keys`)).body.items
      .filter((item: { dns_record: { is_active: boolean } }) => item.dns_record.is_active)
      .map((item: { selector: string }) => item.selector)
  assert.deepEqual(await keys(), ['k1'])
  const names = await records(service)
  for (const { name, value } of names) dns.set(name, 'CNAME', [value])
  await delegate(names.map((record) => record.value))
  assert.equal(await verify(service), 'active')
  assert.deepEqual(await keys(), ['pdk1'])
  assert.equal((await put('false')).body.domain.state, 'unverified')
  assert.deepEqual(await keys(), ['pdk1'])
  assert.equal(await verify(service), 'active')
  assert.deepEqual(await keys(), ['k1'])
  await put('true')
  clock.leap(7 * DAY_MS)
  await eventually('the end of the grace', async () => {
    await clock.advance(61_000)
    return !(await keys()).includes('k1')
  })
})

test('rotation is switched with an interval of at least five days', async (t) => {
  const { service } = await start(t)
  assert.equal((await progress(service)).message, 'Domain not found')
  await service.call('POST', '/v4/domains', { form: { name: 'plain.example' } })
  const plain = (await service.call('GET', '/sendwright/v1/domains/plain.example/key-rotation')).body
  assert.deepEqual([plain.state, plain.rotation_interval, plain.in_progress], ['disabled', '120d', null])
  await service.call('POST', '/v4/domains', { form: { name: NAME, use_automatic_sender_security: 'true' } })
  const on = await rotation(service, { rotation_enabled: 'true', rotation_interval: '30d' })
  assert.equal(on.status, 200)
  const { domain } = on.body
  assert.deepEqual(
    [domain.name, domain.state, domain.rotation_enabled, domain.rotation_interval],
    [NAME, 'wait_verify', 'true', '30d'],
  )
  assert.match(domain.sid, /^\d+$/)
  assert.deepEqual(
    { ...domain.records[0], value: '' },
    {
      name: `pdk1._domainkey.${NAME}`,
      type: 'CNAME',
      identifier: 'DKIM',
      value: '',
      comment: 'Customer DKIM CNAME Record',
    },
  )
  const errors: [Record<string, string>, object][] = [
    [{}, { message: 'rotation_enabled is required' }],
    [
      { rotation_enabled: 'false', rotation_interval: '30d' },
      { Reason: 'rotation_interval is not allowed unless also enabling DKIM rotation' },
    ],
    [
      { rotation_enabled: 'true', rotation_interval: '4d' },
      { Reason: 'rotation_interval must be at least 5 days' },
    ],
    [
      { rotation_enabled: 'true', rotation_interval: 'soon' },
      { Reason: 'rotation_interval must be at least 5 days' },
    ],
  ]
  for (const [form, body] of errors) {
    const answer = await rotation(service, form)
    assert.deepEqual([answer.status, answer.body], [400, body])
  }
  assert.equal((await rotation(service, { rotation_enabled: 'false' })).body.domain.rotation_enabled, 'false')
  for (const [method, path] of [
    ['PUT', 'rotation'],
    ['POST', 'rotate'],
  ] as const) {
    const answer = await service.call(method, `/v1/dkim_management/domains/no.example/${path}`)
    assert.deepEqual([answer.status, answer.body], [404, { Description: 'domain not found' }])
  }
})

test('a rotation is due by its interval, and goes through its steps in time', () => {
  const row = {
    domain_id: 'd',
    account_id: 'a',
    domain_name: NAME,
    sid: '1',
    state: 'enabled',
    active_selector: 'pdk1',
    rotation_enabled: 1 as const,
    rotation_interval: '120h',
    rotated_at: 1_000,
    grace_until: null,
    rotation_json: null as string | null,
  }
  assert.equal(parseInterval('120h'), 5 * DAY_MS)
  assert.equal(nextStep(row, 1_000 + 5 * DAY_MS - 1), 'none')
  assert.equal(nextStep(row, 1_000 + 5 * DAY_MS), 'start')
  assert.equal(nextStep({ ...row, rotation_enabled: 0 }, 100 * DAY_MS), 'none')
  assert.equal(nextStep({ ...row, state: 'wait_verify' }, 100 * DAY_MS), 'none')
  const publishing = {
    ...row,
    rotation_json: JSON.stringify({ phase: 'publishing', selector: 'pdk2', readyAt: 50 }),
  }
  assert.deepEqual([nextStep(publishing, 49), nextStep(publishing, 50)], ['none', 'read-back'])
  const retiring = { ...row, rotation_json: JSON.stringify({ phase: 'retiring', until: 50 }) }
  assert.deepEqual([nextStep(retiring, 49), nextStep(retiring, 50)], ['none', 'finish'])
})
