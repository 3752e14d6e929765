/** What stays known of a delivery, while its message is stored and afterwards. */
// Both databases: what a node remembers of rows that others change.
import assert from 'node:assert/strict'
import { createTestClock } from '../../../test/support/clock.ts'
import { deliveredAt, eventStatements, NOW_MS } from '../../../test/support/events.ts'
import {
  SENT_AT,
  SENT_FROM,
  type SentCopy,
  storeSent,
  TEST_DOMAINS,
} from '../../../test/support/sent-message.ts'
import { eachStore } from '../../../test/support/stores.ts'
import type { Store } from '../../platform/store/store.ts'
import type { MessageSummary } from '../../watching/events/event.ts'
import { createKnownDeliveries } from './known-deliveries.ts'
import { createPastDeliveries } from './past-deliveries.ts'

const STORAGE = 'https://storage.example.net'
const LIST = {
  address: 'devs@mg.example.com',
  listId: 'devs.mg.example.com',
  sid: 'list-id',
  domainId: SENT_FROM.domainId,
  remove: [],
  add: [],
}

function partsOf(store: Store, keepDays = 30) {
  const clock = createTestClock(SENT_AT + 10 * 86_400_000)
  const known = createKnownDeliveries({ store, domains: TEST_DOMAINS, storageUrl: STORAGE })
  return { clock, known, past: createPastDeliveries({ store, clock, keepDays }) }
}

async function removeMessage(store: Store, past: ReturnType<typeof partsOf>['past'], messagePk: string) {
  const row = await store.db
    .selectFrom('messages')
    .selectAll()
    .where('id', '=', messagePk)
    .executeTakeFirstOrThrow()
  await past.moveAll({ ...row, summary: JSON.parse(row.summary_json) as MessageSummary })
  await store.db.deleteFrom('messages').where('id', '=', messagePk).execute()
}

const COPIES: SentCopy[] = [
  { recipient: 'Alice@example.org' },
  { recipient: 'bob@example.net', state: 'bounced' },
  { recipient: 'carol@example.net', list: LIST, variables: { plan: 'gold' } },
  { recipient: 'dave@example.net', attempts: 3, variables: { order: '99' }, subject: 'Of the template' },
]

eachStore('all that is known of a delivery is known after its message was removed', async (store) => {
  const { known, past } = partsOf(store)
  const { messagePk, messageId, deliveryIds } = await storeSent(store, COPIES, {
    userVariables: { order: '%recipient.order%' },
  })
  const before = await Promise.all(deliveryIds.map((id) => known.find(id)))
  const [alice, bob, carol, dave] = before
  assert.deepEqual(
    [alice?.recipient, alice?.recipientDomain, alice?.recipientProvider, alice?.sendingIp, alice?.state],
    ['Alice@example.org', 'example.org', 'Gmail', '203.0.113.9', 'delivered'],
  )
  assert.equal(alice?.deliveredAt, SENT_AT + 4_000)
  assert.deepEqual([alice?.accountId, alice?.domainId, alice?.domainName], Object.values(SENT_FROM))
  assert.equal(alice?.about.messageId, messageId)
  assert.equal(alice?.about.storageUrl, `${STORAGE}/v3/domains/mg.example.com/messages/${messagePk}`)
  assert.deepEqual([bob?.state, bob?.deliveredAt, bob?.recipientProvider], ['bounced', null, 'Other'])
  assert.deepEqual(carol?.about.summary.mailingList, {
    address: LIST.address,
    'list-id': LIST.listId,
    sid: LIST.sid,
  })
  assert.equal(carol?.listSid, LIST.sid)
  assert.equal(dave?.about.storageKey, dave?.deliveryId)
  assert.deepEqual(dave?.about.summary.userVariables, { order: '99' })
  assert.equal(dave?.about.summary.subject, 'Of the template')
  assert.deepEqual([alice?.attempts, dave?.attempts], [1, 3])

  await removeMessage(store, past, messagePk)
  assert.deepEqual(await store.db.selectFrom('deliveries').select('id').execute(), [])
  // All but the name of the key.
  assert.equal(alice?.primaryDkim, 'k1._domainkey.mg.example.com')
  assert.deepEqual(
    await Promise.all(deliveryIds.map((id) => known.find(id))),
    before.map((found) => ({ ...found, primaryDkim: null })),
  )
})

