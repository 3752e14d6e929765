/** TLS reports over HTTPS: anybody may post, few of them are kept, and none counts. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { createNoonClock } from '../../../test/support/clock.ts'
import { type Answer, startTestService, type TestService } from '../../../test/support/service.ts'
import { TooManyWaiting } from '../../base/process/errors.ts'
import { postedReportRoute } from './posted.ts'

const DAY_S = 86_400
const GZIP = 'application/tlsrpt+gzip'
/** Reports are counted by day. */
const clock = createNoonClock()
const begin = Math.floor(clock.now() / 1000 / DAY_S - 1) * DAY_S

const reportOf = (domain: string, id = 'r1', at = begin) => ({
  'organization-name': 'Sender Inc',
  'date-range': {
    'start-datetime': new Date(at * 1000).toISOString(),
    'end-datetime': new Date((at + DAY_S - 1) * 1000).toISOString(),
  },
  'contact-info': 'tls@sender.example',
  'report-id': id,
  policies: [
    {
      policy: { 'policy-type': 'sts', 'policy-domain': domain },
      summary: { 'total-successful-session-count': 90, 'total-failure-session-count': 3 },
      'failure-details': [{ 'result-type': 'certificate-expired', 'failed-session-count': 3 }],
    },
  ],
})

const post = (
  service: TestService,
  body: Buffer | string,
  { type = GZIP, domain = service.domain, headers = {} } = {},
): Promise<Answer> =>
  service.call('POST', `/sendwright/v1/tls-reports/${domain}`, {
    ...{ body: Buffer.from(body), key: null },
    headers: { 'content-type': type, ...headers },
  })

const packed = (report: unknown) => gzipSync(JSON.stringify(report))

const start = (t: TestContext, env: Record<string, string> = {}) =>
  startTestService(t, { SENDWRIGHT_DNS: '127.0.0.1:9', ...env }, { clock })

test('a posted report is shown as what nobody has proven, and is in no total', async (t) => {
  const service = await start(t, { SENDWRIGHT_PUBLIC_URL: 'https://mail.test.example' })
  const taken = await post(service, packed(reportOf(service.domain)))
  assert.deepEqual([taken.status, taken.body], [200, { message: 'Report has been taken' }])
  const plain = JSON.stringify(reportOf(service.domain, 'r2'))
  assert.equal((await post(service, plain, { type: 'application/tlsrpt+json' })).status, 200)
  assert.equal((await post(service, plain, { type: 'application/tlsrpt+json' })).status, 200, 'repeated')
  const { body } = await service.call('GET', `/sendwright/v1/domains/${service.domain}/reports`)
  assert.deepEqual(
    body.items.map((item: Record<string, unknown>) => [
      ...[item['type'], item['authenticated'], item['organization'], item['report_id'], item['failed']],
    ]),
    [
      ['tls', false, 'Sender Inc', 'r2', 3],
      ['tls', false, 'Sender Inc', 'r1', 3],
    ],
  )
  assert.match(body.items[0].sender, /^127\./)
  assert.equal(body.totals.tls.sessions, 0)
  const record = `v=TLSRPTv1; rua=mailto:tls-reports@${service.domain},https://mail.test.example/sendwright/v1/tls-reports/${service.domain}`
  assert.equal(body.records[1].value, record)
})

