// Both databases: each has query plans of its own.
import assert from 'node:assert/strict'
import { sql } from 'kysely'
import { request } from '../../../../test/support/events.ts'
import { eachStore } from '../../../../test/support/stores.ts'
import type { Store } from '../../../platform/store/store.ts'
import { EVENT_NAMES } from '../event.ts'
import { segmentQuery, settledKeys, settledQuery, sinceQuery } from './event-keys.ts'
import { type FieldName, parseFilter } from './filter.ts'
import { planOf } from './plan.ts'

const INDEXES: [[FieldName, string][], RegExp][] = [
  [[], /event_index_time/],
  [[['subject', 'x']], /event_index_time/],
  [[['event', 'delivered']], /event_index_event/],
  [[['event', 'delivered OR opened']], /event_index_event/],
  [[['severity', 'permanent']], /event_index_event/],
  [
    [
      ['event', 'delivered'],
      ['recipient', 'a@x.org'],
    ],
    /event_index_recipient/,
  ],
  [
    [
      ['event', 'delivered'],
      ['tags', 'a AND b'],
    ],
    /sqlite_autoindex|event_tags USING PRIMARY KEY|event_tags_pkey/,
  ],
  [
    [
      ['event', 'delivered'],
      ['message-id', 'm@x'],
    ],
    /event_index_message/,
  ],
  [
    [
      ['recipient', 'a@x.org'],
      ['message-id', 'm@x'],
    ],
    /event_index_message/,
  ],
  [
    [
      ['tags', 'a'],
      ['recipient', 'a@x.org'],
    ],
    /event_index_recipient/,
  ],
]

const OWN = { accountId: 'account-1', domainName: 'mg.example.com' }
const SEARCH = {
  scope: { accountIds: [OWN.accountId], domainNames: [OWN.domainName] },
  lowUs: 1,
  highUs: 2_000_000,
  start: { tx: 0, seq: 9 },
  settled: { tx: 0, seq: 20 },
}

const explain = async (
  store: Store,
  query: { compile(): { sql: string; parameters: readonly unknown[] } },
) => {
  const { sql: text, parameters } = query.compile()
  let at = 0
  const parts = text.split(store.kind === 'sqlite' ? '?' : /\$\d+/)
  const bound = parts.map((part, index) =>
    index < parts.length - 1 ? sql`${sql.raw(part)}${parameters[at++]}` : sql.raw(part),
  )
  const explainKeyword = sql.raw(store.kind === 'sqlite' ? 'EXPLAIN QUERY PLAN' : 'EXPLAIN')
  const { rows } = await sql`${explainKeyword} ${sql.join(bound, sql``)}`.execute(store.db)
  return JSON.stringify(rows)
}

// A view that is not flattened is scanned completely, whatever the limit.
const isFlattened = (plan: string, message: string) =>
  assert.doesNotMatch(plan, /SCAN (events|event_index|event_tags|event_keys|event_tag_keys)\b/, message)

eachStore('each query uses only its index (SQLite), and runs (both)', async (store) => {
  for (const [given, index] of INDEXES) {
    const filters = given.flatMap(([name, text]) => parseFilter(name, text) ?? [])
    for (const ascending of [true, false]) {
      const gap = { in: 'settled', us: 5, seq: 5 } as const
      const scan = { ...SEARCH, request: request({ ascending }), plan: planOf(filters, OWN), gap, size: 100 }
      const bySegment = store.kind === 'sqlite' && scan.plan.branches[0]?.by === 'recipient'
      const query = bySegment ? segmentQuery(store, scan, [0, 1]) : settledQuery(store, scan)
      assert.ok(query)
      if (store.kind === 'sqlite') {
        const plan = await explain(store, query)
        assert.match(plan, index, JSON.stringify(given))
        isFlattened(plan, JSON.stringify(given))
      } else await query.execute() // it chooses by statistics, which empty tables lack
    }
  }
  for (const ascending of [true, false]) {
    const plan = planOf([], OWN)
    const scan = { ...SEARCH, ...OWN, request: request({ ascending }), plan, gap: null, size: 100 }
    const query = sinceQuery(store, scan)
    await query.execute()
    if (store.kind !== 'sqlite') continue
    const explained = await explain(store, query)
    assert.match(explained, /event_index_domain \(domain_name=\? AND rowid/)
    assert.doesNotMatch(explained, /TEMP B-TREE/)
    isFlattened(explained, 'since')
  }
})

eachStore('the events of accounts are found by their own index (SQLite), and by no scan', async (store) => {
  const accounts = Array.from({ length: 20 }, (_, at) => `account-${at}`)
  const branches = accounts.flatMap((accountId) =>
    EVENT_NAMES.map((event) => ({ by: 'account', accountId, event }) as const),
  )
  for (const up of [true, false]) {
    const gap = { in: 'settled', us: 5, seq: 5 } as const
    const plan = { branches: branches.slice(0, 60), events: null, hashes: null }
    const scope = { accountIds: accounts, domainNames: null }
    const scan = { ...SEARCH, scope, request: request({ ascending: up }), plan, gap, size: 51 }
    const query = settledQuery(store, scan)
    assert.ok(query)
    await query.execute()
    assert.deepEqual(await settledKeys(store, { ...scan, plan: { ...plan, branches } }, gap, 51), [])
    if (store.kind === 'postgres') continue
    const explained = await explain(store, query)
    assert.match(explained, /event_index_account/)
    isFlattened(explained, 'account')
  }
})
