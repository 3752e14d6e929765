import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createDnsServer, type DnsServer } from '../../../../test/support/dns-server.ts'
import { startTestService } from '../../../../test/support/service.ts'
import { systemClock } from '../../../base/time/clock.ts'
import { readConfig } from '../../../platform/config/config.ts'
import { createResolver } from '../../../protocols/dns/resolver.ts'
import { checkOwnRecords, wantedOwnRecords } from './own-records.ts'

const PUBLIC = { SENDWRIGHT_PUBLIC_URL: 'https://mail.own.example', SENDWRIGHT_HOSTNAME: 'mail.own.example' }
const DIRECT = { ...PUBLIC, SENDWRIGHT_DELIVERY: 'direct' }
const ADDRESS = '192.0.2.7'

const wantedLines = (env: Record<string, string>, addresses: readonly string[]) =>
  wantedOwnRecords(readConfig(env), addresses)
    .flat()
    .map(({ name, type, value }) => `${name} ${type} ${value}`)

test('which records the operator needs follows from the settings', () => {
  assert.deepEqual(wantedLines(DIRECT, [ADDRESS, '2001:db8::7']), [
    'mail.own.example A 192.0.2.7',
    'mail.own.example AAAA 2001:db8::7',
    'mxa.mail.own.example A 192.0.2.7',
    'mxa.mail.own.example AAAA 2001:db8::7',
    'mxb.mail.own.example A 192.0.2.7',
    'mxb.mail.own.example AAAA 2001:db8::7',
    'track.mail.own.example CNAME mail.own.example',
    'spf.mail.own.example TXT v=spf1 ip4:192.0.2.7 ip6:2001:db8::7 -all',
  ])
  const one = {
    SENDWRIGHT_MX_HOSTS: 'mail.own.example',
    SENDWRIGHT_TRACKING_CNAME_TARGET: 'mail.own.example',
  }
  const relayed = { ...DIRECT, ...one, SENDWRIGHT_DELIVERY: 'smtp://relay.example:587' }
  assert.deepEqual(wantedLines(relayed, []), ['mail.own.example A null', 'spf.mail.own.example TXT null'])
  const several = { ...DIRECT, ...one, SENDWRIGHT_HOSTNAME: 'out.own.example', SENDWRIGHT_IPS: '192.0.2.8' }
  assert.deepEqual(wantedLines(several, [ADDRESS]), [
    'mail.own.example A 192.0.2.7',
    'out.own.example A 192.0.2.7',
    'spf.mail.own.example TXT v=spf1 ip4:192.0.2.8 -all',
  ])
  assert.deepEqual(wantedLines({}, [ADDRESS]), [], 'nobody else can reach a service without a public name')
  assert.deepEqual(wantedLines({ SENDWRIGHT_PUBLIC_URL: 'http://192.0.2.7:8080' }, [ADDRESS]), [])
  const targets = {
    SENDWRIGHT_SPF_INCLUDE_HOST: 'spf.own.example',
    SENDWRIGHT_TRACKING_CNAME_TARGET: 't.own.example',
  }
  assert.deepEqual(wantedLines(targets, []), ['t.own.example CNAME null', 'spf.own.example TXT null'])
})

function publishAll(dns: DnsServer): void {
  for (const name of ['mail', 'mxa.mail', 'mxb.mail']) dns.set(`${name}.own.example`, 'A', [ADDRESS])
  dns.set('track.mail.own.example', 'CNAME', ['mail.own.example'])
  dns.set('spf.mail.own.example', 'TXT', [`v=spf1 ip4:${ADDRESS} -all`])
}

async function dnsOf(t: TestContext) {
  const dns = await createDnsServer()
  t.after(() => dns.close())
  publishAll(dns)
  const resolver = createResolver({ servers: [dns], clock: systemClock, timeoutMs: 10_000, attempts: 1 })
  t.after(() => resolver.close())
  const faults = async () => {
    const parts = { resolver, config: readConfig(DIRECT), hostAddresses: ['10.0.0.7'], fresh: true }
    const checks = await checkOwnRecords(parts)
    return checks
      .filter(({ state }) => state !== 'valid')
      .map(({ records: [{ name }], state, sentence }) => ({
        name: name.replace('.own.example', ''),
        state,
        sentence,
      }))
  }
  return { dns, faults }
}

