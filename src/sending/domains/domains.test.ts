import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, type TestContext, test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { eachDatabase } from '../../../test/support/databases.ts'
import { createDnsServer, type DnsServer } from '../../../test/support/dns-server.ts'
import { type Answer, eventually, startTestService, type TestService } from '../../../test/support/service.ts'
import { callAs, createSubaccount } from '../../../test/support/subaccounts.ts'

const SETTINGS = {
  SENDWRIGHT_SPF_INCLUDE_HOST: 'spf.service.example',
  SENDWRIGHT_MX_HOSTS: 'mxa.service.example,mxb.service.example',
  SENDWRIGHT_TRACKING_CNAME_TARGET: 'track.service.example',
}

let dns: DnsServer
let service: TestService
const cleanUps: (() => Promise<void> | void)[] = []
const whole = { after: (run: () => Promise<void>) => cleanUps.unshift(run) } as unknown as TestContext

before(async () => {
  dns = await createDnsServer()
  dns.set('spf.service.example', 'TXT', ['v=spf1 ip4:192.0.2.0/24 -all'])
  service = await startTestService(whole, {
    ...SETTINGS,
    SENDWRIGHT_DNS: `${dns.host}:${dns.port}`,
    SENDWRIGHT_IPS: '127.0.0.9,127.0.0.10=shared',
    SENDWRIGHT_MAX_MESSAGE_TTL: '1000',
  })
})
after(async () => {
  for (const cleanUp of cleanUps) await cleanUp()
  await dns.close()
})

const create = (name: string, form: Record<string, string> = {}) =>
  service.call('POST', '/v4/domains', { form: { name, dkim_key_size: '1024', ...form } })

/** Publishes the records that the domain asks for. */
function publish(on: DnsServer, body: Record<string, unknown>) {
  const lists = body as Record<'sending_dns_records' | 'receiving_dns_records', Record<string, string>[]>
  const { name } = (body as { domain: { name: string } }).domain
  for (const record of lists.sending_dns_records) {
    if (record['record_type'] === 'TXT') on.set(record['name'] as string, 'TXT', [record['value'] as string])
    else on.set(record['name'] as string, 'CNAME', [record['value'] as string])
  }
  on.set(
    name,
    'MX',
    lists.receiving_dns_records.map((record) => [Number(record['priority']), record['value'] as string]),
  )
}

test('a new domain lists its records and is unverified', async () => {
  const { status, body } = await create('New.Example.com', { dkim_key_size: '' })
  assert.equal(status, 200)
  assert.equal(body.message, 'Domain DNS records have been created')
  assert.match(body.domain.id, /^[0-9a-f]{24}$/)
  assert.match(body.domain.created_at, /^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/)
  const { id: _id, created_at: _at, ...domain } = body.domain
  assert.deepEqual(domain, {
    name: 'new.example.com',
    state: 'unverified',
    type: 'custom',
    is_disabled: false,
    smtp_login: 'postmaster@new.example.com',
    spam_action: 'disabled',
    require_tls: false,
    skip_verification: false,
    cfbl_address: false,
    feedback_id: false,
    wildcard: false,
    use_automatic_sender_security: false,
    encrypt_incoming_message: false,
    web_prefix: 'email',
    web_scheme: 'http',
    message_ttl: 0,
    tracking_host: 'email.new.example.com',
  })
  const common = { valid: 'unknown', cached: [] }
  assert.deepEqual(body.receiving_dns_records, [
    { record_type: 'MX', priority: '10', value: 'mxa.service.example', ...common, is_active: true },
    { record_type: 'MX', priority: '10', value: 'mxb.service.example', ...common, is_active: true },
  ])
  const [dkim, spf, tracking] = body.sending_dns_records
  assert.match(dkim.value, /^k=rsa; p=MIIB/)
  assert.deepEqual(
    { ...dkim, value: '' },
    { record_type: 'TXT', name: 'k1._domainkey.new.example.com', value: '', ...common, is_active: false },
  )
  assert.deepEqual(spf, {
    record_type: 'TXT',
    name: 'new.example.com',
    value: 'v=spf1 include:spf.service.example ~all',
    ...common,
    is_active: true,
  })
  assert.deepEqual(tracking, {
    record_type: 'CNAME',
    name: 'email.new.example.com',
    value: 'track.service.example',
    ...common,
    is_active: true,
  })
})

test('the host of return paths is chosen by a change, not at creation', async () => {
  await create('own-host.example', { mailfrom_host: 'elsewhere.example' })
  const { body } = await service.call('GET', '/v4/domains/own-host.example?extended=true')
  assert.equal(body.domain.mailfrom_host, 'own-host.example')
})

