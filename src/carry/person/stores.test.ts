import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { PEOPLE_PAGE, withStores } from '../../../scripts/person-stores.ts'
import { tablesOf } from '../../../test/support/account-traces.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { STORES } from './stores.ts'
import { portionStatements, tableShape } from './walk.ts'

eachStore('every table of the database says what is done with the data of one person', async (store) => {
  const tables = await tablesOf(store)
  for (const name of tables)
    assert.ok(
      Object.hasOwn(STORES, name),
      `Table ${name} is missing in STORES of src/carry/person/stores.ts. Add one line: none('...') if it can hold no mail ` +
        `address, kept('why'), erased('what') or renamed('what', { of: 'column with one address' }); then run ` +
        'npx node scripts/person-stores.ts',
    )
  const names = [...tables, ...ONE_DATABASE]
  const gone = Object.keys(STORES).filter((name) => !names.includes(name))
  assert.deepEqual(gone, [], 'tables that there are no more')
})

/** Of one database alone. */
const ONE_DATABASE = ['event_index', 'event_segments', 'event_index_place', 'rate_buckets']

eachStore('a portion of a table is a range of its key', async (store) => {
  for (const [name, rule] of Object.entries(STORES)) {
    if (rule.does === 'none') continue
    const shape = await tableShape(store, name, rule)
    assert.ok(shape.key.length > 0, `${name} has a key`)
    assert.ok(shape.texts.length > 0 || name === 'figure_packs', `${name} has texts`)
    if (store.kind === 'postgres' || WITHOUT_KEY.has(name)) continue
    const after = shape.key.map((column) => (shape.texts.includes(column) ? 'a' : 1))
    const all = { after, scope: rule.scope === null ? null : ['some account'], pattern: '%a%' }
    const { bound, ...rows } = portionStatements(store.kind, shape, rule, all)
    for (const { sql, values } of [bound, rows]) {
      // The planner is told the values by their marks.
      const plan = await store.read({ sql: `EXPLAIN QUERY PLAN ${sql}`, values })
      const text = plan.map(({ detail }) => String(detail)).join('; ')
      assert.doesNotMatch(text, new RegExp(`SCAN ${name}\\b|TEMP B-TREE`), `${name}: ${text}`)
    }
  }
})

/** Small, and sorted as a whole. */
const WITHOUT_KEY = new Set(['sandbox_mails'])

test('the table of docs/api/people.md is that of the code; else run scripts/person-stores.ts', () => {
  const page = readFileSync(PEOPLE_PAGE, 'utf8')
  assert.equal(page, withStores(page))
})
