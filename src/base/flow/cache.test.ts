import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allKnown, Lazy, whenKnown } from './cache.ts'

test('known values are used at once, others when they are known', async () => {
  const double = (n: number) => 2 * n
  assert.equal(whenKnown(2, double), 4)
  assert.equal(await whenKnown(Promise.resolve(2), double), 4)
  assert.equal(await whenKnown(2, async (n) => double(n)), 4)
  assert.deepEqual(allKnown([1, 'a', null]), [1, 'a', null])
  const later = allKnown([1, Promise.resolve('a')])
  assert.ok(later instanceof Promise)
  assert.deepEqual(await later, [1, 'a'])
  await assert.rejects(async () => allKnown([1, Promise.reject(new Error('away'))]), /away/)
})

test('a lazy value is loaded once, and again after a failure or when it was dropped', async () => {
  let loads = 0
  const results: (() => number | Promise<number>)[] = [
    () => Promise.reject(new Error('away')),
    () => Promise.resolve(1),
    () => 2,
  ]
  const lazy = new Lazy(() => results[loads++]?.() ?? 0)
  await assert.rejects(async () => lazy.get(), /away/)
  const first = lazy.get()
  assert.equal(lazy.get(), first, 'both wait for one load')
  assert.equal(await first, 1)
  assert.equal(lazy.get(), 1, 'known now, without a promise')
  lazy.forget()
  assert.deepEqual([lazy.get(), lazy.get(), loads], [2, 2, 3])
})
