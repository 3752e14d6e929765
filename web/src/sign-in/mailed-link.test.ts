import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readMailedLink } from './mailed-link.ts'

test('mailed links are distinguished from other addresses', () => {
  assert.deepEqual(readMailedLink('#invitation=a-_9'), { purpose: 'invitation', token: 'a-_9' })
  assert.deepEqual(readMailedLink('#reset=x'), { purpose: 'reset', token: 'x' })
  for (const hash of ['', '#', '#reset=', '#other=x', '#reset=a&b', `#reset=${'x'.repeat(101)}`])
    assert.equal(readMailedLink(hash), null)
})
