import assert from 'node:assert/strict'
import { createTestClock } from '../../../test/support/clock.ts'
import { eachStore } from '../../../test/support/stores.ts'
import type { Core } from '../../core.ts'
import { createSealer } from '../../platform/store/secrets/sealing.ts'
import { createKnownProviders } from './known-providers.ts'

eachStore('providers that are made at once stay within the bound', async (store) => {
  await store.commit([
    {
      sql: `INSERT INTO accounts (id, name, signing_key_sealed, created_at) VALUES ('a', 'A', ?, 0)`,
      values: [Buffer.alloc(1)],
    },
  ])
  const sealer = createSealer('s'.repeat(40))
  const providers = createKnownProviders({ store, sealer, clock: createTestClock() } as unknown as Core)
  const put = (n: number) => providers.put('a', `p${n}`, { kind: 'desec', secret: 'token' })
  for (let n = 0; n < 9; n++) await put(n)
  // Opens the connections: they race only then.
  await Promise.all([9, 10, 11, 12, 13].map(() => providers.list('a')))
  const results = await Promise.allSettled([9, 10, 11, 12, 13].map(put))
  assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 1)
  assert.equal((await providers.list('a')).length, 10)
})
