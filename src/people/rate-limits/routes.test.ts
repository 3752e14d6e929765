/** Rate limits of single accounts over HTTP, and that processes over one PostgreSQL share their buckets. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { eachDatabase } from '../../../test/support/databases.ts'
import { createTestDatabase } from '../../../test/support/postgres.ts'
import { eventually, startTestService, type TestService } from '../../../test/support/service.ts'
import type { Core } from '../../core.ts'
import { insert } from '../../platform/store/store.ts'
import { createKeys } from '../keys/api-keys.ts'

const RATE = { SENDWRIGHT_RATE_LIMIT: '100' }
const CHILD = 'c'.repeat(24)
const SECRET = '0123456789abcdef0123456789abcdef'

eachDatabase((database) => {
  test('the operator sets a limit of one account, which applies at once', async (t) => {
    let core: Core | undefined
    const clock = createTestClock(Date.now())
    const areas = [
      (given: Core) => {
        core = given
        return {}
      },
    ]
    const service = await startTestService(t, RATE, { database, clock, areas })
    const { store, sealer, firstAccountId, accounts } = core as unknown as Core
    const path = `/sendwright/v1/accounts/${firstAccountId}/rate-limits`
    const items = async () => (await service.call('GET', path)).body.items
    assert.deepEqual((await items())[0], {
      name: 'sending',
      count: 100,
      window_seconds: 1,
      is_default: true,
    })
    const lists = () => service.call('GET', '/v3/lists/pages')
    assert.equal((await lists()).headers.get('x-ratelimit-limit'), '300')
    const put = (name: string, count: string) => service.call('PUT', `${path}/${name}`, { form: { count } })
    const set = await put('lists', '2')
    assert.deepEqual(set.body, { name: 'lists', count: 2, window_seconds: 60, is_default: false })
    assert.equal((await lists()).headers.get('x-ratelimit-limit'), '2')
    await lists()
    const limited = await lists()
    assert.deepEqual([limited.status, limited.body], [429, { message: 'Too Many Requests' }])
    await put('lists', '0')
    assert.equal((await lists()).headers.get('x-ratelimit-limit'), null)
    assert.equal((await service.call('DELETE', `${path}/lists`)).body.count, 300)
    assert.equal((await lists()).headers.get('x-ratelimit-limit'), '300')

    for (const bad of ['-1', 'many', '1000000001', '']) assert.equal((await put('lists', bad)).status, 400)
    assert.equal((await put('default', '5')).status, 400)
    const unknown = await service.call('GET', '/sendwright/v1/accounts/nobody/rate-limits')
    assert.deepEqual([unknown.status, unknown.body.message], [404, 'Account not found'])

    const row = await store.db
      .selectFrom('accounts')
      .selectAll()
      .where('id', '=', firstAccountId)
      .executeTakeFirstOrThrow()
    await store.commit([insert('accounts', { ...row, id: CHILD, parent_id: firstAccountId, name: 'Child' })])
    accounts.changed(CHILD)
    const { secret } = await createKeys(store, sealer, clock).create({
      ...{ accountId: CHILD, kind: 'user', role: 'admin', description: '', domainName: null },
      ...{ requestor: null, userName: null, userId: null, expiresAt: null },
    })
    const own = `/sendwright/v1/accounts/${CHILD}/rate-limits`
    assert.equal(
      (await service.call('PUT', `${own}/lists`, { key: secret, form: { count: '0' } })).status,
      403,
    )
    assert.equal((await service.call('PUT', `${own}/lists`, { form: { count: '7' } })).status, 200)
    const byChild = await service.call('GET', '/v3/lists/pages', { key: secret })
    assert.equal(byChild.headers.get('x-ratelimit-limit'), '7')
    assert.equal((await lists()).headers.get('x-ratelimit-limit'), '300')
  })
})

test('two services over one PostgreSQL share buckets and the limits of accounts', async (t) => {
  const database = await createTestDatabase()
  const env = { ...RATE, SENDWRIGHT_DATABASE_URL: database.url, SENDWRIGHT_SECRET: SECRET }
  const clock = createTestClock(Date.now())
  const services: TestService[] = []
  for (let at = 0; at < 2; at++) services.push(await startTestService(t, env, { clock }))
  t.after(() => database.drop())
  const [one, two] = services as [TestService, TestService]
  // 20 a minute: the bucket fills slower than a busy machine asks. Nothing is released here, which counts.
  const release = '/sendwright/v1/inbox/none/release'
  const call = async (service: TestService) =>
    (await service.call('POST', release, { json: { to: 'a@example.org' } })).status
  const begunAt = performance.now()
  const inTurn = (count: number) =>
    Promise.all(Array.from({ length: count }, (_, at) => call(at % 2 === 0 ? one : two)))
  const statuses = await inTurn(40)
  // Either may have leased a twentieth more than its own requests used. Many at once: more than the bucket gains meanwhile.
  await eventually('the refusal in both', async () => {
    const more = await inTurn(40)
    statuses.push(...more)
    return [0, 1].every((side) => more.some((status, at) => at % 2 === side && status === 429))
  })
  const allowed = statuses.filter((status) => status === 403).length
  // The bucket fills by the database's clock meanwhile.
  const filled = Math.ceil(((performance.now() - begunAt) * 20) / 60_000)
  assert.ok(allowed >= 19 && allowed <= 21 + filled, `${allowed} of ${statuses.length}, ${filled} filled`)
  assert.equal(statuses.filter((status) => status === 429).length, statuses.length - allowed)

  const path = `/sendwright/v1/accounts/${one.service.first.accountId}/rate-limits/lists`
  assert.equal((await one.call('PUT', path, { form: { count: '0' } })).status, 200)
  await eventually('the other learns of it', async () => {
    await clock.advance(1_000)
    const headers = (await two.call('GET', '/v3/lists/pages')).headers
    return headers.get('x-ratelimit-limit') === null
  })
})
