// Both databases: a name is locked while its owner is decided.
import assert from 'node:assert/strict'
import { createTestList } from '../../../test/support/lists.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { systemClock } from '../../base/time/clock.ts'
import { createSealer } from '../../platform/store/secrets/sealing.ts'
import { type CreateParts, createDomain } from './create-domain.ts'

eachStore('a domain whose SMTP login cannot be written is not created', async (store) => {
  await createTestList(store)
  const parts = {
    ...{ store, sealer: createSealer('for tests'), clock: systemClock, ownHosts: new Set() },
    ...{ domains: { changed() {} }, signingKeys: { changed() {} }, targets: { dkimZone: null } },
    maxDomains: 0,
    postmasterLogin: async () => async () => Promise.reject(new Error('disk full')),
  } as unknown as CreateParts
  const claimant = { accountId: 'account', parentAccountId: undefined } as Parameters<typeof createDomain>[1]
  const given = { name: 'mg.example.com', dkim_key_size: 1024 } as Parameters<typeof createDomain>[2]
  await assert.rejects(createDomain(parts, claimant, given), /disk full/)
  for (const table of ['domains', 'domain_dns', 'dkim_keys'] as const)
    assert.deepEqual(await store.db.selectFrom(table).selectAll().execute(), [])
})
