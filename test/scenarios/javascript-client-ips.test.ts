/** Addresses and pools by the public JavaScript client. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import Mailgun from 'mailgun.js'
import { eventually, startTestService } from '../support/service.ts'
import { createSubaccount } from '../support/subaccounts.ts'

const [ONE, TWO, SHARED] = ['127.0.79.1', '127.0.79.2', '127.0.79.8'] as const

test('addresses, pools, their domains and delegations', async (t) => {
  const service = await startTestService(t, { SENDWRIGHT_IPS: `${ONE},${TWO},${SHARED}=shared` })
  const client = new Mailgun(FormData).client({ username: 'api', key: service.key, url: service.url })
  const { ips, ip_pools: pools } = client
  assert.deepEqual((await ips.list({ dedicated: '' })).items, [ONE, TWO, SHARED])
  assert.deepEqual((await ips.list({ dedicated: true })).total_count, 2)
  const { ip, dedicated, rdns } = await ips.get(SHARED)
  assert.deepEqual([ip, dedicated, rdns], [SHARED, false, ''])

  const { pool_id: id, message } = await pools.create({ name: 'Bulk', description: 'News', ips: [ONE, TWO] })
  assert.equal(message, 'success')
  const { ip_pools: listed } = await pools.list()
  assert.equal((listed as unknown as { pool_id: string }[])[0]?.pool_id, id)
  assert.equal(
    (await pools.update(id, { name: 'Bulk mail', link_domain: service.domain })).message,
    'success',
  )
  const read = await pools.get(id)
  assert.deepEqual([read.details.name, read.details.linked_domains], ['Bulk mail', [service.domain]])
  assert.deepEqual(read.ips, [ONE, TWO])
  const linked = await pools.linkedDomains(id, { limit: 10 })
  assert.equal(linked.domains[0]?.name, service.domain)
  assert.ok(linked.paging.next.startsWith('http'))

  assert.equal((await pools.removeIp(id, TWO)).message, 'started')
  assert.equal((await pools.addIp(id, TWO)).message, 'started')
  await pools.removeIp(id, TWO)
  assert.ok((await pools.addIps(id, [TWO])).reference_id)
  const child = await createSubaccount(service, 'Child')
  assert.equal((await pools.delegate(id, child)).message, 'started')
  assert.equal((await pools.revokeDelegation(id, child)).message, 'started')

  const { pool_id: other } = await pools.create({ name: 'Other' })
  await pools.removeIp(id, TWO)
  await pools.addIp(other, TWO)
  assert.equal((await pools.unlinkDomainPool(service.domain, other)).message, 'success')
  assert.deepEqual((await pools.get(other)).details.linked_domains, [service.domain])
  assert.ok((await pools.destroy(id, { ip: 'shared' })).reference_id)
  await assert.rejects(pools.destroy(other, {}), { status: 400 })
  await eventually('deleted', async () => (await service.call('GET', `/v3/ip_pools/${id}`)).status === 404)
})