test('the v3 paths are the same operations', async () => {
  const made = await service.call('POST', '/v3/domains', { form: { name: 'v3.example.com' } })
  assert.equal(made.body.message, 'Domain DNS records have been created')
  assert.equal((await service.call('GET', '/v3/domains/v3.example.com')).body.domain.name, 'v3.example.com')
  const changed = await service.call('PUT', '/v3/domains/v3.example.com', { form: { wildcard: 'yes' } })
  assert.equal(changed.body.domain.wildcard, true)
  assert.equal((await service.call('PUT', '/v3/domains/v3.example.com/verify')).status, 200)
  assert.equal((await service.call('GET', '/v3/domains?search=v3.ex')).body.total_count, 1)
  assert.equal((await service.call('DELETE', '/v4/domains/v3.example.com')).status, 200)
})

const REFUSED: [form: Record<string, string>, message: string][] = [
  [{}, "Parameter 'name' is missing"],
  [{ name: 'nodots' }, 'Invalid domain name'],
  [{ name: 'bücher.example' }, 'Invalid domain name'],
  [{ name: '192.0.2.1' }, 'Invalid domain name'],
  [
    { name: 'x.example', smtp_password: 'four' },
    'Password is too short. It must be between 5 and 32 characters.',
  ],
  [
    { name: 'x.example', smtp_password: 'x'.repeat(33) },
    'Password is too long. It must be between 5 and 32 characters.',
  ],
  [{ name: 'x.example', spam_action: 'burn' }, "'burn' is not a valid value for spam_action"],
  [{ name: 'x.example', web_scheme: 'ftp' }, "'ftp' is not a valid value for web_scheme"],
  [{ name: 'x.example', web_prefix: 'a.b' }, 'web_prefix must be a valid atom'],
  [{ name: 'x.example', dkim_selector: 'a.b' }, 'dkim_selector must be a valid atom'],
  [{ name: 'x.example', dkim_key_size: '512' }, "'512' is not a valid value for dkim_key_size"],
  [{ name: 'x.example', message_ttl: '1001' }, 'message_ttl is larger than the account maximum of 1000'],
  [{ name: 'x.example', message_ttl: 'soon' }, 'Invalid format for parameter message_ttl: soon'],
  [{ name: 'x.example', wildcard: 'maybe' }, 'Invalid format for parameter wildcard: maybe'],
  [
    { name: 'x.example', archive_to: 'ftp://a.example/' },
    "'ftp://a.example/' is not a valid value for archive_to",
  ],
  [
    { name: 'x.example', archive_to: 'https://user:secret@a.example/' },
    "'https://user:secret@a.example/' is not a valid value for archive_to",
  ],
  [{ name: 'x.example', ips: '192.0.2.55' }, 'IP 192.0.2.55 is not assigned to the account'],
  [{ name: 'x.example', pool_id: 'nosuch' }, 'IP pool not found'],
  [
    { name: 'x.example', dkim_host_name: 'x.example', force_dkim_authority: 'true' },
    'dkim_host_name cannot be used with force_dkim_authority or force_root_dkim_host',
  ],
  [
    { name: 'x.example', dkim_host_name: 'other.example' },
    "'other.example' is not a valid value for dkim_host_name",
  ],
  [
    { name: 'x.example', use_automatic_sender_security: 'true' },
    'Automatic Sender Security is not configured on this server',
  ],
]

test('an invalid domain is refused with the texts of the contract', async () => {
  for (const [form, message] of REFUSED) {
    const answer = await service.call('POST', '/v4/domains', { form: { ...form } })
    assert.deepEqual([answer.status, answer.body], [400, { message }], JSON.stringify(form))
  }
  await create('taken.example')
  const again = await create('Taken.example')
  assert.deepEqual([again.status, again.body], [400, { message: 'This domain name is already taken' }])
  assert.equal((await service.call('GET', '/v4/domains/x.example')).status, 404)
})

