// Both databases: figures are unpacked by functions of each database.
import assert from 'node:assert/strict'
import { ACCOUNT, addDomain, DOMAIN } from '../../../../test/support/figures.ts'
import { eachStore } from '../../../../test/support/stores.ts'
import { StaleWrite, type Store } from '../../../platform/store/store.ts'
import { removeFiguresOf } from './removal.ts'
import { Scopes } from './scopes.ts'

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
      // Counting and the archive use the same numbers.
      if (calls++ > 0) return results
      scopes.forget()
      await scopes.numbersOf([OTHER])
      return results
    },
  }
  scopes = new Scopes(disturbed)
  const names = [name(DOMAIN), name('')]
  const numberOf = await scopes.numbersOf(names)
  scopes.forget()
  for (const { domainName } of names) assert.notEqual(numberOf(ACCOUNT, domainName), null, domainName)
  assert.ok(calls >= 2)
})

eachStore('a number is used only as long as its domain has it', async (store) => {
  await addDomain(store)
  const scopes = new Scopes(store)
  const names = [name(DOMAIN), name(''), name('unknown.example')]
  const check = async () => {
    const numberOf = await scopes.numbersOf(names)
    return store.commit([scopes.stillThere(names, numberOf)])
  }
  await check()
  await addDomain(store, OTHER.domainName, OTHER.accountId)
  await scopes.numbersOf([OTHER])
  await removeFiguresOf(store, { accountId: OTHER.accountId, name: OTHER.domainName })
  await check()
  await removeFiguresOf(store, { accountId: ACCOUNT, name: DOMAIN })
  await assert.rejects(check, StaleWrite)
  await assert.rejects(check, StaleWrite, 'it is remembered')
  scopes.forget()
  await check()
})
