import assert from 'node:assert/strict'
import { test } from 'node:test'
import { itemsOf, type Pages, ROWS_MAX, withArrivals, withFirstPage, without } from './pages.ts'

/** Pages of items named by letters, each with a cursor named after its last item. */
function listOf(...pages: string[]): Pages<{ id: string }> {
  return { pages: pages.map(pageOf), pageParams: pages.map((_, index) => `page ${index}`) }
}

function pageOf(letters: string) {
  const next = `after ${letters.at(-1)}`
  return { items: [...letters].map((id) => ({ id })), paging: { first: '', last: '', previous: '', next } }
}

const read = (list: Pages<{ id: string }> | undefined) =>
  itemsOf(list)
    .map((item) => item.id)
    .join('')

test('arrivals go on top, newest first, each once', () => {
  const list = withArrivals(listOf('dc', 'ba'), [{ id: 'd' }, { id: 'e' }, { id: 'e' }, { id: 'f' }])
  assert.equal(read(list), 'fedcba')
  assert.equal(list?.pages.at(-1)?.paging.next, 'after a')
})

test('a list that would outgrow its bound is started over', () => {
  const arrivals = Array.from({ length: ROWS_MAX }, (_, index) => ({ id: `n${index}` }))
  assert.equal(withArrivals(listOf('a'), arrivals), undefined)
})

test('a fresh first page replaces the top and keeps what was loaded below', () => {
  for (const { loaded, fresh, expected, next } of [
    { loaded: ['dc', 'ba'], fresh: 'fed', expected: 'fedcba', next: 'after a' },
    { loaded: ['fedc', 'ba'], fresh: 'fdc', expected: 'fdcba', next: 'after a' }, // e was deleted
    { loaded: ['fe', 'dc', 'ba'], fresh: 'gfed', expected: 'gfedcba', next: 'after a' },
    { loaded: ['dc', 'ba'], fresh: 'zyx', expected: 'zyx', next: 'after x' }, // a gap: start over
    { loaded: ['dc'], fresh: '', expected: '', next: 'after undefined' }, // all deleted
  ]) {
    const list = withFirstPage(listOf(...loaded), pageOf(fresh), 'first')
    assert.equal(read(list), expected)
    assert.equal(list.pages.at(-1)?.paging.next, next)
    assert.equal(list.pageParams.length, list.pages.length)
    assert.equal(list.pageParams[0], 'first')
  }
})

test('a deleted item is gone from whichever page held it', () => {
  assert.equal(read(without(listOf('dc', 'ba'), 'b')), 'dca')
})

test('an item that stands on two pages is shown once', () => {
  assert.equal(read(listOf('ba', 'bac')), 'bac')
})