test("a tracking host cannot be one of the service's own names, neither at creation nor later", async (t) => {
  const URLS = {
    SENDWRIGHT_PUBLIC_URL: 'https://API.own.example:8443',
    SENDWRIGHT_TRACKING_URL: 'https://links.own.example',
    SENDWRIGHT_STORAGE_URL: 'https://files.own.example/kept',
    SENDWRIGHT_HOSTNAME: 'email.own.example',
    SENDWRIGHT_TRACKING_CNAME_TARGET: 'to.own.example',
  }
  const { call } = await startTestService(t, URLS)
  const refused = (prefix: string) => ({
    message: `Cannot use web_prefix "${prefix}": ${prefix}.own.example is a host name of this service`,
  })
  const form = { name: 'own.example', dkim_key_size: '1024' }
  for (const prefix of ['api', 'Links', 'files', 'email', 'to']) {
    const { status, body } = await call('POST', '/v4/domains', { form: { ...form, web_prefix: prefix } })
    assert.deepEqual([status, body], [400, refused(prefix.toLowerCase())])
  }
  // The default is checked like any other value.
  assert.deepEqual((await call('POST', '/v3/domains', { form })).body, refused('email'))
  assert.equal((await call('POST', '/v4/domains', { form: { ...form, web_prefix: 'go' } })).status, 200)
  for (const path of ['/v4/domains/own.example', '/v3/domains/own.example/web_prefix']) {
    const { status, body } = await call('PUT', path, { form: { web_prefix: 'api' } })
    assert.deepEqual([status, body], [400, refused('api')])
  }
  const { body } = await call('GET', '/v4/domains/own.example')
  assert.equal(body.domain.tracking_host, 'go.own.example')
})

test('settings given at creation and changed later are shown', async () => {
  const { body } = await create('set.example', {
    spam_action: 'delete',
    wildcard: 'true',
    web_prefix: 'link',
    web_scheme: 'https',
    require_tls: 'true',
    skip_verification: 'true',
    archive_to: 'https://archive.example/in',
    message_ttl: '900',
    encrypt_incoming_message: 'true',
    ips: '127.0.0.9, 127.0.0.10',
    dkim_key_size: '1024',
    dkim_selector: 'first',
    smtp_password: 'secret',
  })
  assert.equal(body.domain.spam_action, 'block')
  assert.equal(body.domain.tracking_host, 'link.set.example')
  assert.equal(body.domain.archive_to, 'https://archive.example/in')
  assert.equal(body.domain.encrypt_incoming_message, true)
  assert.equal(body.sending_dns_records[0].name, 'first._domainkey.set.example')
  assert.ok(!JSON.stringify(body).includes('secret'))
  const changed = await service.call('PUT', '/v4/domains/set.example', {
    form: { spam_action: 'tag', archive_to: '', mailfrom_host: 'bounce.set.example', web_prefix: 'e' },
  })
  assert.equal(changed.body.message, 'Domain has been updated')
  assert.equal(changed.body.domain.spam_action, 'tag')
  assert.equal(changed.body.domain.require_tls, true)
  assert.ok(!('archive_to' in changed.body.domain))
  assert.equal(changed.body.sending_dns_records[2].name, 'e.set.example')
  const read = await service.call('GET', '/v4/domains/set.example?h:extended=true&h:with_dns=false')
  const { dkim_host, mailfrom_host, pod } = read.body.domain
  assert.deepEqual([dkim_host, mailfrom_host, pod], ['set.example', 'bounce.set.example', 'default'])
  assert.ok(!('sending_dns_records' in read.body))
  const bad = await service.call('PUT', '/v4/domains/set.example', {
    form: { mailfrom_host: 'Upper.example' },
  })
  assert.equal(bad.body.message, "'Upper.example' is not a valid value for mailfrom_host")
  for (const path of ['/v4/domains/no.example', '/v4/domains/no.example/verify']) {
    const unknown = await service.call('PUT', path)
    assert.deepEqual([unknown.status, unknown.body], [404, { message: 'Domain not found' }])
  }
})

test('connection settings have both public shapes, and changing one field leaves the other', async () => {
  await create('tls.example')
  const path = '/v3/domains/tls.example/connection'
  const put = await service.call('PUT', path, { form: { require_tls: 'true' } })
  assert.deepEqual(put.body, {
    message: 'Domain connection settings have been updated, may take 10 minutes to fully propagate',
    require_tls: true,
    skip_verification: false,
    'require-tls': true,
    'skip-verification': false,
  })
  await service.call('PUT', path, { form: { skip_verification: 'true' } })
  const both = { require_tls: true, skip_verification: true }
  assert.deepEqual((await service.call('GET', path)).body, { ...both, connection: both })
  const bad = await service.call('PUT', path, { form: { require_tls: 'perhaps' } })
  assert.deepEqual(bad.body, { message: 'Invalid format for parameter require_tls: perhaps' })
  assert.equal((await service.call('GET', '/v3/domains/no.example/connection')).status, 404)
  assert.equal((await service.call('PUT', '/v3/domains/no.example/connection')).status, 404)
})

