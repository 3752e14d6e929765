/** An operator with more subaccounts than a statement takes values reads what is about all of them. */
// Both databases: they bound the values of a statement, each at its own number.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { insertMany } from '../../src/platform/store/store.ts'
import { eachDatabase } from '../support/databases.ts'
import { startOpened } from '../support/subaccounts.ts'

/** PostgreSQL takes 65,535 values, SQLite 32,766. */
const SUBACCOUNTS = 66_000

const PATHS = [
  '/v1/maverick-score/total?include_subaccounts=true',
  '/v1/maverick-score/grouped?include_subaccounts=true',
  '/v1/monitoring/domains/events?include_subaccounts=true',
  '/v1/monitoring/domains?include_subaccounts=true',
  '/v1/reputationanalytics/gpt/domains_list?include_subaccounts=true',
]

eachDatabase((database) => {
  test('what is about all subaccounts is read, however many there are', async (t) => {
    const opened = await startOpened(t, {}, { database })
    const { store, firstAccountId } = opened.core
    const parent = await store.db
      .selectFrom('accounts')
      .selectAll()
      .where('id', '=', firstAccountId)
      .executeTakeFirstOrThrow()
    const rows = Array.from({ length: SUBACCOUNTS }, (_, number) => ({
      ...parent,
      ...{ id: `sub-${number}`, parent_id: firstAccountId, name: `sub ${number}` },
    }))
    for (let from = 0; from < SUBACCOUNTS; from += 5_000)
      await store.commit(insertMany('accounts', rows.slice(from, from + 5_000)))
    for (const path of PATHS) {
      const { status, text } = await opened.service.call('GET', path)
      assert.equal(status, 200, `${path}: ${text.slice(0, 200)}`)
    }
  })
})
