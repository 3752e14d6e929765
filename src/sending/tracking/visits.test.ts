/** Opens and clicks below the routes: under floods, outages and a stop. */
import assert from 'node:assert/strict'
import pino from 'pino'
import { createTestClock } from '../../../test/support/clock.ts'
import { bareRecorder } from '../../../test/support/events.ts'
import { SENT_AT, storeSent, TEST_DOMAINS } from '../../../test/support/sent-message.ts'
import { eventually } from '../../../test/support/service.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { newId } from '../../base/ids.ts'
import { createKnownDeliveries } from '../../mail/stored/known-deliveries.ts'
import { type Store, StoreUnavailable } from '../../platform/store/store.ts'
import { NO_GEO } from './geo.ts'
import { createVisits, EVENTS_PER_ADDRESS_PER_MINUTE, EVENTS_PER_TOKEN_PER_MINUTE } from './visits.ts'

const READER = {
  address: '192.0.2.44',
  userAgent: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
}

async function rigOf(store: Store) {
  const clock = createTestClock(SENT_AT + 60_000)
  const { deliveryIds } = await storeSent(store, [{ recipient: 'alice@example.org' }])
  let failures = 0
  const failing: Store = {
    ...store,
    async commit(unit) {
      if (failures > 0) {
        failures--
        throw new StoreUnavailable('away')
      }
      return store.commit(unit)
    },
  }
  const visits = createVisits({
    store: failing,
    known: createKnownDeliveries({ store, domains: TEST_DOMAINS, storageUrl: 'https://s.example.net' }),
    geo: NO_GEO,
    clock,
    log: pino({ level: 'silent' }),
    recorder: bareRecorder,
  })
  const events = async (event: string) => {
    const rows = await store.db
      .selectFrom('events')
      .select('payload_json')
      .where('event', '=', event)
      .execute()
    return rows.map(({ payload_json }) => JSON.parse(payload_json))
  }
  const fetchOf = (token: string, caller = READER) => ({ token, deliveryId: deliveryIds[0] ?? '', caller })
  return { clock, visits, events, fetchOf, fail: (times: number) => (failures = times) }
}

eachStore('opens and clicks are written by the time that a stop ends', async (store) => {
  const { visits, events, fetchOf, clock } = await rigOf(store)
  visits.opened(fetchOf('pixel'))
  visits.clicked({ ...fetchOf('a'), url: 'https://a.example/' })
  clock.leap(3_000)
  visits.clicked({ ...fetchOf('b'), url: 'https://b.example/' })
  visits.clicked({ ...fetchOf('c'), url: 'https://c.example/' })
  await visits.stop()
  const [opened] = await events('opened')
  assert.equal(opened.timestamp, (SENT_AT + 60_000) / 1000)
  assert.equal(opened['delivered-at'], (SENT_AT + 4_000) / 1000)
  assert.equal(opened['client-info'].bot, '')
  const clicks = await events('clicked')
  const bots = Object.fromEntries(clicks.map((event) => [event.url, event['client-info'].bot]))
  assert.deepEqual(bots, {
    'https://a.example/': '',
    'https://b.example/': '',
    'https://c.example/': 'generic',
  })
})

eachStore('while the database is away an open waits, and is written with its own time', async (store) => {
  const { visits, events, fetchOf, clock, fail } = await rigOf(store)
  fail(2)
  const at = clock.now()
  visits.opened(fetchOf('pixel'))
  await eventually('the open is written', async () => {
    await clock.advance(100)
    return (await events('opened')).length > 0
  })
  const [opened] = await events('opened')
  assert.equal(opened.timestamp, at / 1000)
  await visits.stop()
})

eachStore('one link and one address make so many events a minute and no more', async (store) => {
  const { visits, events, fetchOf, clock } = await rigOf(store)
  for (let time = 0; time < EVENTS_PER_TOKEN_PER_MINUTE + 20; time++) visits.opened(fetchOf('pixel'))
  clock.leap(60_000)
  visits.opened(fetchOf('pixel'))
  await visits.stop()
  assert.equal((await events('opened')).length, EVENTS_PER_TOKEN_PER_MINUTE + 1)
  assert.ok(EVENTS_PER_ADDRESS_PER_MINUTE > EVENTS_PER_TOKEN_PER_MINUTE)
})

eachStore('a delivery that nobody knows makes no event', async (store) => {
  const { visits, events, fetchOf } = await rigOf(store)
  visits.opened({ ...fetchOf('pixel'), deliveryId: newId() })
  await visits.stop()
  assert.deepEqual(await events('opened'), [])
})
