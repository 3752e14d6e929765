/** DMARC by the public operations: reports come by mail, and their sources are named by DNS. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { createTransport } from 'nodemailer'
import { eachDatabase } from '../../../../test/support/databases.ts'
import { createDnsServer } from '../../../../test/support/dns-server.ts'
import { startTestService } from '../../../../test/support/service.ts'
import { aggregateReport, type ReportedRow } from '../../../protocols/reports/dmarc/write-report.ts'
import { advisedRecord } from './records.ts'

const DAY_MS = 86_400_000
const dayText = (back: number) => new Date(Date.now() - back * DAY_MS).toISOString().slice(0, 10)
const secondsOf = (day: string) => Date.parse(`${day}T00:00:00Z`) / 1000
const [DAY, DAY_BEFORE] = [dayText(1), dayText(2)]

async function start(t: TestContext, database: 'sqlite' | 'postgres' = 'sqlite') {
  const dns = await createDnsServer()
  t.after(() => dns.close())
  dns.set('receiver.example', 'TXT', ['v=spf1 ip4:127.0.0.0/8 -all'])
  const reverse = { '192.0.2.1': 'out1.esp.example', '192.0.2.2': 'out2.esp.example' }
  for (const [ip, name] of Object.entries(reverse)) {
    dns.set(`${ip.split('.').reverse().join('.')}.in-addr.arpa`, 'PTR', [name])
    dns.set(name, 'A', [ip])
  }
  // Its name leads elsewhere, so that it names nobody.
  dns.set('66.100.51.198.in-addr.arpa', 'PTR', ['out1.esp.example'])
  const env = { SENDWRIGHT_SMTP_PORT: '0', SENDWRIGHT_DNS: `${dns.host}:${dns.port}` }
  const service = await startTestService(t, env, { database })
  const transport = createTransport({
    host: service.config.smtpHost,
    port: service.service.smtp.port,
    tls: { rejectUnauthorized: false },
  })
  t.after(() => transport.close())
  const row = (sourceIp: string, dkim: boolean, spf: boolean): ReportedRow => ({
    ...{ sourceIp, dkim, spf, disposition: 'none', reason: null },
    ...{ headerFrom: service.domain, envelopeFrom: '', dkimResults: [], spfResult: null },
  })
  const report = async (day: string, rows: [ip: string, dkim: boolean, spf: boolean, messages: number][]) => {
    const xml = aggregateReport({
      ...{ organization: 'Receiver', contact: 'a@receiver.example', id: day, day, domain: service.domain },
      policy: { p: 'none', sp: 'none', np: 'none', adkim: 'r', aspf: 'r', testing: false },
      rows: rows.map(([ip, dkim, spf, messages]) => ({ row: row(ip, dkim, spf), messages })),
    })
    await transport.sendMail({
      envelope: { from: 'reports@receiver.example', to: `dmarc-reports@${service.domain}` },
      from: 'reports@receiver.example',
      subject: 'Report',
      attachments: [{ filename: 'r.xml.gz', content: gzipSync(xml), contentType: 'application/gzip' }],
    })
  }
  const get = async (path: string, status = 200) => {
    const answer = await service.call('GET', `/v1/dmarc${path}`)
    assert.equal(answer.status, status, answer.text)
    return answer.body
  }
  return { dns, service, report, get }
}

eachDatabase((database) => {
  test('mail is shown by source, host and address', async (t) => {
    const { service, report, get } = await start(t, database)
    const { domain } = service
    assert.equal((await get('/setup')).CreatedAt, '0001-01-01T00:00:00Z')
    assert.deepEqual((await get(`/domains/${domain}`)).sources, [])
    await report(DAY_BEFORE, [['192.0.2.1', true, true, 5]])
    await report(DAY, [
      ['192.0.2.1', true, false, 10],
      ['192.0.2.2', true, true, 20],
      ['198.51.100.66', false, false, 7],
    ])
    const counts = (pass: number, fail = 0) => ({ pass, fail, quarantine: 0, reject: 0 })
    const all = await get('/domains')
    assert.deepEqual(all, {
      domains: [{ domain, email_count: 42, ...counts(35, 7) }],
      pfqr_chart: [
        { timestamp: secondsOf(DAY_BEFORE), ...counts(5) },
        { timestamp: secondsOf(DAY), ...counts(30, 7) },
      ],
    })
    const { auth_events: events, ...ofDomain } = await get(`/domains/${domain}`)
    assert.deepEqual(ofDomain, {
      ...{ email_count: 42, ip_count: 3, spf_fail_events: 17, dkim_fail_events: 7, auth_fail_events: 7 },
      pfqr_chart: all.pfqr_chart,
      sources: [
        { source: 'esp.example', email_count: 35, ip_count: 2, ...counts(35) },
        { source: 'unknown', email_count: 7, ip_count: 1, ...counts(0, 7) },
      ],
    })
    assert.deepEqual(
      events.map((one: Record<string, unknown>) => [one['source_ip'], one['messages'], one['reporter']]),
      [
        ['192.0.2.1', 10, 'Receiver'],
        ['198.51.100.66', 7, 'Receiver'],
      ],
    )
    const source = await get(`/domains/${domain}/s/esp.example`)
    assert.deepEqual(source.hosts, [
      { host: 'out2.esp.example', email_count: 20, ip_count: 1, ...counts(20) },
      { host: 'out1.esp.example', email_count: 15, ip_count: 1, ...counts(15) },
    ])
    const host = await get(`/domains/${domain}/s/esp.example/h/out1.esp.example`)
    assert.deepEqual(host.ip_addresses, [{ ip: '192.0.2.1', email_count: 15, ...counts(15) }])
    const address = await get(`/domains/${domain}/s/esp.example/h/out1.esp.example/ip/192.0.2.1`)
    assert.deepEqual([address.email_count, address.spf_fail_events, address.ruf], [15, 10, ''])
    const wrong = `/domains/${domain}/s/unknown/h/unknown/ip/192.0.2.1`
    assert.equal((await get(wrong)).email_count, 0)
    const day = await get(`/domains/${domain}?from=${secondsOf(DAY_BEFORE)}&to=${secondsOf(DAY) - 1}`)
    assert.equal(day.email_count, 5)
    for (const query of [`to=${secondsOf(DAY)}`, `from=${secondsOf(DAY)}&to=1`, 'from=1&to=100000000'])
      await get(`/domains?${query}`, 400)
    await get('/domains/nobody.example', 404)
    const setup = await get('/setup')
    assert.deepEqual([setup.CreatedAt, setup.UpdatedAt], [`${DAY_BEFORE}T00:00:00Z`, `${DAY}T00:00:00Z`])
  })
})

test('the record to publish keeps what is there and adds the address for reports', async (t) => {
  const { dns, service, get } = await start(t)
  const { domain } = service
  const own = `mailto:dmarc-reports@${domain}`
  const first = `v=DMARC1; p=none; rua=${own}`
  const others = ['a', 'b', 'c'].map((name) => `mailto:${name}@b.example`).join()
  const cases: [current: string, entry: string, configured: boolean][] = [
    ['', first, false],
    [first, first, true],
    ['v=DMARC1; p=reject;', `v=DMARC1; p=reject; rua=${own}`, false],
    ['v=DMARC1;rua=mailto:a@b.example ;p=reject', `v=DMARC1;rua=mailto:a@b.example,${own};p=reject`, false],
    // After three others, more than we send reports to.
    [`v=DMARC1; p=none; rua=${others},${own}`, `v=DMARC1; p=none; rua=${others},${own}`, true],
  ]
  for (const [current, entry, configured] of cases)
    assert.deepEqual(advisedRecord(domain, current), { entry, current, configured })
  dns.set(`_dmarc.${domain}`, 'TXT', ['v=spf1 -all', first])
  assert.deepEqual(await get(`/records/${domain}`), { entry: first, current: first, configured: true })
  const referral = await service.call('POST', '/v1/dmarc/referral', { json: { email: 'a@b.example' } })
  assert.deepEqual([referral.status, referral.body], [200, { referral_uri: `${service.config.publicUrl}/` }])
})
