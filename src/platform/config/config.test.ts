import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ConfigError, readConfig } from './config.ts'

const SECRET = 'pLanted-5ecret'

/** Every setting that the source reads, by the name of its variable. */
const SETTINGS = readdirSync(import.meta.dirname)
  .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
  .flatMap((name) => [
    ...readFileSync(join(import.meta.dirname, name), 'utf8').matchAll(
      /\b(?:setting|optional)(?:<[^(]*>)?\(\s*'([A-Z_]+)'/g,
    ),
  ])
  .map((match) => `SENDWRIGHT_${match[1]}`)

/** Ways to write a setting wrong that has a password in it. */
const MISTAKES = [
  `smtp://user:${SECRET}@relay.example:not-a-port`,
  `smtps://user:${SECRET}@relay.example:465`,
  `smtp:/user:${SECRET}@relay.example`,
  `smtp://user:${SECRET}%@relay.example:25`,
  `smtp://user:${SECRET}@relay.example/path`,
  `smtp://user:${SECRET}@relay.example:25?tls=none`,
  `smtp://user:${SECRET}@relay.example?tls=unverified&password=${SECRET}`,
  `smtp://user:${SECRET}`,
  `smtp://${SECRET}:${SECRET}`,
  `user:${SECRET}@relay.example:25`,
  `${SECRET}@relay.example@:25`,
  `postgres://user:${SECRET}@db.example:99999/x`,
  `postgres://user:${SECRET}@[db/x`,
  `mysql://user:${SECRET}@db.example/x`,
  `https://user:${SECRET}@host.example:x/`,
  `https://host.example/?token=${SECRET}`,
  `https://user:"${SECRET}"@host.example"/`,
  `line\nhttps://user:${SECRET}@host.example`,
  `ok,https://user:${SECRET}@host.example`,
]

const faultsOf = (env: Record<string, string>): readonly string[] => {
  try {
    readConfig(env)
    return []
  } catch (error) {
    assert.ok(error instanceof ConfigError)
    return [error.message, ...error.faults]
  }
}

test('traces: the endpoint gets its path, headers are decoded, and faults show none of them', () => {
  const traces = (env: Record<string, string>) => readConfig(env).traces
  assert.equal(traces({}), null)
  assert.deepEqual(traces({ SENDWRIGHT_OTLP_ENDPOINT: 'http://127.0.0.1:4318' }), {
    url: 'http://127.0.0.1:4318/v1/traces',
    headers: {},
    share: 1,
  })
  const env = {
    SENDWRIGHT_OTLP_ENDPOINT: 'https://otel.example/base/',
    SENDWRIGHT_OTLP_HEADERS: 'authorization=Bearer%20a%2Cb, x-team = mail',
    SENDWRIGHT_OTLP_SAMPLING: '0.25',
  }
  assert.deepEqual(traces(env), {
    url: 'https://otel.example/base/v1/traces',
    headers: { authorization: 'Bearer a,b', 'x-team': 'mail' },
    share: 0.25,
  })
  const wrong: [name: string, value: string, fault: RegExp][] = [
    ['ENDPOINT', 'grpc://otel.example:4317', /is not an http\(s\) address/],
    ['ENDPOINT', 'https://otel.example/?x=1', /is not an http\(s\) address/],
    ['HEADERS', 'no value', /is not name=value/],
    ['HEADERS', 'a=%zz', /is not percent-encoded/],
    ['HEADERS', 'a=b%0d%0ac', /printable ASCII/],
    ['SAMPLING', '1.5', /is not a fraction/],
  ]
  for (const [name, value, fault] of wrong)
    assert.match(faultsOf({ ...env, [`SENDWRIGHT_OTLP_${name}`]: value })[1] ?? '', fault)
  const alone = faultsOf({ SENDWRIGHT_OTLP_HEADERS: 'a=b' })
  assert.match(alone[1] ?? '', /OTLP_HEADERS needs SENDWRIGHT_OTLP_ENDPOINT/)
})

test('the fault of a wrong setting never shows a password that stands in it', () => {
  assert.ok(SETTINGS.length > 50, `${SETTINGS.length} settings were found`)
  let faults = 0
  for (const name of SETTINGS) {
    for (const value of MISTAKES) {
      for (const fault of faultsOf({ [name]: value })) {
        faults++
        assert.ok(!fault.includes(SECRET), `${name} set to ${value}: ${fault}`)
      }
    }
  }
  assert.ok(faults > SETTINGS.length * MISTAKES.length, `${faults} faults were looked at`)
})

test('secrets that are too short or have blanks are not shown', () => {
  for (const name of [
    'SENDWRIGHT_API_KEY',
    'SENDWRIGHT_SECRET',
    'SENDWRIGHT_DATABASE_URL',
    'SENDWRIGHT_DELIVERY',
    'SENDWRIGHT_INBOX_RELEASE',
  ])
    for (const value of [SECRET.slice(0, 8), `${SECRET} ${SECRET} ${SECRET}`])
      for (const fault of faultsOf({ [name]: value })) assert.ok(!fault.includes(value.slice(0, 8)), fault)
})

test('all other faults name the value, so that it can be found', () => {
  assert.match(faultsOf({ SENDWRIGHT_PORT: '70000' })[0] ?? '', /"70000" is not a port/)
  assert.match(faultsOf({ SENDWRIGHT_PUBLIC_URL: 'ftp://a.example:21' })[0] ?? '', /"ftp:\/\/a\.example:21"/)
  assert.match(faultsOf({ SENDWRIGHT_ALLOW_NETWORKS: '10.0.0.0/8,x' })[0] ?? '', /"x" is not a network/)
  assert.match(faultsOf({ SENDWRIGHT_IPS: '192.0.2.1=own' })[0] ?? '', /"192\.0\.2\.1=own"/)
})

test('captured mail is released to no server, or to one, which takes mail for all or for some', () => {
  const released = (server: string, to = '') =>
    readConfig({ SENDWRIGHT_INBOX_RELEASE: server, SENDWRIGHT_INBOX_RELEASE_TO: to }).inboxRelease
  assert.equal(readConfig({}).inboxRelease, null)
  assert.equal(released('off'), null)
  const plain = { host: 'relay.example', port: 25, tls: 'starttls', auth: null }
  assert.deepEqual(released('smtp://relay.example'), { server: plain, recipients: ['*'] })
  assert.deepEqual(released('smtps://us%40er:pw@relay.example', 'Ann@Example.org, @Example.NET'), {
    server: {
      ...{ host: 'relay.example', port: 465, tls: 'implicit' },
      auth: { user: 'us@er', password: 'pw', allowUnverified: false },
    },
    recipients: ['ann@example.org', '@example.net'],
  })
  for (const server of ['direct', 'capture', 'https://relay.example', 'smtp://relay.example/x'])
    assert.match(faultsOf({ SENDWRIGHT_INBOX_RELEASE: server })[1] ?? '', /is not off, smtp:/)
  assert.match(
    faultsOf({ SENDWRIGHT_INBOX_RELEASE_TO: 'a@example.org' })[1] ?? '',
    /INBOX_RELEASE_TO needs SENDWRIGHT_INBOX_RELEASE/,
  )
})

test('addresses to send from: behind NAT, with a name, through a proxy', () => {
  const addresses = (ips: string, egress = '') =>
    readConfig({ SENDWRIGHT_IPS: ips, ...(egress && { SENDWRIGHT_EGRESS: egress }) }).sourceAddresses
  const plain = { shared: false, helo: null }
  const cases: readonly [text: string, address: object][] = [
    ['192.0.2.1', { ...plain, ip: '192.0.2.1' }],
    ['192.0.2.1=shared@A.example', { ip: '192.0.2.1', shared: true, helo: 'a.example' }],
    ['10.0.0.4@203.0.113.7', { ...plain, ip: '203.0.113.7', localIp: '10.0.0.4' }],
    [
      '10.0.0.4@203.0.113.7=spare@a.example',
      { ip: '203.0.113.7', localIp: '10.0.0.4', shared: false, spare: true, helo: 'a.example' },
    ],
    ['FD00::4@2001:DB8::7', { ...plain, ip: '2001:db8::7', localIp: 'fd00::4' }],
  ]
  for (const [text, address] of cases) assert.deepEqual(addresses(text), [address], text)
  for (const [text, fault] of [
    ['10.0.0.4@2001:db8::7', /two families/],
    ['10.0.0.4@203.0.113.7@a.example@b', /is not \[local@\]ip/],
    ['192.0.2.1@a.example@b.example', /is not \[local@\]ip/],
    ['10.0.0.4=shared@203.0.113.7', /does not begin with an IP address/],
    ['a.example@203.0.113.7', /does not begin with an IP address/],
    ['10.0.0.4@203.0.113.7=own', /"shared" or "spare"/],
    ['10.0.0.4@203.0.113.7,10.0.0.5@203.0.113.7', /names 203\.0\.113\.7 for several addresses/],
  ] as const)
    assert.match(faultsOf({ SENDWRIGHT_IPS: text })[0] ?? '', fault, text)

  const [behind, own] = addresses(
    '203.0.113.9=shared,192.0.2.1',
    '203.0.113.9=socks5://us%40er:p%2C%3Aw@[2001:db8::9]',
  )
  const login = { user: 'us@er', password: 'p,:w' }
  const proxy = { kind: 'socks5', host: '2001:db8::9', port: 1080, login }
  assert.deepEqual(behind, { ip: '203.0.113.9', shared: true, helo: null, proxy })
  assert.equal(own?.proxy, undefined)
  for (const [text, fault] of [
    ['203.0.113.9=http://10.0.0.9:80', /gives 203\.0\.113\.9 something else than socks5:/],
    ['203.0.113.9=haproxy://10.0.0.9', /something else than/],
    ['203.0.113.9=haproxy://u:p@10.0.0.9:25', /something else than/],
    ['203.0.113.9=socks5://10.0.0.9/x', /something else than/],
    [`203.0.113.9=socks5://u:${'p'.repeat(256)}@10.0.0.9`, /more than 255 bytes/],
    ['socks5://10.0.0.9', /does not begin with an IP address/],
    ['203.0.113.8=socks5://10.0.0.9', /names 203\.0\.113\.8, which is not in SENDWRIGHT_IPS/],
  ] as const)
    assert.match(faultsOf({ SENDWRIGHT_IPS: '203.0.113.9', SENDWRIGHT_EGRESS: text })[0] ?? '', fault, text)
  const both = { SENDWRIGHT_IPS: '10.0.0.4@203.0.113.9', SENDWRIGHT_EGRESS: '203.0.113.9=socks5://10.0.0.9' }
  assert.match(faultsOf(both)[0] ?? '', /gives an address of this machine/)
})

test('settings that are on or off take the same words, in any case', () => {
  for (const [words, on] of [
    [['yes', 'true', 'on', '1', 'YES', 'True'], true],
    [['no', 'false', 'off', '0', 'No', 'OFF'], false],
  ] as const) {
    for (const word of words) {
      const config = readConfig({
        SENDWRIGHT_TRACKING_TLS_EXTERNAL: word,
        SENDWRIGHT_WEBHOOK_RETRY_DELIVERED: word,
        SENDWRIGHT_SMTP_AUTH_WITHOUT_TLS: word,
      })
      assert.equal(config.trackingTlsExternal, on, word)
      assert.equal(config.webhookRetryDelivered, on, word)
      assert.equal(config.smtpAuthWithoutTls, on ? 'anyone' : 'nobody', word)
    }
  }
  assert.throws(
    () => readConfig({ SENDWRIGHT_TRACKING_TLS_EXTERNAL: 'maybe' }),
    (error: unknown) => error instanceof ConfigError && /"maybe" is neither yes nor no/.test(error.message),
  )
})

test('roles and shared blobs need PostgreSQL, their words are checked, and blobs need keys', () => {
  const postgres = { SENDWRIGHT_DATABASE_URL: 'postgres://u:p@127.0.0.1/d' }
  assert.match(
    faultsOf({ SENDWRIGHT_ROLES: 'api' })[0] ?? '',
    /SENDWRIGHT_ROLES needs SENDWRIGHT_DATABASE_URL/,
  )
  assert.match(
    faultsOf({ ...postgres, SENDWRIGHT_ROLES: 'api,mail' })[0] ?? '',
    /"mail" is not one of api, smtp/,
  )
  assert.deepEqual(readConfig({ ...postgres, SENDWRIGHT_ROLES: 'jobs,api,jobs' }).roles, ['api', 'jobs'])
  const s3 = { SENDWRIGHT_BLOBS: 's3://bucket/a/b/', AWS_ACCESS_KEY_ID: 'k', AWS_SECRET_ACCESS_KEY: 's' }
  assert.match(faultsOf(s3)[0] ?? '', /SENDWRIGHT_BLOBS needs SENDWRIGHT_DATABASE_URL/)
  const { blobs } = readConfig({ ...postgres, ...s3, AWS_REGION: 'eu-central-1' })
  assert.deepEqual(blobs, {
    ...{ bucket: 'bucket', prefix: 'a/b/', endpoint: 'https://s3.eu-central-1.amazonaws.com' },
    ...{ region: 'eu-central-1', accessKeyId: 'k', secretAccessKey: 's', sessionToken: null },
  })
  const faults = (more: Record<string, string>) => faultsOf({ ...postgres, ...s3, ...more })[0] ?? ''
  assert.match(faults({ SENDWRIGHT_BLOBS: '/var/blobs' }), /is not s3:\/\/bucket/)
  assert.match(faults({ AWS_SECRET_ACCESS_KEY: '' }), /needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY/)
  assert.match(faults({ SENDWRIGHT_BLOBS_ENDPOINT: 'http://h/path' }), /is not a server/)
})

test('SENDWRIGHT_ACME beside the host name is all that HTTPS needs', () => {
  const { host, port, httpsPort, smtpHost, publicUrl, hostname, acme, smtpTls } = readConfig({
    SENDWRIGHT_ACME: 'yes',
    SENDWRIGHT_HOSTNAME: 'mail.example.com',
  })
  assert.deepEqual([host, port, httpsPort, smtpHost], ['0.0.0.0', 80, 443, '0.0.0.0'])
  assert.deepEqual([publicUrl, hostname, smtpTls], ['https://mail.example.com', 'mail.example.com', null])
  assert.deepEqual(acme, {
    directory: 'https://acme-v02.api.letsencrypt.org/directory',
    email: null,
    ownHosts: ['mail.example.com'],
  })
})

test('certificates are ordered for own names of https addresses only, and not beside own files', () => {
  const ownHosts = (env: Record<string, string>) => readConfig(env).acme?.ownHosts
  const url = (publicUrl: string) => ({ SENDWRIGHT_ACME: 'yes', SENDWRIGHT_PUBLIC_URL: publicUrl })
  const several = {
    SENDWRIGHT_STORAGE_URL: 'https://s.example.com',
    SENDWRIGHT_TRACKING_URL: 'http://t.example.com',
  }
  assert.deepEqual(ownHosts({ ...url('https://a.example.com:8443'), ...several }), [
    'a.example.com',
    's.example.com',
  ])
  const files = { SENDWRIGHT_TLS_CERT: '/a.crt', SENDWRIGHT_TLS_KEY: '/a.key' }
  assert.deepEqual(ownHosts({ ...url('https://a.example.com'), ...files }), [])
  const tracking = { SENDWRIGHT_ACME_DIRECTORY: 'https://ca.example/dir', SENDWRIGHT_HTTPS_PORT: '8443' }
  assert.deepEqual(ownHosts({ ...tracking, SENDWRIGHT_PUBLIC_URL: 'https://a.example.com' }), [])
  for (const bad of [
    'http://a.example.com',
    'https://192.0.2.1',
    'https://localhost',
    'https://mail',
    'https://[2001:db8::1]',
  ])
    assert.match(faultsOf(url(bad)).join(), /SENDWRIGHT_ACME needs a name that the internet knows/, bad)
  assert.equal(faultsOf({ SENDWRIGHT_ACME: 'yes' }).length, 2)
})

test('memory is small or normal', () => {
  assert.equal(readConfig({}).memory, 'normal')
  assert.equal(readConfig({ SENDWRIGHT_MEMORY: 'small' }).memory, 'small')
  assert.match(
    faultsOf({ SENDWRIGHT_MEMORY: '512m' }).join(),
    /SENDWRIGHT_MEMORY: "512m" is not one of small, normal/,
  )
})

test('docs/settings.md lists exactly the settings that are read', () => {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/settings.md'), 'utf8')
  const rows = page.split('\n').filter((line) => line.startsWith('| `SENDWRIGHT_'))
  const listed = rows.flatMap((row) => row.split('|')[1]?.match(/SENDWRIGHT_[A-Z_]+\*?/g) ?? [])
  // One row stands for those of an area.
  const families = listed.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1))
  const isListed = (name: string) =>
    listed.includes(name) || families.some((family) => name.startsWith(family))
  assert.deepEqual(
    SETTINGS.filter((name) => !name.startsWith('SENDWRIGHT_TEST_') && !isListed(name)),
    [],
    'settings without a row',
  )
  assert.deepEqual(
    listed.filter((name) => !name.endsWith('*') && !SETTINGS.includes(name)),
    [],
    'rows without a setting',
  )
})

test('addresses whose names must agree, and mail hosts that get nothing', () => {
  const rule = (text?: string) =>
    readConfig(text === undefined ? {} : { SENDWRIGHT_REQUIRE_FCRDNS: text }).requireFcrdns
  assert.deepEqual([undefined, 'ipv6', 'yes', 'on', 'off', '0'].map(rule), [
    'ipv6',
    'ipv6',
    'all',
    'all',
    'off',
    'off',
  ])
  assert.match(faultsOf({ SENDWRIGHT_REQUIRE_FCRDNS: 'ipv4' })[0] ?? '', /neither yes nor no/)
  const { mxDeny } = readConfig({ SENDWRIGHT_MX_DENY: '*.MX.example, mx?.bad.test,2001:db8::/32,192.0.2.1' })
  assert.deepEqual(mxDeny, ['*.mx.example', 'mx?.bad.test', '2001:db8::/32', '192.0.2.1'])
  for (const text of ['*', '?.*', 'a b', 'mx[1]', '192.0.2.0/33', '^mx$'])
    assert.match(
      faultsOf({ SENDWRIGHT_MX_DENY: text }).join(),
      /SENDWRIGHT_MX_DENY: .* is (?:neither|not)/,
      text,
    )
})
