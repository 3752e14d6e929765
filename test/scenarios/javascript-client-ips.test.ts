/** Addresses and pools by the public JavaScript client. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import Mailgun from 'mailgun.js'
import { callsOf, setPools } from '../support/dynamic-pools.ts'
import { eventually, startTestService } from '../support/service.ts'
import { createSubaccount } from '../support/subaccounts.ts'

const [ONE, TWO, THREE, SHARED] = ['127.0.79.1', '127.0.79.2', '127.0.79.3', '127.0.79.8'] as const

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

test('domains: their addresses and pools', async (t) => {
  const service = await startTestService(t, { SENDWRIGHT_IPS: `${ONE},${TWO},${SHARED}=shared` })
  const client = new Mailgun(FormData).client({ username: 'api', key: service.key, url: service.url })
  const { domains, ip_pools: pools } = client
  const { domain } = service
  await domains.assignIp(domain, ONE)
  await domains.deleteIp(domain, TWO)
  assert.deepEqual(await domains.getIps(domain), [ONE])
  assert.equal((await pools.removeIpFromDomainPool(domain, ONE, TWO)).message, 'success')
  assert.deepEqual(await domains.getIps(domain), [TWO])
  assert.equal((await pools.removeDomainPool(domain)).message, 'success')
  assert.deepEqual(await domains.getIps(domain), [])
  const { pool_id: id } = await pools.create({ name: 'Bulk', ips: [ONE] })
  await domains.linkIpPool(domain, id)
  assert.deepEqual(await domains.getIps(domain), [ONE])
  await domains.unlinkIpPoll(domain, { ip: 'shared' })
  assert.deepEqual(await domains.getIps(domain), [SHARED])
})

test('a domain in dynamic pools, which the client has no calls for', async (t) => {
  const service = await startTestService(t, { SENDWRIGHT_IPS: `${ONE},${TWO},${THREE}` })
  const client = new Mailgun(FormData).client({ username: 'api', key: service.key, url: service.url })
  const { domains, ips, ip_pools: pools } = client
  const calls = callsOf(service.call)
  await setPools(calls, ONE, TWO, THREE)
  await calls.ok('POST', `/v3/domains/${service.domain}/dynamic_pools`)
  assert.deepEqual(await domains.getIps(service.domain), [THREE])
  assert.deepEqual((await ips.list({ dedicated: true })).assignable_to_pools, [])
  const refused = { status: 400, details: 'domain is enrolled in dynamic IP pools' }
  await assert.rejects(domains.assignIp(service.domain, ONE), refused)
  await assert.rejects(domains.deleteIp(service.domain, THREE), refused)
  await assert.rejects(pools.removeDomainPool(service.domain), refused)
  const used = { status: 400, details: 'ip is already in an IP pool' }
  await assert.rejects(pools.create({ name: 'Bulk', ips: [ONE] }), used)
  const { pool_id: id } = await pools.create({ name: 'Bulk' })
  await assert.rejects(pools.addIp(id, ONE), used)
})
