import assert from 'node:assert/strict'
import { test } from 'node:test'
import { networkOf, networksOf } from './ip.ts'

test('an address counts for itself and the two networks around it', () => {
  assert.deepEqual(networksOf('198.51.100.7'), ['198.51.100.7', '198.51.100.0/24', '198.51.96.0/20'])
  assert.deepEqual(networksOf('2001:db8:1:a2b3:1:2:3:4'), [
    '2001:db8:1:a2b3::/64',
    '2001:db8:1:a200::/56',
    '2001:db8:1::/48',
  ])
  assert.deepEqual(networksOf('2001:DB8:1::5'), [
    '2001:db8:1:0::/64',
    '2001:db8:1:0000::/56',
    '2001:db8:1::/48',
  ])
  assert.equal(networkOf('2001:0db8:0001:0000:ffff::1'), networkOf('2001:db8:1::'))
})
