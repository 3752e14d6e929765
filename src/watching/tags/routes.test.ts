// Both databases: the JSON functions differ.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import Mailgun from 'mailgun.js'
import { eachDatabase } from '../../../test/support/databases.ts'
import { eventually, startTestService, type TestService } from '../../../test/support/service.ts'

const DATE_3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{3})?Z$/
const DATE_2822 = /^\w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} \+0000$/

/** Sends one message with each tag. */
async function sendTagged(service: TestService, ...tags: string[]): Promise<void> {
  for (const tag of tags) assert.equal((await service.send({ 'o:tag': tag })).status, 200)
}

const tagsIn = ({ body }: { body: { items: { tag: string }[] } }) => body.items.map(({ tag }) => tag)

async function start(t: TestContext, database: 'sqlite' | 'postgres', env: Record<string, string> = {}) {
  const service = await startTestService(t, env, { database })
  const root = `/v3/${service.domain}`
  const get = (path: string) => service.call('GET', path)
  return { service, root, get }
}

eachDatabase((database) => {
  test('tags of a domain', async (t) => {
    const { service, root, get } = await start(t, database)

    await t.test('an empty domain has all four links', async () => {
      const { body } = await get(`${root}/tags`)
      assert.deepEqual(body.items, [])
      assert.deepEqual(Object.keys(body.paging).sort(), ['first', 'last', 'next', 'previous'])
      const base = service.config.publicUrl + root
      assert.equal(body.paging.next, `${base}/tags?limit=100&page=next&tag=`)
      assert.equal((await get(`${root}/tag?tag=none`)).status, 404)
      assert.deepEqual((await get(`${root}/tags/none`)).body, { message: 'Tag not found' })
    })

    await sendTagged(service, 'beta', 'Alpha', 'gamma ray', 'a/b', 'ALPHA')

    await t.test('listed by name, in pages and by prefix', async () => {
      const all = await get(`${root}/tags`)
      assert.deepEqual(tagsIn(all), ['a/b', 'Alpha', 'beta', 'gamma ray'])
      const { tag, description, ...dates } = all.body.items[1]
      assert.deepEqual([tag, description], ['Alpha', ''])
      assert.match(dates['first-seen'], DATE_3339)
      assert.match(dates['last-seen'], DATE_3339)
      const pathOf = (url: string) => url.slice(service.config.publicUrl.length)
      const one = await get(`${root}/tags?limit=3`)
      const two = await get(pathOf(one.body.paging.next))
      assert.deepEqual([tagsIn(one), tagsIn(two)], [['a/b', 'Alpha', 'beta'], ['gamma ray']])
      const end = await get(pathOf(two.body.paging.next))
      assert.deepEqual(tagsIn(end), [])
      assert.deepEqual(tagsIn(await get(pathOf(end.body.paging.next))), [])
      assert.deepEqual(tagsIn(await get(pathOf(two.body.paging.previous))), ['a/b', 'Alpha', 'beta'])
      assert.deepEqual(tagsIn(await get(pathOf(two.body.paging.last))), ['Alpha', 'beta', 'gamma ray'])
      assert.deepEqual(tagsIn(await get(pathOf(two.body.paging.first))), ['a/b', 'Alpha', 'beta'])
      assert.deepEqual(tagsIn(await get(`${root}/tags?prefix=AL`)), ['Alpha'])
      assert.deepEqual(tagsIn(await get(`${root}/tags?page=next&p=BETA`)), ['gamma ray'])
    })

    await t.test('a page as CSV', async () => {
      const headers = { accept: 'text/csv' }
      const { text } = await service.call('GET', `${root}/tags?prefix=al`, { headers })
      assert.match(text, /^tag,description,first_seen,last_seen\r\nAlpha,,\d{4}-[^,]+Z,\d{4}-[^,]+Z\r\n$/)
    })

    await t.test('read and described, in the query or in the path', async () => {
      assert.equal((await get(`${root}/tag?tag=GAMMA+ray`)).body.tag, 'gamma ray')
      assert.equal((await get(`${root}/tags/gamma+ray`)).body.tag, 'gamma ray')
      assert.equal((await get(`${root}/tags/a%2Fb`)).body.tag, 'a/b')
      const updated = await service.call('PUT', `${root}/tags/alpha`, { form: { description: 'First' } })
      assert.deepEqual([updated.status, updated.body], [200, { message: 'Tag updated' }])
      assert.equal((await get(`${root}/tag?tag=alpha`)).body.description, 'First')
      const stats = await get(`${root}/tag/stats?tag=alpha&event=accepted`)
      assert.equal(stats.body.description, 'First')
      await service.call('PUT', `${root}/tag?tag=alpha`, { form: { description: '' } })
      assert.equal((await get(`${root}/tag?tag=alpha`)).body.description, '')
      await service.call('PUT', `${root}/tag?tag=Planned&description=Soon`)
      assert.deepEqual((await get(`${root}/tag?tag=planned`)).body, { tag: 'Planned', description: 'Soon' })
    })

    await t.test('deleted, and new when used again', async () => {
      assert.deepEqual((await service.call('DELETE', `${root}/tags/beta`)).body, { message: 'Tag deleted' })
      assert.equal((await service.call('DELETE', `${root}/tag?tag=beta`)).status, 200)
      assert.equal((await get(`${root}/tag?tag=beta`)).status, 404)
      await sendTagged(service, 'Beta')
      assert.equal((await get(`${root}/tag?tag=beta`)).body.tag, 'Beta')
    })

    await t.test('the limit of the domain', async () => {
      const { body } = await get(`/v3/domains/${service.domain}/limits/tag`)
      assert.deepEqual(body, { id: service.domain, limit: 20_000, count: 5 })
    })

    await t.test('errors', async () => {
      for (const [method, path, status, message] of [
        ['GET', `${root}/tag`, 400, 'Missing mandatory parameter: tag'],
        ['PUT', `${root}/tag`, 400, 'Missing mandatory parameter: tag'],
        ['DELETE', `${root}/tag`, 400, 'Missing mandatory parameter: tag'],
        ['PUT', `${root}/tags/%C3%BC`, 400, 'Missing mandatory parameter: tag'],
        ['GET', '/v3/other.example/tags', 404, 'Domain not found'],
        ['GET', `${root}/tags?limit=1001`, 400, "The 'limit' parameter can't be larger than 1000"],
        ['GET', `${root}/tags?page=some`, 400, 'Invalid format for parameter page: some'],
        [
          'PUT',
          `${root}/tag?tag=a&description=${'x'.repeat(1001)}`,
          400,
          'description: at most 1000 characters',
        ],
      ] as const) {
        const answer = await service.call(method, path)
        assert.deepEqual([answer.status, answer.body], [status, { message }], path)
      }
    })
  })

  test('tags of an account', async (t) => {
    const { service, root } = await start(t, database)
    const list = (json: object) => service.call('POST', '/v1/analytics/tags', { json })
    await sendTagged(service, 'one', 'Two', 'twelve')

    await t.test('listed, newest first', async () => {
      const { status, body } = await list({})
      assert.equal(status, 200)
      assert.deepEqual(body.pagination, { sort: 'lastseen:desc', skip: 0, limit: 10 })
      const { first_seen, last_seen, account_name, ...item } = body.items.find(
        ({ tag }: { tag: string }) => tag === 'Two',
      )
      const { accountId } = service.service.first
      assert.deepEqual(item, {
        account_id: accountId,
        parent_account_id: '',
        tag: 'Two',
        description: '',
        metrics: {},
      })
      assert.match(first_seen, DATE_2822)
      assert.match(last_seen, DATE_2822)
      assert.equal(typeof account_name, 'string')
    })

    await t.test('searched, sorted and paged', async () => {
      assert.deepEqual(tagsIn(await list({ tag: 'TW', pagination: { sort: 'tag:asc' } })), ['twelve', 'Two'])
      const page = await list({ pagination: { sort: 'tag:desc', skip: 1, limit: 1, include_total: true } })
      assert.deepEqual(tagsIn(page), ['twelve'])
      assert.deepEqual(page.body.pagination, { sort: 'tag:desc', skip: 1, limit: 1, total: 3 })
      assert.equal((await list({ pagination: { limit: 0, sort: '' } })).body.items.length, 3)
    })

    await t.test('a page as CSV, with metrics if they are asked for', async () => {
      const file = async (json: object) =>
        (await service.call('POST', '/v1/analytics/tags', { json, headers: { accept: 'text/csv' } })).text
      const plain = (await file({ tag: 'tw', pagination: { sort: 'tag:asc' } })).split('\r\n')
      assert.equal(plain[0], 'account_id,account_name,tag,description,first_seen,last_seen')
      assert.deepEqual(
        plain.slice(1).map((line) => line.split(',')[2]),
        ['twelve', 'Two', undefined],
      )
      const [head, line] = (await file({ tag: 'two', include_metrics: true })).split('\r\n')
      assert.match(head ?? '', /last_seen,accepted_incoming_count,.*delayed_first_attempt_rate$/)
      assert.match(line ?? '', /,0\.0000$/)
    })

    await t.test('one item for a tag of two domains; descriptions of their own', async () => {
      assert.equal(
        (await service.call('POST', '/v4/domains', { form: { name: 'shop.example' } })).status,
        200,
      )
      assert.equal((await service.call('PUT', '/v3/shop.example/tag?tag=tWo&description=Shop')).status, 200)
      assert.deepEqual(tagsIn(await list({ tag: 'two' })), ['Two'])
      const body = { tag: 'TWO', description: 'Both' }
      const updated = await service.call('PUT', '/v1/analytics/tags', { json: body })
      assert.deepEqual([updated.status, updated.body], [200, { message: 'Tag updated' }])
      assert.equal((await list({ tag: 'two' })).body.items[0].description, 'Both')
      const ofDomain = async (of: string) => (await service.call('GET', `${of}/tag?tag=two`)).body.description
      assert.deepEqual([await ofDomain(root), await ofDomain('/v3/shop.example')], ['Both', 'Shop'])
      await service.call('PUT', `${root}/tag?tag=two`, { form: { description: 'Own' } })
      await service.call('PUT', '/v1/analytics/tags', { json: { tag: 'two', description: 'Other' } })
      assert.equal((await service.call('GET', `${root}/tag?tag=two`)).body.description, 'Own')
    })

    await t.test('figures of the last 30 days', async () => {
      await sendTagged(service, 'one')
      const found = await eventually('both messages are counted', async () => {
        const answer = await list({ include_metrics: true, pagination: { sort: 'accepted_count:desc' } })
        return answer.body.items[0]?.metrics.delivered_count === 2 && answer.body.items
      })
      assert.deepEqual(
        found.map(({ tag }: { tag: string }) => tag),
        ['one', 'twelve', 'Two'],
      )
      assert.partialDeepStrictEqual(found[0].metrics, {
        accepted_outgoing_count: 2,
        delivered_rate: '1.0000',
        opened_count: 0,
      })
      const sorted = await list({ tag: 'tw', include_metrics: true, pagination: { sort: 'tag:asc' } })
      assert.equal(sorted.body.items[0].metrics.accepted_count, 1)
    })

    await t.test('what the Ruby client sends', async () => {
      const form = {
        tag: 'one',
        pagination: '{:sort=>"lastseen:desc", :limit=>10}',
        include_metrics: 'false',
      }
      assert.deepEqual(tagsIn(await service.call('POST', '/v1/analytics/tags', { form })), ['one'])
    })

    await t.test('deleted', async () => {
      const headers = { 'content-type': 'application/x-www-form-urlencoded' }
      const deleted = await service.call('DELETE', '/v1/analytics/tags', { headers, body: '{"tag":"two"}' })
      assert.deepEqual([deleted.status, deleted.body], [200, { message: 'Tag deleted' }])
      for (const path of [root, '/v3/shop.example'])
        assert.equal((await service.call('GET', `${path}/tag?tag=two`)).status, 404)
      const again = await service.call('DELETE', '/v1/analytics/tags', { json: { tag: 'two' } })
      assert.deepEqual([again.status, again.body], [400, { message: 'Tag not found' }])
      const limits = await service.call('GET', '/v1/analytics/tags/limits')
      assert.deepEqual(limits.body, { limit: 100_000, count: 2, limit_reached: false })
      await service.call('DELETE', `${root}/tags/one`)
      assert.deepEqual(tagsIn(await list({})), ['twelve'], 'no domain has it any more')
      await sendTagged(service, 'TWO')
      assert.deepEqual(tagsIn(await list({ tag: 'two' })), ['TWO'])
    })

    await t.test('errors', async () => {
      for (const [json, message] of [
        [{ pagination: { limit: 1001 } }, 'limit must not exceed 1000'],
        [{ include_metrics: true, pagination: { limit: 21 } }, 'limit must not exceed 20'],
        [{ pagination: { sort: 'opened_count:desc' } }, 'invalid sort: opened_count:desc'],
        [{ pagination: { sort: 'tag:up' } }, 'invalid sort: tag:up'],
        [{ pagination: { skip: 100_001 } }, 'skip must not exceed 100000'],
        [{ include_subaccounts: 'perhaps' }, 'Invalid format for parameter include_subaccounts: perhaps'],
      ] as const) {
        const answer = await list(json)
        assert.deepEqual([answer.status, answer.body], [400, { message }])
      }
      for (const method of ['PUT', 'DELETE']) {
        const answer = await service.call(method, '/v1/analytics/tags', { json: {} })
        assert.deepEqual(answer.body, { message: 'Missing mandatory parameter: tag' })
      }
    })
  })
})