test('a new domain has its own host of return paths, whatever the call names', async () => {
  const form = { name: 'fresh.example', mailfrom_host: 'bounce.of-others.example' }
  assert.equal((await service.call('POST', '/v4/domains', { form })).status, 200)
  const { domain } = (await service.call('GET', '/v4/domains/fresh.example?extended=1')).body
  assert.equal(domain.mailfrom_host, 'fresh.example')
})

test('the three deprecated updates still work, from body or query', async () => {
  await create('old.example')
  const put = (field: string, query: string) =>
    service.call('PUT', `/v3/domains/old.example/${field}${query}`)
  assert.deepEqual((await put('message_ttl', '?message_ttl=60')).body, {
    message: 'Domain message TTL updated',
  })
  const host = await service.call('PUT', '/v3/domains/old.example/mailfrom_host', {
    form: { mailfrom_host: 'b.old.example' },
  })
  assert.deepEqual(host.body, { message: 'Domain mailfrom host updated' })
  assert.deepEqual((await put('web_prefix', '?web_prefix=go')).body, { message: 'Domain web prefix updated' })
  const { domain } = (await service.call('GET', '/v4/domains/old.example?extended=1')).body
  assert.deepEqual([domain.message_ttl, domain.mailfrom_host, domain.web_prefix], [60, 'b.old.example', 'go'])
  const large = await put('message_ttl', '?message_ttl=1001')
  assert.deepEqual(
    [large.status, large.body],
    [400, { Reason: 'message_ttl is larger than the account maximum of 1000' }],
  )
  assert.equal((await put('web_prefix', '?web_prefix=a.b')).body.message, 'web_prefix must be a valid atom')
  assert.equal((await put('message_ttl', '')).body.message, 'Missing mandatory parameter: message_ttl')
  assert.equal((await service.call('PUT', '/v3/domains/no.example/web_prefix?web_prefix=a')).status, 404)
})

test('verification: active with SPF and DKIM, unverified without them, unchanged while DNS is down', async () => {
  const { body } = await create('verify.example')
  const verify = () => service.call('PUT', '/v4/domains/verify.example/verify')
  const before = await verify()
  assert.equal(before.body.message, 'Domain DNS records have been updated')
  assert.equal(before.body.domain.state, 'unverified')

  dns.set('k1._domainkey.verify.example', 'TXT', [body.sending_dns_records[0].value])
  dns.set('verify.example', 'TXT', ['v=spf1 include:spf.service.example ~all', 'other'])
  const active = await verify()
  assert.equal(active.body.domain.state, 'active')
  assert.deepEqual(
    active.body.sending_dns_records.map((record: Record<string, unknown>) => [
      record['valid'],
      record['is_active'],
    ]),
    [
      ['valid', true],
      ['valid', true],
      ['unknown', true],
    ],
  )
  assert.deepEqual(active.body.sending_dns_records[1].cached, ['v=spf1 include:spf.service.example ~all'])

  publish(dns, body)
  const all = await verify()
  const records = [...all.body.sending_dns_records, ...all.body.receiving_dns_records]
  assert.ok(records.every((record) => record.valid === 'valid'))
  assert.deepEqual(all.body.receiving_dns_records[0].cached, [
    '10 mxa.service.example',
    '10 mxb.service.example',
  ])

  dns.misbehave('verify.example', 'servfail')
  dns.misbehave('k1._domainkey.verify.example', 'servfail')
  const down = await verify()
  assert.equal(down.body.domain.state, 'active')
  assert.equal(down.body.sending_dns_records[1].valid, 'valid')
  dns.misbehave('verify.example', null)
  dns.misbehave('k1._domainkey.verify.example', null)

  dns.set('verify.example', 'TXT', ['v=spf1 -all'])
  const gone = await verify()
  assert.equal(gone.body.domain.state, 'unverified')
  assert.deepEqual(
    [gone.body.sending_dns_records[1].valid, gone.body.sending_dns_records[1].cached],
    ['unknown', ['v=spf1 -all']],
  )
  assert.deepEqual(
    (await service.call('GET', '/v4/domains/verify.example')).body.sending_dns_records,
    gone.body.sending_dns_records,
  )

  const queries = dns.queries.length
  await service.call('GET', '/v4/domains/verify.example')
  assert.equal(dns.queries.length, queries, 'reading asks nobody')
})

