import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { createInternet, type Internet } from '../../../test/support/internet.ts'
import { ownAddress, startTestService } from '../../../test/support/service.ts'
import { createSocksServer } from '../../../test/support/socks-server.ts'
import { temporaryFolder } from '../../../test/support/stores.ts'
import { selfSignedCertificate } from '../../base/net/certificate.ts'
import { systemClock } from '../../base/time/clock.ts'
import { readConfig } from '../../platform/config/config.ts'
import { createResolver } from '../../protocols/dns/resolver.ts'
import type { RelayView } from '../../sending/relays/shapes.ts'
import { type CheckParts, type CheckResult, runChecks } from './checks.ts'
import { addressIn } from './seen-addresses.ts'

const DAY_MS = 86_400_000
const ADDRESS = '192.0.2.25'

async function checksIn(
  t: test.TestContext,
  internet: Internet,
  env: Record<string, string> = {},
  parts: Partial<CheckParts> = {},
) {
  const config = readConfig({
    ...internet.env,
    SENDWRIGHT_DATA: await temporaryFolder(t),
    SENDWRIGHT_FREE_SPACE_MIN: '1',
    SENDWRIGHT_DNSBL_ZONES: 'list.example',
    ...env,
  })
  const { host, port } = internet.dns
  const resolver = createResolver({ servers: [{ host, port }], clock: systemClock })
  t.after(() => resolver.close())
  const results = await runChecks({
    config,
    resolver,
    hostAddresses: [],
    probeDomains: ['probe.example'],
    tryDatabase: async () => 'It can be written.',
    clockStepMs: () => 0,
    recentRefusals: async () => [],
    now: () => systemClock.now(),
    ...parts,
  })
  return (name: string) => results.find((result) => result.name === name) as CheckResult
}

/** A sending address with everything in order. */
function setUpAddress({ dns }: Internet): void {
  dns.set('25.2.0.192.in-addr.arpa', 'PTR', ['mail.sender.example'])
  dns.set('mail.sender.example', 'A', [ADDRESS])
}

