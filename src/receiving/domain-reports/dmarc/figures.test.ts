/** What one answer about DMARC reports may cost: rows that leave the database, and names that DNS is asked for. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../../../test/support/clock.ts'
import { eachStore } from '../../../../test/support/stores.ts'
import { DAY_MS } from '../../../base/time/durations.ts'
import { insertMany } from '../../../platform/store/store.ts'
import type { DnsAnswer, Resolver } from '../../../protocols/dns/resolver.ts'
import { addressMail, dayMail } from './figures.ts'
import { createPlaces } from './places.ts'

const FIRST_DAY = Date.UTC(2026, 0, 1)
const [DAYS, PER_DAY] = [25, 60]

eachStore('sums of a long period are exact, in few rows', async (store) => {
  const sums = { passed: 3, failed: 1, quarantined: 0, rejected: 0 }
  const rowOf = (day: number, name: string, times: number) => ({
    ...{ domain_id: 'd', type: 'dmarc' as const, day_at: FIRST_DAY + day * DAY_MS, name, account_id: 'a' },
    ...{ passed: sums.passed * times, failed: sums.failed * times, quarantined: 0, rejected: 0 },
  })
  const rows = Array.from({ length: DAYS }, (_, day) => [
    rowOf(day, '', PER_DAY + 10),
    rowOf(day, '192.0.2.1', 10),
    ...Array.from({ length: PER_DAY }, (_, n) => rowOf(day, `2001:db8::${day}:${n}`, 1)),
  ]).flat()
  await store.commit(insertMany('domain_report_totals', rows))
  const period = { from: FIRST_DAY, to: FIRST_DAY + DAYS * DAY_MS }
  const all = { ips: [], isAllBut: true }
  const { addresses, count } = await addressMail(store, 'd', period, all)
  assert.deepEqual([addresses.length, count], [1_000, 1 + DAYS * PER_DAY])
  assert.deepEqual(addresses[0], { ip: '192.0.2.1', ...sums, passed: 30 * DAYS, failed: 10 * DAYS })
  const days = await dayMail(store, 'd', period, all)
  assert.equal(days.length, DAYS)
  assert.deepEqual(days[0], { ...sums, day: days[0]?.day, passed: 3 * (PER_DAY + 10), failed: PER_DAY + 10 })
  const one = await dayMail(store, 'd', period, { ips: ['192.0.2.1'], isAllBut: false })
  const others = await dayMail(store, 'd', period, { ips: ['192.0.2.1'], isAllBut: true })
  assert.deepEqual([one[0]?.failed, others[0]?.failed], [10, PER_DAY])
  assert.deepEqual(await addressMail(store, 'd', period, { ips: [], isAllBut: false }), {
    ...{ addresses: [], count: 0 },
  })
})

/** Names that begin with `silent` in reverse zones never answer; `asked` counts PTR queries. */
function fakeResolver() {
  const asked: string[] = []
  const open = new Set<string>()
  const answer = (kind: DnsAnswer['kind'], records: string[]) =>
    ({ kind, records, chain: [], ttlSeconds: 0 }) as unknown as DnsAnswer
  const query = async (name: string, type: string, { signal }: { signal?: AbortSignal } = {}) => {
    if (type !== 'PTR') return answer('records', ['192.0.2.1'])
    asked.push(name)
    if (name === '1.2.0.192.in-addr.arpa') return answer('records', ['out1.esp.example'])
    open.add(name)
    return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
  }
  return { asked, open, resolver: { query, close() {} } as unknown as Resolver }
}

test('places are looked up once, and few at a time for an account whose senders do not answer', async () => {
  const { asked, open, resolver } = fakeResolver()
  const placesOf = createPlaces({ resolver, clock: createTestClock() }, 300)
  const silent = Array.from({ length: 100 }, (_, n) => `198.51.100.${n}`)
  const held = placesOf('attacker', silent)
  const again = placesOf('attacker', silent)
  assert.deepEqual(
    await placesOf('honest', ['192.0.2.1']),
    new Map([['192.0.2.1', { source: 'esp.example', host: 'out1.esp.example' }]]),
  )
  assert.equal(open.size, 8)
  await placesOf('other', ['192.0.2.1'])
  assert.equal(asked.filter((name) => name === '1.2.0.192.in-addr.arpa').length, 1)
  const unknown = { source: 'unknown', host: 'unknown' }
  assert.deepEqual(new Set((await held).values()), new Set([unknown]))
  await again
  const before = asked.length
  await placesOf('attacker', silent.slice(0, 8))
  assert.equal(asked.length, before, 'no answer is remembered too')
})
