import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BadRequest } from '../../base/process/errors.ts'
import { PathTable, UriTooLong } from './router.ts'

function table(...routes: readonly [method: string, template: string][]): PathTable<string> {
  const made = new PathTable<string>()
  for (const [method, template] of routes) made.add(method, template, `${method} ${template}`)
  return made
}

test('fixed parts win, and where nothing lies behind them the variable one is tried', () => {
  const paths = table(
    ['GET', '/v4/domains'],
    ['GET', '/v4/{kind}'],
    ['GET', '/v4/{kind}/items/{item}'],
    ['POST', '/v4/domains/{name}'],
    ['GET', '/v4/domains/items/all'],
  )
  const cases: readonly [string, string, string | null, Record<string, string>?][] = [
    ['GET', '/v4/domains', 'GET /v4/domains', {}],
    ['GET', '/v4/other', 'GET /v4/{kind}', { kind: 'other' }],
    ['GET', '/v4/domains/items/7', 'GET /v4/{kind}/items/{item}', { kind: 'domains', item: '7' }],
    ['GET', '/v4/domains/items/all', 'GET /v4/domains/items/all', {}],
    ['POST', '/v4/domains/a.example', 'POST /v4/domains/{name}', { name: 'a.example' }],
    ['POST', '/v4/other', null],
    ['GET', '/v4', null],
    ['GET', '/v4/', null],
    ['GET', '/v4/domains/', null],
    ['GET', 'v4/domains', null],
    ['GET', '', null],
    ['GET', '/v4/d%6Fmains', 'GET /v4/domains', {}],
    ['GET', '/v4/a%2Fb', 'GET /v4/{kind}', { kind: 'a/b' }],
    ['GET', '/v4/__proto__', 'GET /v4/{kind}', { kind: '__proto__' }],
    [
      'GET',
      '/v4/constructor/items/toString',
      'GET /v4/{kind}/items/{item}',
      { kind: 'constructor', item: 'toString' },
    ],
  ]
  // Twice: the second time from memory.
  for (const round of [1, 2]) {
    for (const [method, path, value, parts] of cases) {
      const found = paths.find(method, path)
      const what = `${method} ${path}, round ${round}`
      assert.equal(found?.value ?? null, value, what)
      if (found) assert.deepEqual({ ...found.path }, parts, what)
    }
  }
})

test('the heads of other resources are no domains, in any spelling', () => {
  const paths = table(
    ['GET', '/v3/{domain}/tags'],
    ['GET', '/v3/lists/{address}'],
    ['GET', '/v2/{domain}/tags'],
  )
  for (const head of ['lists', 'Lists', 'l%69sts', 'routes', 'stats']) {
    assert.equal(
      paths.find('GET', `/v3/${head}/tags`)?.value ?? null,
      head === 'lists' || head === 'l%69sts' ? 'GET /v3/lists/{address}' : null,
    )
  }
  assert.equal(paths.find('GET', '/v2/lists/tags')?.value, 'GET /v2/{domain}/tags')
  assert.deepEqual(paths.methodsOf('/v3/routes/tags'), [])
  assert.deepEqual(paths.methodsOf('/v3/e.com/tags'), ['GET'])
})

test('broken escapes and parts of more than 4 KB are refused; what is found cannot be changed', () => {
  const paths = table(['GET', '/{name}'])
  assert.throws(() => paths.find('GET', '/%E0%A4%A'), BadRequest)
  assert.throws(() => paths.find('GET', '/%'), BadRequest)
  assert.throws(() => paths.find('GET', `/${'a'.repeat(4097)}`), UriTooLong)
  const { path } = paths.find('GET', '/a') as { path: Record<string, string> }
  assert.throws(() => {
    path['name'] = 'b'
  }, TypeError)
  assert.throws(() => paths.add('GET', '/{other}', 'twice'), /two routes/)
})

test('more different paths than are remembered still lead where they should', () => {
  const paths = table(['GET', '/{name}'])
  for (let round = 0; round < 2; round++) {
    for (let at = 0; at < 3_000; at++) assert.equal(paths.find('GET', `/n${at}`)?.path['name'], `n${at}`)
  }
})