test('what is no report about that domain is refused', async (t) => {
  const service = await start(t)
  const { domain } = service
  const made = await service.call('POST', '/v4/domains', { form: { name: 'unproven.example' } })
  assert.equal(made.status, 200, made.text)
  const cases: [body: Buffer | string, options: Parameters<typeof post>[2], status: number, text: RegExp][] =
    [
      [packed(reportOf('other.example')), {}, 400, /another domain/],
      [packed(reportOf('nobody.example')), { domain: 'nobody.example' }, 404, /Domain not found/],
      [packed(reportOf('unproven.example')), { domain: 'unproven.example' }, 404, /Domain not found/],
      [packed(reportOf(domain, 'r1', begin - 90 * DAY_S)), {}, 400, /not of this time/],
      ['', {}, 400, /cannot be read/],
      ['no report', {}, 400, /cannot be read/],
      [Buffer.from([0x1f, 0x8b, 8, 0]), {}, 400, /cannot be read/],
      [packed(reportOf(domain)).subarray(0, 60), {}, 400, /cannot be read/],
      ['<feedback/>', {}, 400, /no TLS report/],
      [gzipSync(`<feedback>${'<a></a>'.repeat(3_000_000)}`), {}, 400, /no TLS report/],
      [gzipSync(Buffer.alloc(30_000_000, 0x20)), {}, 400, /cannot be read/],
      [Buffer.alloc(2_000_001), {}, 413, /2 MB/],
      [packed(reportOf(domain)), { type: 'application/json' }, 400, /unsupported Content-Type/],
      [packed(reportOf(domain)), { headers: { 'content-encoding': 'gzip' } }, 400, /./],
    ]
  for (const [body, options, status, text] of cases) {
    const answer = await post(service, body, options)
    assert.equal(answer.status, status, answer.text)
    assert.match(answer.text, text)
  }
  const { body } = await service.call('GET', `/sendwright/v1/domains/${domain}/reports`)
  assert.deepEqual(body.items, [])
})

test('a network posts 30 a minute, and a day of a domain has room for 50', async (t) => {
  const service = await start(t, { SENDWRIGHT_TRUSTED_PROXIES: '127.0.0.0/8' })
  const from = (address: string, id: string) =>
    post(service, packed(reportOf(service.domain, id)), { headers: { 'x-forwarded-for': address } })
  for (let n = 0; n < 30; n++) assert.equal((await from('192.0.2.1', `a${n}`)).status, 200)
  const refused = await from('192.0.2.1', 'a30')
  assert.equal(refused.status, 429)
  assert.ok(Number(refused.headers.get('retry-after')) > 0)
  for (let n = 0; n < 30; n++) assert.equal((await from('198.51.100.1', `b${n}`)).status, 200)
  const guessing = { domain: 'nobody.example', headers: { 'x-forwarded-for': '192.0.2.1' } }
  assert.equal((await post(service, '', guessing)).status, 429, 'no domain is looked up either')
  const { body } = await service.call('GET', `/sendwright/v1/domains/${service.domain}/reports?limit=100`)
  assert.equal(body.items.length, 50)
})

test('a network with many reports in hand keeps no other out', async () => {
  const domain = { id: 'd', name: 'a.example', state: 'active', accountId: 'a' }
  const kept: string[] = []
  const held = Promise.withResolvers<void>()
  const first = Promise.withResolvers<void>()
  const store = {
    async commit([{ values }]: [{ values: unknown[] }]) {
      kept.push(String(values.find((value) => /^(?:192|198)\./.test(String(value)))))
      first.resolve()
      await held.promise
    },
  }
  const route = postedReportRoute({
    store: store as never,
    clock,
    domains: { byName: async () => domain } as never,
  })
  const taken = (remoteAddress: string, n: number) =>
    route
      .handler({ found: domain, bytes: packed(reportOf('a.example', `r${n}`)), remoteAddress } as never)
      .then(
        () => 'taken',
        (error: unknown) => (error instanceof TooManyWaiting ? 'busy' : String(error)),
      )
  const flood = Array.from({ length: 40 }, (_, n) => taken(`192.0.2.${n}`, n))
  await first.promise
  const honest = taken('198.51.100.1', 99)
  held.resolve()
  assert.equal(await honest, 'taken')
  assert.deepEqual(kept.slice(0, 2), ['192.0.2.0', '198.51.100.1'])
  const outcomes = await Promise.all(flood)
  assert.deepEqual(
    [outcomes.filter((one) => one === 'taken').length, new Set(outcomes)],
    [11, new Set(['taken', 'busy'])],
  )
})
