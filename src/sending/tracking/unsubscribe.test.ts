/** Unsubscribing and its undoing, on both databases: what changes, which events are written, and how often. */

import assert from 'node:assert/strict'
import { createTestClock } from '../../../test/support/clock.ts'
import { createTestList } from '../../../test/support/lists.ts'
import { SENT_AT, SENT_FROM, storeSent, TEST_DOMAINS } from '../../../test/support/sent-message.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { createKnownDeliveries } from '../../mail/stored/known-deliveries.ts'
import type { Store } from '../../platform/store/store.ts'
import { createEventRecorder, type EventRecord } from '../../watching/events/event.ts'
import { NOT_PENDING } from '../lists/consent.ts'
import { createListStore } from '../lists/store.ts'
import { addUnsubscribe } from '../suppressions/automatic.ts'
import { findRecord } from '../suppressions/service.ts'
import type { Unsubscription } from './links/tokens.ts'
import { createUnsubscriber, type Visitor } from './unsubscribe.ts'

const ALICE = 'alice@example.org'
const OWNER = { id: SENT_FROM.domainId, accountId: SENT_FROM.accountId }
const VISITOR: Visitor = {
  ip: '192.0.2.44',
  client: {
    'client-name': 'Firefox',
    'client-os': 'Linux',
    'client-type': 'browser',
    'device-type': 'desktop',
    'user-agent': 'Mozilla/5.0',
    bot: '',
  },
  geolocation: { country: 'DE', region: 'BE', city: 'Berlin', timezone: 'Europe/Berlin' },
}

function rigOf(store: Store) {
  const clock = createTestClock(SENT_AT + 60_000)
  const outbox: EventRecord[] = []
  const unsubscriber = createUnsubscriber({
    store,
    domains: TEST_DOMAINS,
    lists: createListStore(store),
    known: createKnownDeliveries({ store, domains: TEST_DOMAINS, storageUrl: 'https://s.example.net' }),
    clock,
    recorder: createEventRecorder([
      {
        of: null,
        rows(events) {
          outbox.push(...events)
          return []
        },
      },
    ]),
  })
  const events = async () => {
    const rows = await store.db
      .selectFrom('events')
      .select('payload_json')
      .where('event', '=', 'unsubscribed')
      .orderBy('seq')
      .execute()
    return rows.map((row) => JSON.parse(row.payload_json) as Record<string, unknown>)
  }
  const tags = async () =>
    (await findRecord(store, SENT_FROM.domainId, 'unsubscribes', ALICE, clock.now()))?.tags ?? null
  return { ...unsubscriber, events, tags, outbox, clock }
}

async function link(store: Store, more: Partial<Unsubscription> = {}): Promise<Unsubscription> {
  const { deliveryIds } = await storeSent(store, [{ recipient: ALICE }], { tags: ['News', 'weekly'] })
  return {
    scope: 'domain',
    ...{ accountId: SENT_FROM.accountId, domainId: SENT_FROM.domainId, recipient: ALICE },
    tags: ['News', 'weekly'],
    listSid: null,
    deliveryId: deliveryIds[0] ?? '',
    ...more,
  }
}

