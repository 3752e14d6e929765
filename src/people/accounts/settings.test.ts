// Both databases: the JSON functions differ.
import assert from 'node:assert/strict'
import { createTestList } from '../../../test/support/lists.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { systemClock } from '../../base/time/clock.ts'
import type { Store } from '../../platform/store/store.ts'
import { createAccountSettings } from './settings.ts'

eachStore('the name of an account and its other settings change together or not at all', async (store) => {
  await createTestList(store)
  const account = await store.db.selectFrom('accounts').selectAll().executeTakeFirstOrThrow()
  const name = async () =>
    (await store.db.selectFrom('accounts').select('name').executeTakeFirstOrThrow()).name
  const change = (from: Store) =>
    createAccountSettings({ store: from, clock: systemClock, accounts: { changed() {} } }).change(
      account.id,
      {
        ...{ name: 'Renamed', inactive_session_timeout: undefined, absolute_session_timeout: undefined },
        logout_redirect_url: 'https://example.org/',
      },
    )
  const failing: Store = Object.create(store, {
    commit: { value: async () => Promise.reject(new Error('disk full')) },
  })
  await assert.rejects(change(failing), /disk full/)
  assert.equal(await name(), account.name)
  await change(store)
  assert.equal(await name(), 'Renamed')
})