test('each record is explained: query, server, answer, sentence; with advice about DMARC', async () => {
  const made = await create('explain.example')
  const path = '/sendwright/v1/domains/explain.example/dns'
  assert.equal((await service.call('GET', path)).body.records[0].sentence, 'Not looked up yet.')
  publish(dns, made.body)
  dns.set('explain.example', 'TXT', ['v=spf1 include:a.example -all'])
  await service.call('PUT', '/v4/domains/explain.example', { form: { mailfrom_host: 'b.explain.example' } })
  await service.call('PUT', '/v4/domains/explain.example/verify')
  const { records, dmarc } = (await service.call('GET', path)).body
  assert.deepEqual(
    records.map((item: { record: { purpose: string } }) => item.record.purpose),
    ['dkim', 'spf', 'tracking', 'mx', 'mx', 'return-path-spf', 'return-path-mx', 'return-path-mx'],
  )
  const spf = records[1]
  assert.equal(spf.asked, 'TXT explain.example')
  assert.equal(spf.server, `127.0.0.1:${dns.port}`)
  assert.deepEqual(spf.found, ['v=spf1 include:a.example -all'])
  assert.equal(spf.valid, 'unknown')
  assert.equal(spf.record.value, 'v=spf1 include:a.example include:spf.service.example -all')
  assert.match(spf.sentence, /Change it to: v=spf1 include:a\.example include:spf\.service\.example -all$/)
  assert.match(spf.checked_at, /^\d{4}-\d\d-\d\dT/)
  assert.match(records[5].sentence, /b\.explain\.example does not exist/)
  assert.match(dmarc.sentence, /v=DMARC1; p=none/)
  assert.equal((await service.call('GET', '/sendwright/v1/domains/no.example/dns')).status, 404)
})

test('the zone text holds every record, long keys in pieces of 255', async () => {
  await create('zone.example', { dkim_key_size: '2048' })
  dns.set('zone.example', 'TXT', ['v=spf1 ip4:192.0.2.1 -all'])
  await service.call('PUT', '/v4/domains/zone.example/verify')
  const { status, text, headers } = await service.call('GET', '/sendwright/v1/domains/zone.example/zone')
  assert.equal(status, 200)
  assert.match(headers.get('content-type') ?? '', /^text\/plain/)
  assert.match(
    text,
    /^zone\.example\.\t3600\tIN\tTXT\t"v=spf1 ip4:192\.0\.2\.1 include:spf\.service\.example -all"$/m,
  )
  assert.match(text, /^zone\.example\.\t3600\tIN\tMX\t10 mxa\.service\.example\.$/m)
  assert.match(text, /^email\.zone\.example\.\t3600\tIN\tCNAME\ttrack\.service\.example\.$/m)
  assert.match(text, /^_dmarc\.zone\.example\.\t3600\tIN\tTXT\t"v=DMARC1; p=none"$/m)
  const key = /^k1\._domainkey\.zone\.example\.\t3600\tIN\tTXT\t(.*)$/m.exec(text)?.[1] ?? ''
  const strings = [...key.matchAll(/"([^"]*)"/g)].map((match) => match[1] as string)
  assert.ok(strings.length === 2 && strings.every((string) => string.length <= 255))
  const { body } = await service.call('GET', '/v4/domains/zone.example')
  assert.equal(strings.join(''), body.sending_dns_records[0].value)
})

test('a deleted domain is gone at once, its name is free when all that belonged to it is removed', async () => {
  await create('gone.example')
  await service.call('PUT', '/v3/domains/gone.example/tracking/open', { form: { active: 'yes' } })
  const sent = await service.call('POST', '/v3/gone.example/messages', {
    form: { from: 'a@gone.example', to: 'b@example.org', subject: 's', text: 't', 'o:testmode': 'yes' },
  })
  assert.equal(sent.status, 200)
  const answer = await service.call('DELETE', '/v3/domains/gone.example')
  assert.deepEqual(answer.body, { message: 'Domain will be deleted in the background' })
  assert.equal((await service.call('GET', '/v4/domains/gone.example')).status, 404)
  assert.equal((await service.call('GET', '/v4/domains?search=gone.ex')).body.total_count, 0)
  assert.equal((await service.call('DELETE', '/v3/domains/gone.example')).status, 404)
  await eventually('the name to be free', async () => (await create('gone.example')).status === 200)
  const keys = await service.call('GET', '/v1/dkim/keys?signing_domain=gone.example')
  assert.equal(keys.body.total_count, 1, 'only the key of the new domain')
  const tracking = await service.call('GET', '/v3/domains/gone.example/tracking')
  assert.equal(tracking.body.tracking.open.active, false)
})

