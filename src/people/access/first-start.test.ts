import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../../test/support/postgres.ts'
import { systemClock } from '../../base/time/clock.ts'
import { openPostgres } from '../../platform/store/postgres/postgres.ts'
import { createSealer } from '../../platform/store/secrets/sealing.ts'
import { createSandbox } from '../../sending/domains/create-domain.ts'
import { createKeys } from '../keys/api-keys.ts'
import { ensureFirstAccount } from './first-start.ts'

const AT_ONCE = 4

test('of processes that start together one creates account, sandbox and key, and the others find them', async (t) => {
  const database = await createTestDatabase()
  const stores = await Promise.all(Array.from({ length: AT_ONCE }, () => openPostgres(database.url)))
  t.after(async () => {
    await Promise.all(stores.map((store) => store.close()))
    await database.drop()
  })
  const sealer = createSealer('for tests')
  const clock = systemClock
  const found = await Promise.all(
    stores.map((store) =>
      ensureFirstAccount(
        {
          ...{ store, sealer, clock, keys: createKeys(store, sealer, clock) },
          createSandbox: (accountId, name) => createSandbox({ store, sealer, clock }, accountId, name),
        },
        null,
      ),
    ),
  )
  assert.equal(new Set(found.map(({ accountId }) => accountId)).size, 1)
  assert.equal(new Set(found.map(({ sandboxDomain }) => sandboxDomain)).size, 1)
  assert.equal(found.filter(({ newApiKey }) => newApiKey !== null).length, 1)
})
