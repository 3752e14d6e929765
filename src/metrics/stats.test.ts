import assert from 'node:assert/strict'
import { eachStore } from '../../test/support/stores.ts'
import type { CounterRow } from '../store/counter-rows.ts'
import { insertMany, type Store } from '../store/store.ts'
import { noCounts } from './counters.ts'
import { after, startOf, type Unit } from './intervals.ts'
import { readStats } from './stats.ts'
import { ACCOUNT, addDomain, DOMAIN, domainRow } from './testing.ts'

const NOW = Date.parse('2026-06-15T12:34:56Z')

const row = (name: string, unit: Unit, start: number, more: Partial<CounterRow> = {}): CounterRow => ({
  account_id: ACCOUNT,
  domain_name: name,
  tag: '',
  unit,
  start_at: start,
  ...noCounts(),
  delivered_smtp: 1,
  ...more,
})

const deliveredOf = async (
  store: Store,
  unit: Unit,
  count: number,
  scope: { domainName?: string; tag?: string } = {},
) => {
  const end = startOf(unit, NOW)
  const query = { events: ['delivered'] as const, unit, start: after(unit, end, 1 - count), end }
  const { stats } = await readStats(
    store,
    { accountId: ACCOUNT, domainName: null, tag: null, ...scope },
    query,
  )
  return stats.map(({ delivered }) => (delivered as { total: number }).total)
}

eachStore('account totals are sums over its own domains, in as many queries as necessary', async (store) => {
  await addDomain(store)
  await addDomain(store, 'foreign.example', 'account-2')
  const names = Array.from({ length: 1_000 }, (_, at) => `d${at}.example.com`)
  await store.commit(
    insertMany(
      'domains',
      names.map((name) => domainRow(name, ACCOUNT)),
    ),
  )
  const hour = (ago: number) => startOf('hour', NOW) - ago * 3_600_000
  const rows = [
    ...names.map((name) => row(name, 'hour', hour(4))),
    ...names.slice(0, 10).map((name) => row(name, 'hour', hour(0))),
    row(DOMAIN, 'hour', hour(9)),
    // Not counted: a tag's, a day's, before and after the range, another account's.
    row(DOMAIN, 'hour', hour(9), { tag: 'news' }),
    row(DOMAIN, 'day', startOf('day', NOW)),
    row(DOMAIN, 'hour', hour(10)),
    row(DOMAIN, 'hour', hour(-1)),
    row('foreign.example', 'hour', hour(0), { account_id: 'account-2' }),
  ]
  for (const statement of insertMany('counters', rows)) await store.commit([statement])
  assert.deepEqual(await deliveredOf(store, 'hour', 10), [1, 0, 0, 0, 0, 1_000, 0, 0, 0, 10])
  assert.deepEqual(await deliveredOf(store, 'hour', 1), [10])
  assert.deepEqual(await deliveredOf(store, 'day', 2), [0, 1])
  assert.deepEqual(await deliveredOf(store, 'hour', 10, { domainName: DOMAIN, tag: 'News' }), [
    1,
    ...zeros(9),
  ])
  assert.deepEqual(await deliveredOf(store, 'month', 3, { domainName: DOMAIN }), zeros(3))
})

const zeros = (count: number) => Array<number>(count).fill(0)