test('sandbox, authority of another domain and disabled domain cannot be deleted', async () => {
  const remove = async (name: string) => (await service.call('DELETE', `/v3/domains/${name}`)).body.message
  assert.equal(await remove(service.domain), "Sandbox domain can't be deleted")
  await create('parent.example')
  const child = await create('a.parent.example', { force_dkim_authority: 'false' })
  assert.equal(child.body.sending_dns_records[0].name, 'k1._domainkey.parent.example')
  assert.equal(await remove('parent.example'), 'Domain is used as DKIM authority by other domains')
  assert.equal(await remove('a.parent.example'), 'Domain will be deleted in the background')
  assert.equal(await remove('parent.example'), 'Domain will be deleted in the background')
})

test('the root domain signs on request, even unregistered', async () => {
  const { body } = await create('mail.root.co.uk', { force_root_dkim_host: 'true' })
  assert.equal(body.sending_dns_records[0].name, 'k1._domainkey.root.co.uk')
  const named = await create('mail.named.example', { dkim_host_name: 'sig.mail.named.example' })
  assert.equal(named.body.sending_dns_records[0].name, 'k1._domainkey.sig.mail.named.example')
  const { domain } = (await service.call('GET', '/v4/domains/mail.root.co.uk?h:extended=true')).body
  assert.deepEqual([domain.dkim_host, domain.mailfrom_host], ['root.co.uk', 'mail.root.co.uk'])
})

test('every operation requires a key with the right', async () => {
  const paths = [
    'GET /v4/domains',
    'POST /v4/domains',
    'GET /v4/domains/x.example',
    'PUT /v4/domains/x.example',
  ]
  paths.push(
    'PUT /v4/domains/x.example/verify',
    'DELETE /v3/domains/x.example',
    'GET /v3/domains/x.example/connection',
  )
  paths.push('PUT /v3/domains/x.example/connection', 'GET /sendwright/v1/domains/x.example/zone')
  paths.push(
    'PUT /v3/domains/x.example/message_ttl',
    'GET /v1/dkim/keys',
    'POST /v1/dkim/keys',
    'DELETE /v1/dkim/keys',
  )
  paths.push('GET /v4/domains/x.example/keys', 'PUT /v4/domains/x.example/keys/k1/activate')
  paths.push('PUT /v3/domains/x.example/dkim_authority', 'PUT /v3/domains/x.example/dkim_selector')
  paths.push('GET /v3/domains/x.example/tracking', 'PUT /v3/domains/x.example/tracking/click')
  const made = await service.call('POST', '/v1/keys', { form: { role: 'basic', kind: 'user' } })
  const key = made.body.key.secret as string
  assert.ok(key)
  for (const line of paths) {
    const [method = '', path = ''] = line.split(' ')
    const none = await service.call(method, path, { key: 'wrong-key-0123456789' })
    assert.deepEqual([none.status, none.body], [401, { message: 'Invalid private key' }], line)
    if (method !== 'GET') assert.equal((await service.call(method, path, { key })).status, 403, line)
  }
})

