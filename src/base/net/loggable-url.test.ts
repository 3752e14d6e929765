import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loggableUrl } from '../printable.ts'

test('a URL is logged without user, password, query and fragment', () => {
  const url = 'https://user:pLanted@archive.example:8443/in/box?token=pLanted#pLanted'
  assert.equal(loggableUrl(url), 'https://archive.example:8443/in/box')
  assert.equal(loggableUrl('http://a.example'), 'http://a.example/')
  for (const text of ['user:pLanted@nowhere', '//pLanted', 'https://[pLanted', ''])
    assert.equal(loggableUrl(text), '(no http URL)')
})
