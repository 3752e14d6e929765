/** Dynamic pools over HTTP (dynamic-pools.md sections 2, 5 and 6); checks on their schedule: health-checks.test.ts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eachDatabase } from '../../../test/support/databases.ts'
import { callsOf, recordMail, setPools } from '../../../test/support/dynamic-pools.ts'
import { eventually } from '../../../test/support/service.ts'
import { callAs, createSubaccount, startOpened } from '../../../test/support/subaccounts.ts'

const [ONE, TWO, THREE, FOUR, FIVE] = [
  '127.0.61.1',
  '127.0.61.2',
  '127.0.61.3',
  '127.0.61.4',
  '127.0.61.5',
] as const
const [SPARE, SHARED] = ['127.0.61.7', '127.0.61.8'] as const
const ENV = {
  SENDWRIGHT_IPS: `${[ONE, TWO, THREE, FOUR, FIVE].join(',')},${SPARE}=spare,${SHARED}=shared`,
  SENDWRIGHT_AUTO_WARMUP: 'on',
}
const NOT_OWNED = 'ip must be dedicated and belong to the account'
const IN_POOL = 'ip is already in an IP pool'
const IN_DYNAMIC = 'ip is already in a dynamic IP pool'
const NOT_CONFIGURED = 'dynamic IP pools are not configured'
const NOT_ENROLLED = 'domain is not enrolled in dynamic IP pools'
const ENROLLED = 'domain is enrolled in dynamic IP pools'
const ALREADY = 'domain is already enrolled in dynamic IP pools'
const POOLS = '/v3/dynamic_pools'
const DOMAINS = '/v1/dynamic_pools/domains'
const noWarm = (band: string) => `${band} must have at least one IP that is not on warmup`
const enrolment = (name: string) => `/v3/domains/${name}/dynamic_pools`

eachDatabase((database) => {
  test('the addresses of the pools', async (t) => {
    const { service } = await startOpened(t, ENV, { database })
    const calls = callsOf(service.call)
    const { get, ok, refused } = calls
    const sets = (good: string, poor: string, fresh: string) => ({
      ...{ good_reputation: good, poor_reputation: poor, new_senders: fresh },
    })
    const accountId = service.service.first.accountId

    await t.test('before they are set', async () => {
      assert.deepEqual(await get(POOLS), { ...sets('', '', ''), ...EMPTY })
      for (const [method, path, form] of [
        ['POST', enrolment(service.domain)],
        ['POST', '/v3/domains/all/dynamic_pools/enroll'],
        ['POST', `${POOLS}/dynamic_good/${ONE}`],
        ['PATCH', `${POOLS}/dynamic_good`, { add_ip: ONE }],
        ['POST', `/v3/ips/${ONE}/ip_band`, { ip_band: 'dynamic_good' }],
      ] as const)
        await refused(method, path, form, 400, NOT_CONFIGURED)
      await refused(
        'PUT',
        `${DOMAINS}/${service.domain}/override`,
        { pool: 'dynamic_good' },
        400,
        NOT_ENROLLED,
      )
      assert.deepEqual(await ok('DELETE', `${POOLS}/all`), { message: 'success' })
      assert.deepEqual(await get(DOMAINS), { items: [], total_items: 0, paging: {} })
    })
    await t.test('all or nothing', async () => {
      const set = `${POOLS}/all`
      await refused(
        'POST',
        set,
        { good_reputation: ONE, poor_reputation: TWO },
        400,
        'Missing mandatory parameter: new_senders',
      )
      await refused('POST', set, sets(ONE, TWO, SHARED), 400, NOT_OWNED)
      await refused('POST', set, sets(ONE, TWO, '192.0.2.1'), 400, NOT_OWNED)
      await refused('POST', set, sets(ONE, TWO, SPARE), 400, NOT_OWNED)
      await refused('POST', set, sets(ONE, TWO, `${THREE},${ONE}`), 400, IN_DYNAMIC)
      await refused('POST', set, sets(ONE, TWO, ' , '), 400, noWarm('dynamic_new'))
      const { pool_id: id } = await ok('POST', '/v3/ip_pools', { name: 'Bulk', ip: FOUR })
      await refused('POST', set, sets(ONE, TWO, FOUR), 400, IN_POOL)
      await ok('POST', `/v3/ip_warmups/${THREE}`)
      await refused('POST', set, sets(ONE, TWO, THREE), 400, noWarm('dynamic_new'))
      assert.deepEqual((await get(POOLS)).pools, [])
      await ok('DELETE', `/v3/ip_warmups/${THREE}`)
      await ok('DELETE', `/v3/ip_pools/${id}/ips/${FOUR}`)
      assert.deepEqual(await ok('POST', set, { ...sets(ONE, TWO, ''), new_senders: [THREE, FOUR, THREE] }), {
        message: 'success',
        ...{ good_reputation: [ONE], poor_reputation: [TWO], new_senders: [THREE, FOUR] },
      })
      const { pools } = await get(POOLS)
      assert.deepEqual(
        pools.map(({ id: _, ...pool }: { id: string }) => pool),
        [
          { account_id: accountId, name: 'dynamic_good', enabled: true, ips: [ONE] },
          { account_id: accountId, name: 'dynamic_poor', enabled: true, ips: [TWO] },
          { account_id: accountId, name: 'dynamic_new', enabled: true, ips: [THREE, FOUR] },
        ],
      )
      // Set again, in other places: the pools are the same.
      await ok('POST', set, sets(TWO, ONE, THREE))
      assert.deepEqual(
        (await get(POOLS)).pools.map(({ id }: { id: string }) => id),
        pools.map(({ id }: { id: string }) => id),
      )
      await ok('POST', set, sets(ONE, TWO, THREE))
    })
    await t.test('an address is in one pool of either kind', async () => {
      assert.deepEqual((await get('/v3/ips')).assignable_to_pools, [FOUR, FIVE])
      const details = (await get('/v3/ips/details/all')).items
      const pools: { id: string }[] = (await get(POOLS)).pools
      assert.equal(details[0].pool_id, pools[0]?.id)
      await refused('POST', '/v3/ip_pools', { name: 'Other', ip: ONE }, 400, IN_POOL)
      await refused(
        ...(['PUT', `/sendwright/v1/ips/${ONE}`, { account_id: 'none' }, 400] as const),
        'the IP is assigned to domains or to a pool',
      )
    })
    await t.test('single addresses', async () => {
      assert.deepEqual(await ok('POST', `${POOLS}/dynamic_good/${FOUR}`), { message: 'success' })
      await ok('POST', `${POOLS}/good_reputation/${FOUR}`)
      assert.deepEqual((await get(POOLS)).good_reputation, [ONE, FOUR])
      await refused('POST', `${POOLS}/dynamic_poor/${FOUR}`, undefined, 400, IN_DYNAMIC)
      await refused('POST', `${POOLS}/dynamic_poor/${SHARED}`, undefined, 400, NOT_OWNED)
      await refused('POST', `${POOLS}/dynamic_poor/192.0.2.1`, undefined, 404, 'ip not found')
      await refused('POST', `${POOLS}/dynamic_best/${FIVE}`, undefined, 404, 'pool not found')
      await refused('PATCH', `${POOLS}/dynamic_best`, { add_ip: FIVE }, 404, 'pool not found')
      const poor = `${POOLS}/poor_reputation`
      await refused('PATCH', poor, {}, 400, 'at least one of add_ip and remove_ip must be provided')
      await refused(
        'PATCH',
        poor,
        { add_ip: FIVE, remove_ip: [TWO, FIVE] },
        400,
        'an IP cannot be added and removed',
      )
      await refused('PATCH', poor, { add_ip: ONE }, 400, IN_DYNAMIC)
      await refused('PATCH', poor, { add_ip: '192.0.2.1' }, 400, NOT_OWNED)
      await refused('PATCH', poor, { remove_ip: TWO }, 400, noWarm('dynamic_poor'))
      await ok('PATCH', poor, { add_ip: [FIVE, TWO], remove_ip: [ONE] })
      assert.deepEqual(
        (await get(POOLS)).poor_reputation,
        [TWO, FIVE],
        'there already, and not there: ignored',
      )
      await ok('PATCH', poor, { remove_ip: TWO })
      await ok('PATCH', poor, { add_ip: TWO, remove_ip: FIVE })
    })
    await t.test('an address is moved by its band', async () => {
      const band = (ip: string, name: string) => ok('POST', `/v3/ips/${ip}/ip_band`, { ip_band: name })
      await band(FOUR, 'dynamic_poor')
      assert.deepEqual((await get(POOLS)).poor_reputation, [TWO, FOUR])
      await band(FOUR, 'none')
      await band(FOUR, 'none')
      assert.deepEqual((await get(POOLS)).poor_reputation, [TWO])
      const path = `/v3/ips/${TWO}/ip_band`
      await refused('POST', path, { ip_band: 'none' }, 400, noWarm('dynamic_poor'))
      await refused('POST', path, { ip_band: 'best' }, 400, "'best' is not a valid value for ip_band")
      await refused('POST', '/v3/ips/192.0.2.1/ip_band', { ip_band: 'none' }, 404, 'ip not found')
      const { pool_id: id } = await ok('POST', '/v3/ip_pools', { name: 'Own', ip: FOUR })
      await refused('POST', `/v3/ips/${FOUR}/ip_band`, { ip_band: 'dynamic_poor' }, 400, IN_POOL)
      await ok('DELETE', `/v3/ip_pools/${id}/ips/${FOUR}`)
    })
    await t.test('a pool keeps an address that is not on warm-up', async () => {
      await refused('POST', `/v3/ip_warmups/${TWO}`, undefined, 400, noWarm('dynamic_poor'))
      await ok('PATCH', `${POOLS}/dynamic_poor`, { add_ip: FIVE })
      await ok('POST', `/v3/ip_warmups/${TWO}`)
      await refused('PATCH', `${POOLS}/dynamic_poor`, { remove_ip: FIVE }, 400, noWarm('dynamic_poor'))
      await refused('POST', `/v3/ip_warmups/${FIVE}`, undefined, 400, noWarm('dynamic_poor'))
      // One that was requested starts its warm-up when the pool gets it; a set of such alone is refused.
      await ok('POST', `/v3/domains/${service.domain}/ips`, { ip: ONE })
      await ok('POST', '/v3/ips/request/new')
      await ok('DELETE', `/v3/ip_warmups/${TWO}`)
      await ok('PATCH', `${POOLS}/dynamic_poor`, { add_ip: SPARE })
      assert.ok((await get('/v3/ip_warmups')).items.some(({ ip }: { ip: string }) => ip === SPARE))
    })
    await t.test('a subaccount sees them and cannot change them', async () => {
      const its = callsOf(callAs(service, await createSubaccount(service, 'Child')))
      assert.deepEqual((await its.get(POOLS)).good_reputation, [ONE])
      for (const [method, path, form] of [
        ['POST', `${POOLS}/all`, sets(ONE, TWO, THREE)],
        ['DELETE', `${POOLS}/all`],
        ['POST', `${POOLS}/dynamic_good/${FOUR}`],
        ['PATCH', `${POOLS}/dynamic_good`, { add_ip: FOUR }],
        ['POST', `/v3/ips/${ONE}/ip_band`, { ip_band: 'none' }],
        ['POST', '/v3/domains/all/dynamic_pools/enroll'],
      ] as const)
        await its.refused(method, path, form, 403, 'Forbidden')
    })
    await t.test('removed when no domain is enrolled', async () => {
      await ok('POST', enrolment(service.domain))
      await refused(
        'DELETE',
        `${POOLS}/all`,
        undefined,
        400,
        'all domains must be removed from dynamic IP pools first',
      )
      await ok('DELETE', enrolment(service.domain), { replacement_ip: FOUR })
      await ok('DELETE', `${POOLS}/all`)
      assert.deepEqual((await get(POOLS)).pools, [])
      assert.equal((await get('/v1/dynamic_pools/history')).total_items, 2, 'history stays')
    })
  })

  test('how domains enter and leave', async (t) => {
    const opened = await startOpened(t, ENV, { database })
    const { service } = opened
    const calls = callsOf(service.call)
    const { get, ok, refused } = calls
    await setPools(calls, ONE, TWO, THREE)
    const child = await createSubaccount(service, 'Child')
    const its = callsOf(callAs(service, child))
    for (const name of ['a.example', 'b.example', 'c.example']) await ok('POST', '/v4/domains', { name })
    for (const name of ['d.example', 'e.example']) await its.ok('POST', '/v4/domains', { name })
    const ipsOf = async (name: string, of = get) => (await of(`/v3/domains/${name}/ips`)).items
    const requestor = (await get('/v1/keys')).items[0].id

    await t.test('enrolled by its figures, without its own addresses', async () => {
      await recordMail(opened.core, 'a.example', { delivered: 94, bounced: 6, tests: 5_000 })
      const preview = () => get(`${DOMAINS}/a.example/preview`)
      await eventually('counted', async () => (await preview()).results.processed_count.value === 100)
      assert.deepEqual(await preview(), {
        pool: 'dynamic_poor',
        results: {
          bounce_rate: { value: 0.06, band: 'dynamic_poor' },
          complaint_rate: { value: 0, band: 'dynamic_good' },
          processed_count: { value: 100, band: 'dynamic_new' },
        },
      })
      assert.equal((await get(DOMAINS)).total_items, 0, 'a preview changes nothing')
      await ok('POST', '/v3/domains/a.example/ips', { ip: 'shared' })
      assert.deepEqual(await ok('POST', `${enrolment('a.example')}?replacement_ip=${ONE}`), {
        message: 'success',
      })
      assert.deepEqual(await ipsOf('a.example'), [TWO])
      await refused('POST', enrolment('a.example'), undefined, 400, ALREADY)
      await refused('POST', enrolment('none.example'), undefined, 404, 'Domain not found')
      const [item] = (await get(DOMAINS)).items
      assert.deepEqual(
        { ...item, id: '', registered_at: '' },
        {
          ...{ id: '', account_id: service.service.first.accountId, account_name: item.account_name },
          ...{ name: 'a.example', registered_at: '', pool: 'dynamic_poor', override: false },
          ...{ bounce_rate: 0.06, complaint_rate: 0, processed_count: 100 },
        },
      )
      const history = await get(`${DOMAINS}/a.example/history`)
      assert.deepEqual([history.total_items, history.items.length], [1, 1])
      const [record] = history.items
      const { items: _, total_items: __, paging: ___, ...newest } = history
      assert.deepEqual(newest, record, 'at top level too')
      assert.deepEqual(
        { ...record, id: '', timestamp: '' },
        {
          ...{ id: '', timestamp: '', owning_account_id: item.account_id, account_id: item.account_id },
          ...{ account_name: item.account_name, domain_id: item.id, domain_name: 'a.example' },
          ...{ new_band: 'dynamic_poor', prev_band: '', reason: 'enrolled', initiated_by: requestor },
          ...{ bounce_rate: 0.06, complaint_rate: 0, processed_count: 100 },
        },
      )
    })
    await t.test('its addresses are those of the pool', async () => {
      await refused('POST', '/v3/domains/a.example/ips', { ip: FOUR }, 400, ENROLLED)
      await refused('DELETE', `/v3/domains/a.example/ips/${TWO}`, undefined, 400, ENROLLED)
      const { pool_id: id } = await ok('POST', '/v3/ip_pools', { name: 'Own', ip: FIVE })
      await refused('POST', '/v3/domains/a.example/ips', { pool_id: id }, 400, ENROLLED)
      await refused('PATCH', `/v3/ip_pools/${id}`, { link_domain: 'a.example' }, 400, ENROLLED)
      const counts = async (ip: string) =>
        (await get('/v3/ips/details/all')).items.find((one: { ip: string }) => one.ip === ip).domains_count
      assert.equal(await counts(TWO), 1 + 3, 'and the domains that say nothing')
      assert.equal(await counts(ONE), 3)
      const listed = await get(`/v3/ips/${TWO}/domains`)
      const own = listed.items.find(({ domain }: { domain: string }) => domain === 'a.example')
      assert.deepEqual(own.ips, [TWO])
      assert.equal((await get(`/v3/ips/${ONE}/domains`)).total_count, 3)
      // Calls for all domains leave it out.
      await ok('POST', `/v3/ips/${FOUR}/domains`)
      await ok('DELETE', `/v3/ips/${TWO}/domains`)
      await eventually('the tasks', async () => {
        const found = await opened.core.store.db.selectFrom('ip_tasks').select('id').execute()
        return found.length === 0
      })
      assert.deepEqual(await ipsOf('a.example'), [TWO])
    })
    await t.test('overridden', async () => {
      const path = `${DOMAINS}/a.example/override`
      const wrong = await service.call('PUT', path, { form: { pool: 'invalid_name' } })
      assert.equal(wrong.status, 400)
      assert.deepEqual(wrong.body, { Field: 'pool', Value: 'invalid_name', message: 'invalid pool name' })
      await refused('PUT', path, {}, 400, 'Missing mandatory parameter: pool')
      await refused(
        'PUT',
        `${DOMAINS}/none.example/override`,
        { pool: 'dynamic_new' },
        404,
        'Domain not found',
      )
      await refused('PUT', `${DOMAINS}/b.example/override`, { pool: 'dynamic_new' }, 400, NOT_ENROLLED)
      await ok('PUT', path, { pool: 'dynamic_poor' })
      assert.equal((await get(`${DOMAINS}/a.example/history`)).total_items, 1, 'the band is the same')
      await ok('PUT', `${path}?pool=dynamic_good`)
      assert.deepEqual(await ipsOf('a.example'), [ONE])
      const [item] = (await get(DOMAINS)).items
      assert.deepEqual([item.pool, item.override], ['dynamic_good', true])
      const { reason, prev_band, new_band, initiated_by } = await get(`${DOMAINS}/a.example/history`)
      assert.deepEqual(
        [reason, prev_band, new_band, initiated_by],
        ['override set', 'dynamic_poor', 'dynamic_good', requestor],
      )
      assert.deepEqual(await ok('DELETE', `${DOMAINS}/b.example/override`), { message: 'success' })
    })
    await t.test('left for other addresses', async () => {
      const path = enrolment('a.example')
      const one = 'exactly one of replacement_ip and replacement_pool_id must be provided'
      await refused('DELETE', path, undefined, 400, one)
      await refused('DELETE', path, { replacement_ip: FOUR, replacement_pool_id: 'x' }, 400, one)
      await refused('DELETE', path, { replacement_pool_id: 'x' }, 404, 'pool not found')
      await refused('DELETE', path, { replacement_pool_id: 'x\0' }, 404, 'pool not found')
      await refused('DELETE', path, { replacement_pool_id: 'a'.repeat(24) }, 404, 'pool not found')
      await refused('DELETE', path, { replacement_ip: THREE }, 400, IN_POOL)
      await refused('DELETE', path, { replacement_ip: FIVE }, 400, IN_POOL)
      await refused('DELETE', path, { replacement_ip: SHARED }, 400, NOT_OWNED)
      await refused(
        ...(['DELETE', path, { replacement_ip: [FOUR, 'shared'] }, 400] as const),
        'several replacement IPs must all be dedicated',
      )
      await refused('DELETE', enrolment('b.example'), { replacement_ip: FOUR }, 400, NOT_ENROLLED)
      assert.deepEqual(await ipsOf('a.example'), [ONE], 'nothing has changed')
      await ok('DELETE', path, { replacement_ip: FOUR })
      assert.deepEqual(await ipsOf('a.example'), [FOUR])
      const { new_band, prev_band, reason, bounce_rate } = await get(`${DOMAINS}/a.example/history`)
      assert.deepEqual([new_band, prev_band, reason, bounce_rate], ['', 'dynamic_good', 'removed', 0.06])
      await ok('POST', path)
      assert.equal((await get(DOMAINS)).items[0].override, false, 'the override is gone')
      await ok('DELETE', path, { replacement_ip: 'shared' })
      assert.deepEqual(await ipsOf('a.example'), [SHARED])
      await ok('POST', path)
      const pool = (await get('/v3/ip_pools')).ip_pools[0].pool_id
      await ok('DELETE', `${path}?replacement_pool_id=${pool}`)
      assert.deepEqual(await ipsOf('a.example'), [FIVE])
      const excluded = `/sendwright/v1/accounts/${child}/shared-ips`
      await ok('POST', enrolment('d.example'))
      await ok('PUT', excluded, { allowed: 'no' })
      await refused(
        ...(['DELETE', enrolment('d.example'), { replacement_ip: 'shared' }, 400] as const),
        'account is not eligible for shared IPs',
      )
      await ok('PUT', excluded, { allowed: 'yes' })
    })
    await t.test("a subaccount's domain is in its parent's pools", async () => {
      assert.deepEqual(await ipsOf('d.example', its.get), [THREE])
      assert.equal((await its.get(DOMAINS)).total_items, 1)
      await its.refused('GET', `${DOMAINS}/a.example/preview`, undefined, 404, 'Domain not found')
      await its.refused('POST', enrolment('a.example'), undefined, 404, 'Domain not found')
      await its.ok('PUT', `${DOMAINS}/d.example/override`, { pool: 'dynamic_good' })
      assert.deepEqual(await ipsOf('d.example', its.get), [ONE])
      const all = async (query: string, of = get) =>
        (await of(`/v1/dynamic_pools/history${query}`)).items.map(
          (record: { domain_name: string; new_band: string }) => `${record.domain_name} ${record.new_band}`,
        )
      assert.deepEqual(await all('', its.get), ['d.example dynamic_good', 'd.example dynamic_new'])
      assert.deepEqual(await all('?domain=d.example'), [])
      assert.deepEqual(await all('?domain=D.example&include_subaccounts=yes&moved_to=dynamic_new'), [
        'd.example dynamic_new',
      ])
      assert.deepEqual(await all('?moved_from=dynamic_good&include_subaccounts=yes'), ['a.example '])
      await refused(
        'GET',
        `/v1/dynamic_pools/history?moved_to=x`,
        undefined,
        400,
        "'x' is not a valid value for moved_to",
      )
      const record = (await its.get(`${DOMAINS}/d.example/history`)).items[0]
      assert.deepEqual(
        [record.owning_account_id, record.account_id, record.account_name],
        [service.service.first.accountId, child, 'Child'],
      )
      await its.ok('DELETE', enrolment('d.example'), { replacement_ip: 'shared' })
    })
    await t.test('domains that could be enrolled', async () => {
      const path = '/v3/domains/dynamic_pools/assignable'
      const names = async (query = '', of = get) =>
        (await of(path + query)).items.map(({ name }: { name: string }) => name)
      await ok('POST', enrolment('b.example'))
      assert.deepEqual(
        (await names()).filter((name: string) => name.endsWith('.example')),
        ['a.example', 'c.example'],
      )
      assert.deepEqual(await names(`?domain=${encodeURIComponent('^[CB]\\.')}`), ['c.example'])
      assert.deepEqual(await names(`?subaccount_id=${child}`), ['d.example', 'e.example'])
      const { items } = await its.get(`${path}?domain=e.ex`)
      assert.deepEqual([items.length, items[0].account_id, items[0].name], [1, child, 'e.example'])
      await refused('GET', `${path}?domain=(`, undefined, 400, 'Invalid format for parameter domain: (')
      await refused(
        'GET',
        `${path}?domain=(x{1,500}){400}`,
        undefined,
        400,
        'Invalid format for parameter domain: (x{1,500}){400}',
      )
      await refused('GET', `${path}?subaccount_id=x%00`, undefined, 404, 'subaccount not found')
      await refused('GET', `${path}?subaccount_id=unknown`, undefined, 404, 'subaccount not found')
      await its.refused('GET', `${path}?subaccount_id=${child}`, undefined, 404, 'subaccount not found')
    })
    await t.test('all in the background', async () => {
      const { db } = opened.core.store
      const disabled = {
        state: 'disabled',
        disabled_json: '{"code":"x","note":"","reason":"","permanently":true}',
      }
      await db.updateTable('domains').set(disabled).where('name', '=', 'c.example').execute()
      const path = '/v3/domains/all/dynamic_pools/enroll'
      const enrolled = async () =>
        (await get(`${DOMAINS}?limit=100`)).items.map(({ name }: { name: string }) => name)
      assert.deepEqual(await ok('POST', path), { message: 'started' })
      assert.deepEqual(await ok('POST', path), { message: 'started' })
      await eventually('own ones', async () => {
        const left = await db.selectFrom('dynamic_pool_tasks').selectAll().execute()
        return left.length === 0
      })
      assert.deepEqual(
        await enrolled(),
        ['a.example', 'b.example'],
        'neither disabled nor sandbox, nor of subaccounts',
      )
      await ok('POST', path, { include_subaccounts: 'true' })
      await eventually('all', async () => (await enrolled()).length === 4)
      assert.deepEqual(await enrolled(), ['a.example', 'b.example', 'd.example', 'e.example'])
      const record = (await get(`${DOMAINS}/e.example/history`)).items[0]
      assert.deepEqual(
        [record.reason, record.initiated_by, record.new_band],
        ['enrolled', requestor, 'dynamic_new'],
      )
    })
    await t.test('a deleted domain leaves its history', async () => {
      await ok('DELETE', '/v3/domains/b.example')
      await eventually('gone', async () => {
        const { db } = opened.core.store
        const row = await db
          .selectFrom('dynamic_pool_domains')
          .selectAll()
          .where('name', '=', 'b.example')
          .executeTakeFirst()
        return row === undefined
      })
      await refused('GET', `${DOMAINS}/b.example/history`, undefined, 404, 'Domain not found')
      assert.equal((await get('/v1/dynamic_pools/history?domain=b.example')).total_items, 1)
    })
  })

  test('lists in pages', async (t) => {
    const opened = await startOpened(t, ENV, { database })
    const { service } = opened
    const calls = callsOf(service.call)
    const { get, ok, refused } = calls
    await setPools(calls, ONE, TWO, THREE)
    const child = await createSubaccount(service, 'Child')
    const its = callsOf(callAs(service, child))
    // The rates do not follow the names; two have no mail.
    const mail: [string, { delivered?: number; bounced?: number; complained?: number }][] = [
      ['a.example', { delivered: 50, bounced: 50 }],
      ['b.example', {}],
      ['c.example', { delivered: 90, bounced: 10, complained: 9 }],
      ['d.example', { delivered: 100 }],
      ['e.example', { delivered: 80, bounced: 20, complained: 4 }],
      ['f.example', {}],
    ]
    for (const [name, counts] of mail) {
      await (name < 'e' ? calls : its).ok('POST', '/v4/domains', { name })
      await recordMail(opened.core, name, counts)
    }
    await eventually('counted', async () => {
      const { results } = await get(`${DOMAINS}/e.example/preview`)
      return results.processed_count.value === 100 && results.complaint_rate.value === 0.05
    })
    for (const [name] of mail) await ok('POST', enrolment(name))
    const letters = (items: { name: string }[]) => items.map(({ name }) => name[0]).join('')
    const list = async (query: string, of = get) => letters((await of(`${DOMAINS}${query}`)).items)

    await t.test('domains by name or rate', async () => {
      assert.equal(await list(''), 'abcdef')
      assert.equal(await list('?sort_order=descending'), 'fedcba')
      assert.equal(await list('?sort_by=bounce_rate'), 'dceabf')
      assert.equal(await list('?sort_by=bounce_rate&sort_order=descending'), 'aecdfb')
      assert.equal(await list('?sort_by=complaint_rate&sort_order=descending'), 'ceda' + 'fb')
      assert.equal(await list(`?account=${child}`), 'ef')
      assert.equal(await list(`?account=${child}&pool=dynamic_new`), 'f')
      assert.equal(await list('?pool=dynamic_new&pool=dynamic_good'), 'bdf')
      assert.equal(await list('', its.get), 'ef')
      assert.equal(await list(`?account=${service.service.first.accountId}`, its.get), '')
      const [first] = (await get(`${DOMAINS}?sort_by=bounce_rate&sort_order=descending`)).items.slice(-1)
      assert.deepEqual([first.bounce_rate, first.complaint_rate, first.processed_count], [null, null, 0])
      for (const [query, text] of [
        ['pool=x', "'x' is not a valid value for pool"],
        ['sort_by=x', "'x' is not a valid value for sort_by"],
        ['sort_order=x', "'x' is not a valid value for sort_order"],
        ['limit=0', 'Invalid format for parameter limit: 0'],
        ['limit=101', 'Invalid format for parameter limit: 101'],
        ['page=x', 'Invalid format for parameter page: x'],
        ['account=x%00', 'Invalid format for parameter account: x\0'],
        ...[
          ['n', 'a\0'],
          ['n', 'a', 'b'],
          ['x', 'a'],
          ['n', 1],
        ].map((parts) => {
          const token = Buffer.from(JSON.stringify(parts)).toString('base64url')
          return [`page=${token}`, `Invalid format for parameter page: ${token}`] as const
        }),
      ] as const)
        await refused('GET', `${DOMAINS}?${query}`, undefined, 400, text)
    })
    await t.test('every page has links to those that exist', async () => {
      const follow = async (path: string, link: string) => {
        const seen: string[] = []
        for (let next: string | undefined = path; next !== undefined && seen.length < 10; ) {
          const { items, paging, total_items: total } = await get(next)
          assert.equal(total, 6)
          assert.ok(paging.First?.startsWith(service.config.publicUrl) && paging.Last)
          seen.push(letters(items))
          next = paging[link]?.slice(service.config.publicUrl.length)
        }
        return seen
      }
      const path = `${DOMAINS}?limit=2&sort_by=bounce_rate`
      assert.deepEqual(await follow(path, 'Next'), ['dc', 'ea', 'bf'])
      const { paging } = await get(path)
      assert.equal(paging.Previous, undefined)
      const last = paging.Last.slice(service.config.publicUrl.length)
      assert.deepEqual(await follow(last, 'Previous'), ['bf', 'ea', 'dc'])
      assert.equal((await get(last)).paging.Next, undefined)
      assert.deepEqual(await follow(`${DOMAINS}?limit=4&sort_order=descending`, 'Next'), ['fedc', 'ba'])
      await refused(
        'GET',
        `${DOMAINS}?page=${new URL(paging.Next).searchParams.get('page')}`,
        undefined,
        400,
        `Invalid format for parameter page: ${new URL(paging.Next).searchParams.get('page')}`,
      )
    })
    await t.test('history', async () => {
      for (const pool of ['dynamic_poor', 'dynamic_new', 'dynamic_good'])
        await ok('PUT', `${DOMAINS}/d.example/override`, { pool })
      const bands = (items: { new_band: string }[]) =>
        items.map(({ new_band: band }) => band.slice(8, 9)).join('')
      const first = await get(`${DOMAINS}/d.example/history?limit=3`)
      assert.deepEqual([bands(first.items), first.total_items, first.new_band], ['gnp', 4, 'dynamic_good'])
      const next = await get(first.paging.Next.slice(service.config.publicUrl.length))
      assert.deepEqual([bands(next.items), next.new_band], ['n', 'dynamic_good'])
      assert.equal(next.paging.Next, undefined)
      const all = '/v1/dynamic_pools/history'
      assert.equal((await get(`${all}?Limit=100&include_subaccounts=1`)).items.length, 9)
      assert.equal((await get(`${all}?limit=1`)).items.length, 1)
      const times = first.items.map(({ timestamp }: { timestamp: string }) => Date.parse(timestamp))
      assert.deepEqual(times, times.toSorted().reverse())
      const on = (ms: number) => encodeURIComponent(new Date(ms).toUTCString())
      assert.equal((await get(`${all}?before=${on(times[0] + 2_000)}`)).total_items, 7)
      assert.equal((await get(`${all}?after=${on(times[0] + 2_000)}`)).total_items, 0)
      const [future, past] = [String((times[0] + 1) / 1000), String(times[0] / 1000)]
      assert.equal((await get(`${all}?after=${past}&before=${future}`)).total_items, 0, 'both are exclusive')
      for (const [query, text] of [
        ['before=yesterday', 'Invalid format for parameter before: yesterday'],
        ['after=Mon, 02 Jan 2006', 'Invalid format for parameter after: Mon, 02 Jan 2006'],
        ['domain=x%00', 'Invalid format for parameter domain: x\0'],
        ['Limit=101', 'Invalid format for parameter Limit: 101'],
        ['Limit=0', 'Invalid format for parameter Limit: 0'],
        ['limit=101', 'Invalid format for parameter limit: 101'],
      ] as const)
        await refused('GET', `${all}?${query}`, undefined, 400, text)
    })
  })
})

const EMPTY = { new_senders: [], good_reputation: [], poor_reputation: [], pools: [] }
