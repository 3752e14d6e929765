import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createDnsServer } from '../../../test/support/dns-server.ts'
import { systemClock } from '../../base/time/clock.ts'
import { createResolver } from './resolver.ts'
import { spfPermits } from './spf-permits.ts'

test('which addresses a record permits', async (t) => {
  const dns = await createDnsServer()
  t.after(() => dns.close())
  const resolver = createResolver({ servers: [{ host: dns.host, port: dns.port }], clock: systemClock })
  t.after(() => resolver.close())
  dns.set('host.example', 'A', ['192.0.2.7'])
  dns.set('host.example', 'AAAA', ['2001:db8::7'])
  dns.set('mx.example', 'MX', [[10, 'host.example']])
  dns.set('inner.example', 'TXT', ['v=spf1 ip4:192.0.2.128/25 -all'])
  dns.set('loop.example', 'TXT', ['v=spf1 include:loop.example -all'])
  dns.set('broken.example', 'TXT', ['v=spf1 ip4:192.0.2.1 ip6:192.0.2.1'])
  const many = Array.from({ length: 11 }, (_, at): [number, string] => [at, 'host.example'])
  dns.set('wide.example', 'MX', many)
  dns.set('two.example', 'TXT', ['v=spf1 -all', 'v=spf1 +all'])
  const cases: [record: string, ip: string, expected: string][] = [
    ['ip4:192.0.2.1 -all', '192.0.2.1', 'permits'],
    ['ip4:192.0.2.1 -all', '192.0.2.2', 'refuses'],
    ['ip4:192.0.2.0/24 ~all', '192.0.2.2', 'permits'],
    ['-ip4:192.0.2.2 ip4:192.0.2.0/24', '192.0.2.2', 'refuses'],
    ['?all', '192.0.2.2', 'refuses'],
    ['ip6:2001:db8::/32 -all', '2001:db8::1', 'permits'],
    ['ip6:2001:db8::1 -all', '2001:DB8:0::1', 'permits'],
    ['a:host.example -all', '192.0.2.7', 'permits'],
    ['a:host.example -all', '192.0.2.8', 'refuses'],
    ['a:host.example/24//64 -all', '192.0.2.8', 'permits'],
    ['a:host.example/24//64 -all', '2001:db8::8', 'permits'],
    ['mx:mx.example -all', '192.0.2.7', 'permits'],
    ['include:inner.example -all', '192.0.2.200', 'permits'],
    ['include:inner.example -all', '192.0.2.1', 'refuses'],
    ['include:gone.example -all', '192.0.2.1', 'none'],
    ['include:loop.example -all', '192.0.2.1', 'none'],
    ['include:two.example -all', '192.0.2.1', 'none'],
    ['redirect=inner.example', '192.0.2.200', 'permits'],
    ['ip4:192.0.2.1 ip4:192.0.2.300 -all', '192.0.2.1', 'none'],
    ['ip4:192.0.2.1 -all moo', '192.0.2.1', 'none'],
    ['ip4:192.0.2.1 -all include:', '192.0.2.1', 'none'],
    ['include:broken.example ip4:192.0.2.1', '192.0.2.1', 'none'],
    ['ip4:192.0.2.0/24,ip4:198.51.100.0/24', '192.0.2.1', 'none'],
    ['a:x1.example a:x2.example ip4:192.0.2.1', '192.0.2.1', 'permits'],
    ['a:x1.example a:x2.example mx:x3.example ip4:192.0.2.1', '192.0.2.1', 'none'],
    ['mx:wide.example ip4:192.0.2.1', '192.0.2.1', 'none'],
    [`${'ptr '.repeat(11)}ip4:192.0.2.1`, '192.0.2.1', 'none'],
    ['unknown=a.example ip4:192.0.2.1', '192.0.2.1', 'permits'],
    ['exists:%{i}.example ptr ip4:192.0.2.1 -all', '192.0.2.1', 'permits'],
  ]
  for (const [at, [record, ip, expected]] of cases.entries()) {
    dns.set(`r${at}.example`, 'TXT', [`v=spf1 ${record}`])
    assert.equal(await spfPermits(resolver, `r${at}.example`, ip), expected, `${record} for ${ip}`)
  }
  dns.set('other.example', 'TXT', ['something else'])
  assert.equal(await spfPermits(resolver, 'other.example', '192.0.2.1'), 'none')
  const silent = { query: async () => ({ ...(await resolver.query('a.example', 'A')), kind: 'timeout' }) }
  assert.equal(await spfPermits(silent as never, 'r0.example', '192.0.2.1'), 'unknown')
})