const SPOILED: [what: string, spoil: (dns: DnsServer) => void, name: string, state: string, says: RegExp][] =
  [
    [
      'no address of an MX target',
      (dns) => dns.remove('mxb.mail.own.example'),
      'mxb.mail',
      'missing',
      /mxb\.mail\.own\.example, which the MX records of sending domains name, has no address\. Publish: mxb\.mail\.own\.example A 192\.0\.2\.7$/,
    ],
    [
      'an MX target that leads elsewhere',
      (dns) => dns.set('mxa.mail.own.example', 'A', ['198.51.100.1']),
      'mxa.mail',
      'elsewhere',
      /leads to 198\.51\.100\.1, which is neither.*bounces and received mail arrive there/,
    ],
    [
      'an MX target that is an alias',
      (dns) => {
        dns.remove('mxa.mail.own.example')
        dns.set('mxa.mail.own.example', 'CNAME', ['mail.own.example'])
      },
      'mxa.mail',
      'missing',
      /is an alias \(CNAME\), which the target of an MX record must not be/,
    ],
    [
      'no tracking target',
      (dns) => dns.remove('track.mail.own.example'),
      'track.mail',
      'missing',
      /Publish: track\.mail\.own\.example CNAME mail\.own\.example$/,
    ],
    [
      'no SPF record to include',
      (dns) => dns.set('spf.mail.own.example', 'TXT', ['something else']),
      'spf.mail',
      'missing',
      /has no SPF record: receivers treat.*Publish: spf\.mail\.own\.example TXT "v=spf1 ip4:192\.0\.2\.7 -all"$/,
    ],
    [
      'two SPF records to include',
      (dns) => dns.set('spf.mail.own.example', 'TXT', ['v=spf1 -all', 'v=spf1 a -all']),
      'spf.mail',
      'missing',
      /has 2 SPF records instead of one/,
    ],
    [
      'no answer',
      (dns) => dns.misbehave('spf.mail.own.example', 'servfail'),
      'spf.mail',
      'unanswered',
      /DNS gave no answer about spf\.mail\.own\.example/,
    ],
  ]

test('with all of them published nothing is wrong, even behind NAT', async (t) => {
  const { faults } = await dnsOf(t)
  assert.deepEqual(await faults(), [])
})

for (const [what, spoil, name, state, says] of SPOILED)
  test(`${what} is found, with the record to make`, async (t) => {
    const { dns, faults } = await dnsOf(t)
    spoil(dns)
    const found = await faults()
    assert.deepEqual(
      found.map((fault) => [fault.name, fault.state]),
      [[name, state]],
    )
    assert.match(found[0]?.sentence ?? '', says)
  })

test('where an MX target leads is not known while DNS gives no answer about the public host', async (t) => {
  const { dns, faults } = await dnsOf(t)
  dns.misbehave('mail.own.example', 'servfail')
  const found = await faults()
  assert.deepEqual(
    found.filter(({ name }) => name.startsWith('mx')).map(({ name, state }) => [name, state]),
    [
      ['mxa.mail', 'unanswered'],
      ['mxb.mail', 'unanswered'],
    ],
  )
})

test('doctor and the DNS state of a domain say which of the operator records is missing', async (t) => {
  const dns = await createDnsServer()
  t.after(() => dns.close())
  publishAll(dns)
  dns.remove('spf.mail.own.example')
  const env = { ...DIRECT, SENDWRIGHT_DNS: `${dns.host}:${dns.port}`, SENDWRIGHT_DNSBL_ZONES: 'off' }
  const service = await startTestService(t, env)
  const made = await service.call('POST', '/v4/domains', { form: { name: 'a.example' } })
  assert.equal(made.status, 200)
  const state = () => service.call('GET', '/sendwright/v1/domains/a.example/dns')
  const check = () => service.call('PUT', '/v4/domains/a.example/verify')
  await check()
  const { body } = await state()
  assert.deepEqual(body.service, [
    {
      records: [
        {
          purpose: 'spf-include',
          name: 'spf.mail.own.example',
          type: 'TXT',
          value: `v=spf1 ip4:${ADDRESS} -all`,
        },
      ],
      state: 'missing',
      found: [],
      sentence: `spf.mail.own.example, which the SPF records of sending domains include, has no SPF record: receivers treat that as an error of every domain. Publish: spf.mail.own.example TXT "v=spf1 ip4:${ADDRESS} -all"`,
    },
  ])
  const own = async () => {
    const { items } = (await service.call('GET', '/sendwright/v1/system/checks')).body
    return items.find((check: { name: string }) => check.name === 'own-records')
  }
  const found = await own()
  assert.equal(found.state, 'failed')
  assert.equal(found.sentence, body.service[0].sentence)
  publishAll(dns)
  await service.restart() // the results of a minute are kept
  assert.match((await own()).sentence, /exist: mail\.own\.example, mxa\.mail/)
  await check()
  assert.deepEqual((await state()).body.service, [])
})
