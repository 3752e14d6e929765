import assert from 'node:assert/strict'
import { test } from 'node:test'
import { limitParam, readInputs, skipParam } from './inputs.ts'
import { pageName, pivotPaging, tokenPaging } from './paging.ts'
import { Params, parseUrlencoded } from './params.ts'

const params = (query: string) => new Params({ query: parseUrlencoded(query), body: parseUrlencoded('') })
const bounces = {
  baseUrl: 'https://api.example.net',
  path: '/v3/example.com/bounces',
  pivotName: 'address',
  carry: { limit: 100, term: '' },
}

test('links of a page have the form of the contract', () => {
  const list = 'https://api.example.net/v3/example.com/bounces'
  assert.deepEqual(pivotPaging({ ...bounces, firstItem: 'alice@example.com', lastItem: 'bob@example.com' }), {
    previous: `${list}?page=previous&address=alice%40example.com&limit=100&term=`,
    first: `${list}?limit=100&term=`,
    next: `${list}?page=next&address=bob%40example.com&limit=100&term=`,
    last: `${list}?page=last&limit=100&term=`,
  })
})

test('an empty page repeats the pivot of the request', () => {
  const { next, previous } = pivotPaging({ ...bounces, pivot: 'z+1@example.com' })
  assert.match(next, /\?page=next&address=z%2B1%40example\.com&/)
  assert.match(previous, /\?page=previous&address=z%2B1%40example\.com&/)
})

test('an empty list has four links to the first page', () => {
  assert.equal(new Set(Object.values(pivotPaging(bounces))).size, 1)
})

test('mailing lists name the first page too', () => {
  const { first } = pivotPaging({
    ...bounces,
    carry: { limit: 100, subscribed: undefined },
    namesFirst: true,
  })
  assert.equal(first, 'https://api.example.net/v3/example.com/bounces?page=first&limit=100')
})

test('tokens go into the path or into the query', () => {
  const tokens = { first: 'f=', last: 'l', next: 'n', previous: 'p' }
  const base = { baseUrl: 'https://api.example.net', path: '/v3/example.com/events', tokens }
  assert.equal(
    tokenPaging({ ...base, place: 'path' }).first,
    'https://api.example.net/v3/example.com/events/f%3D',
  )
  assert.equal(
    tokenPaging({ ...base, place: { query: 'page' }, carry: { limit: 10 } }).next,
    'https://api.example.net/v3/example.com/events?page=n&limit=10',
  )
})

test('page names: absent, the four, prev, and no other', () => {
  assert.equal(pageName(params('')), 'first')
  assert.equal(pageName(params('page=')), 'first')
  for (const name of ['first', 'last', 'next', 'previous'])
    assert.equal(pageName(params(`page=${name}`)), name)
  assert.equal(pageName(params('page=prev')), 'previous')
  for (const name of ['2', 'constructor', '__proto__', 'NEXT']) {
    assert.throws(() => pageName(params(`page=${name}`)), {
      message: `Invalid format for parameter page: ${name}`,
    })
  }
})

test('limit and skip: default, cut or refused with the text of the area', () => {
  const read = (query: string, about: Parameters<typeof limitParam>[2] = {}) =>
    readInputs({ limit: limitParam(100, 1000, about), skip: skipParam() }, params(query))
  assert.deepEqual(read(''), { limit: 100, skip: 0 })
  assert.deepEqual(read('limit=&skip='), { limit: 100, skip: 0 })
  assert.deepEqual(read('limit=1000&skip=7'), { limit: 1000, skip: 7 })
  assert.equal(read('limit=5000', { above: 'cut' }).limit, 1000)
  const fails = (query: string, message: string, text?: string) =>
    assert.throws(() => read(query, text === undefined ? {} : { tooLarge: text }), {
      message,
    })
  fails('limit=1001', "The 'limit' parameter can't be larger than 1000")
  fails(
    'limit=1001',
    "Limit parameter can't be larger than 1000",
    "Limit parameter can't be larger than 1000",
  )
  fails('limit=0', 'Invalid format for parameter limit: 0')
  fails('limit=ten', 'Invalid format for parameter limit: ten')
  fails('limit=1.5', 'Invalid format for parameter limit: 1.5')
  fails('skip=-1', 'Invalid format for parameter skip: -1')
})
