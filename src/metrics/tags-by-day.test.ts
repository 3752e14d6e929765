import assert from 'node:assert/strict'
import { eachStore } from '../../test/support/stores.ts'
import { NOW_MS } from '../events/testing.ts'
import { readMigrations } from '../store/migrate.ts'
import type { Store } from '../store/store.ts'
import { noCounts } from './counters.ts'
import { addStatements, createScope, type FigureKey } from './figure-rows.ts'
import { startOf } from './intervals.ts'
import { SPLIT_NUMBERS, UNIT_NUMBERS } from './splits.ts'
import { ACCOUNT, addDomain, DOMAIN } from './testing.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const TODAY = startOf('day', NOW_MS)

const keyOf = (tag: string, unit: number, at: number): FigureKey => ({
  ...{ account_id: ACCOUNT, domain_name: DOMAIN, split: SPLIT_NUMBERS.tag, unit, start_at: at, tag },
  ...{ recipient_domain: '', provider: '', ip: '', pool: '', country: '', device: '', bot: '' },
})
const row = (tag: string, unit: number, at: number, opened: number) => ({
  key: keyOf(tag, unit, at),
  counts: { ...noCounts(), opened },
})

async function upgrade(store: Store): Promise<void> {
  const migration = readMigrations(store.kind).find(({ version }) => version === 71)
  const statements = (migration?.sql ?? '').split(';').filter((sql) => sql.trim() !== '')
  assert.equal(statements.length, 2)
  await store.commit(statements.map((sql) => ({ sql, values: [] })))
}

eachStore('an upgrade makes days of the hours of tags, and leaves days that are complete', async (store) => {
  await addDomain(store)
  const { hour, day } = UNIT_NUMBERS
  await store.commit([
    createScope(ACCOUNT, DOMAIN),
    { sql: 'UPDATE figure_places SET written = ?, until = ? WHERE unit = ?', values: [TODAY, TODAY, day] },
    ...addStatements([
      // A complete day, whose first hours were removed by age.
      row('news', day, TODAY - DAY, 50),
      row('news', hour, TODAY - HOUR, 7),
      // A day that a roll-up has begun.
      row('news', day, TODAY, 1),
      row('news', hour, TODAY, 2),
      row('news', hour, TODAY + 23 * HOUR, 3),
      row('may', hour, TODAY + HOUR, 4),
      row('may', hour, TODAY + DAY, 5),
    ]),
  ])
  await upgrade(store)
  const rows = await store.db
    .selectFrom('figures')
    .select(['tag', 'unit', 'start_at', 'opened'])
    .orderBy('start_at')
    .orderBy('tag')
    .execute()
  assert.deepEqual(
    rows.map(({ tag, unit, start_at: at, opened }) => [tag, Number(unit), Number(at), Number(opened)]),
    [
      ['news', day, TODAY - DAY, 50],
      ['may', day, TODAY, 4],
      ['news', day, TODAY, 5],
      ['may', day, TODAY + DAY, 5],
    ],
  )
})