eachStore('what no server had in hand leaves nothing behind', async (store) => {
  const { known, past } = partsOf(store)
  const { messagePk, deliveryIds } = await storeSent(store, [
    { recipient: 'a@example.org', state: 'suppressed', attempts: 0 },
  ])
  await removeMessage(store, past, messagePk)
  assert.equal(await known.find(deliveryIds[0] ?? ''), null)
  assert.deepEqual(await store.db.selectFrom('past_messages').selectAll().execute(), [])
})

eachStore('a message of many recipients is moved in several transactions', async (store) => {
  const { known, past } = partsOf(store)
  const copies = Array.from({ length: 1100 }, (_, at) => ({
    recipient: `r${at}@example.org`,
    state: 'bounced' as const,
  }))
  const { messagePk, deliveryIds } = await storeSent(store, copies)
  await removeMessage(store, past, messagePk)
  assert.equal((await known.find(deliveryIds[0] ?? ''))?.recipient, 'r0@example.org')
  assert.equal((await known.find(deliveryIds[1099] ?? ''))?.recipient, 'r1099@example.org')
})

eachStore('past deliveries go after 60 days, or with their domain', async (store) => {
  const { known, past, clock } = partsOf(store)
  const first = await storeSent(store, [{ recipient: 'a@example.org' }])
  await removeMessage(store, past, first.messagePk)
  clock.leap(59 * 86_400_000)
  const second = await storeSent(store, [{ recipient: 'b@example.org' }])
  await removeMessage(store, past, second.messagePk)
  await past.sweep()
  assert.ok(await known.find(first.deliveryIds[0] ?? ''))
  clock.leap(2 * 86_400_000)
  await past.sweep()
  assert.equal(await known.find(first.deliveryIds[0] ?? ''), null)
  assert.ok(await known.find(second.deliveryIds[0] ?? ''))
  await past.removeDomain('another')
  assert.ok(await known.find(second.deliveryIds[0] ?? ''))
  await past.removeDomain(SENT_FROM.domainId)
  assert.equal(await known.find(second.deliveryIds[0] ?? ''), null)
  assert.deepEqual(await store.db.selectFrom('past_messages').selectAll().execute(), [])
})

eachStore('a longer event retention keeps past deliveries as long', async (store) => {
  const { known, past, clock } = partsOf(store, 90)
  const { messagePk, deliveryIds } = await storeSent(store, [{ recipient: 'a@example.org' }])
  await removeMessage(store, past, messagePk)
  clock.leap(89 * 86_400_000)
  await past.sweep()
  assert.ok(await known.find(deliveryIds[0] ?? ''))
})

eachStore('an id that names nothing is nobody', async (store) => {
  const { known } = partsOf(store)
  for (const id of ['', 'x', "'; --", '0123456789ABCDEFGHIJKL']) assert.equal(await known.find(id), null)
})

eachStore('a click is not paid for with all other mail that its recipient got', async (store) => {
  const { messageId, deliveryIds } = await storeSent(store, [{ recipient: 'alice@example.org' }])
  const others = Array.from({ length: 300 }, (_, n) =>
    deliveredAt(SENT_AT + 5_000 + n - NOW_MS, 'alice@example.org', {}, { messageId: `${n}@mg.example.com` }),
  )
  await store.commit(eventStatements(others))
  let read = 0
  const counting = store.db.withPlugin({
    transformQuery: ({ node }) => node,
    async transformResult({ result }) {
      read += result.rows.length
      return result
    },
  })
  const { known } = partsOf({ ...store, db: counting })
  const found = await known.find(deliveryIds[0] ?? '')
  assert.equal(found?.about.messageId, messageId)
  assert.equal(found.recipientProvider, 'Gmail')
  assert.ok(read < 10, `${read} rows were read`)
})
