/** TLS reports that the service sends (RFC 8460): the service as a process, a DNS server, and receivers of both kinds. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { type ParsedMail, simpleParser } from 'mailparser'
import { createAuthority } from '../../../test/support/certificates.ts'
import { queueTotals } from '../../../test/support/crash-rig.ts'
import { createDnsServer, type DnsServer } from '../../../test/support/dns-server.ts'
import { createReceiver, type ReceivedPost, type Receiver } from '../../../test/support/http-receiver.ts'
import { eventually, ownAddress } from '../../../test/support/service.ts'
import { AUTHORIZATION, startProcess } from '../../../test/support/service-process.ts'
import { createSink, type Sink } from '../../../test/support/smtp-sink.ts'
import { temporaryFolder } from '../../../test/support/stores.ts'
import { openSqlite } from '../../platform/store/sqlite/sqlite.ts'
import { insert } from '../../platform/store/store.ts'
import { reportReceivers } from '../../protocols/reports/tls/record.ts'
import { readTlsReport } from '../../protocols/reports/tls/report.ts'
import { reportTime } from '../../receiving/report-sending/daily-reports.ts'

const DAY_MS = 86_400_000
/** Its reports are due, whatever the time. */
const DAY = new Date(Date.now() - 2 * DAY_MS).toISOString().slice(0, 10)
const LATER = new Date(Date.now() + DAY_MS).toISOString().slice(0, 10)

/** Three policies and five failures. */
const RESULTS: [type: string, policy: string, mx: string, result: string, ip: string, sessions: number][] = [
  ['sts', 'asking.example', 'mx1.asking.example', 'success', '192.0.2.1', 90],
  ['sts', 'asking.example', 'mx1.asking.example', 'certificate-expired', '192.0.2.1', 3],
  ['sts', 'asking.example', 'mx2.asking.example', 'certificate-host-mismatch', '192.0.2.2', 2],
  ['sts', 'asking.example', '', 'sts-policy-fetch-error', '', 1],
  ['tlsa', 'mx1.asking.example', 'mx1.asking.example', 'success', '192.0.2.1', 7],
  ['tlsa', 'mx1.asking.example', 'mx1.asking.example', 'validation-failure', '192.0.2.1', 4],
  ['tlsa', 'mx2.asking.example', 'mx2.asking.example', 'starttls-not-supported', '192.0.2.1', 5],
]

interface Rig {
  folder: string
  env: Record<string, string>
  dns: DnsServer
  sink: Sink
  receiver: Receiver
  host: string
}

async function setUp(t: TestContext): Promise<Rig> {
  const folder = await temporaryFolder(t)
  const [dns, sink] = [await createDnsServer(), await createSink({ host: ownAddress() })]
  const authority = createAuthority()
  const receiver = await createReceiver({ tls: authority.issue(['reports.example']) })
  for (const part of [dns, sink, receiver]) t.after(() => part.close())
  const roots = join(folder, 'roots.pem')
  await writeFile(roots, authority.cert)
  dns.set('reports.example', 'A', ['127.0.0.1'])
  dns.set('_smtp._tls.asking.example', 'TXT', [
    `v=TLSRPTv1; rua=mailto:tls@asking.example,https://reports.example:${receiver.port}/v1`,
  ])
  dns.set('_25._tcp.mx1.asking.example', 'TLSA', [
    { usage: 3, selector: 1, matchingType: 1, certificate: Buffer.alloc(32, 0xab) },
  ])
  const env = {
    SENDWRIGHT_DATA: join(folder, 'data'),
    SENDWRIGHT_DNS: `${dns.host}:${dns.port}`,
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
    NODE_EXTRA_CA_CERTS: roots,
  }
  return { folder, env, dns, sink, receiver, host: ownAddress() }
}

async function addResults({ env }: Rig): Promise<void> {
  const store = await openSqlite(env['SENDWRIGHT_DATA'] as string)
  try {
    const row = (
      day: string,
      domain: string,
      [type, policy, mx, result, ip, sessions]: (typeof RESULTS)[number],
    ) =>
      insert('tls_results', {
        ...{ day, recipient_domain: domain, policy_domain: policy, policy_type: type },
        ...{ mx_host: mx, result_type: result, sending_ip: ip, sessions },
      })
    await store.commit([
      ...RESULTS.map((result) => row(DAY, 'asking.example', result)),
      ...RESULTS.slice(0, 1).map((result) => row(DAY, 'silent.example', result)),
      ...RESULTS.slice(0, 1).map((result) => row(LATER, 'asking.example', result)),
    ])
    const policy = 'version: STSv1\nmode: enforce\nmx: *.asking.example\nmax_age: 86400\n'
    await store.commit([
      insert('mta_sts_policies', {
        ...{ domain: 'asking.example', policy_id: '1', policy_text: policy, expires_at: Date.now() + DAY_MS },
      }),
    ])
  } finally {
    await store.close()
  }
}

