/** A batch to thousands of domains keeps neither the fresh mail of its own account nor that of others waiting. */
// Slow: it delivers to thousands of domains.
import assert from 'node:assert/strict'
import { DELIVERED, fakeTransport } from '../../../test/support/fake-transport.ts'
import { seededEngine, seedQueue } from '../../../test/support/seed-queue.ts'
import { eventually } from '../../../test/support/service.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { systemClock } from '../../base/time/clock.ts'
import type { Store } from '../../platform/store/store.ts'
import type { Outcome } from './attempt/outcome.ts'
import type { ClaimedDelivery } from './claim/queue.ts'
import type { Delivery } from './contract.ts'

/** More than the engine holds. */
const DOMAINS = 5_200
/** What an account has begun at least before its mail waits. */
const BEGUN = 1_000
const OWNERS = ['big', 'other']

const isFresh = ({ recipient_domain }: ClaimedDelivery) => recipient_domain.startsWith('fresh')

async function seedBatch(store: Store, accountId = 'big', count = DOMAINS): Promise<void> {
  const dueAt = systemClock.now() - 1_000
  const recipientDomain = (index: number) => `${accountId}${index}.example`
  await seedQueue(store, { accountId, domainId: accountId, recipientDomain, count, dueAt })
}

async function sendFresh(store: Store, engine: Delivery, accountId: string, name: string): Promise<void> {
  const group = { domain_id: accountId, recipient_domain: `fresh-${name}.example` }
  await seedQueue(store, {
    ...{ accountId, domainId: accountId, recipientDomain: group.recipient_domain },
    ...{ count: 1, dueAt: systemClock.now() },
  })
  engine.inserted([group])
}

eachStore('behind thousands of domains that never answer, fresh mail leaves', async (store) => {
  const hanging = Promise.withResolvers<Outcome>()
  const transport = fakeTransport(2, async (delivery) => (isFresh(delivery) ? DELIVERED : hanging.promise))
  await seedBatch(store)
  const engine = seededEngine(store, systemClock, transport)
  await engine.start()
  await eventually('much of the batch', async () => transport.attempts.length >= BEGUN)
  for (const owner of OWNERS)
    for (let n = 0; n < 10; n++) {
      await sendFresh(store, engine, owner, `${owner}${n}`)
      await eventually(`message ${n} of ${owner}`, async () =>
        transport.attempts.some(({ recipient_domain }) => recipient_domain === `fresh-${owner}${n}.example`),
      )
    }
  hanging.resolve(DELIVERED)
  await engine.stop(20_000)
  const rows = await store.db.selectFrom('deliveries').select('state').execute()
  const delivered = rows.filter(({ state }) => state === 'delivered').length
  assert.equal(delivered, transport.attempts.length, 'each attempt once, and on disk')
  assert.ok(rows.every(({ state }) => state === 'delivered' || state === 'queued'))
})

eachStore('among thousands of domains that answer slowly, fresh mail takes its turn', async (store) => {
  const waiting: ((outcome: Outcome) => void)[] = []
  const transport = fakeTransport(2, (delivery) =>
    isFresh(delivery) ? Promise.resolve(DELIVERED) : new Promise((resolve) => waiting.push(resolve)),
  )
  await seedBatch(store)
  const engine = seededEngine(store, systemClock, transport)
  await engine.start()
  await eventually('much of the batch', async () => transport.attempts.length >= BEGUN)
  for (const owner of OWNERS) await sendFresh(store, engine, owner, owner)
  const before = transport.attempts.length
  await eventually('both', async () => {
    waiting.shift()?.(DELIVERED)
    return transport.attempts.filter(isFresh).length === OWNERS.length
  })
  const passed = transport.attempts.findLastIndex(isFresh) - before
  assert.ok(passed < DOMAINS / 4, `${passed} of the batch began before them`)
  for (;;) {
    const next = waiting.shift()
    if (!next && transport.attempts.length === DOMAINS + OWNERS.length) break
    next?.(DELIVERED)
    await new Promise((resolve) => setImmediate(resolve))
  }
  await engine.stop(20_000)
  assert.equal(new Set(transport.attempts.map(({ id }) => id)).size, DOMAINS + OWNERS.length, 'each once')
})

eachStore('accounts with thousands of silent domains leave room for another', async (store) => {
  const hanging = Promise.withResolvers<Outcome>()
  const transport = fakeTransport(2, async (delivery) => (isFresh(delivery) ? DELIVERED : hanging.promise))
  const accounts = Array.from({ length: 8 }, (_, n) => `big${n}-`)
  for (const account of accounts) await seedBatch(store, account, 2 * BEGUN)
  const engine = seededEngine(store, systemClock, transport)
  await engine.start()
  await eventually('much of theirs', async () => transport.attempts.length > 1.5 * BEGUN)
  await sendFresh(store, engine, 'other', 'other')
  await eventually('the other one', async () => transport.attempts.some(isFresh))
  hanging.resolve(DELIVERED)
  await engine.stop(20_000)
})
