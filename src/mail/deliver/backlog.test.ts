/** Which groups are remembered to have mail in the database, and in which order their lanes are refilled. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Lanes } from './lanes/lanes.ts'

const found = (domain_id: string, n: number) => ({
  ...{ account_id: domain_id, domain_id, recipient_domain: `${n}.example`, source_key: '' },
})

test('a sending domain with mail for many domains takes turns with others, and a bounded part is remembered', () => {
  const lanes = new Lanes(
    () => false,
    () => 5_000,
  )
  for (let n = 0; n < 20_000; n++) lanes.found(found('big', n))
  for (let n = 0; n < 3; n++) lanes.found(found('small', n))
  const first = lanes.takeGroupsToRefill(0, 4)
  assert.deepEqual(
    first.map(({ key }) => key.domain_id),
    ['big', 'small', 'big', 'small'],
  )
  assert.equal(lanes.takeGroupsToRefill(0, 20_000).length, 1_000 + 3)
  const all = new Set(
    lanes.takeGroupsToRefill(0, 8).map(({ key }) => `${key.domain_id} ${key.recipient_domain}`),
  )
  assert.equal(all.size, 8)
})