/** What RFC 8460 §4.4 requires of a report, member by member. */
function validate(report: Record<string, unknown>): void {
  const text = (value: unknown) => assert.ok(typeof value === 'string' && value !== '', String(value))
  const count = (value: unknown) =>
    assert.ok(Number.isInteger(value) && (value as number) >= 0, String(value))
  const object = (value: unknown) => value as Record<string, unknown>
  for (const name of ['organization-name', 'contact-info', 'report-id']) text(report[name])
  const range = object(report['date-range'])
  for (const name of ['start-datetime', 'end-datetime'])
    assert.match(String(range[name]), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/, 'RFC 3339')
  for (const policy of report['policies'] as Record<string, unknown>[]) {
    const about = object(policy['policy'])
    assert.ok(['tlsa', 'sts', 'no-policy-found'].includes(String(about['policy-type'])))
    for (const line of about['policy-string'] as unknown[]) text(line)
    text(about['policy-domain'])
    assert.ok(Array.isArray(about['mx-host']))
    const summary = object(policy['summary'])
    count(summary['total-successful-session-count'])
    count(summary['total-failure-session-count'])
    for (const failure of policy['failure-details'] as Record<string, unknown>[]) {
      assert.ok(RESULT_TYPES.includes(String(failure['result-type'])), String(failure['result-type']))
      count(failure['failed-session-count'])
    }
  }
}

/** RFC 8460 §4.3. */
const RESULT_TYPES = [
  ...[
    'starttls-not-supported',
    'certificate-host-mismatch',
    'certificate-expired',
    'certificate-not-trusted',
  ],
  ...['validation-failure', 'tlsa-invalid', 'dnssec-invalid', 'dane-required', 'sts-policy-fetch-error'],
  ...['sts-policy-invalid', 'sts-webpki-invalid'],
]

test('a day with 3 policies and 5 failures reaches mailto and https receivers once, also over restarts', async (t) => {
  const rig = await setUp(t)
  await addResults(rig)
  rig.receiver.answer = 503
  let service = await startProcess(rig.host, rig.env)
  t.after(() => service.end('SIGKILL'))
  const [mail] = await rig.sink.waitFor(1)
  assert.ok(mail)
  const post = await eventually('the post', async () => rig.receiver.posts[0])
  // A crash between the final dot and its outcome would repeat any mail.
  await eventually('the outcome of the mail', async () => (await queueTotals(service)) === 0)
  await service.end('SIGKILL')
  rig.receiver.answer = 200
  await forgetRuns(rig)
  service = await startProcess(rig.host, { ...rig.env, SENDWRIGHT_WEBHOOK_SCHEDULE: '1s' })
  await eventually('the second attempt', async () => rig.receiver.posts.length === 2)
  await eventually('the job', async () => {
    const answer = await fetch(`${service.url}/sendwright/v1/system`, {
      headers: { authorization: AUTHORIZATION },
    })
    const { jobs } = (await answer.json()) as {
      jobs: { name: string; running: boolean; last_ended_at: string | null }[]
    }
    const job = jobs.find(({ name }) => name === 'tls-reports')
    return job?.last_ended_at !== null && job?.running === false
  })
  await service.end('SIGTERM')
  assert.equal(rig.sink.messages.length, 1, 'one mail')
  assert.equal(rig.receiver.posts.length, 2, 'no attempt after the one that was accepted')
  assert.deepEqual(rig.receiver.posts[1]?.raw, post.raw, 'the same report')
  await checkMail(await simpleParser(mail.raw), mail.envelope.to)
  checkPost(post)
  const domains = await reported(rig)
  assert.deepEqual(domains, ['asking.example', 'silent.example'])
})

/** As if the interval of the job had passed. */
async function forgetRuns({ env }: Rig): Promise<void> {
  const store = await openSqlite(env['SENDWRIGHT_DATA'] as string)
  await store.commit([
    { sql: "DELETE FROM jobs WHERE name = 'tls-reports'", values: [] },
    { sql: 'UPDATE outgoing_posts SET due_at = 0', values: [] },
    // Even the mark of the domain as a whole is gone, as after a crash in between.
    { sql: "DELETE FROM tls_reports WHERE uri = ''", values: [] },
  ])
  await store.close()
}

async function reported({ env }: Rig): Promise<string[]> {
  const store = await openSqlite(env['SENDWRIGHT_DATA'] as string)
  const rows = await store.db
    .selectFrom('tls_reports')
    .selectAll()
    .where('uri', '=', '')
    .orderBy('domain')
    .execute()
  const left = await store.db.selectFrom('tls_reports').selectAll().where('content', 'is not', null).execute()
  await store.close()
  assert.equal(left.length, 0, 'the content goes with the end of its POST')
  assert.ok(
    rows.every(({ day }) => day === DAY),
    'that day is not over',
  )
  return rows.map(({ domain }) => domain)
}