test('lists: search, sort, state, authority, skip and limit over a thousand domains', async (t) => {
  const many = await startTestService(t, { ...SETTINGS })
  const file = join(many.config.dataFolder, 'sendwright.db')
  const database = new DatabaseSync(file, { timeout: 5000 })
  const columns = (database.prepare('SELECT * FROM domains').all()[0] ?? {}) as Record<
    string,
    string | number | null
  >
  const names = Object.keys(columns)
  const insert = database.prepare(
    `INSERT INTO domains (${names.join()}) VALUES (${names.map(() => '?').join()})`,
  )
  database.exec('BEGIN')
  for (let n = 0; n < 1200; n++) {
    const name = `d${String(n).padStart(4, '0')}.example.com`
    const row = {
      ...columns,
      id: String(n).padStart(24, '0'),
      name,
      type: 'custom',
      state: n % 3 === 0 ? 'active' : n % 3 === 1 ? 'unverified' : 'disabled',
      dkim_authority: n < 50 ? 'd0000.example.com' : name,
      created_at: 1_000_000 + n,
    }
    insert.run(...Object.values(row))
  }
  database.exec('COMMIT')
  database.close()
  const list = async (query: string) => {
    const { body } = await many.call('GET', `/v4/domains${query}`)
    return { total: body.total_count, names: body.items.map((item: { name: string }) => item.name) }
  }
  const all = await list('?sort=name&search=example.com')
  assert.equal(all.total, 1200)
  assert.equal(all.names.length, 100)
  assert.equal(all.names[0], 'd0000.example.com')
  const seen = new Set<string>()
  for (let skip = 0; ; skip += 500) {
    const page = await list(`?sort=name:asc&limit=500&skip=${skip}&search=EXAMPLE.com`)
    assert.equal(page.total, 1200)
    for (const name of page.names) seen.add(name)
    if (page.names.length === 0) break
  }
  assert.equal(seen.size, 1200)
  assert.equal((await list('?sort=name:desc&limit=1&search=example')).names[0], 'd1199.example.com')
  assert.deepEqual((await list('?limit=2&search=d11')).names, ['d1199.example.com', 'd1198.example.com'])
  assert.deepEqual(await list('?search=d00_1'), { total: 0, names: [] })
  assert.deepEqual(await list('?search=%25'), { total: 0, names: [] })
  assert.deepEqual(await list('?search=%00'), { total: 0, names: [] })
  assert.equal((await list('?state=active&search=example.com')).total, 400)
  assert.equal((await list('?state=disabled')).total, 400)
  assert.equal((await list('?authority=d0000.example.com')).total, 50)
  assert.equal((await list('?authority=d0000.example.com&state=unverified')).total, 400)
  const errors: [string, string][] = [
    ['?limit=1001', "Limit parameter can't be larger than 1000"],
    ['?limit=0', 'Invalid format for parameter limit: 0'],
    ['?skip=-1', 'Invalid format for parameter skip: -1'],
    ['?state=asleep', "'asleep' is not a valid value for state"],
    ['?sort=age', "'age' is not a valid value for sort"],
    ['?include_subaccounts=si', 'Invalid format for parameter include_subaccounts: si'],
  ]
  for (const [query, message] of errors) {
    const answer = await many.call('GET', `/v4/domains${query}`)
    assert.deepEqual([answer.status, answer.body], [400, { message }], query)
  }
})

test('verification is limited to ten calls per minute and domain', async (t) => {
  const env = { ...SETTINGS, SENDWRIGHT_RATE_LIMIT: '100', SENDWRIGHT_DNS: `${dns.host}:${dns.port}` }
  // One more is allowed every six seconds.
  const limited = await startTestService(t, env, { clock: createTestClock() })
  await limited.call('POST', '/v4/domains', { form: { name: 'a.example' } })
  const verify = () => limited.call('PUT', '/v4/domains/a.example/verify')
  for (let n = 0; n < 10; n++) assert.equal((await verify()).status, 200)
  const refused = await verify()
  assert.equal(refused.status, 429)
  assert.equal(refused.body.message, 'Too Many Requests')
  assert.equal(typeof refused.body['retry-seconds'], 'number')
  assert.equal(refused.headers.get('retry-after'), String(refused.body['retry-seconds']))
})

eachDatabase((database) => {
  test('a domain is created, found in the background, disabled until a time and deleted', async (t) => {
    const clock = createTestClock()
    const env = { ...SETTINGS, SENDWRIGHT_DNS: `${dns.host}:${dns.port}`, SENDWRIGHT_DELIVERY: 'direct' }
    const service = await startTestService(t, env, { clock, database })
    const name = `${database}.background.example`
    const both = await Promise.all([1, 2].map(() => service.call('POST', '/v4/domains', { form: { name } })))
    assert.deepEqual(both.map((answer) => answer.status).sort(), [200, 400])
    const made = both.find((answer) => answer.status === 200) as Answer
    const key = { signing_domain: name, selector: 'twice', bits: '1024' }
    const keys = await Promise.all([1, 2].map(() => service.call('POST', '/v1/dkim/keys', { form: key })))
    assert.deepEqual(keys.map((answer) => answer.status).sort(), [200, 400])
    const send = () =>
      service.call('POST', `/v3/${name}/messages`, {
        form: { from: `a@${name}`, to: 'b@example.org', subject: 's', text: 't', 'o:testmode': 'yes' },
      })
    assert.equal((await send()).status, 403)
    publish(dns, made.body)
    await eventually('the background check', async () => {
      await clock.advance(61_000)
      const { body } = await service.call('GET', `/v4/domains/${name}`)
      return body.domain.state === 'active'
    })
    assert.equal((await send()).status, 200)
    dns.set(name, 'TXT', ['v=spf1 -all'])
    clock.leap(25 * 3_600_000)
    await eventually('the daily check', async () => {
      await clock.advance(61_000)
      const { body } = await service.call('GET', `/v4/domains/${name}`)
      return body.sending_dns_records[1].valid === 'unknown' && body.domain.state === 'active'
    })
    dns.misbehave('slow.example', 'servfail')
    await service.call('POST', `/v3/${name}/messages`, {
      form: { from: `a@${name}`, to: 'b@slow.example', subject: 's', text: 't' },
    })
    assert.equal((await service.call('DELETE', `/v3/domains/${name}`)).status, 200)
    await service.restart()
    await eventually('the name to be free', async () => {
      await clock.advance(61_000)
      return (await service.call('POST', '/v4/domains', { form: { name } })).status === 200
    })
    assert.equal((await service.call('GET', `/v4/domains?search=${database}`)).body.total_count, 1)
    const [end] = (await service.events('?event=rejected', name)) as { reject: { reason: string } }[]
    assert.equal(end?.reject.reason, 'The domain was deleted', 'waiting mail does not end silently')
  })
})

