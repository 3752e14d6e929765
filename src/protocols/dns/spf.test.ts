import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createDnsServer } from '../../../test/support/dns-server.ts'
import { systemClock } from '../../base/time/clock.ts'
import { createResolver } from './resolver.ts'
import { countSpfLookups, isSpfRecord, mergeSpf, parseSpf, spfFault } from './spf.ts'

const dns = await createDnsServer()
after(() => dns.close())

const spf = (name: string, record: string) => dns.set(name, 'TXT', [record])

function countAt(domain: string) {
  const resolver = createResolver({ servers: [dns], clock: systemClock, timeoutMs: 10_000, attempts: 1 })
  return countSpfLookups(resolver, domain)
}

test('a record begins with its version and a blank', () => {
  for (const text of ['v=spf1', 'v=spf1 -all', 'V=SPF1 a']) assert.ok(isSpfRecord(text), text)
  for (const text of ['v=spf10', ' v=spf1', 'v=spf1;-all', 'v=spf2 a', ''])
    assert.ok(!isSpfRecord(text), text)
})

test('terms are read with qualifier, name and value', () => {
  const terms = parseSpf(
    'v=spf1  A/24 -mx:Mail.example/24//64 ip4:192.0.2.0/24 ~include:_spf.example redirect=x.example !! all',
  )
  assert.deepEqual(
    terms.map((term) => [term.qualifier, term.name, term.value, term.kind]),
    [
      ['', 'a', '', 'mechanism'],
      ['-', 'mx', 'Mail.example', 'mechanism'],
      ['', 'ip4', '192.0.2.0/24', 'mechanism'],
      ['~', 'include', '_spf.example', 'mechanism'],
      ['', 'redirect', 'x.example', 'modifier'],
      ['', '', '', 'mechanism'],
      ['', 'all', '', 'mechanism'],
    ],
  )
})

test('records that receivers can read, and records that are an error for them (RFC 7208 §12)', () => {
  const readable = [
    // Forms of RFC 7208 §5 to §7 and of its appendix A.
    ...['+all', 'a -all', 'a:example.org -all', 'mx -all', 'mx:example.org -all', 'mx mx:example.org -all'],
    ...['mx/30 mx:example.org/30 -all', 'ptr -all', 'ip4:192.0.2.128/28 -all', 'a/24//96 mx//64'],
    ...[
      'include:example.com include:example.net -all',
      '?include:example.com -all',
      'redirect=_spf.example.com',
    ],
    ...[
      'exists:%{ir}.sbl.example.org',
      'exists:%{l1r-}.lp._spf.%{d2} -all',
      'exists:%{i}._spf.%{d2} redirect=%{d2}',
    ],
    ...[
      'mx -all exp=explain._spf.%{d}',
      'ip6:2001:db8::/32',
      'ip6:::ffff:192.0.2.1',
      'A MX IP4:192.0.2.1 -ALL',
    ],
    ...['', 'unknown=any%%text%_%-', 'x-1.y_z=', 'a:host-1.x-9', 'include:%{d}', 'a:a.example. ~all'],
    ...['include:_spf.%{o}.example', 'a:a/b.example/24'],
  ]
  for (const terms of readable) assert.equal(spfFault(parseSpf(`v=spf1 ${terms}`)), null, terms)
  const broken = [
    ...[
      'ip4:192.0.2.1/33',
      'ip4:192.0.2.1/024',
      'ip4:192.0.2',
      'ip4:192.0.2.01',
      'ip4:192.0.2.256',
      'ip4',
      'ip4:',
    ],
    ...['ip4:192.0.2.1//24', 'ip6:2001:db8::/129', 'ip6:192.0.2.1', 'ip6:2001:db8:::1', 'ipv4:192.0.2.1'],
    ...['include', 'include:', 'include:host', 'include:a.1', 'include:a.example/24'],
    ...[
      'a:',
      'a/33',
      'a/24/24',
      'a//129',
      'a/',
      'a:a.example//',
      'a:-.example-',
      'ptr:',
      'ptr/24',
      'mx:%{x}.example',
    ],
    ...[
      'exists',
      'exists:%{i0}.example',
      'exists:%{c}.example',
      'exists:%(i).example',
      'exists:100%.example',
    ],
    ...['all:', 'all:x', 'all/8', '-', '!all', '--all', '~redirect=a.example', 'redirect=', 'redirect=all'],
    ...[
      'a,mx',
      'all;',
      'ip4:192.0.2.1,192.0.2.2',
      '-all.',
      'a\tmx',
      'a:\u00fc.example',
      `a:${'x'.repeat(600)}.example`,
    ],
    ...['redirect=a.example redirect=b.example', 'exp=a.example exp=a.example', 'mx moo', 'moo:a.example'],
  ]
  for (const terms of broken) assert.notEqual(spfFault(parseSpf(`v=spf1 ${terms} -all`)), null, terms)
})

