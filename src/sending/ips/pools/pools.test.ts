/** Pools over HTTP (ips-pools.md section 3). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../../../test/support/clock.ts'
import { eachDatabase } from '../../../../test/support/databases.ts'
import { type CallOptions, eventually } from '../../../../test/support/service.ts'
import {
  type Call,
  callAs,
  closeSubaccount,
  createSubaccount,
  startOpened,
} from '../../../../test/support/subaccounts.ts'

const [ONE, TWO, THREE, SHARED] = ['127.0.72.1', '127.0.72.2', '127.0.72.3', '127.0.72.8'] as const
const ENV = { SENDWRIGHT_IPS: `${ONE},${TWO},${THREE},${SHARED}=shared` }
const POOLS = '/v3/ip_pools'
const DELEGATIONS = '/v5/accounts/subaccounts/ip_pools/all'
const NOT_EMPTY = 'pool is linked to domains and must have at least one IP'
const TAKEN = 'ip is already in an IP pool'

type Refusal = [
  method: string,
  path: string,
  form: CallOptions['form'] | undefined,
  status: number,
  message: string,
]

const callsOf = (call: Call) => ({
  get: async (path: string) => (await call('GET', path)).body,
  ok: async (method: string, path: string, form?: CallOptions['form']) => {
    const answer = await call(method, path, form && { form })
    assert.equal(answer.status, 200, `${method} ${path}: ${answer.text}`)
    return answer.body
  },
  refused: async (...[method, path, form, status, message]: Refusal) => {
    const answer = await call(method, path, form && { form })
    assert.deepEqual([answer.status, answer.body.message], [status, message], `${method} ${path}`)
  },
})

eachDatabase((database) => {
  test('pools of an account', async (t) => {
    const { service } = await startOpened(t, ENV, { database })
    const { get, ok, refused } = callsOf(service.call)
    for (const name of ['a.example', 'b.example']) await ok('POST', '/v4/domains', { name })
    const ipsOf = async (name: string) => (await get(`/v3/domains/${name}/ips`)).items
    const { pool_id: id } = await ok('POST', POOLS, { name: 'Bulk', ip: [ONE, TWO] })
    const pool = `${POOLS}/${id}`

    await t.test('a pool is made of addresses that no other pool has', async () => {
      assert.match(id, /^[0-9a-f]{24}$/)
      const read = await get(pool)
      assert.deepEqual(read.ips, [ONE, TWO])
      assert.deepEqual(read.details.linked_domains, [])
      assert.deepEqual([read.is_linked, read.is_inherited, read.message], [false, false, 'success'])
      assert.match(read.metadata.assignments[ONE].linked_at, /^\d{4}-\d\d-\d\dT/)
      assert.deepEqual(await get('/v1/ip_pools'), await get(POOLS))
      assert.deepEqual((await get('/v3/ips')).assignable_to_pools, [THREE])
      assert.equal((await get('/v3/ips/details/all')).items[0].pool_id, id)
      await refused('POST', POOLS, { name: 'Again', ips: `${THREE}, ${ONE}` }, 400, TAKEN)
      await refused(
        'POST',
        POOLS,
        { name: 'Shared', ip: SHARED },
        400,
        'ip must be dedicated and belong to the account',
      )
      await refused('POST', POOLS, { name: 'Unknown', ip: '192.0.2.1' }, 404, 'ip not found')
      await refused('POST', POOLS, { ip: THREE }, 400, 'Missing mandatory parameter: name')
      assert.equal((await get(POOLS)).ip_pools.length, 1, 'nothing is left of those')
      await refused('GET', `${POOLS}/${'0'.repeat(24)}`, undefined, 404, 'pool not found')
    })
    await t.test('linked domains send from it alone', async () => {
      await ok('PATCH', pool, { link_domain: ['a.example', 'B.example'], description: 'News' })
      assert.deepEqual(await ipsOf('a.example'), [ONE, TWO])
      const read = await get(pool)
      assert.deepEqual([read.is_linked, read.description], [true, 'News'])
      assert.deepEqual(read.linked_domains.sort(), ['a.example', 'b.example'])
      assert.equal((await get(`/v3/ips/${ONE}/domains`)).total_count, 3)
      await refused('POST', '/v3/domains/a.example/ips', { ip: THREE }, 400, 'domain has a linked IP pool')
      await refused(
        'DELETE',
        `/v3/domains/a.example/ips/${ONE}`,
        undefined,
        400,
        'domain has a linked IP pool',
      )
      await refused('PATCH', pool, { link_domain: 'a.example', name: 'Bulk' }, 400, 'nothing to update')
      await refused('PATCH', pool, {}, 400, 'nothing to update')
      await refused('PATCH', pool, { link_domain: 'none.example' }, 404, 'Domain not found')
      const { pool_id: empty } = await ok('POST', POOLS, { name: 'Empty' })
      await refused('PATCH', `${POOLS}/${empty}`, { link_domain: 'a.example' }, 400, NOT_EMPTY)
      const noIp = 'pool must have at least one IP'
      await refused('POST', '/v3/domains/a.example/ips', { pool_id: empty }, 400, noIp)
      await ok('DELETE', `${POOLS}/${empty}`)
      await eventually('gone', async () => (await get(POOLS)).ip_pools.length === 1)
    })
    await t.test('domains in pages', async () => {
      const first = await get(`${pool}/domains?limit=10`)
      assert.deepEqual(first.domains.map(({ name }: { name: string }) => name).sort(), [
        'a.example',
        'b.example',
      ])
      const url = new URL(first.paging.next)
      assert.deepEqual((await get(url.pathname + url.search)).domains, [])
      const again = new URL(first.paging.first)
      assert.equal((await get(again.pathname + again.search)).domains.length, 2)
      await refused('GET', `${pool}/domains?limit=9`, undefined, 400, 'Invalid format for parameter limit: 9')
      await refused(
        'GET',
        `${pool}/domains?page=%00`,
        undefined,
        400,
        'Invalid format for parameter page: \0',
      )
    })
    await t.test('its addresses change, and the last one stays while it is linked', async () => {
      assert.equal((await ok('PUT', `${pool}/ips/${THREE}`)).message, 'started')
      assert.deepEqual(await ipsOf('a.example'), [ONE, TWO, THREE])
      await ok('PUT', `${pool}/ips/${THREE}`)
      for (const ip of [THREE, TWO]) await ok('DELETE', `${pool}/ips/${ip}`)
      await refused('DELETE', `${pool}/ips/${ONE}`, undefined, 400, NOT_EMPTY)
      await refused('DELETE', `${pool}/ips/${TWO}`, undefined, 404, 'ip not found')
      await refused('PATCH', pool, { remove_ip: ONE }, 400, NOT_EMPTY)
      assert.deepEqual((await get(pool)).ips, [ONE])
      const added = await service.call('POST', `${pool}/ips.json`, { json: { ips: [TWO, THREE] } })
      assert.equal(added.status, 200)
      await ok('PATCH', pool, { remove_ip: [ONE, THREE] })
      assert.deepEqual((await get(pool)).ips, [TWO])
      await refused('POST', `${pool}/ips.json`, {}, 400, 'Missing mandatory parameter: ips')
    })
    await t.test('a domain leaves it for what it gets instead', async () => {
      await ok('PATCH', pool, { unlink_domain: 'a.example' })
      assert.deepEqual(await ipsOf('a.example'), [SHARED])
      await ok('POST', '/v3/domains/a.example/ips', { pool_id: id })
      const path = '/v3/domains/a.example/ips/ip_pool'
      await refused('DELETE', path, { ip: TWO }, 400, TAKEN)
      await refused('DELETE', path, { pool_id: 'x' }, 404, 'pool not found')
      await ok('DELETE', `${path}?ip=${ONE}`)
      assert.deepEqual(await ipsOf('a.example'), [ONE])
    })
    await t.test('deletion moves its domains to the replacement', async () => {
      const { pool_id: other } = await ok('POST', POOLS, { name: 'Other', ip: THREE })
      const needed = 'replacement IP or pool is required'
      await refused('DELETE', pool, undefined, 400, needed)
      await refused(
        'DELETE',
        pool,
        { ip: ONE, pool_id: other },
        400,
        'only one of ip and pool_id may be provided',
      )
      await refused('DELETE', pool, { ip: THREE }, 400, TAKEN)
      await ok('DELETE', `${pool}?pool_id=${other}`)
      await eventually('deleted', async () => (await service.call('GET', pool)).status === 404)
      // The rows are read by another way than the address book, which is read again after the commit.
      const sendsFrom = (ip: string) =>
        eventually(ip, async () => JSON.stringify(await ipsOf('b.example')) === JSON.stringify([ip]))
      await sendsFrom(THREE)
      await ok('DELETE', `${POOLS}/${other}`, { ip: 'shared' })
      await eventually('deleted', async () => (await get(POOLS)).ip_pools.length === 0)
      await sendsFrom(SHARED)
      assert.deepEqual((await get('/v3/ips')).assignable_to_pools, [ONE, TWO, THREE])
    })
  })

  test('pools that subaccounts use', async (t) => {
    const { service } = await startOpened(t, ENV, { database })
    const child = await createSubaccount(service, 'Child')
    const own = callsOf(service.call)
    const its = callsOf(callAs(service, child))
    await its.ok('POST', '/v4/domains', { name: 'child.example' })
    const { pool_id: id } = await own.ok('POST', POOLS, { name: 'First', ip: ONE })
    const { pool_id: second } = await own.ok('POST', POOLS, { name: 'Second', ip: TWO })
    const ips = async () => (await its.get('/v3/domains/child.example/ips')).items

    await own.ok('PUT', `${POOLS}/${id}/delegate`, { subaccount_id: child })
    const [pool] = (await its.get(POOLS)).ip_pools
    assert.deepEqual([pool.pool_id, pool.is_inherited, pool.is_linked, pool.ips], [id, true, false, [ONE]])
    await its.ok('POST', '/v3/domains/child.example/ips', { pool_id: id })
    assert.deepEqual(await ips(), [ONE])
    assert.deepEqual((await own.get(`${POOLS}/${id}`)).linked_domains, ['child.example'])
    const forbidden: Refusal[] = [
      ['PATCH', `${POOLS}/${id}`, { name: 'x' }, 403, 'Forbidden'],
      ['DELETE', `${POOLS}/${id}`, undefined, 403, 'Forbidden'],
      ['DELETE', `${POOLS}/${id}/ips/${ONE}`, undefined, 403, 'Forbidden'],
      ['PUT', `${POOLS}/${id}/delegate`, { subaccount_id: child }, 403, 'Forbidden'],
      ['GET', DELEGATIONS, undefined, 403, 'Forbidden'],
      ['GET', `${POOLS}/${second}`, undefined, 404, 'pool not found'],
    ]
    for (const refusal of forbidden) await its.refused(...refusal)
    await own.refused(
      'PUT',
      `${POOLS}/${id}/delegate`,
      { subaccount_id: '0'.repeat(24) },
      404,
      'subaccount not found',
    )
    const ofChild = `/v5/accounts/subaccounts/${child}/ip_pool`
    await own.refused('PUT', ofChild, { pool_id: '0'.repeat(24) }, 404, 'pool not found')

    await own.ok('PUT', ofChild, { pool_id: second })
    assert.deepEqual(await own.get(DELEGATIONS), {
      items: [{ pool_id: second, subaccount_id: child }],
      total_count: 1,
    })
    await eventually('left the first pool', async () => !(await own.get(`${POOLS}/${id}`)).is_linked)
    assert.deepEqual(await ips(), [SHARED])
    await its.ok('POST', '/v3/domains/child.example/ips', { pool_id: second })
    await own.ok('DELETE', ofChild, { pool_id: second })
    await eventually('left the second pool', async () => (await ips())[0] === SHARED)
    assert.deepEqual((await its.get(POOLS)).ip_pools, [])
    assert.equal((await own.get(DELEGATIONS)).total_count, 0)
  })

  test('a closed subaccount leaves no pool, and its addresses are free', async (t) => {
    const clock = createTestClock(Date.now())
    const env = { SENDWRIGHT_IPS: `${ONE},${TWO}=spare` }
    const { service, core } = await startOpened(t, env, { database, clock })
    const child = await createSubaccount(service, 'Child')
    const own = callsOf(service.call)
    const its = callsOf(callAs(service, child))
    await its.ok('POST', '/v3/ips/request/new')
    const { pool_id: id } = await its.ok('POST', POOLS, { name: 'Mine', ip: TWO })
    await its.ok('POST', '/v4/domains', { name: 'child.example', pool_id: id })
    await its.ok('POST', `/v3/ip_warmups/${TWO}`)
    assert.equal((await own.get('/v3/ips/request/new')).allowed.dedicated, 0)
    assert.equal((await closeSubaccount(service, child)).status, 200)
    await eventually('free', async () => {
      await clock.advance(1_000)
      return (await own.get('/v3/ips/request/new')).allowed.dedicated === 1
    })
    for (const table of ['ip_pools', 'ip_pool_members', 'ip_warmups', 'domain_ips'])
      assert.deepEqual(await core.store.read({ sql: `SELECT * FROM ${table}`, values: [] }), [], table)
  })
})