test('a disabled domain neither sends nor can be deleted, and is enabled again at its end time', async (t) => {
  const clock = createTestClock()
  const service = await startTestService(
    t,
    { ...SETTINGS, SENDWRIGHT_DNS: `${dns.host}:${dns.port}` },
    { clock },
  )
  await service.call('POST', '/v4/domains', { form: { name: 'off.example' } })
  const until = Math.floor(clock.now()) + 3_600_000
  const disabled = { code: 'spam', note: 'n', reason: 'r', permanently: false, until }
  const database = new DatabaseSync(join(service.config.dataFolder, 'sendwright.db'), { timeout: 5000 })
  database
    .prepare("UPDATE domains SET state = 'disabled', disabled_json = ? WHERE name = 'off.example'")
    .run(JSON.stringify(disabled))
  database.close()
  await clock.advance(6_000) // domain directory cache
  const { body } = await service.call('GET', '/v4/domains/off.example')
  assert.equal(body.domain.state, 'disabled')
  assert.equal(body.domain.is_disabled, true)
  assert.deepEqual(body.domain.disabled, {
    code: 'spam',
    note: 'n',
    reason: 'r',
    permanently: false,
    until: 'Mon, 01 Jun 2026 13:00:00 GMT',
  })
  const removal = await service.call('DELETE', '/v3/domains/off.example')
  assert.deepEqual([removal.status, removal.body], [400, { message: 'Domain is disabled' }])
  assert.equal((await service.call('PUT', '/v4/domains/off.example/verify')).body.domain.state, 'disabled')
  clock.leap(3_600_000)
  await clock.advance(1)
  const back = (await service.call('GET', '/v4/domains/off.example')).body.domain
  assert.equal(back.state, 'unverified')
  assert.ok(!('disabled' in back))
})

test('names that no database or DNS can hold are not found', async () => {
  await create('xn--bcher-kva.example')
  assert.equal((await service.call('GET', `/v4/domains/${encodeURIComponent('Bücher.example')}`)).status, 200)
  for (const name of ['a%00b', '%2e%2e', 'a%20b.example', `${'a'.repeat(300)}.example`]) {
    assert.equal((await service.call('GET', `/v4/domains/${name}`)).status, 404, name)
    assert.equal((await service.call('PUT', `/v4/domains/${name}/keys/k1/activate`)).status, 404, name)
  }
})

test('domains of subaccounts are listed on request, with their account', async () => {
  const child = await createSubaccount(service, 'Child')
  const form = { name: 'of-child.example' }
  assert.equal((await callAs(service, child)('POST', '/v4/domains', { form })).status, 200)
  const list = async (query: string) =>
    (await service.call('GET', `/v4/domains?search=of-child${query}`)).body
  assert.equal((await list('')).total_count, 0)
  const both = await list('&include_subaccounts=yes')
  assert.deepEqual([both.total_count, both.items[0].subaccount_id], [1, child])
  const own = (await callAs(service, child)('GET', '/v4/domains')).body
  assert.deepEqual([own.total_count, own.items[0].subaccount_id], [1, child])
})

test('private keys are stored only sealed', async () => {
  const made = await create('secret.example')
  assert.equal(made.status, 200)
  const folder = service.config.dataFolder
  for (const file of await readdir(folder)) {
    if (!file.includes('.db')) continue
    const bytes = await readFile(join(folder, file))
    for (const mark of [
      'PRIVATE KEY',
      'BEGIN RSA',
      Buffer.from('PRIVATE KEY').toString('base64').slice(2, -4),
    ])
      assert.ok(!bytes.includes(mark), `${file} holds "${mark}"`)
  }
})
