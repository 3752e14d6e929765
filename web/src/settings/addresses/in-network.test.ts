import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isInNetwork } from './in-network.ts'

test('addresses in networks of both families', () => {
  const inside = [
    ['192.0.2.7', '192.0.2.7'],
    ['192.0.2.7', '192.0.2.0/24'],
    ['192.0.2.255', '192.0.2.128/25'],
    ['198.51.100.1', '0.0.0.0/0'],
    ['::ffff:192.0.2.7', '192.0.2.0/29'],
    ['2001:db8::1', '2001:db8::/32'],
    ['2001:db8:0:1:2:3:4:5', '2001:db8:0:1::/64'],
    ['::1', '::/127'],
  ] as const
  for (const [address, network] of inside) assert.equal(isInNetwork(address, network), true, network)
  const outside = [
    ['192.0.3.7', '192.0.2.0/24'],
    ['192.0.2.7', '192.0.2.8/29'],
    ['2001:db9::1', '2001:db8::/32'],
    ['192.0.2.7', '2001:db8::/32'],
    ['192.0.2.7', '192.0.2.0/33'],
    ['192.0.2.7', '192.0.2'],
    ['300.0.2.7', '300.0.2.7'],
    ['1::2::3', '1::2::3'],
    ['2001:db8:1', '2001:db8:1'],
    ['', ''],
  ] as const
  for (const [address, network] of outside) assert.equal(isInNetwork(address, network), false, network)
})