eachStore('the domain link adds * and writes one event', async (store) => {
  const rig = rigOf(store)
  const from = await link(store)
  assert.equal(await rig.isUnsubscribed(from), false)
  assert.equal(await rig.unsubscribe(from, VISITOR, 'unsubscribe_link'), true)
  assert.equal(await rig.unsubscribe(from, VISITOR, 'unsubscribe_link'), false)
  assert.equal(await rig.isUnsubscribed(from), true)
  assert.deepEqual(await rig.tags(), ['*'])
  const events = await rig.events()
  assert.equal(events.length, 1)
  const { id, timestamp, message, ...rest } = events[0] ?? {}
  assert.equal(typeof id, 'string')
  assert.equal(timestamp, (SENT_AT + 60_000) / 1000)
  assert.match(JSON.stringify(message), /^\{"headers":\{"message-id":"[^"<>]+@mg\.example\.com"\}\}$/)
  assert.deepEqual(rest, {
    event: 'unsubscribed',
    'log-level': 'info',
    recipient: ALICE,
    'recipient-domain': 'example.org',
    'recipient-provider': 'Gmail',
    tags: ['*'],
    campaigns: [],
    'user-variables': { order: '17' },
    ip: VISITOR.ip,
    'client-info': VISITOR.client,
    geolocation: VISITOR.geolocation,
  })
  assert.deepEqual(
    rig.outbox.map((event) => event.id),
    [id],
  )
})

eachStore('of many concurrent requests one changes the record and writes the event', async (store) => {
  const rig = rigOf(store)
  const from = await link(store)
  const other = rigOf(store)
  const results = await Promise.all(
    Array.from({ length: 12 }, (_, at) =>
      (at % 2 ? rig : other).unsubscribe(from, VISITOR, 'unsubscribe_link'),
    ),
  )
  assert.equal(results.filter(Boolean).length, 1)
  assert.equal((await rig.events()).length, 1)
})

eachStore('the tag link enters the tags of the message, and is undone to what was there', async (store) => {
  const rig = rigOf(store)
  const from = await link(store, { scope: 'tags' })
  await store.commit(addUnsubscribe(OWNER, ALICE, ['news', 'other'], 'event-0', SENT_AT))
  assert.equal(await rig.isUnsubscribed(from), false)
  assert.equal(await rig.unsubscribe(from, null, 'mail'), true)
  assert.deepEqual(await rig.tags(), ['news', 'other', 'weekly'])
  const [event] = await rig.events()
  assert.deepEqual(event?.['tags'], ['News', 'weekly'])
  assert.equal(await rig.resubscribe(from, VISITOR, 'unsubscribe_link'), true)
  assert.equal(await rig.resubscribe(from, VISITOR, 'unsubscribe_link'), false)
  assert.deepEqual(await rig.tags(), ['news', 'other'])
  assert.equal((await rig.events()).length, 1)
})

eachStore('tags that differ in letter case are one, and * among them is all mail', async (store) => {
  const rig = rigOf(store)
  const from = await link(store, { scope: 'tags', tags: ['news', 'NEWS'] })
  assert.equal(await rig.unsubscribe(from, VISITOR, 'unsubscribe_link'), true)
  assert.equal((await rig.tags())?.length, 1)
  assert.equal(await rig.unsubscribe({ ...from, tags: ['x', '*'] }, VISITOR, 'unsubscribe_link'), true)
  assert.deepEqual(await rig.tags(), ['*'])
})

eachStore('undoing the domain link brings back the tags that * replaced', async (store) => {
  const rig = rigOf(store)
  const from = await link(store)
  const tagLink = { ...from, scope: 'tags' as const, tags: ['weekly'] }
  await store.commit(addUnsubscribe(OWNER, ALICE, ['other'], 'event-0', SENT_AT))
  await rig.unsubscribe(tagLink, VISITOR, 'unsubscribe_link')
  await rig.unsubscribe(from, VISITOR, 'unsubscribe_link')
  assert.deepEqual(await rig.tags(), ['*'])
  // The tags' link does not affect what the domain's link covers.
  assert.equal(await rig.resubscribe(tagLink, VISITOR, 'unsubscribe_link'), false)
  assert.equal(await rig.resubscribe(from, VISITOR, 'unsubscribe_link'), true)
  assert.deepEqual(await rig.tags(), ['other', 'weekly'])
  assert.equal(await rig.resubscribe(tagLink, VISITOR, 'unsubscribe_link'), true)
  assert.deepEqual(await rig.tags(), ['other'])
})

eachStore('what the sender entered is not undone by a link', async (store) => {
  const rig = rigOf(store)
  const from = await link(store)
  await store.commit(addUnsubscribe(OWNER, ALICE, [], 'event-0', SENT_AT))
  assert.equal(await rig.unsubscribe(from, VISITOR, 'unsubscribe_link'), false)
  assert.equal(await rig.resubscribe(from, VISITOR, 'unsubscribe_link'), false)
  assert.deepEqual(await rig.tags(), ['*'])
  assert.equal((await rig.events()).length, 0)
})

eachStore('undone and done again is a new change', async (store) => {
  const rig = rigOf(store)
  const from = await link(store)
  for (let round = 0; round < 2; round++) {
    assert.equal(await rig.unsubscribe(from, VISITOR, 'unsubscribe_link'), true)
    assert.equal(await rig.resubscribe(from, VISITOR, 'unsubscribe_link'), true)
    assert.equal(await rig.tags(), null)
  }
  assert.equal((await rig.events()).length, 2)
})

eachStore('without message and delivery it still unsubscribes, without an event', async (store) => {
  const rig = rigOf(store)
  const from = await link(store, { deliveryId: '0123456789ABCDEFGHIJKL' })
  assert.equal(await rig.unsubscribe(from, VISITOR, 'unsubscribe_link'), true)
  assert.deepEqual(await rig.tags(), ['*'])
  assert.equal((await rig.events()).length, 0)
})

eachStore('a link of a deleted or foreign domain changes nothing', async (store) => {
  const rig = rigOf(store)
  const from = await link(store)
  assert.equal(await rig.unsubscribe({ ...from, domainId: 'gone' }, VISITOR, 'unsubscribe_link'), false)
  assert.equal(await rig.unsubscribe({ ...from, accountId: 'other' }, VISITOR, 'unsubscribe_link'), false)
  assert.deepEqual(await store.db.selectFrom('suppressions').selectAll().execute(), [])
})

eachStore('the list link sets the member and its undoing follows only a link', async (store) => {
  const rig = rigOf(store)
  const { lists } = await createTestList(store)
  const member = {
    list_id: 'list-id',
    address_key: ALICE,
    address: ALICE,
    name: 'Alice',
    vars_json: '{}',
    subscribed: 1,
    by_link: 0,
    ...NOT_PENDING,
  } as const
  const write = (subscribed: 0 | 1) =>
    lists.changeMembers('list-id', [ALICE], () => ({
      change: { write: [{ ...member, subscribed }], added: 0, cause: { source: 'api', at: SENT_AT } },
      result: null,
    }))
  await write(1)
  const list = { address: 'devs@mg.example.com', listId: 'devs.mg.example.com', sid: 'list-id' }
  const copy = { ...list, domainId: SENT_FROM.domainId, remove: [], add: [] }
  const { deliveryIds } = await storeSent(store, [{ recipient: ALICE, list: copy, variables: {} }])
  const from = await link(store, { scope: 'list', listSid: 'list-id', deliveryId: deliveryIds[0] ?? '' })
  assert.equal(await rig.isUnsubscribed(from), false)
  assert.equal(await rig.unsubscribe(from, VISITOR, 'unsubscribe_link'), true)
  assert.equal(await rig.unsubscribe(from, VISITOR, 'unsubscribe_link'), false)
  assert.equal(await rig.isUnsubscribed(from), true)
  const events = await rig.events()
  assert.equal(events.length, 1)
  assert.deepEqual(events[0]?.['mailing-list'], {
    address: list.address,
    'list-id': list.listId,
    sid: list.sid,
  })
  assert.equal(await rig.resubscribe(from, VISITOR, 'unsubscribe_link'), true)
  assert.equal((await lists.member('list-id', ALICE))?.subscribed, true)
  await write(0)
  assert.equal(await rig.resubscribe(from, VISITOR, 'unsubscribe_link'), false)
  await rig.unsubscribe(from, VISITOR, 'unsubscribe_link')
  assert.equal((await lists.member('list-id', ALICE))?.subscribed, false)
  assert.equal(await rig.tags(), null)
})

eachStore('undoing by the list link ends the wait of a member that asked to join again', async (store) => {
  const rig = rigOf(store)
  const { lists } = await createTestList(store)
  const row = {
    list_id: 'list-id',
    address_key: ALICE,
    address: ALICE,
    name: '',
    vars_json: '{}',
    subscribed: 0,
    by_link: 1,
    pending_id: 'pending-1',
    pending_until: SENT_AT + 120_000,
    pending_mail_at: null,
    pending_source: 'form',
    is_rejoining: 1,
  } as const
  await lists.changeMembers('list-id', [ALICE], () => ({
    change: { write: [row], added: 0, cause: { source: 'form', at: SENT_AT } },
    result: null,
  }))
  const from = await link(store, { scope: 'list', listSid: 'list-id' })
  assert.equal(await rig.resubscribe(from, VISITOR, 'unsubscribe_link'), true)
  assert.equal((await lists.member('list-id', ALICE))?.subscribed, true)
  // Else it would be unsubscribed when the time to confirm is over.
  assert.equal(await lists.pending('pending-1'), null)
})
