import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createDnsServer } from '../../../test/support/dns-server.ts'
import { ManualClock } from '../../../test/support/http-server.ts'
import { systemClock } from '../../base/time/clock.ts'
import { createResolver } from '../../protocols/dns/resolver.ts'
import { createDomainMailLookup } from './domain-mail.ts'

async function setUp(t: TestContext) {
  const dns = await createDnsServer()
  const resolver = createResolver({ servers: [dns], clock: systemClock, timeoutMs: 10_000 })
  t.after(async () => {
    resolver.close()
    await dns.close()
  })
  return { dns, resolver }
}

test('MX, address without MX, null MX, nothing, no such domain, no answer', async (t) => {
  const { dns, resolver } = await setUp(t)
  dns.set('mx.example', 'MX', [[10, 'mail.mx.example']])
  dns.set('v4.example', 'A', ['192.0.2.1'])
  dns.set('v6.example', 'AAAA', ['2001:db8::1'])
  dns.set('null.example', 'MX', [[0, '']])
  dns.set('null.example', 'A', ['192.0.2.1'])
  dns.set('text.example', 'TXT', ['nothing else'])
  dns.misbehave('broken.example', 'servfail')
  const lookup = createDomainMailLookup(resolver, systemClock)
  const cases = {
    'mx.example': 'accepts',
    'v4.example': 'accepts',
    'v6.example': 'accepts',
    'null.example': 'refuses',
    'text.example': 'refuses',
    'absent.example': 'refuses',
    'broken.example': 'unknown',
  }
  for (const [domain, expected] of Object.entries(cases))
    assert.equal(await lookup.of('account', domain), expected, domain)
})

test('an answer is asked for once and kept, for an hour at most', async (t) => {
  const { dns, resolver } = await setUp(t)
  dns.set('mx.example', 'MX', [[10, 'mail.mx.example']], 86_400)
  const clock = new ManualClock()
  const lookup = createDomainMailLookup(resolver, clock)
  const asked = () => dns.queries.filter(({ name }) => name === 'mx.example').length
  await Promise.all(Array.from({ length: 20 }, () => lookup.of('account', 'mx.example')))
  assert.equal(asked(), 1)
  clock.advance(3_599_000)
  await lookup.of('account', 'mx.example')
  assert.equal(asked(), 1)
  clock.advance(2_000)
  await lookup.of('account', 'mx.example')
  assert.equal(asked(), 2, 'not from the cache of the resolver either')
})

test('names below one registered domain take turns; others do not wait for them', async (t) => {
  const { dns, resolver } = await setUp(t)
  const clock = new ManualClock()
  const lookup = createDomainMailLookup(resolver, clock)
  const victims = Array.from({ length: 200 }, (_, n) => lookup.of('account', `n${n}.victim.example`))
  assert.equal(await lookup.of('account', 'other.example'), 'refuses')
  await Promise.all(victims.slice(0, 20))
  const asked = () => dns.queries.filter(({ name }) => name.endsWith('.victim.example')).length
  assert.equal(asked(), 21, 'a burst of 20 and the first turn')
  clock.advance(1_000)
  await Promise.all(victims.slice(21, 31))
  assert.equal(asked(), 31, 'ten a second')
  // The last ones would have waited longer than anybody does.
  assert.deepEqual(await Promise.all(victims.slice(150)), Array(50).fill('unknown'))
  assert.equal(asked(), 31)
})

test('domains that never answer leave room for other accounts, and end at the deadline', async (t) => {
  const dns = await createDnsServer()
  const resolver = createResolver({ servers: [dns], clock: systemClock, timeoutMs: 30_000 })
  t.after(async () => {
    resolver.close()
    await dns.close()
  })
  const clock = new ManualClock()
  const lookup = createDomainMailLookup(resolver, clock)
  const names = Array.from({ length: 50 }, (_, n) => `silent${n}.example`)
  for (const name of names) dns.misbehave(name, 'drop')
  const silent = names.map((name) => lookup.of('busy', name))
  dns.set('shared.example', 'MX', [[10, 'mx.shared.example']])
  const behind = lookup.of('busy', 'shared.example')
  // Also for a domain that the busy account waits for.
  assert.equal(await lookup.of('other', 'shared.example'), 'accepts')
  const asked = () =>
    new Set(dns.queries.map(({ name }) => name).filter((name) => name.startsWith('silent'))).size
  assert.ok(asked() <= 8, `${asked()} slots of one account`)
  clock.advance(15_000)
  assert.deepEqual(await Promise.all(silent), Array(50).fill('unknown'))
  assert.notEqual(await behind, 'refuses')
  assert.ok(asked() <= 8, 'those that waited are not asked after the deadline')
  assert.equal(clock.waiting, 0)
  dns.set('later.example', 'MX', [[10, 'mx.later.example']])
  assert.equal(await lookup.of('busy', 'later.example'), 'accepts', 'the slots are free again')
})
