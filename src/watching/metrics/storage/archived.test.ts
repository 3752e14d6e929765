// Both databases: figures are unpacked by functions of each database.
import assert from 'node:assert/strict'
import { NOW_MS } from '../../../../test/support/events.ts'
import { ACCOUNT, addDomain, countedOf, DOMAIN } from '../../../../test/support/figures.ts'
import { eachStore } from '../../../../test/support/stores.ts'
import { insert, type Store } from '../../../platform/store/store.ts'
import { countArchived } from './archived.ts'
import { rollUp } from './roll-up.ts'

const DAY = 86_400_000
const copy = { accountId: ACCOUNT, domainName: DOMAIN, at: NOW_MS }
const removal = (id: string) => ({
  sql: 'DELETE FROM archive_outbox WHERE id = ?',
  values: [id],
  expectRows: 1,
})

async function add(store: Store, ...ids: string[]) {
  await addDomain(store)
  const rest = {
    delivery_id: 'd',
    url: '',
    head: '',
    state: 'waiting',
    attempts: 1,
    due_at: 0,
    created_at: 0,
  }
  await store.commit(
    ids.map((id) => insert('archive_outbox', { id, account_id: ACCOUNT, domain_name: DOMAIN, ...rest })),
  )
}
const waiting = async (store: Store) =>
  (await store.db.selectFrom('archive_outbox').select('id').orderBy('id').execute()).map(({ id }) => id)

eachStore('a copy counts once for domain and account, however often it was posted', async (store) => {
  await add(store, 'a', 'b')
  await countArchived(store, copy, removal('a'))
  await countArchived(store, copy, removal('a'))
  assert.deepEqual(await waiting(store), ['b'])
  for (const domain of [DOMAIN, ''])
    for (const unit of ['hour', 'day', 'month'] as const)
      assert.deepEqual(await countedOf(store, { domain, unit }), { archived: 1 })
})

eachStore('a copy taken long after the delivery counts in the intervals of the delivery', async (store) => {
  await add(store, 'a', 'b')
  await countArchived(store, copy, removal('a'))
  await rollUp(store, NOW_MS + 40 * DAY)
  await countArchived(store, copy, removal('b'))
  for (const unit of ['hour', 'day', 'month'] as const)
    assert.deepEqual(await countedOf(store, { unit }), { archived: 2 })
})

eachStore('a copy that is counted while rows of a day are made is in those', async (store) => {
  await add(store, 'a')
  let commits = 0
  const late: Store = {
    ...store,
    async commit(unit) {
      if (commits++ === 0) await rollUp(store, NOW_MS + 2 * DAY)
      return store.commit(unit)
    },
  }
  await countArchived(late, copy, removal('a'))
  assert.equal(commits, 3, "the scopes' numbers, and two tries")
  assert.deepEqual(await countedOf(store, { unit: 'day' }), { archived: 1 })
})

eachStore(
  'of an unknown domain it counts for the account; of a deleted account not at all',
  async (store) => {
    await add(store, 'a', 'b', 'c')
    await countArchived(store, { ...copy, domainName: '' }, removal('a'))
    await countArchived(store, { ...copy, domainName: 'gone.example' }, removal('b'))
    await countArchived(store, { ...copy, accountId: 'gone' }, removal('c'))
    assert.deepEqual(await countedOf(store, { domain: '' }), { archived: 2 })
    assert.deepEqual(await countedOf(store), {})
    assert.deepEqual(await waiting(store), [])
  },
)
