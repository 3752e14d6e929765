import assert from 'node:assert/strict'
import { createTestClock } from '../../../test/support/clock.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { createSealer } from '../../platform/store/secrets/sealing.ts'
import { openRelays } from './known-relays.ts'
import { givenRelay } from './relay.ts'

const sealer = createSealer('secret')
const days = { removeOld: async () => {} }

eachStore(
  'a relay that was removed and added again is another one, also where neither was seen',
  async (store) => {
    const clock = createTestClock()
    const open = () => openRelays(store, null, clock.now, days)
    const relayAt = (host: string) => givenRelay('ses', { host }, null, sealer)
    const here = await open()
    await here.create(relayAt('before.example'))
    const elsewhere = await open()
    const { revision } = elsewhere.find('ses')
    clock.leap(1_000)
    // Nobody is told of it.
    await store.db.deleteFrom('relays').execute()
    await here.refresh()
    await here.create(relayAt('after.example'))
    await elsewhere.refresh()
    const found = elsewhere.find('ses')
    assert.equal(found.host, 'after.example')
    assert.notEqual(found.revision, revision)
  },
)
