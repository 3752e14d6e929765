import assert from 'node:assert/strict'
import { eachStore } from '../../test/support/stores.ts'
import type { Store } from '../store/store.ts'
import { Scopes } from './scopes.ts'
import { ACCOUNT, addDomain, DOMAIN } from './testing.ts'

const name = (domainName: string) => ({ accountId: ACCOUNT, domainName })
const OTHER = { accountId: 'account-2', domainName: 'other.example' }

eachStore('a number is found although another call begins anew meanwhile', async (store) => {
  await addDomain(store)
  await addDomain(store, OTHER.domainName, OTHER.accountId)
  let scopes = new Scopes(store)
  let calls = 0
  const disturbed: Store = {
    ...store,
    async commit(unit) {
      const results = await store.commit(unit)
      // Counting and the archive use the same numbers; while nodes of an earlier release run, each call begins anew.
      if (calls++ === 0) await scopes.numbersOf([OTHER], { removals: 1, arePacked: false })
      return results
    },
  }
  scopes = new Scopes(disturbed)
  const names = [name(DOMAIN), name('')]
  const numberOf = await scopes.numbersOf(names, { removals: 0, arePacked: true })
  await scopes.numbersOf([OTHER], { removals: 2, arePacked: false })
  for (const { domainName } of names) assert.notEqual(numberOf(ACCOUNT, domainName), null, domainName)
  assert.ok(calls >= 2)
})
