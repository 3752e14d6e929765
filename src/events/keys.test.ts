import assert from 'node:assert/strict'
import { sql } from 'kysely'
import { eachStore } from '../../test/support/stores.ts'
import { type FieldName, parseFilter } from './filter.ts'
import { settledKeys, sinceKeys } from './keys.ts'
import { planOf } from './plan.ts'
import { request } from './testing.ts'

const INDEXES: [[FieldName, string][], RegExp][] = [
  [[], /events_time/],
  [[['subject', 'x']], /events_time/],
  [[['event', 'delivered']], /events_event/],
  [[['event', 'delivered OR opened']], /events_event/],
  [[['severity', 'permanent']], /events_event/],
  [
    [
      ['event', 'delivered'],
      ['recipient', 'a@x.org'],
    ],
    /events_recipient/,
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
    /events_message/,
  ],
  [
    [
      ['recipient', 'a@x.org'],
      ['message-id', 'm@x'],
    ],
    /events_message/,
  ],
  [
    [
      ['tags', 'a'],
      ['recipient', 'a@x.org'],
    ],
    /events_recipient/,
  ],
]

const SEARCH = { lowUs: 1, highUs: 2_000_000, start: { tx: 0, seq: 9 }, settled: { tx: 0, seq: 20 } }

eachStore('each question is answered by its index alone (SQLite), and runs (both)', async (store) => {
  const explain = async (query: { compile(): { sql: string; parameters: readonly unknown[] } }) => {
    const { sql: text, parameters } = query.compile()
    let at = 0
    const parts = text.split(store.kind === 'sqlite' ? '?' : /\$\d+/)
    const bound = parts.map((part, index) =>
      index < parts.length - 1 ? sql`${sql.raw(part)}${parameters[at++]}` : sql.raw(part),
    )
    const word = sql.raw(store.kind === 'sqlite' ? 'EXPLAIN QUERY PLAN' : 'EXPLAIN')
    const { rows } = await sql`${word} ${sql.join(bound, sql``)}`.execute(store.db)
    return JSON.stringify(rows)
  }
  for (const [given, index] of INDEXES) {
    const filters = given.flatMap(([name, text]) => parseFilter(name, text) ?? [])
    for (const ascending of [true, false]) {
      const search = { ...SEARCH, request: request({ ascending }), plan: planOf(filters) }
      const gap = { in: 'settled', us: 5, seq: 5 } as const
      const query = settledKeys(store, search, gap, 100)
      assert.ok(query)
      if (store.kind === 'sqlite') {
        const plan = await explain(query)
        assert.match(plan, index, JSON.stringify(given))
        assert.doesNotMatch(plan, /SCAN events|SCAN event_tags/, JSON.stringify(given))
      } else await query.execute() // it chooses by statistics, which empty tables lack
    }
  }
  const since = sinceKeys(store, { ...SEARCH, request: request(), plan: planOf([]) }, null, 100)
  if (store.kind === 'sqlite') assert.match(await explain(since), /events_commit/)
})