test('a correct machine: every check is ok', async (t) => {
  const internet = await createInternet(t)
  const sink = await internet.site(['probe.example'])
  setUpAddress(internet)
  const check = await checksIn(t, internet, {}, { hostAddresses: ['8.8.4.4'] })
  assert.equal(check('outbound-port-25').state, 'ok', check('outbound-port-25').sentence)
  assert.match(check('outbound-port-25').sentence, /mx\.probe\.example was reached/)
  assert.equal(sink.connections.total, 1)
  for (const name of ['disk', 'files', 'database', 'clock', 'resolver', 'tls-certificate', 'blocklists']) {
    assert.equal(check(name).state, 'ok', check(name).sentence)
    assert.match(check(name).checked_at, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
  }
})

test('port 25 is failed when no mail server can be reached, and says which were tried', async (t) => {
  const internet = await createInternet(t)
  internet.host('probe.example', 'mx.probe.example', '127.255.255.3')
  const port = (await checksIn(t, internet))('outbound-port-25')
  assert.equal(port.state, 'failed')
  assert.match(port.sentence, /mx\.probe\.example \(127\.255\.255\.3\).*Ask your provider/)
})

test('in capture mode no query leaves the machine', async (t) => {
  const internet = await createInternet(t)
  const sink = await internet.site(['probe.example'])
  const env = { SENDWRIGHT_DELIVERY: 'capture', SENDWRIGHT_IPS: ADDRESS }
  const check = await checksIn(t, internet, env, { hostAddresses: ['8.8.4.4'] })
  assert.match(check('resolver').sentence, /^Not asked: in capture mode/)
  assert.deepEqual([internet.dns.queries.length, sink.connections.total], [0, 0])
})

test('in capture and relay mode no query is sent about this host', async (t) => {
  const internet = await createInternet(t)
  const sink = await internet.site(['probe.example'])
  for (const delivery of ['capture', 'smtp://127.0.0.1:2599']) {
    const check = await checksIn(t, internet, { SENDWRIGHT_DELIVERY: delivery, SENDWRIGHT_IPS: ADDRESS })
    for (const name of ['outbound-port-25', 'reverse-names', 'helo-names', 'sender-policy', 'blocklists']) {
      assert.match(check(name).sentence, /^Not needed: /)
    }
  }
  assert.equal(sink.connections.total, 0)
  assert.ok(internet.dns.queries.every(({ type }) => type === 'MX'))
})

test('names in EHLO have addresses, and the SPF record permits the sending addresses', async (t) => {
  const internet = await createInternet(t)
  const env = {
    SENDWRIGHT_IPS: `${ADDRESS}@mail.sender.example,192.0.2.26`,
    SENDWRIGHT_HOSTNAME: 'host.sender.example',
    SENDWRIGHT_SPF_INCLUDE_HOST: 'spf.sender.example',
  }
  const look = () => checksIn(t, internet, env, { probeDomains: [] })
  const bad = await look()
  for (const name of ['helo-names', 'sender-policy']) assert.equal(bad(name).state, 'warning', name)
  assert.match(bad('helo-names').sentence, /mail\.sender\.example, which 192\.0\.2\.25 names itself/)
  assert.match(bad('helo-names').sentence, /host\.sender\.example, which 192\.0\.2\.26 names itself/)
  assert.match(bad('sender-policy').sentence, /spf\.sender\.example has no usable SPF record/)
  setUpAddress(internet)
  internet.dns.set('host.sender.example', 'A', ['192.0.2.99'])
  internet.dns.set('spf.sender.example', 'TXT', ['v=spf1 ip4:192.0.2.24/30 -all'])
  const good = await look()
  for (const name of ['helo-names', 'sender-policy'])
    assert.equal(good(name).state, 'ok', good(name).sentence)
})

test('a reverse name must resolve back to its address', async (t) => {
  const internet = await createInternet(t)
  const env = { SENDWRIGHT_IPS: ADDRESS }
  const reverse = async () => (await checksIn(t, internet, env, { probeDomains: [] }))('reverse-names')
  assert.match((await reverse()).sentence, /192\.0\.2\.25 has no reverse name \(nxdomain\)/)
  setUpAddress(internet)
  assert.equal((await reverse()).state, 'ok')
  internet.dns.set('mail.sender.example', 'A', ['192.0.2.26'])
  const elsewhere = await reverse()
  assert.equal(elsewhere.state, 'failed')
  assert.match(elsewhere.sentence, /is named mail\.sender\.example, which does not lead back/)
})

test('without a public address the check asks for one to be configured', async (t) => {
  const internet = await createInternet(t)
  const check = await checksIn(t, internet, {}, { hostAddresses: ['10.0.0.5', '127.0.0.1'] })
  assert.equal(check('reverse-names').state, 'warning')
  assert.match(check('blocklists').sentence, /Set SENDWRIGHT_IPS/)
})

test('what a server sees in EHLO is the address that is checked where this machine has none', async (t) => {
  const internet = await createInternet(t)
  const sink = await internet.site(['probe.example'])
  const look = async (env: Record<string, string> = {}, hostAddresses: string[] = ['10.0.0.5']) => {
    const check = await checksIn(t, internet, env, { hostAddresses })
    const { state, sentence } = check('public-address')
    return { check, state, sentence }
  }
  const silent = await look()
  assert.equal(silent.state, 'warning')
  assert.match(silent.sentence, /^mx\.probe\.example did not say .* as 127\.0\.0\.1@203\.0\.113\.7\.$/)

  sink.on('EHLO', '250-mx.google.com at your service, [8.8.4.4]\r\n250 SIZE 1000')
  const seen = await look()
  assert.equal(seen.state, 'warning')
  assert.match(
    seen.sentence,
    /^Mail seems to leave from 8\.8\.4\.4, .*SENDWRIGHT_IPS=127\.0\.0\.1@8\.8\.4\.4/,
  )
  assert.match(seen.check('reverse-names').sentence, /^8\.8\.4\.4 has no reverse name/)
  assert.equal((await look({}, ['8.8.4.4'])).state, 'ok')

  const mapped = await look({ SENDWRIGHT_IPS: '127.0.70.4@8.8.4.4' })
  assert.deepEqual(
    [mapped.state, mapped.sentence],
    ['ok', 'Mail leaves from 8.8.4.4, as mx.probe.example sees it.'],
  )
  const wrong = await look({ SENDWRIGHT_IPS: '127.0.70.4@8.8.4.4,127.0.70.5@8.8.8.8' })
  assert.equal(wrong.state, 'warning')
  assert.match(wrong.sentence, /^Mail from 8\.8\.8\.8 seems to leave from 8\.8\.4\.4/)
})

test('proxies that addresses are behind: they accept connections and the login', async (t) => {
  const internet = await createInternet(t)
  await internet.site(['probe.example'])
  const login = { user: 'sender', password: 'secret' }
  const socks = await createSocksServer(t, { host: ownAddress(), from: '127.0.70.9', login })
  const env = (user: string) => ({
    SENDWRIGHT_IPS: ADDRESS,
    SENDWRIGHT_EGRESS: `${ADDRESS}=socks5://${user}:secret@${socks.host}`,
  })
  const good = await checksIn(t, internet, env('sender'))
  for (const name of ['egress-proxies', 'outbound-port-25'])
    assert.equal(good(name).state, 'ok', good(name).sentence)
  assert.equal(socks.targets.length, 1, 'port 25 is tried the way that mail takes')
  const bad = await checksIn(t, internet, env('other'))
  for (const name of ['egress-proxies', 'outbound-port-25']) {
    assert.equal(bad(name).state, 'failed', name)
    assert.match(bad(name).sentence, /socks5:\/\/127\.[\d.]+:1080 cannot be used: it refuses the login/)
    assert.ok(!bad(name).sentence.includes('secret'))
  }
})

test('addresses in replies to EHLO', () => {
  const found = (line: string) =>
    addressIn(
      [
        { direction: 'received', line: '220 mx.example.net', ms: 0 },
        { direction: 'sent', line: 'EHLO a.example', ms: 0 },
        { direction: 'received', line, ms: 0 },
      ],
      '8.8.8.8',
    )
  assert.equal(found('250-mx.google.com at your service, [9.9.9.9]'), '9.9.9.9')
  assert.equal(found('250-AMS.mail.protection.outlook.com Hello [9.9.9.9]'), '9.9.9.9')
  assert.equal(found('250-mx.example.net Hello a.example (9.9.9.9), glad to meet you.'), '9.9.9.9')
  assert.equal(found('250-mx Hello [IPv6:2620:fe::fe]'), '2620:fe::fe')
  assert.equal(found('250-mx.example.net [8.8.8.8] greets [9.9.9.9].'), '9.9.9.9')
  assert.equal(found('250-mx.example.net Hello [10.0.0.5]'), null)
  assert.equal(found('250-mx.example.net'), null)
})

test('a blocklist: listed, refused, silent, out of order', async (t) => {
  const cases = [
    {
      answer: '127.0.0.4',
      state: 'failed',
      says: /192\.0\.2\.25 is listed by list\.example \(127\.0\.0\.4\)/,
    },
    { answer: '127.255.255.254', state: 'warning', says: /refuses to answer this resolver/ },
    { answer: '192.0.2.1', state: 'warning', says: /means nothing/ },
    { answer: null, state: 'warning', says: /did not answer \(servfail\)/ },
    { answer: '127.0.0.2', all: true, state: 'warning', says: /list\.example lists everything/ },
  ] as const
  for (const { answer, state, says, ...list } of cases) {
    const internet = await createInternet(t)
    const name = '25.2.0.192.list.example'
    internet.dns.set('2.0.0.127.list.example', 'A', ['127.0.0.2'])
    if ('all' in list) internet.dns.set('1.0.0.127.list.example', 'A', ['127.0.0.2'])
    if (answer === null) internet.dns.misbehave(name, 'servfail')
    else internet.dns.set(name, 'A', [answer])
    const check = await checksIn(t, internet, { SENDWRIGHT_IPS: ADDRESS }, { probeDomains: [] })
    assert.equal(check('blocklists').state, state)
    assert.match(check('blocklists').sentence, says)
  }
})

test('a resolver that fails stops mail in direct mode, and only verification in the others', async (t) => {
  const internet = await createInternet(t)
  internet.dns.misbehave('probe.example', 'servfail')
  const direct = await checksIn(t, internet)
  assert.equal(direct('resolver').state, 'failed')
  const relay = await checksIn(t, internet, { SENDWRIGHT_DELIVERY: 'smtp://127.0.0.1:2599' })
  assert.equal(relay('resolver').state, 'warning')
})

test('a certificate: valid, expiring soon, expired, not yet valid, none', async (t) => {
  const internet = await createInternet(t)
  const folder = await temporaryFolder(t)
  const now = systemClock.now()
  const file = join(folder, 'mail.crt')
  const keyFile = join(folder, 'mail.key')
  const state = async (fromDays: number, toDays: number) => {
    const days = (count: number) => new Date(now + count * DAY_MS)
    const { cert, key } = selfSignedCertificate(['mail.example'], { from: days(fromDays), to: days(toDays) })
    await writeFile(file, cert)
    await writeFile(keyFile, key)
    const env = { SENDWRIGHT_DELIVERY: 'capture', SENDWRIGHT_TLS_CERT: file, SENDWRIGHT_TLS_KEY: keyFile }
    return (await checksIn(t, internet, env))('tls-certificate').state
  }
  assert.equal(await state(-1, 60), 'ok')
  assert.equal(await state(-1, 5), 'warning')
  assert.equal(await state(-10, -2), 'failed')
  assert.equal(await state(2, 60), 'failed')
  await writeFile(file, 'no certificate')
  const env = { SENDWRIGHT_DELIVERY: 'capture', SENDWRIGHT_TLS_CERT: file, SENDWRIGHT_TLS_KEY: keyFile }
  assert.match((await checksIn(t, internet, env))('tls-certificate').sentence, /cannot be read/)
})

test('a changed clock, a full disk and an unwritable database are reported', async (t) => {
  const internet = await createInternet(t)
  const env = { SENDWRIGHT_DELIVERY: 'capture', SENDWRIGHT_FREE_SPACE_MIN: '900000000000000' }
  const check = await checksIn(t, internet, env, {
    clockStepMs: () => -3_600_000,
    tryDatabase: () => Promise.reject(new Error('read-only')),
  })
  assert.match(check('clock').sentence, /was set back by 3600 s.*restart/)
  assert.equal(check('disk').state, 'failed')
  assert.match(check('database').sentence, /cannot be written: read-only/)
})

test('the service returns its checks, and one run serves calls soon after it', async (t) => {
  const clock = createTestClock()
  const { dns } = await createInternet(t)
  const env = { SENDWRIGHT_DNS: `${dns.host}:${dns.port}` }
  const service = await startTestService(t, env, { clock })
  const ask = () => service.call('GET', '/sendwright/v1/system/checks')
  const [first, second] = await Promise.all([ask(), ask()])
  assert.equal(first.status, 200)
  assert.deepEqual(first.body, second.body)
  const names = first.body.items.map(({ name }: CheckResult) => name)
  assert.ok(names.includes('database') && names.includes('outbound-port-25'))
  assert.match(first.body.items.find(({ name }: CheckResult) => name === 'database').sentence, /sqlite/)
  assert.equal((await service.call('GET', '/sendwright/v1/system/checks', { key: null })).status, 401)
})

test('return paths that point elsewhere are a warning with the record to add, unless mail is captured', async (t) => {
  const internet = await createInternet(t)
  const env = { SENDWRIGHT_MX_HOSTS: 'mxa.sender.example' }
  const none = { domains: 3, count: 0, hosts: [] }
  const lost = { domains: 9, count: 6, hosts: ['a.example', 'b.example'] }
  const cases: [found: typeof lost | null, delivery: string, state: string, says: RegExp][] = [
    [
      lost,
      'direct',
      'warning',
      /of a\.example, b\.example, and 4 more leads here.* 10 mxa\.sender\.example, or/,
    ],
    [lost, 'smtp://127.0.0.1:2599', 'warning', /mailfrom_host/],
    [lost, 'capture', 'skipped', /^Not needed/],
    [none, 'direct', 'ok', /find the way/],
    [{ ...none, domains: 0 }, 'direct', 'ok', /no verified domain/],
    [null, 'direct', 'skipped', /only a running service/],
  ]
  for (const [found, delivery, state, says] of cases) {
    const parts = { probeDomains: [], ...(found && { lostReturnPaths: async () => found }) }
    const check = await checksIn(t, internet, { ...env, SENDWRIGHT_DELIVERY: delivery }, parts)
    assert.equal(check('return-paths').state, state, delivery)
    assert.match(check('return-paths').sentence, says)
  }
})

test('what receivers refuse because of this host is a warning that says what to do', async (t) => {
  const internet = await createInternet(t)
  const refusal = {
    ruleId: 'generic-ptr',
    count: 3,
    newestReply: '450 cannot find your reverse hostname, [IP]',
    explanation: 'The sending IP has no usable reverse DNS name.',
  }
  const cases: [found: (typeof refusal)[] | null, state: string, says: RegExp][] = [
    [[refusal], 'warning', /generic-ptr, 3 times \(newest: "450 cannot.*\): The sending IP has no .* Mend/],
    [[], 'ok', /No receiver refused/],
    [null, 'skipped', /known to a running service only/],
  ]
  for (const [found, state, says] of cases) {
    const parts = { probeDomains: [], recentRefusals: async () => found }
    const check = await checksIn(t, internet, { SENDWRIGHT_DELIVERY: 'capture' }, parts)
    assert.equal(check('refusals').state, state)
    assert.match(check('refusals').sentence, says)
  }
})

test('whether IPv6 is used, and why not', async (t) => {
  const internet = await createInternet(t)
  const [ip, other] = ['2a00:1::25', '2a00:1::26']
  const reverse = '5.2.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.1.0.0.0.0.0.a.2.ip6.arpa'
  const say = async (env: Record<string, string>, source: string | null = null) => {
    const parts = { probeDomains: [], sourceTowards: async () => source }
    const { state, sentence } = (await checksIn(t, internet, env, parts))('ipv6')
    return `${state}: ${sentence}`
  }
  assert.match(await say({}), /^ok: IPv6 is not used: this host has no IPv6 address/)
  assert.match(await say({ SENDWRIGHT_IPS: ADDRESS }), /^ok: IPv6 is not used: SENDWRIGHT_IPS names no/)
  const only = /^warning: IPv6 is not used: 2a00:1::25 has no reverse name .* cannot be reached otherwise\./
  assert.match(await say({}, ip), only)
  assert.match(await say({ SENDWRIGHT_IPS: `${ADDRESS},${ip}` }), only)
  assert.match(
    await say({ SENDWRIGHT_IPS: ip, SENDWRIGHT_REQUIRE_FCRDNS: 'yes' }),
    /^warning: .* No mail leaves from there\./,
  )
  assert.match(
    await say({ SENDWRIGHT_REQUIRE_FCRDNS: 'off' }, ip),
    /^ok: IPv6 is used from 2a00:1::25, with a reverse name or without/,
  )
  internet.dns.set(reverse, 'PTR', ['mail.sender.example'])
  internet.dns.set('mail.sender.example', 'AAAA', [ip])
  assert.equal(await say({}, ip), 'ok: IPv6 is used from 2a00:1::25.')
  assert.match(
    await say({ SENDWRIGHT_IPS: `${ip},${other}` }),
    /^warning: IPv6 is used from 2a00:1::25 only: 2a00:1::26 has no reverse name/,
  )
})

test('the relays are listed, and one that is closed or gets no access token is a warning', async (t) => {
  const internet = await createInternet(t)
  const relay = (name: string, more: object = {}) => ({
    ...{ name, pause: null, login: null, state: { word: 'open', why: null, since: null } },
    ...more,
  })
  const say = async (relays: object[] | null) => {
    const parts = { probeDomains: [], ...(relays && { relays: async () => relays as RelayView[] }) }
    const { state, sentence } = (await checksIn(t, internet, {}, parts))('relays')
    return `${state}: ${sentence}`
  }
  assert.match(await say(null), /^skipped: .* running service only/)
  assert.equal(await say([]), 'ok: There are no relays.')
  assert.equal(await say([relay('ses')]), 'ok: ses is open.')
  const closed = { state: { word: 'blocked', why: '535 no', since: '2026-11-27T12:00:00.000Z' } }
  assert.match(
    await say([relay('ses'), relay('isp', closed)]),
    /^warning: ses is open\. isp is blocked .*"535 no"/,
  )
  const tokenless = { login: { oauth: { error: 'invalid_grant' } } }
  assert.equal(
    await say([relay('microsoft', tokenless)]),
    'warning: microsoft gets no access token: invalid_grant.',
  )
})
