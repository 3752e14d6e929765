import assert from 'node:assert/strict'
import { test } from 'node:test'
import MailgunModule from 'mailgun.js'
import { eventually, startTestService } from '../../test/support/service.ts'
import { assertFigures, figuresOf } from '../../test/support/statistics.ts'

test('the operations follow the contract', async (t) => {
  const service = await startTestService(t)
  const { domain } = service
  const get = (path: string, key?: string | null) =>
    service.call('GET', path, key === undefined ? {} : { key })
  const sent = { 'accepted.outgoing': 1, 'accepted.total': 1, 'delivered.smtp': 1, 'delivered.total': 1 }
  const zero = { incoming: 0, outgoing: 0, total: 0 }

  await t.test('every interval is there before anything happened', async () => {
    const answer = await get(
      `/v3/${domain}/stats/total?event=accepted&event=stored&start=1780272000&end=1780448400`,
    )
    assert.deepEqual(answer.body, {
      start: 'Mon, 01 Jun 2026 00:00:00 UTC',
      end: 'Wed, 03 Jun 2026 00:00:00 UTC',
      resolution: 'day',
      stats: ['Mon, 01', 'Tue, 02', 'Wed, 03'].map((day) => ({
        time: `${day} Jun 2026 00:00:00 UTC`,
        accepted: zero,
        stored: { total: 0 },
      })),
    })
    const months = await get('/v3/stats/total?event=opened&duration=2m')
    assert.equal(months.body.resolution, 'month')
    assert.equal(months.body.stats.length, 3)
    assert.deepEqual(months.body.stats[0].opened, { total: 0, unique: 0 })
    for (const path of ['/v3/stats/total', `/v3/${domain}/stats/total`])
      assert.deepEqual(await figuresOf(service, `${path}?resolution=hour`), {})
  })

  await t.test('mail is counted for the account, its domain and its tags', async () => {
    assert.equal((await service.send({ 'o:tag': ['Summer Sale', 'a/b'] })).status, 200)
    await assertFigures(service, `/v3/${domain}/stats/total`, sent)
    await assertFigures(service, '/v3/stats/total?resolution=hour', sent)
    await assertFigures(service, `/v3/${domain}/tag/stats?tag=summer+sale&duration=1h`, sent)
    await assertFigures(service, `/v3/${domain}/tags/a%2Fb/stats?duration=1m`, sent)
    const { tag, description, resolution } = (
      await get(`/v3/${domain}/tag/stats?tag=SUMMER+SALE&event=accepted&duration=1d`)
    ).body
    assert.deepEqual([tag, description, resolution], ['Summer Sale', '', 'day'])
  })

  await t.test('mail sent at the best time is counted as optimized', async () => {
    const form = { to: 'best@example.org', 'o:deliverytime-optimize-period': '24H', 'o:tag': 'best' }
    assert.equal((await service.send(form)).status, 200)
    await assertFigures(service, `/v3/${domain}/tags/best/stats`, { ...sent, 'delivered.optimized': 1 })
  })

  await t.test('errors', async () => {
    for (const [path, status, message] of errorCases(domain)) {
      const answer = await get(path)
      assert.deepEqual([answer.status, answer.body], [status, { message }], path)
    }
  })

  await t.test('every role but sending reads', async () => {
    const paths = [
      '/v3/stats/total?event=opened',
      `/v3/${domain}/stats/total?event=opened`,
      `/v3/${domain}/tag/stats?tag=best&event=opened`,
      `/v3/${domain}/tags/best/stats?event=opened`,
    ]
    for (const [role, status] of [
      ['basic', 200],
      ['support', 200],
      ['developer', 200],
      ['sending', 401],
    ] as const) {
      const form = { role, ...(role === 'sending' && { kind: 'domain', domain_name: domain }) }
      const made = await service.call('POST', '/v1/keys', { form })
      assert.ok(made.status < 300, made.text)
      for (const path of paths)
        assert.equal((await get(path, made.body.key.secret)).status, status, `${role}: ${path}`)
    }
    for (const path of paths) assert.equal((await get(path, null)).status, 401)
  })

  await t.test('the public JavaScript client reads them', async () => {
    const Mailgun = MailgunModule as unknown as typeof MailgunModule.default
    const client = new Mailgun(FormData).client({ username: 'api', key: service.key, url: service.url })
    const asked = {
      event: ['delivered' as const, 'opened' as const],
      duration: '1d',
      resolution: 'day' as const,
    }
    for (const stats of [await client.stats.getDomain(domain, asked), await client.stats.getAccount(asked)]) {
      assert.ok(stats.start instanceof Date && stats.end instanceof Date)
      assert.ok(stats.stats.every(({ time }) => time instanceof Date))
      assert.equal(
        stats.stats.reduce((sum, { delivered }) => sum + (delivered?.total ?? 0), 0),
        2,
      )
    }
    // It joins several events of a tag with commas.
    const joined = { event: 'opened,delivered', duration: '1d' }
    const ofTag = await client.domains.domainTags.statistic(domain, 'best', joined)
    assert.equal(ofTag.tag, 'best')
    const [opens, deliveries] = ['opened' as const, 'delivered' as const].map((event) =>
      ofTag.stats.reduce((sum, entry) => sum + (entry[event]?.total ?? 0), 0),
    )
    assert.deepEqual([opens, deliveries], [0, 1])
  })

  await t.test('the figures of a deleted domain are removed', async () => {
    const name = 'gone.example.com'
    const whole = await figuresOf(service, '/v3/stats/total')
    assert.equal((await service.call('POST', '/v4/domains', { form: { name } })).status, 200)
    const form = { from: `a@${name}`, to: 'b@example.org', subject: 'Hi', text: 'Hi.', 'o:tag': 'x' }
    assert.equal((await service.call('POST', `/v3/${name}/messages`, { form })).status, 200)
    await assertFigures(service, `/v3/${name}/tags/x/stats`, sent)
    assert.notDeepEqual(await figuresOf(service, '/v3/stats/total'), whole)
    assert.equal((await service.call('DELETE', `/v3/domains/${name}`)).status, 200)
    await eventually('the name is free again', async () => {
      const again = await service.call('POST', '/v4/domains', { form: { name } })
      return again.status === 200
    })
    assert.deepEqual(await figuresOf(service, `/v3/${name}/stats/total`), {})
    assert.deepEqual(await figuresOf(service, '/v3/stats/total'), whole)
  })
})

