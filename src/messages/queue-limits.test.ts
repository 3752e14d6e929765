import assert from 'node:assert/strict'
import { eachStore } from '../../test/support/stores.ts'
import { TurnedClock } from '../http/testing.ts'
import type { Store } from '../store/store.ts'
import { createQueueLimits } from './queue-limits.ts'

/** The store, and how many counts of deliveries were asked of it. */
function counted(store: Store): { store: Store; counts: () => number } {
  let counts = 0
  const db = new Proxy(store.db, {
    get(target, name) {
      const value = Reflect.get(target, name) as unknown
      if (name !== 'selectFrom') return typeof value === 'function' ? value.bind(target) : value
      return (table: never) => {
        if (table === 'deliveries') counts++
        return target.selectFrom(table)
      }
    },
  })
  return { store: { ...store, db }, counts: () => counts }
}

const domain = { id: 'd1', name: 'example.com' } as Parameters<
  ReturnType<typeof createQueueLimits>['check']
>[0]
/** Regular and scheduled. */
const QUERIES_OF_A_COUNT = 2

eachStore(
  'calls that come together share one count, and a short queue makes nobody wait for the next',
  async (real) => {
    const clock = new TurnedClock()
    const { store, counts } = counted(real)
    const limits = createQueueLimits({ store, clock, max: 10 })
    await Promise.all(Array.from({ length: 50 }, () => limits.check(domain)))
    assert.equal(counts(), QUERIES_OF_A_COUNT)
    assert.equal(limits.check(domain), undefined, 'remembered')

    clock.advance(11_000)
    for (let call = 0; call < 50; call++)
      assert.equal(limits.check(domain), undefined, 'the old count serves')
    await limits.status(domain)
    assert.equal(counts(), 3 * QUERIES_OF_A_COUNT, 'one new one was made, and one for the question')
  },
)

eachStore('near the limit nobody goes by an old count', async (real) => {
  const clock = new TurnedClock()
  const { store, counts } = counted(real)
  const limits = createQueueLimits({ store, clock, max: 10 })
  await limits.check(domain)
  limits.added(domain.id, 6)
  clock.advance(11_000)
  assert.ok(limits.check(domain) instanceof Promise)
  await limits.check(domain)
  assert.equal(counts(), 2 * QUERIES_OF_A_COUNT)
})
