/** DMARC reports that the service sends (RFC 9990): mail by SMTP from several authors, a day that is over, and receivers. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { simpleParser } from 'mailparser'
import { createTransport } from 'nodemailer'
import { createNoonClock } from '../../../test/support/clock.ts'
import { createInternet, type Internet } from '../../../test/support/internet.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { openSqlite } from '../../platform/store/sqlite/sqlite.ts'
import { AggregateReader } from '../../protocols/reports/dmarc/aggregate-report.ts'

const DAY_MS = 86_400_000
const clock = createNoonClock()
/** Its reports are due. */
const DAY = new Date(clock.now() - 2 * DAY_MS).toISOString().slice(0, 10)
const BEGIN = Date.parse(`${DAY}T00:00:00Z`) / 1000

const ENV = {
  SENDWRIGHT_SMTP_PORT: '0',
  SENDWRIGHT_DMARC_REPORTS_ORGANIZATION: 'Example <Mail> & Co',
  SENDWRIGHT_DMARC_REPORTS_FROM: 'reports@receiver.example',
}

async function start(t: TestContext, internet: Internet): Promise<TestService> {
  const service = await startTestService(t, { ...internet.env, ...ENV }, { clock })
  const made = await service.call('POST', '/v4/domains', { form: { name: 'receiver.example' } })
  assert.equal(made.status, 200, made.text)
  const expression = `match_recipient(".*@${service.domain}")`
  const routed = await service.call('POST', '/v3/routes', { form: { expression, action: 'store()' } })
  assert.equal(routed.status, 200, routed.text)
  return service
}

async function mail(
  service: TestService,
  { from, envelope = from, ...more }: { from: string; envelope?: string; subject?: string },
): Promise<void> {
  const transport = createTransport({
    host: service.config.smtpHost,
    port: service.service.smtp.port,
    tls: { rejectUnauthorized: false },
  })
  try {
    const to = `info@${service.domain}`
    await transport.sendMail({
      envelope: { from: envelope, to },
      from,
      to,
      subject: 'Hi',
      text: 'Hi',
      ...more,
    })
  } finally {
    transport.close()
  }
}

/** As if the day of everything counted so far were over, and the interval of the job had passed. */
async function passDay(service: TestService): Promise<void> {
  await service.service.stop()
  const store = await openSqlite(service.config.dataFolder)
  await store.commit([
    { sql: "UPDATE domains SET verified = 1, state = 'active' WHERE name = 'receiver.example'", values: [] },
    { sql: "UPDATE dkim_keys SET active = 1 WHERE authority = 'receiver.example'", values: [] },
    ...['dmarc_policies', 'dmarc_results'].map((table) => ({
      sql: `UPDATE ${table} SET day = ?`,
      values: [DAY],
    })),
    { sql: "DELETE FROM jobs WHERE name = 'dmarc-reports'", values: [] },
  ])
  await store.close()
  await service.restart()
}

async function left(service: TestService): Promise<unknown[]> {
  await service.service.stop()
  const store = await openSqlite(service.config.dataFolder)
  const rows = await store.read({
    sql: 'SELECT domain FROM dmarc_policies UNION ALL SELECT domain FROM dmarc_results',
    values: [],
  })
  const done = await store.read({ sql: 'SELECT uri FROM dmarc_reports ORDER BY uri', values: [] })
  await store.close()
  assert.deepEqual(rows, [], 'counts go with their report')
  return done.map(({ uri }) => uri)
}