const DAY_SECONDS = 86_400

const errorCases = (domain: string): [path: string, status: number, message: string][] => [
  ['/v3/stats/total', 400, "'event' parameter is required"],
  ['/v3/stats/total?event=sent', 400, "'sent' is not a valid value for event"],
  ['/v3/stats/total?event=opened&resolution=year', 400, "'year' is not a valid value for resolution"],
  ['/v3/stats/total?event=opened&start=x', 400, 'Invalid format for parameter start: x'],
  ['/v3/stats/total?event=opened&duration=7', 400, 'Invalid format for parameter duration: 7'],
  [
    `/v3/stats/total?event=opened&start=${2 * DAY_SECONDS}&end=${DAY_SECONDS}`,
    400,
    "'start' must be before 'end'",
  ],
  ['/v3/stats/total?event=opened&start=0', 400, 'The range has more than 1500 intervals'],
  [`/v3/${domain}/stats/total`, 400, "'event' parameter is required"],
  ['/v3/nobody.example/stats/total?event=opened', 404, 'Domain not found'],
  ['/v3/nobody.example/tag/stats?tag=x&event=opened', 404, 'Domain not found'],
  ['/v3/nobody.example/tags/x/stats?event=opened', 404, 'Domain not found'],
  [`/v3/${domain}/tag/stats?event=opened`, 400, 'Missing mandatory parameter: tag'],
  [`/v3/${domain}/tag/stats?tag=&event=opened`, 400, 'Missing mandatory parameter: tag'],
  [`/v3/${domain}/tag/stats?tag=none`, 400, "'event' parameter is required"],
  [`/v3/${domain}/tag/stats?tag=none&event=opened`, 404, 'Tag not found'],
  [`/v3/${domain}/tags/none/stats?event=opened`, 404, 'Tag not found'],
  [
    `/v3/${domain}/tags/best/stats?event=opened&provider=gmail.com`,
    400,
    "The 'provider' parameter is not supported",
  ],
  [
    `/v3/${domain}/tag/stats?tag=best&event=opened&device=mobile`,
    400,
    "The 'device' parameter is not supported",
  ],
  [`/v3/${domain}/tags/best/stats?event=opened&country=de`, 400, "The 'country' parameter is not supported"],
]