async function checkMail(mail: ParsedMail, to: readonly string[]): Promise<void> {
  assert.deepEqual(to, ['tls@asking.example'])
  const type = mail.headers.get('content-type') as { value: string; params: Record<string, string> }
  assert.deepEqual([type.value, type.params['report-type']], ['multipart/report', 'tlsrpt'])
  assert.equal(mail.headers.get('tls-report-domain'), 'asking.example')
  assert.equal(mail.headers.get('tls-report-submitter'), 'mail.test.example')
  assert.match(
    mail.subject ?? '',
    /^Report Domain: asking\.example Submitter: mail\.test\.example Report-ID: <[0-9a-f]{32}@/,
  )
  assert.ok(mail.headers.has('dkim-signature'), 'signed, RFC 8460 §3')
  const [file] = mail.attachments
  const begin = Date.parse(`${DAY}T00:00:00Z`) / 1000
  assert.equal(file?.contentType, 'application/tlsrpt+gzip')
  assert.match(
    file?.filename ?? '',
    new RegExp(`^mail\\.test\\.example!asking\\.example!${begin}!${begin + 86_399}!\\w+\\.json\\.gz$`),
  )
  checkReport(file?.content ?? Buffer.alloc(0))
}

function checkPost({ method, path, headers, raw }: ReceivedPost): void {
  assert.deepEqual([method, path, headers['content-type']], ['POST', '/v1', 'application/tlsrpt+gzip'])
  checkReport(raw)
}

function checkReport(content: Buffer): void {
  const text = gunzipSync(content).toString()
  const document = JSON.parse(text) as Record<string, unknown>
  validate(document)
  const report = readTlsReport(text)
  assert.deepEqual(
    report.policies.map(({ policyType, domain, successful, failed, failures }) => [
      ...[policyType, domain, successful, failed],
      failures.map(({ resultType, sendingIp, sessions }) => `${resultType} ${sendingIp} ${sessions}`),
    ]),
    [
      [
        ...['sts', 'asking.example', 90, 6],
        [
          'certificate-expired 192.0.2.1 3',
          'certificate-host-mismatch 192.0.2.2 2',
          'sts-policy-fetch-error  1',
        ],
      ],
      ['tlsa', 'mx1.asking.example', 7, 4, ['validation-failure 192.0.2.1 4']],
      ['tlsa', 'mx2.asking.example', 0, 5, ['starttls-not-supported 192.0.2.1 5']],
    ],
  )
  const [sts, dane] = document['policies'] as { policy: { 'policy-string': string[] } }[]
  assert.equal(sts?.policy['policy-string'][1], 'mode: enforce')
  assert.deepEqual(dane?.policy['policy-string'], [`3 1 1 ${'ab'.repeat(32)}`])
}

test('who asks for reports', () => {
  const uris = (...records: string[]) =>
    reportReceivers(records).map(({ kind, target }) => `${kind} ${target}`)
  const cases: [records: string[], receivers: string[]][] = [
    [['v=TLSRPTv1; rua=mailto:a@b.example'], ['mailto a@b.example']],
    [['v=TLSRPTv1;rua=https://b.example/x;'], ['https https://b.example/x']],
    [
      ['v=TLSRPTv1; rua=mailto:a%2Cb@c.example , https://c.example'],
      ['mailto a,b@c.example', 'https https://c.example'],
    ],
    [['v=TLSRPTv1; rua=mailto:a@b.example,mailto:a@b.example'], ['mailto a@b.example']],
    [['v=TLSRPTv1; rua=http://b.example,ftp://b,mailto:%zz'], []],
    [
      ['v=TLSRPTv1; rua=mailto:a@b,mailto:b@b,mailto:c@b,mailto:d@b'],
      ['mailto a@b', 'mailto b@b', 'mailto c@b'],
    ],
    [['v=TLSRPTv1; rua=mailto:a@b.example', 'v=TLSRPTv1; rua=mailto:c@b.example'], []],
    [['v=spf1 -all', 'v=TLSRPTv1; rua=mailto:a@b.example'], ['mailto a@b.example']],
    [['v=TLSRPTv12; rua=mailto:a@b.example'], []],
    [['v=TLSRPTv1'], []],
    [[], []],
  ]
  for (const [records, receivers] of cases) assert.deepEqual(uris(...records), receivers, records.join())
})

test('reports are spread over the hours after a day', () => {
  const times = Array.from({ length: 200 }, (_, n) => reportTime('2026-06-01', `d${n}.example`))
  const midnight = Date.parse('2026-06-02T00:00:00Z')
  for (const time of times) assert.ok(time >= midnight + 600_000 && time < midnight + 600_000 + 4 * 3_600_000)
  assert.ok(Math.max(...times) - Math.min(...times) > 3 * 3_600_000)
  assert.equal(reportTime('2026-06-01', 'd0.example'), times[0])
})