test('mail of a day is reported to those whom the record of its author names, and who take the report', async (t) => {
  const internet = await createInternet(t)
  const own = await internet.site(['asking.example'])
  const other = await internet.site(['taking.example', 'foreign.example', 'small.example'])
  const { dns } = internet
  dns.set('asking.example', 'TXT', ['v=spf1 ip4:127.0.0.0/8 -all'])
  dns.set('_dmarc.asking.example', 'TXT', [
    'v=DMARC1; p=reject; sp=quarantine; adkim=s; fo=1; rua=mailto:dmarc@asking.example!1m,mailto:x@taking.example, mailto:y@foreign.example',
  ])
  dns.set('asking.example._report._dmarc.taking.example', 'TXT', [
    'v=DMARC1; rua=mailto:all@taking.example!20',
  ])
  dns.set('silent.example', 'TXT', ['v=spf1 ip4:127.0.0.0/8 -all'])
  dns.set('_dmarc.silent.example', 'TXT', ['v=DMARC1; p=reject'])
  const service = await start(t, internet)
  await mail(service, { from: 'a@asking.example' })
  await mail(service, { from: 'b@asking.example' })
  await mail(service, { from: 'c@news.asking.example', envelope: 'c@forger.example' })
  await mail(service, {
    from: 'd@asking.example',
    subject: 'Report Domain: mg.example Submitter: asking.example',
  })
  await mail(service, { from: 'a@silent.example' })
  await passDay(service)
  const [report] = await own.waitFor(1)
  assert.ok(report)
  assert.deepEqual(report.envelope.to, ['dmarc@asking.example'])
  const parsed = await simpleParser(report.raw)
  assert.equal(parsed.from?.text, 'reports@receiver.example')
  assert.match(
    parsed.subject ?? '',
    /^Report Domain: asking\.example Submitter: receiver\.example Report-ID: <[0-9a-f]{32}>$/,
  )
  assert.ok(parsed.headers.has('dkim-signature'), 'reports pass DMARC themselves, RFC 9990 §3.5.2')
  const [file] = parsed.attachments
  assert.equal(file?.contentType, 'application/gzip')
  const id = /<([0-9a-f]+)>/.exec(parsed.subject ?? '')?.[1]
  assert.equal(file?.filename, `receiver.example!asking.example!${BEGIN}!${BEGIN + 86_399}!${id}.xml.gz`)
  checkReport(gunzipSync(file?.content ?? Buffer.alloc(0)).toString(), id ?? '')
  const uris = await left(service)
  assert.deepEqual(uris, ['', 'mailto:dmarc@asking.example!1m'])
  assert.equal(other.messages.length, 0, 'one takes no mail of that size, the other no reports')
})

function checkReport(xml: string, id: string): void {
  const reader = new AggregateReader()
  reader.push(xml)
  const { rows, ...about } = reader.end()
  assert.deepEqual(about, {
    ...{ organization: 'Example <Mail> & Co', contact: 'reports@receiver.example', reportId: id },
    ...{ beginAt: BEGIN, endAt: BEGIN + 86_399, domain: 'asking.example', policy: 'reject' },
  })
  assert.deepEqual(
    rows.map(({ count, disposition, dkim, spf, headerFrom, reasons, dkimResults, spfResults }) => [
      ...[count, disposition, dkim, spf, headerFrom, reasons.join(), dkimResults.length, spfResults],
    ]),
    [
      [...[2, 'none', false, true, 'asking.example', '', 0], [{ domain: 'asking.example', result: 'pass' }]],
      [
        ...[1, 'none', false, false, 'news.asking.example', 'local_policy', 0],
        [{ domain: 'forger.example', result: 'none' }],
      ],
    ],
  )
  assert.match(xml, /<sp>quarantine<\/sp>\n<np>quarantine<\/np>\n<adkim>s<\/adkim>\n<aspf>r<\/aspf>/)
  assert.match(xml, /<disposition>pass<\/disposition>/)
  assert.match(xml, /<envelope_from>forger\.example<\/envelope_from>/)
}

test('without the name and the address of who reports nothing is counted', async (t) => {
  const internet = await createInternet(t)
  internet.dns.set('asking.example', 'TXT', ['v=spf1 ip4:127.0.0.0/8 -all'])
  internet.dns.set('_dmarc.asking.example', 'TXT', ['v=DMARC1; p=none; rua=mailto:dmarc@asking.example'])
  const service = await startTestService(t, { ...internet.env, SENDWRIGHT_SMTP_PORT: '0' })
  const form = { expression: `match_recipient(".*@${service.domain}")`, action: 'store()' }
  await service.call('POST', '/v3/routes', { form })
  await mail(service, { from: 'a@asking.example' })
  assert.deepEqual(await left(service), [])
})
