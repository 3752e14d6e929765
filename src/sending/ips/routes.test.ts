/** Addresses over HTTP (ips-pools.md sections 1, 2 and 5). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eachDatabase } from '../../../test/support/databases.ts'
import { createInternet } from '../../../test/support/internet.ts'
import {
  type CallOptions,
  eventually,
  startTestService,
  type TestService,
} from '../../../test/support/service.ts'
import { callAs, createSubaccount, startOpened } from '../../../test/support/subaccounts.ts'

const [ONE, TWO, SPARE, SHARED, SHARED_TWO] = [
  '127.0.71.1',
  '127.0.71.2',
  '127.0.71.3',
  '127.0.71.8',
  '127.0.71.9',
] as const
const ENV = {
  SENDWRIGHT_IPS: `${ONE},${TWO},${SPARE}=spare,${SHARED}=shared,${SHARED_TWO}=shared,2001:DB8::0:1=spare`,
}
const NOT_OWNED = 'ip must be dedicated and belong to the account'

type Call = TestService['call']
const callsOf = (call: Call) => ({
  get: async (path: string) => (await call('GET', path)).body,
  ok: async (method: string, path: string, form?: CallOptions['form']) => {
    const answer = await call(method, path, form && { form })
    assert.equal(answer.status, 200, `${method} ${path}: ${answer.text}`)
    return answer.body
  },
  refused: async (
    method: string,
    path: string,
    form: CallOptions['form'] | undefined,
    status: number,
    message: string,
  ) => {
    const answer = await call(method, path, form && { form })
    assert.deepEqual([answer.status, answer.body.message], [status, message], `${method} ${path}`)
  },
})

async function domainsOf({ ok }: ReturnType<typeof callsOf>, names: readonly string[]): Promise<void> {
  for (const name of names) await ok('POST', '/v4/domains', { name })
}

eachDatabase((database) => {
  test('what an account has, and what its domains send from', async (t) => {
    const service = await startTestService(t, ENV, { database })
    const calls = callsOf(service.call)
    const { get, ok, refused } = calls
    await domainsOf(calls, ['a-one.example', 'b-two.example'])
    const ipsOf = async (name: string) => (await get(`/v3/domains/${name}/ips`)).items

    await t.test('lists and filters', async () => {
      const all = [ONE, TWO, SHARED, SHARED_TWO]
      assert.deepEqual(await get('/v3/ips'), {
        items: all,
        details: all.map((ip) => ({ ip })),
        assignable_to_pools: [ONE, TWO],
        total_count: 4,
      })
      assert.deepEqual((await get('/v3/ips?dedicated=true')).items, [ONE, TWO])
      assert.deepEqual((await get('/v3/ips?dedicated=no&enabled=true')).items, [SHARED, SHARED_TWO])
      assert.equal((await get('/v3/ips?enabled=false')).total_count, 0)
      const { items } = await get('/v3/ips/details/all')
      assert.deepEqual(items[0], {
        ...{ ip: ONE, rdns: '', dedicated: true, enabled: true, is_on_warmup: false, domains_count: 3 },
      })
      assert.deepEqual(await get(`/v3/ips/${SHARED}`), { ip: SHARED, rdns: '', dedicated: false })
      for (const unknown of [SPARE, '192.0.2.1', 'x'])
        await refused('GET', `/v3/ips/${unknown}`, undefined, 404, 'ip not found')
    })
    await t.test('one domain', async () => {
      const path = '/v3/domains/a-one.example/ips'
      assert.deepEqual(await get(path), { items: [ONE, TWO], total_count: 2 })
      await ok('POST', path, { ip: ONE })
      assert.deepEqual(await ipsOf('a-one.example'), [ONE, TWO], 'it has it already')
      await ok('DELETE', `${path}/${TWO}`)
      assert.deepEqual(await ipsOf('a-one.example'), [ONE])
      await ok('POST', path, { ip: 'shared' })
      assert.deepEqual(await ipsOf('a-one.example'), [ONE, SHARED])
      await ok('POST', path, { ip: 'shared' })
      assert.deepEqual(await ipsOf('a-one.example'), [ONE, SHARED, SHARED_TWO], 'the least used one')
      await ok('DELETE', `/v3/domains/a-one.example/pool/${ONE}`)
      await ok('DELETE', `${path}/all`)
      assert.deepEqual(await ipsOf('a-one.example'), [])
      await ok('POST', path, { ip: TWO })
      await ok('DELETE', `${path}/${TWO}`)
      assert.deepEqual(await ipsOf('a-one.example'), [SHARED], 'never nothing')
      await refused('POST', path, { ip: SHARED }, 400, NOT_OWNED)
      await refused('POST', path, { ip: SPARE }, 404, 'ip not found')
      await refused(
        'POST',
        path,
        { ip: ONE, pool_id: 'x' },
        400,
        'only one of ip and pool_id may be provided',
      )
      await refused('POST', path, { pool_id: 'x' }, 404, 'pool not found')
      const { pool_id: empty } = await ok('POST', '/v3/ip_pools', { name: 'Empty' })
      await refused('POST', path, { pool_id: empty }, 400, 'pool must have at least one IP')
      await ok('DELETE', `/v3/ip_pools/${empty}`)
      await ok('DELETE', `${path}/${SHARED}?ip=${TWO}`)
      assert.deepEqual(await ipsOf('a-one.example'), [TWO], 'another one takes its place')
      await refused('DELETE', `${path}/${TWO}?ip=${TWO}`, undefined, 400, 'replacement must be another IP')
      await ok('DELETE', `${path}/${TWO}?ip=shared`)
      assert.deepEqual(await ipsOf('a-one.example'), [SHARED])
      await refused('POST', path, {}, 400, 'Missing mandatory parameter: ip')
      await refused('POST', '/v3/domains/none.example/ips', { ip: ONE }, 404, 'Domain not found')
      await refused('DELETE', `${path}/ip_pool`, { ip: ONE }, 400, 'domain has no linked IP pool')
      await refused('DELETE', `${path}/ip_pool`, {}, 400, 'exactly one of ip and pool_id must be provided')
    })
    await t.test('domains of an address', async () => {
      const found = async (ip: string, query = '') => {
        const { items, total_count } = await get(`/v3/ips/${ip}/domains${query}`)
        return [items.map(({ domain }: { domain: string }) => domain).sort(), total_count]
      }
      assert.deepEqual(await found(SHARED), [['a-one.example'], 1])
      assert.deepEqual(await found(ONE, '?search=two, nothing'), [['b-two.example'], 1])
      const { items } = await get(`/v3/ips/${ONE}/domains?search=-TWO,zzz`)
      assert.deepEqual(items, [{ domain: 'b-two.example', ips: [ONE, TWO] }])
      const [, total] = await found(ONE, '?limit=1&skip=5')
      assert.equal(total, 2)
    })
    await t.test('all domains, in the background and over a restart', async () => {
      const three = await ok('POST', `/v3/ips/${TWO}/domains`)
      assert.equal(three.message, 'started')
      assert.match(three.reference_id, /^[\w-]{22}$/)
      await service.restart()
      await eventually('assigned', async () => (await ipsOf('a-one.example')).includes(TWO))
      assert.deepEqual(await ipsOf('a-one.example'), [TWO, SHARED])
      assert.deepEqual(await ipsOf('b-two.example'), [ONE, TWO])
      await ok('DELETE', '/v3/domains/a-one.example/ips/all')
      await ok('POST', '/v3/domains/a-one.example/ips', { ip: TWO })
      await ok('DELETE', `/v3/ips/${TWO}/domains`)
      await eventually('removed', async () => (await ipsOf('b-two.example')).length === 1)
      assert.deepEqual(await ipsOf('b-two.example'), [ONE])
      assert.deepEqual(await ipsOf('a-one.example'), [TWO], 'it would have none left')
      await ok('DELETE', `/v3/ips/${TWO}/domains`, { alternative: 'shared' })
      await eventually('replaced', async () => !(await ipsOf('a-one.example')).includes(TWO))
      assert.equal((await ipsOf('a-one.example')).length, 1)
      await refused(
        'DELETE',
        `/v3/ips/${TWO}/domains`,
        { alternative: TWO },
        400,
        'alternative must be another IP',
      )
      await refused('DELETE', `/v3/ips/${TWO}/domains`, { alternative: SPARE }, 404, 'ip not found')
      await refused('POST', `/v3/ips/${SHARED}/domains`, {}, 400, NOT_OWNED)
    })
    await t.test('bands need dynamic pools', async () => {
      const path = `/v3/ips/${ONE}/ip_band`
      await refused('POST', path, { ip_band: 'none' }, 400, 'dynamic IP pools are not configured')
      await refused('POST', path, { ip_band: 'best' }, 400, "'best' is not a valid value for ip_band")
      await refused('POST', path, {}, 400, 'Missing mandatory parameter: ip_band')
    })
    await t.test('a domain is created with addresses', async () => {
      await ok('POST', '/v4/domains', { name: 'c-three.example', ips: TWO })
      assert.deepEqual(await ipsOf('c-three.example'), [TWO])
      await refused(
        ...(['POST', '/v4/domains', { name: 'd.example', ips: SPARE }, 400] as const),
        `IP ${SPARE} is not assigned to the account`,
      )
      await ok('DELETE', '/v3/domains/c-three.example')
    })
  })

  test('spare addresses, subaccounts and the operator', async (t) => {
    const opened = await startOpened(t, ENV, { database })
    const { service } = opened
    const child = await createSubaccount(service, 'Child')
    const own = callsOf(service.call)
    const its = callsOf(callAs(service, child))

    await t.test('a subaccount has shared ones, until it requests one of its own', async () => {
      assert.deepEqual((await its.get('/v3/ips')).items, [SHARED, SHARED_TWO])
      assert.deepEqual(await its.get('/v3/ips/request/new'), { allowed: { dedicated: 2, shared: 2 } })
      await its.ok('POST', '/v3/ips/request/new')
      assert.deepEqual((await its.get('/v3/ips?dedicated=true')).items, [SPARE])
      await own.refused('GET', `/v3/ips/${SPARE}`, undefined, 404, 'ip not found')
      await own.ok('POST', '/v3/ips/request/new')
      assert.deepEqual((await own.get('/v3/ips?dedicated=true')).items, [ONE, TWO, '2001:db8::1'])
      assert.equal((await own.get('/v3/ips/2001:0db8::1')).ip, '2001:db8::1')
      await its.refused('POST', '/v3/ips/request/new', {}, 400, 'no dedicated IPs available')
    })
    await t.test('without shared ones its last address stays', async () => {
      await domainsOf(its, ['child.example'])
      const path = `/sendwright/v1/accounts/${child}/shared-ips`
      assert.deepEqual(await own.ok('PUT', path, { allowed: 'no' }), { account_id: child, allowed: false })
      assert.deepEqual((await its.get('/v3/ips')).items, [SPARE])
      await its.refused(
        ...(['DELETE', `/v3/domains/child.example/ips/${SPARE}`, undefined, 400] as const),
        'the last IP of a domain cannot be removed',
      )
      await its.refused(
        ...(['POST', '/v3/domains/child.example/ips', { ip: 'shared' }, 400] as const),
        'account is not eligible for shared IPs',
      )
      await own.ok('PUT', path, { allowed: 'yes' })
      await its.ok('DELETE', `/v3/domains/child.example/ips/${SPARE}`)
    })
    await t.test('the operator sees all, switches them off and gives them away', async () => {
      const { items } = await own.get('/sendwright/v1/ips')
      assert.equal(items.length, 6)
      const path = `/sendwright/v1/ips/${SPARE}`
      const off = await own.ok('PUT', path, { enabled: 'false' })
      assert.deepEqual([off.account_id, off.enabled, off.usable], [child, false, false])
      assert.deepEqual((await its.get('/v3/ips?enabled=no')).items, [SPARE])
      const given = await own.ok('PUT', path, {
        enabled: 'true',
        account_id: service.service.first.accountId,
      })
      assert.equal(given.usable, true)
      assert.deepEqual((await its.get('/v3/ips?dedicated=yes')).items, [])
      await own.ok('POST', `/v3/domains/${service.domain}/ips`, { ip: SPARE })
      await own.ok('DELETE', `/v3/domains/${service.domain}/ips/${ONE}`)
      const used = 'the IP is assigned to domains or to a pool'
      await own.refused('PUT', path, { account_id: 'none' }, 400, used)
      await own.refused(
        ...(['PUT', `/sendwright/v1/ips/${SHARED}`, { account_id: child }, 400] as const),
        'a shared IP belongs to no account',
      )
      await own.refused('PUT', path, { account_id: 'nobody' }, 404, 'Account not found')
      await own.refused('PUT', '/sendwright/v1/ips/192.0.2.1', { enabled: 'no' }, 404, 'ip not found')
      await its.refused('GET', '/sendwright/v1/ips', undefined, 403, 'Forbidden')
    })
  })
})

test('addresses are checked: bound here, and named so that the name leads back', async (t) => {
  const internet = await createInternet(t)
  internet.dns.set('1.71.0.127.in-addr.arpa', 'PTR', ['good.example'])
  internet.dns.set('good.example', 'A', [ONE])
  internet.dns.set('77.2.0.192.in-addr.arpa', 'PTR', ['bad.example'])
  internet.dns.set('bad.example', 'A', ['192.0.2.78'])
  const env = { ...internet.env, SENDWRIGHT_IPS: `${ONE},192.0.2.77`, SENDWRIGHT_REQUIRE_FCRDNS: 'yes' }
  const service = await startTestService(t, env)
  const { get } = callsOf(service.call)
  const [good, bad] = await eventually('checked', async () => {
    const { items } = await get('/sendwright/v1/ips')
    // Usable once the findings of all are known to the process.
    return items[0].usable && items[1].check.checked_at !== null && items
  })
  assert.deepEqual([good.usable, good.check.dns_agrees, good.check.rdns], [true, true, 'good.example'])
  assert.deepEqual([bad.usable, bad.check.bound, bad.check.dns_agrees], [false, false, false])
  assert.match(bad.check.fault, /not an address of this machine; .*bad\.example, which does not lead back/)
  assert.deepEqual(await get(`/v3/ips/${ONE}`), { ip: ONE, rdns: 'good.example', dedicated: true })
  assert.equal((await service.send({ 'o:sending-ip': '192.0.2.77' })).status, 403)
})
