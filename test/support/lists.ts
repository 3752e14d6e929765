/** A mailing list in a fresh database, for tests below the HTTP interface. */

import { insert, type Store } from '../../src/platform/store/store.ts'
import { type List, NEW_LIST } from '../../src/sending/lists/list.ts'
import { createListStore, type ListStore } from '../../src/sending/lists/store.ts'

/** The time at which everything in it was created. */
export const LIST_TIME = Date.UTC(2026, 5, 1, 12)

/** An account `account` with the empty, readonly list `devs@mg.example.com`, whose id is `list-id`. */
export async function createTestList(store: Store): Promise<{ lists: ListStore; list: List }> {
  await store.commit([
    insert('accounts', {
      id: 'account',
      parent_id: null,
      name: 'a',
      signing_key_sealed: Buffer.from([1]),
      created_at: LIST_TIME,
    }),
  ])
  const lists = createListStore(store)
  await lists.create({
    id: 'list-id',
    account_id: 'account',
    domain_name: 'mg.example.com',
    address: 'devs@mg.example.com',
    address_key: 'devs@mg.example.com',
    name: '',
    description: '',
    access_level: 'readonly',
    reply_preference: 'list',
    header_id: 'devs.mg.example.com',
    header_key: 'devs.mg.example.com',
    ...NEW_LIST,
    members_count: 0,
    version: 0,
    created_at: LIST_TIME,
  })
  return { lists, list: (await lists.byId('list-id')) as List }
}