test('a new tag over the limit is not described, and the account tells that its limit is reached', async (t) => {
  const limits = { SENDWRIGHT_MAX_TAGS_PER_DOMAIN: '2', SENDWRIGHT_MAX_TAGS_PER_ACCOUNT: '2' }
  const { service, root } = await start(t, 'sqlite', limits)
  await sendTagged(service, 'one', 'two', 'three')
  const refused = await service.call('PUT', `${root}/tag?tag=four`, { form: { description: 'x' } })
  const message = 'Cannot create a tag: the domain has 2 of 2 tags'
  assert.deepEqual([refused.status, refused.body], [400, { message }])
  assert.equal((await service.call('PUT', `${root}/tag?tag=two`, { form: { description: 'x' } })).status, 200)
  const { body } = await service.call('GET', '/v1/analytics/tags/limits')
  assert.deepEqual(body, { limit: 2, count: 2, limit_reached: true })
})

test('the public JavaScript client works with tags', async (t) => {
  const { service } = await start(t, 'sqlite')
  const client = new Mailgun(FormData).client({ username: 'api', key: service.key, url: service.url })
  await sendTagged(service, 'order', 'receipt')
  const tags = client.domains.domainTags
  // Its types leave out the second parameter.
  const listTags: (domain: string, query: object) => ReturnType<typeof tags.list> = tags.list.bind(tags)
  const list = await listTags(service.domain, { limit: 1 })
  assert.deepEqual(
    list.items.map(({ tag }) => tag),
    ['order'],
  )
  assert.equal(list.pages.next?.page, '?limit=1&page=next&tag=order')
  assert.equal((await tags.update(service.domain, 'order', 'Orders')).message, 'Tag updated')
  const read = await tags.get(service.domain, 'order')
  assert.equal(read.description, 'Orders')
  assert.ok(read['last-seen'].getTime() > 0)
  assert.equal((await tags.destroy(service.domain, 'order')).message, 'Tag deleted')

  const found = await client.tags.list({ pagination: { sort: 'tag:asc', limit: 5, include_total: true } })
  assert.deepEqual([found.items.map(({ tag }) => tag), found.pagination.total], [['receipt'], 1])
  assert.ok((found.items[0]?.last_seen.getTime() ?? 0) > 0)
  assert.equal((await client.tags.update('receipt', 'Receipts')).message, 'Tag updated')
  assert.equal((await client.tags.limits()).count, 1)
  assert.equal((await client.tags.destroy('receipt')).message, 'Tag deleted')
})
