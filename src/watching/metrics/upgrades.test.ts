// Both databases: figures are packed by functions of each database.
import assert from 'node:assert/strict'
import { NOW_MS } from '../../../test/support/events.ts'
import { ACCOUNT, addDomain, DOMAIN } from '../../../test/support/figures.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { readMigrations } from '../../platform/store/migrate.ts'
import type { Store } from '../../platform/store/store.ts'
import { type RowUnit, startOf } from './intervals.ts'
import { addStatements, createScope, type RowOfCounts } from './storage/figure-rows.ts'
import { COUNTER_PLACES, SPLIT_NUMBERS, splitOf, UNIT_NUMBERS } from './storage/splits.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const TODAY = startOf('day', NOW_MS)

const OPENED = COUNTER_PLACES.opened
const NO_VALUES = {
  ...{ recipient_domain: '', provider: '', ip: '', pool: '' },
  ...{ country: '', device: '', bot: '' },
}
/** Numbers of the first two scopes, which these tests create. */
const [ONE, TWO] = [1, 2]

const row = (tag: string, unit: RowUnit, at: number, opened: number): RowOfCounts => ({
  ...{ scope: ONE, split: splitOf('tag'), unit, start: at },
  tag,
  values: NO_VALUES,
  counts: [OPENED, opened],
})

/** Repeats the statements of a migration that begin with one of these texts. */
async function upgrade(store: Store, migrationVersion: number, ...beginnings: string[]): Promise<void> {
  const migration = readMigrations(store.kind).find(({ version }) => version === migrationVersion)
  const statements = (migration?.sql ?? '')
    .replaceAll(/^--.*$/gm, '')
    .split(';')
    .map((sql) => sql.trim())
    .filter((sql) => beginnings.some((beginning) => sql.startsWith(beginning)))
  assert.equal(statements.length, beginnings.length)
  await store.commit(statements.map((sql) => ({ sql, values: [] })))
}

eachStore('an upgrade makes days of the hours of tags, and leaves days that are complete', async (store) => {
  await addDomain(store)
  const { day } = UNIT_NUMBERS
  await store.commit([
    createScope(ACCOUNT, DOMAIN),
    { sql: 'UPDATE figure_places SET written = ?, until = ? WHERE unit = ?', values: [TODAY, TODAY, day] },
    ...addStatements([
      // A complete day, whose first hours were removed by age.
      row('news', 'day', TODAY - DAY, 50),
      row('news', 'hour', TODAY - HOUR, 7),
      // A day that a roll-up has begun.
      row('news', 'day', TODAY, 1),
      row('news', 'hour', TODAY, 2),
      row('news', 'hour', TODAY + 23 * HOUR, 3),
      row('may', 'hour', TODAY + HOUR, 4),
      row('may', 'hour', TODAY + DAY, 5),
    ]),
  ])
  await upgrade(store, 71, 'INSERT INTO figures', 'DELETE FROM figures')
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

eachStore('an upgrade makes the countries of domains from visits, of what is complete', async (store) => {
  await addDomain(store)
  const { day, month } = UNIT_NUMBERS
  const monthStart = startOf('month', TODAY - 40 * DAY)
  const visit = (
    country: string,
    device: string,
    unit: RowUnit,
    at: number,
    opened: number,
    scope = ONE,
  ): RowOfCounts => ({
    ...{ scope, split: splitOf('visit'), unit, start: at },
    tag: '',
    values: { ...NO_VALUES, country, device },
    counts: [OPENED, opened],
  })
  await store.commit([
    createScope(ACCOUNT, DOMAIN),
    createScope(ACCOUNT, ''),
    { sql: 'UPDATE figure_places SET until = ? WHERE unit = ?', values: [TODAY, day] },
    { sql: 'UPDATE figure_places SET until = ? WHERE unit = ?', values: [startOf('month', TODAY), month] },
    { sql: 'UPDATE figure_scopes SET pairs_since = 0', values: [] },
    ...addStatements([
      visit('DE', 'mobile', 'day', TODAY - DAY, 1),
      visit('DE', 'desktop', 'day', TODAY - DAY, 2),
      visit('', '', 'day', TODAY - DAY, 4),
      visit('DE', 'mobile', 'day', TODAY, 8),
      visit('US', 'mobile', 'month', monthStart, 16),
      visit('US', 'mobile', 'day', TODAY - DAY, 32, TWO),
    ]),
  ])
  await upgrade(store, 130, 'INSERT INTO figures', 'UPDATE figure_scopes')
  const rows = await store.db
    .selectFrom('figures')
    .select(['country', 'device', 'unit', 'start_at', 'opened'])
    .where('split', '=', SPLIT_NUMBERS.country)
    .orderBy('start_at')
    .orderBy('country')
    .execute()
  assert.deepEqual(
    rows.map(({ country, device, unit, start_at: at, opened }) => [
      ...[country, device],
      ...[unit, at, opened].map(Number),
    ]),
    [
      ['US', '', month, monthStart, 16],
      ['', '', day, TODAY - DAY, 4],
      ['DE', '', day, TODAY - DAY, 3],
    ],
  )
  const scopes = await store.db.selectFrom('figure_scopes').selectAll().orderBy('domain_name').execute()
  assert.deepEqual(
    scopes.map(({ domain_name, pairs_since }) => [domain_name, Number(pairs_since)]),
    [
      ['', TODAY],
      [DOMAIN, 0],
    ],
  )
})
