import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseAction, resolvedDestination } from './actions.ts'

const forwards = (text: string) => {
  const action = parseAction(text)
  return action.kind === 'forward' ? action.to.map(({ kind, text: to }) => `${kind} ${to}`) : []
}

test('actions are read in each of their forms', () => {
  assert.deepEqual(parseAction(' Stop ( ) '), { kind: 'stop' })
  assert.deepEqual(parseAction('store()'), { kind: 'store', notify: null })
  const notify = { kind: 'url', text: 'https://app.example.org/cb' }
  for (const form of ['notify="https://app.example.org/cb"', "notify = 'https://app.example.org/cb'"])
    assert.deepEqual(parseAction(`store(${form})`), { kind: 'store', notify })
  assert.deepEqual(parseAction('store("https://app.example.org/cb")'), { kind: 'store', notify })
  assert.deepEqual(forwards('forward("a@example.org")'), ['address a@example.org'])
  assert.deepEqual(forwards('forward("mailto:a@example.org")'), ['address a@example.org'])
  assert.deepEqual(
    forwards("forward('https://u:p@app.example.org/in?a=1,2, b@example.org,http://x.example/')"),
    ['url https://u:p@app.example.org/in?a=1,2', 'address b@example.org', 'url http://x.example/'],
  )
  assert.deepEqual(forwards('forward("\\1@example.org, https://x.example/\\g<who>")'), [
    'address \\1@example.org',
    'url https://x.example/\\g<who>',
  ])
})

test('invalid actions are refused', () => {
  const invalid = [
    '',
    'drop()',
    'forward()',
    'forward("")',
    'forward("nobody")',
    'forward("a@b@c")',
    'forward(a@example.org)',
    'forward("a@example.org") stop()',
    'forward(notify="https://x.example")',
    'store("a@example.org")',
    'store(notify=)',
    'stop("x")',
    'forward("ftp://x.example/")',
    'forward("file:///etc/passwd")',
    'forward("https://")',
    'forward("https://x.example/a b")',
    'forward("https://\\1.example/")',
    'forward("https://\\g<host>/in")',
    'forward("https://user:\\1@x.example/")',
    'forward("https://x.example\\\\@evil.example/")',
    `forward("https://x.example/${'a'.repeat(5000)}")`,
  ]
  for (const action of invalid)
    assert.throws(() => parseAction(action), { name: 'ActionSyntaxError' }, action)
})

const CAPTURES = {
  numbered: ['all', 'Bob Ö&/?', null, '..', 'bob', 'a@evil.example, b', '%2e%2E'],
  named: { who: 'x y', none: null },
}
const resolved = (kind: 'url' | 'address', text: string) => resolvedDestination({ kind, text }, CAPTURES)

test('captures are filled in, encoded in URLs', () => {
  assert.equal(
    resolved('url', 'https://x.example/\\1?w=\\g<who>'),
    'https://x.example/Bob%20%C3%96%26%2F%3F?w=x%20y',
  )
  assert.equal(resolved('url', 'https://x.example/a\\2b\\g<none>\\9'), 'https://x.example/ab')
  assert.equal(resolved('address', '\\4@example.org'), 'bob@example.org')
})

test('a capture cannot lead elsewhere', () => {
  assert.equal(resolved('url', 'https://x.example/users/\\3/in'), null)
  assert.equal(resolved('url', 'https://x.example/users/\\6/in'), 'https://x.example/users/%252e%252E/in')
  assert.equal(resolved('address', '\\5@example.org'), null)
  assert.equal(resolved('address', '\\2@example.org'), null)
  assert.equal(
    resolvedDestination(
      { kind: 'url', text: 'https://x.example/\\1' },
      { numbered: ['', 'a'.repeat(3000)], named: {} },
    ),
    null,
  )
})