test('merging keeps every mechanism once and the mildest "all"', () => {
  assert.equal(
    mergeSpf(['v=spf1 a include:x.example -all', 'v=spf1 include:x.example mx ~all'], 'spf.example'),
    'v=spf1 a include:x.example mx include:spf.example ~all',
  )
})

test('include, a, mx, ptr, exists and redirect cost one lookup each; ip4, ip6 and all none', async () => {
  dns.set('mail.one.example', 'A', ['192.0.2.1'])
  dns.set('one.example', 'MX', [[10, 'mail.one.example']])
  dns.set('one.example', 'AAAA', ['2001:db8::1'])
  spf(
    'one.example',
    'v=spf1 ip4:192.0.2.0/24 ip6:2001:db8::/32 a mx ptr exists:%{i}.list.example include:two.example ~all',
  )
  spf('two.example', 'v=spf1 a:mail.one.example redirect=three.example')
  spf('three.example', 'v=spf1 -all a:never.read.example')
  assert.deepEqual(await countAt('one.example'), { kind: 'ok', lookups: 7, voidLookups: 0, problems: [] })
})

test('ten lookups are allowed, eleven are an error', async () => {
  for (let i = 0; i < 12; i++) spf(`inc${i}.example`, 'v=spf1 ip4:192.0.2.1 -all')
  const includes = (count: number) =>
    Array.from({ length: count }, (_, i) => `include:inc${i}.example`).join(' ')
  spf('ten.example', `v=spf1 ${includes(10)} -all`)
  spf('eleven.example', `v=spf1 ${includes(11)} -all`)
  assert.equal((await countAt('ten.example')).kind, 'ok')
  const eleven = await countAt('eleven.example')
  assert.equal(eleven.kind, 'error')
  assert.match(
    eleven.problems[0] ?? '',
    /^The SPF record of eleven\.example costs 11 DNS look-ups, 10 are allowed/,
  )
})

test('a record that multiplies itself is not followed endlessly', async () => {
  for (let i = 0; i < 8; i++) {
    const next = `m${i + 1}.example`
    dns.set(`m${i}.example`, 'TXT', [`v=spf1 ${new Array(10).fill(`include:${next}`).join(' ')} -all`])
  }
  spf('m8.example', 'v=spf1 -all')
  const result = await countAt('m0.example')
  assert.match(result.problems[0] ?? '', /costs more than 40 DNS look-ups/)
  assert.ok(dns.queries.length < 200)
})

test('the cause of an error is reported', async () => {
  spf('loop-a.example', 'v=spf1 include:loop-b.example -all')
  spf('loop-b.example', 'v=spf1 include:loop-a.example -all')
  spf('none.example', 'v=spf1 include:empty.example -all')
  dns.set('empty.example', 'TXT', ['nothing'])
  dns.set('double.example', 'TXT', ['v=spf1 -all', 'v=spf1 a -all'])
  spf('bare.example', 'v=spf1 include: -all')
  spf('void.example', 'v=spf1 a:x1.example a:x2.example mx:x3.example -all')
  spf('wide.example', 'v=spf1 mx -all')
  dns.set(
    'wide.example',
    'MX',
    Array.from({ length: 11 }, (_, i) => [i, `m.example`] as const),
  )
  spf('typo.example', 'v=spf1 ipv4:192.0.2.3 -all ip4:192.0.2.300')
  const cases: [string, RegExp][] = [
    [
      'typo.example',
      /^The SPF record of typo\.example is an error for receivers: the term "ipv4:192\.0\.2\.3"/,
    ],
    ['loop-a.example', /leads back to itself: loop-a\.example -> loop-b\.example -> loop-a\.example/],
    ['none.example', /^empty\.example \(included by none\.example\) has no SPF record/],
    ['double.example', /has 2 SPF records/],
    ['bare.example', /"include" without a usable name/],
    ['void.example', /^3 look-ups of the SPF record of void\.example find nothing, 2 are allowed/],
    ['wide.example', /stands for 11 hosts, 10 are allowed/],
    ['gone.example', /^gone\.example has no SPF record/],
  ]
  for (const [domain, problem] of cases) {
    const result = await countAt(domain)
    assert.equal(result.kind, 'error', domain)
    assert.match(result.problems[0] ?? '', problem)
  }
})

test('an include without a DNS answer leaves the count temporary', async () => {
  spf('open.example', 'v=spf1 include:failing.example -all')
  dns.misbehave('failing.example', 'servfail')
  const result = await countAt('open.example')
  assert.deepEqual([result.kind, result.lookups], ['temporary', 1])
})
