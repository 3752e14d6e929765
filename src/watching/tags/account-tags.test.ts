// Both databases: the JSON functions differ.
import assert from 'node:assert/strict'
import { eachStore } from '../../../test/support/stores.ts'
import type { Account } from '../../people/accounts/account-directory.ts'
import type { Figures } from '../metrics/figures.ts'
import { type AccountTagQuery, accountTagPage } from './account-tags.ts'
import { newTagStatements } from './known-tags.ts'
import { createTagStore } from './tag-store.ts'

const NOW = 1_780_315_200_000

const accounts = {
  byId: (id: string) => ({ id, parentId: id === 'parent' ? null : 'parent', name: `The ${id}` }) as Account,
  childrenOf: async () => ['one', 'two'],
}
const noFigures: Figures = { read: async () => [] }

const queryOf = (more: Partial<AccountTagQuery>): AccountTagQuery => ({
  accountId: 'parent',
  includeSubaccounts: false,
  includeMetrics: false,
  includeTotal: false,
  prefix: null,
  sort: 'lastseen:desc',
  column: 'last_seen',
  descending: true,
  skip: 0,
  limit: 10,
  ...more,
})

eachStore("tags of subaccounts are items of their own, and other accounts' are not listed", async (store) => {
  const tags = createTagStore(store)
  const used = [
    ['parent', 'sale', 0],
    ['one', 'sale', 3],
    ['one', 'news', 1],
    ['two', 'sale', 2],
    ['stranger', 'sale', 4],
  ] as const
  for (const [accountId, tag, at] of used)
    await store.commit(newTagStatements({ id: `domain-of-${accountId}`, accountId }, [tag], NOW + at))
  const page = async (more: Partial<AccountTagQuery>) => {
    const found = await accountTagPage({ tags, figures: noFigures, accounts }, queryOf(more), NOW)
    return { ...found, names: found.items.map(({ tag, account_id }) => `${account_id} ${tag}`) }
  }
  assert.deepEqual((await page({})).names, ['parent sale'])
  const all = await page({ includeSubaccounts: true, includeTotal: true })
  assert.deepEqual(all.names, ['one sale', 'two sale', 'one news', 'parent sale'])
  assert.equal(all.pagination.total, 4)
  const [first] = all.items
  assert.deepEqual([first?.parent_account_id, first?.account_name], ['parent', 'The one'])
  const search = { includeSubaccounts: true, prefix: 'sa', column: 'tag_key', descending: false } as const
  assert.deepEqual((await page(search)).names, ['one sale', 'parent sale', 'two sale'])
  assert.deepEqual((await page({ ...search, skip: 1, limit: 1 })).names, ['parent sale'])
})
