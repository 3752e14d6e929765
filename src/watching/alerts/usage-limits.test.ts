/** Limits of usage over HTTP, and their effect on tests of inbox placement (alerts.md section 7). */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { addAccount } from '../../../test/support/accounts.ts'
import { createTestClock } from '../../../test/support/clock.ts'
import { eachDatabase } from '../../../test/support/databases.ts'
import { startTestService } from '../../../test/support/service.ts'
import { temporaryFolder } from '../../../test/support/stores.ts'
import { roomOf } from './usage-limits.ts'

const PATH = '/v1/thresholds/limits'
const GIVEN = {
  ...{ name: 'tests', metric: 'seed_test_count', comparator: '>=', limit: '2', dimension: 'domain' },
  period: '1h',
}

test('what a comparator leaves', () => {
  for (const [comparator, room] of [
    ['>=', 50],
    ['<', 50],
    ['=', 50],
    ['!=', 50],
    ['>', 51],
    ['<=', 51],
  ] as const)
    assert.equal(roomOf({ comparator, limit: '50' }), room, comparator)
})

eachDatabase((database) => {
  test('a limit holds for tests of inbox placement, also those that begin at the same time', async (t) => {
    const file = join(await temporaryFolder(t), 'seeds.json')
    const seed = { address: 'one@seeds.example', host: '127.0.0.1', port: 1, user: 'one', password: 'secret' }
    await writeFile(file, JSON.stringify([seed]))
    const clock = createTestClock()
    const service = await startTestService(t, { SENDWRIGHT_PLACEMENT_SEEDS: file }, { database, clock })
    const made = await service.call('POST', PATH, { json: GIVEN })
    assert.equal(made.status, 200, made.text)
    const { id, created_at, updated_at, ...rest } = made.body
    assert.match(id, /^[0-9a-f-]{36}$/)
    assert.equal(updated_at, created_at)
    assert.deepEqual(rest, { ...GIVEN, description: '', filters: [] })

    const run = (domain = service.domain) =>
      service.call('POST', '/v4/inbox/tests', { json: { from: `a@${domain}`, subject: 'x', html: 'x' } })
    const answers = await Promise.all(Array.from({ length: 6 }, () => run()))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 403, 403, 403, 403])
    const message = 'limit "tests" is reached: seed_test_count >= 2 in 1h'
    assert.deepEqual(answers.find(({ status }) => status === 403)?.body, { message })
    assert.ok((await service.call('GET', `${PATH}/tests`)).body.last_checked)
    await service.call('POST', '/v4/domains', { form: { name: 'second.example' } })
    assert.equal((await run('second.example')).status, 200, 'each domain has the limit')

    // Results that are deleted were used all the same.
    for (const { body } of answers)
      if (body.result_id) await service.call('DELETE', `/v4/inbox/results/${body.result_id}`)
    assert.equal((await run()).status, 403)
    clock.leap(3 * 3_600_000)
    assert.equal((await run()).status, 200, 'the period is over')

    const replaced = { ...GIVEN, name: 'all', comparator: '<', limit: 0, dimension: 'ip' }
    const put = await service.call('PUT', `${PATH}/tests`, { json: replaced })
    assert.deepEqual([put.status, put.body], [200, { message: 'Limit updated' }])
    const { items, total } = (await service.call('GET', PATH)).body
    assert.deepEqual([items[0].name, items[0].limit, total], ['all', '0', 1])
    assert.equal((await run('second.example')).status, 403, 'none is allowed')
    const gone = await service.call('DELETE', `${PATH}/all`)
    assert.deepEqual([gone.status, gone.body], [200, { message: 'Limit deleted' }])
    assert.equal((await run()).status, 200)
    for (const method of ['GET', 'DELETE']) {
      const none = await service.call(method, `${PATH}/all`)
      assert.deepEqual([none.status, none.body], [404, { message: 'limit not found' }])
    }
  })
})

test('a parent limits its subaccounts, which cannot lift that', async (t) => {
  const file = join(await temporaryFolder(t), 'seeds.json')
  const seed = { address: 'one@seeds.example', host: '127.0.0.1', port: 1, user: 'one', password: 'secret' }
  await writeFile(file, JSON.stringify([seed]))
  const service = await startTestService(t, { SENDWRIGHT_PLACEMENT_SEEDS: file })
  const parentId = service.service.first.accountId
  const [one, other] = [addAccount(service, parentId), addAccount(service, parentId)]
  for (const { key } of [one, other])
    await service.call('POST', '/v4/domains', { form: { name: `${key.slice(-6)}.example` }, key })
  const run = (key: string) => {
    const json = { from: `a@${key.slice(-6)}.example`, subject: 'x', html: 'x' }
    return service.call('POST', '/v4/inbox/tests', { json, key })
  }
  const filters = [{ dimension: 'subaccount', comparator: '=', values: [one.id] }]
  const limit = { ...GIVEN, limit: 1, dimension: 'subaccount', filters }
  assert.equal((await service.call('POST', PATH, { json: limit })).status, 200)
  assert.deepEqual((await service.call('GET', PATH, { key: one.key })).body, { items: [], total: 0 })
  assert.equal((await service.call('DELETE', `${PATH}/tests`, { key: one.key })).status, 404)
  assert.deepEqual([(await run(one.key)).status, (await run(one.key)).status], [200, 403])
  assert.deepEqual([(await run(other.key)).status, (await run(other.key)).status], [200, 200])
})

test('invalid limits are refused', async (t) => {
  const service = await startTestService(t)
  for (const [change, message] of [
    [{ metric: 'hard_bounce_rate' }, 'invalid metric: hard_bounce_rate'],
    [{ limit: '1.5' }, 'invalid limit: 1.5'],
    [{ limit: '-1' }, 'invalid limit: -1'],
    [{ limit: '1234567890' }, 'invalid limit: 1234567890'],
    [{ period: '31d' }, 'invalid period: 31d'],
    [{ name: '' }, 'name is required'],
  ] as const) {
    const answer = await service.call('POST', PATH, { json: { ...GIVEN, ...change } })
    assert.deepEqual([answer.status, answer.body], [400, { message }])
  }
})
