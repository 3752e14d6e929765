import assert from 'node:assert/strict'
import { test } from 'node:test'
import { at } from './tool.ts'

test('a value is one part of a path, whatever is in it', () => {
  assert.equal(at`/v4/domains/${'a/../b?c#%2F'}/dns`, '/v4/domains/a%2F..%2Fb%3Fc%23%252F/dns')
  assert.equal(at`/v4/domains/${'\ud800'}`, '/v4/domains/%EF%BF%BD')
})
