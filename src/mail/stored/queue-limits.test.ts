import assert from 'node:assert/strict'
import { ManualClock } from '../../../test/support/http-server.ts'
import { eachStore } from '../../../test/support/stores.ts'
import type { Store } from '../../platform/store/store.ts'
import type { Domain } from '../../sending/domains/domain.ts'
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

const domain = { id: 'd1', name: 'example.com' } as Domain
/** Regular and scheduled. */
const QUERIES_OF_A_COUNT = 2

eachStore(
  'calls that come together share one count, and a short queue makes nobody wait for the next',
  async (real) => {
    const clock = new ManualClock()
    const { store, counts } = counted(real)
    const limits = createQueueLimits({ store, clock, max: 10 })
    await Promise.all(Array.from({ length: 50 }, () => limits.disabledUntil(domain.id)))
    assert.equal(counts(), QUERIES_OF_A_COUNT)
    assert.equal(limits.disabledUntil(domain.id), 0, 'remembered')

    clock.advance(11_000)
    for (let call = 0; call < 50; call++)
      assert.equal(limits.disabledUntil(domain.id), 0, 'the old count serves')
    await limits.status(domain)
    assert.equal(counts(), 3 * QUERIES_OF_A_COUNT, 'one new one was made, and one for the question')
  },
)

eachStore('near the limit nobody goes by an old count', async (real) => {
  const clock = new ManualClock()
  const { store, counts } = counted(real)
  const limits = createQueueLimits({ store, clock, max: 10 })
  await limits.disabledUntil(domain.id)
  limits.added(domain.id, 6)
  clock.advance(11_000)
  assert.ok(limits.disabledUntil(domain.id) instanceof Promise)
  await limits.disabledUntil(domain.id)
  assert.equal(counts(), 2 * QUERIES_OF_A_COUNT)
})
