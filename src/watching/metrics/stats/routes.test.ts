import assert from 'node:assert/strict'
import { test } from 'node:test'
import MailgunModule from 'mailgun.js'
import { createNoonClock } from '../../../../test/support/clock.ts'
import { eventually, startTestService } from '../../../../test/support/service.ts'
import { assertFigures, figuresOf } from '../../../../test/support/statistics.ts'

test('the operations follow the contract', async (t) => {
  const clock = createNoonClock()
  const service = await startTestService(t, {}, { clock })
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

  await t.test('figures are filtered, grouped and summed up', async () => {
    const form = { to: ['ann@gmail.com', 'bob@example.org'], 'o:tag': 'grouped' }
    assert.equal((await service.send(form)).status, 200)
    const two = { 'accepted.outgoing': 2, 'accepted.total': 2, 'delivered.smtp': 2, 'delivered.total': 2 }
    await assertFigures(service, `/v3/${domain}/tags/grouped/stats`, two)
    await assertFigures(service, `/v3/${domain}/tags/grouped/stats?provider=gmail.com`, sent)
    await assertFigures(service, `/v3/${domain}/tags/grouped/stats?provider=other`, sent)
    await assertFigures(service, `/v3/${domain}/tags/grouped/stats?device=unknown&country=unknown`, two)
    await assertFigures(service, `/v3/${domain}/tags/grouped/stats?device=mobile`, {})
    const groups = async (query: string) => {
      const { body } = await get(`/v3/stats/filter?event=delivered&filter=tag:GROUPED&${query}`)
      return body.stats.map((entry: { type?: object; delivered: { total: number } }) => [
        entry.type ?? null,
        entry.delivered.total,
      ])
    }
    const today = [...Array<[null, number]>(7).fill([null, 0]), [null, 2]]
    const cases: [query: string, entries: unknown[]][] = [
      ['', today],
      ['group=time', today],
      ['group=month&duration=1h', [[null, 2]]],
      ['group=total', [[null, 2]]],
      ['group=domain', [[{ type: 'domain', key: domain }, 2]]],
      [
        'group=provider',
        [
          [{ type: 'provider', key: 'gmail.com' }, 1],
          [{ type: 'provider', key: 'other' }, 1],
        ],
      ],
      ['group=provider&filter=provider:other', [[{ type: 'provider', key: 'other' }, 1]]],
      ['group=tag', [[{ type: 'tag', key: 'grouped' }, 2]]],
      ['group=country', [[{ type: 'country', key: 'unknown' }, 2]]],
      ['group=ip_pool', [[{ type: 'ip_pool', key: 'none' }, 2]]],
      ['group=total&filter=domain:other.example', [[null, 0]]],
      ['group=domain&filter=subaccount:nobody', []],
    ]
    for (const [query, entries] of cases) assert.deepEqual(await groups(query), entries, query)
    const now = Math.floor(clock.now() / 1000)
    const domains = await get(`/v3/stats/total/domains?event=delivered&timestamp=${now}&resolution=month`)
    assert.deepEqual(domains.body.stats[0].type, { type: 'domain', key: domain })
    assert.equal(domains.body.stats.length, 1)
    const skipped = await get(`/v3/stats/total/domains?event=delivered&timestamp=${now}&skip=1`)
    assert.deepEqual(skipped.body.stats, [])
    const counters = { accepted: 1, delivered: 1, opened: 0, clicked: 0 }
    const sums = { ...counters, unique_opened: 0, unique_clicked: 0, unsubscribed: 0, complained: 0 }
    const providers = { 'gmail.com': sums, other: sums }
    const byTag = await get(`/v3/${domain}/tag/stats/aggregates?tag=grouped&type=provider`)
    assert.deepEqual(byTag.body, { tag: 'grouped', provider: providers })
    const byPath = await get(`/v3/${domain}/tags/grouped/stats/aggregates/countries`)
    assert.deepEqual(byPath.body, {
      tag: 'grouped',
      country: { unknown: { ...sums, accepted: 2, delivered: 2 } },
    })
    const ofDomain = await get(`/v3/${domain}/aggregates/providers`)
    assert.deepEqual(ofDomain.body.providers['gmail.com'], sums)
    for (const name of ['devices', 'countries']) {
      const { body } = await get(`/v3/${domain}/aggregates/${name}`)
      assert.deepEqual(Object.keys(body[name]), ['unknown'], name)
    }
    for (const [name, item] of [
      ['devices', 'tablet'],
      ['providers', 'qq.com'],
      ['countries', 'de'],
    ] as const)
      assert.ok((await get(`/v3/domains/${domain}/tag/${name}`)).body.items.includes(item), name)
  })

  await t.test('the same as CSV', async () => {
    const answer = await service.call('GET', '/v3/stats/filter?event=delivered&group=tag', {
      headers: { accept: 'text/csv' },
    })
    assert.equal(answer.headers.get('content-type'), 'text/csv; charset=utf-8; header=present')
    const [head, ...lines] = answer.text.trimEnd().split('\r\n')
    assert.equal(
      head,
      'time,delivered.smtp,delivered.http,delivered.optimized,delivered.total,type.type,type.key',
    )
    assert.match(lines.at(-1) ?? '', /^"[A-Z][a-z]{2}, \d\d .* UTC",1,0,0,1,tag,summer sale$/)
    const columns = 'accepted,delivered,opened,clicked,unique_opened,unique_clicked,unsubscribed,complained'
    for (const path of ['aggregates/providers', 'tag/stats/aggregates?tag=grouped&type=provider']) {
      const found = await service.call('GET', `/v3/${domain}/${path}`, { headers: { accept: 'text/csv' } })
      const rows = found.text.trimEnd().split('\r\n')
      assert.equal(rows[0], `provider,${columns}`, path)
      assert.match(rows[1] ?? '', /^gmail\.com,1,1,0,0,0,0,0,0$/, path)
    }
  })

  await t.test("a deleted domain's own figures are removed", async () => {
    const name = 'gone.example.com'
    assert.equal((await service.call('POST', '/v4/domains', { form: { name } })).status, 200)
    const form = { from: `a@${name}`, to: 'b@example.org', subject: 'Hi', text: 'Hi.', 'o:tag': 'x' }
    assert.equal((await service.call('POST', `/v3/${name}/messages`, { form })).status, 200)
    await assertFigures(service, `/v3/${name}/tags/x/stats`, sent)
    const whole = await figuresOf(service, '/v3/stats/total')
    assert.equal((await service.call('DELETE', `/v3/domains/${name}`)).status, 200)
    await eventually('the name is free again', async () => {
      const again = await service.call('POST', '/v4/domains', { form: { name } })
      return again.status === 200
    })
    assert.deepEqual(await figuresOf(service, `/v3/${name}/stats/total`), {})
    // The account sent that mail all the same.
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
  ['/v3/stats/total/domains?event=opened', 400, 'Missing mandatory parameter: timestamp'],
  ['/v3/stats/total/domains?timestamp=1780272000', 400, "'event' parameter is required"],
  ['/v3/stats/filter?event=opened&group=week', 400, "'week' is not a valid value for group"],
  ['/v3/stats/filter?event=opened&filter=x', 400, 'Invalid format for parameter filter: x'],
  ['/v3/stats/filter?event=opened&filter=color:red', 400, "'color' is not a valid value for filter"],
  ['/v3/nobody.example/aggregates/devices', 404, 'Domain not found'],
  [`/v3/${domain}/tag/stats/aggregates?type=device`, 400, 'Missing mandatory parameter: tag'],
  [`/v3/${domain}/tag/stats/aggregates?tag=best`, 400, 'Missing mandatory parameter: type'],
  [`/v3/${domain}/tag/stats/aggregates?tag=best&type=x`, 400, "'x' is not a valid value for type"],
  [`/v3/${domain}/tags/none/stats/aggregates/devices`, 404, 'Tag not found'],
  ['/v3/domains/nobody.example/tag/countries', 404, 'Domain not found'],
]
