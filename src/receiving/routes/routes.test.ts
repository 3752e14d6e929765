/** Routes over HTTP: the operations of routes-inbound.md section 1. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { eachDatabase } from '../../../test/support/databases.ts'
import { type CallOptions, startTestService, type TestService } from '../../../test/support/service.ts'

type Database = 'sqlite' | 'postgres'
type Form = NonNullable<CallOptions['form']>

const start = (t: TestContext, database: Database) =>
  startTestService(t, { SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8' }, { database })
const create = (service: TestService, form: Form) => service.call('POST', '/v3/routes', { form })
const made = async (service: TestService, form: Form) => {
  const { status, body, text } = await create(service, form)
  assert.equal(status, 200, text)
  return body.route
}
const PLAIN = { expression: 'match_recipient(".*@example.com")', action: 'store()' }

eachDatabase((database) => {
  test('a route is made, read, changed and deleted', async (t) => {
    const service = await start(t, database)
    const action = ['forward("http://user:secret@127.0.0.1:9/in")', 'stop()']
    const answer = await create(service, { ...PLAIN, priority: '-3', description: 'Sales', action })
    assert.equal(answer.body.message, 'Route has been created')
    const { route } = answer.body
    assert.match(route.id, /^[0-9a-f]{24}$/)
    assert.match(route.created_at, /^\w{3}, \d{2} \w{3} \d{4} [\d:]{8} GMT$/)
    const { id, created_at } = route
    const whole = {
      id,
      created_at,
      priority: -3,
      description: 'Sales',
      expression: PLAIN.expression,
      actions: action,
    }
    assert.deepEqual(route, whole)
    const path = `/v3/routes/${id}`
    assert.deepEqual((await service.call('GET', path)).body, { route: whole })

    const changed = { ...whole, description: '', actions: ['store()'] }
    const form = { id: 'other', description: '', expression: '', action: 'store()' }
    assert.deepEqual((await service.call('PUT', path, { form })).body, {
      message: 'Route has been updated',
      route: changed,
      ...changed,
    })
    assert.deepEqual((await service.call('PUT', path, { form: { priority: '7', action: '' } })).body.route, {
      ...changed,
      priority: 7,
    })
    assert.deepEqual((await service.call('DELETE', path)).body, { message: 'Route has been deleted', id })
    for (const method of ['GET', 'PUT', 'DELETE']) {
      const { status, body } = await service.call(method, path)
      assert.deepEqual([status, body], [404, { message: 'Route not found' }])
    }
  })

  test('routes are listed in the order of evaluation, in pages', async (t) => {
    const service = await start(t, database)
    for (const priority of ['5', '0', '-1', '0'])
      await made(service, { ...PLAIN, priority, description: priority })
    const list = async (query = '') => (await service.call('GET', `/v3/routes${query}`)).body
    const all = await list()
    assert.deepEqual(
      all.items.map(({ description }: { description: string }) => description),
      ['-1', '0', '0', '5'],
    )
    assert.equal(all.total_count, 4)
    assert.deepEqual(await list('?skip=1&limit=2'), { total_count: 4, items: all.items.slice(1, 3) })
    assert.equal((await list('?limit=1001')).message, "The 'limit' parameter can't be larger than 1000")
  })

  test('the route for an address is found without side effects', async (t) => {
    const service = await start(t, database)
    const match = (address: string) =>
      service.call('GET', `/v3/routes/match?address=${encodeURIComponent(address)}`)
    assert.equal((await match('a@example.com')).status, 404)
    const last = await made(service, { priority: '9', expression: 'catch_all()', action: 'store()' })
    await made(service, { priority: '1', expression: 'match_header("subject", ".*")', action: 'store()' })
    const sales = await made(service, {
      priority: '2',
      expression: 'match_recipient("sales@")',
      action: 'store()',
    })
    assert.deepEqual((await match('Sales <SALES@example.com>')).body, { route: sales })
    assert.deepEqual((await match('xsales@example.com')).body, { route: last })
    assert.equal((await match('nobody')).status, 400)
    const { status, body } = await service.call('GET', '/v3/routes/match')
    assert.deepEqual([status, body.message], [400, 'Missing mandatory parameter: address'])
  })
})

test('invalid routes are refused', async (t) => {
  const service = await startTestService(t)
  const refused: [Form, string][] = [
    [{ action: 'store()' }, 'Missing mandatory parameter: expression'],
    [{ expression: 'catch_all()' }, "'action' parameter is required"],
    [{ expression: 'catch_all(', action: 'store()' }, 'Invalid expression: ")" is expected'],
    [{ ...PLAIN, action: 'bounce()' }, 'Invalid action: bounce()'],
    [{ ...PLAIN, action: ['store()', 'forward("nobody")'] }, 'Invalid action: forward("nobody")'],
    // Addresses that are not public, also in disguise.
    [{ ...PLAIN, action: 'forward("http://127.0.0.1/")' }, 'Invalid action: forward("http://127.0.0.1/")'],
    [{ ...PLAIN, action: 'forward("http://0x7f.1/")' }, 'Invalid action: forward("http://0x7f.1/")'],
    [{ ...PLAIN, action: 'forward("http://localhost/")' }, 'Invalid action: forward("http://localhost/")'],
    [{ ...PLAIN, action: 'store("http://[::1]/")' }, 'Invalid action: store("http://[::1]/")'],
    [{ ...PLAIN, priority: '2147483648' }, "The 'priority' parameter can't be larger than 2147483647"],
    [{ ...PLAIN, priority: 'high' }, 'Invalid format for parameter priority: high'],
    [{ ...PLAIN, action: Array(21).fill('store()') }, 'A route has at most 20 actions'],
    [
      { ...PLAIN, action: `forward("${Array(21).fill('a@example.org').join()}")` },
      'A route has at most 20 destinations',
    ],
  ]
  for (const [form, message] of refused) {
    const { status, body } = await create(service, form)
    assert.deepEqual([status, body.message], [400, message], JSON.stringify(form))
  }
  assert.equal((await service.call('GET', '/v3/routes')).body.total_count, 0)
})
