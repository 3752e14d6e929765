/** Reports sent in by SMTP, as receivers send them, and read over HTTP. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { crc32, deflateRawSync, gzipSync } from 'node:zlib'
import { createTransport } from 'nodemailer'
import { eachDatabase } from '../../../test/support/databases.ts'
import { createDnsServer } from '../../../test/support/dns-server.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'

const SENDER = 'reports@receiver.example'
const DAY_S = 86_400

interface Rig {
  service: TestService
  /** Seconds, of yesterday. */
  begin: number
  mail(content: Buffer | string, more?: { from?: string; to?: string; contentType?: string }): Promise<void>
  read(query?: string): Promise<Json>
}

// biome-ignore lint/suspicious/noExplicitAny: a test reaches into the answer freely and asserts on what it finds
type Json = any

async function start(t: TestContext, database: 'sqlite' | 'postgres' = 'sqlite'): Promise<Rig> {
  const dns = await createDnsServer()
  t.after(() => dns.close())
  dns.set('receiver.example', 'TXT', ['v=spf1 ip4:127.0.0.0/8 -all'])
  const env = { SENDWRIGHT_SMTP_PORT: '0', SENDWRIGHT_DNS: `${dns.host}:${dns.port}` }
  const service = await startTestService(t, env, { database })
  const transport = createTransport({
    host: service.config.smtpHost,
    port: service.service.smtp.port,
    tls: { rejectUnauthorized: false },
  })
  t.after(() => transport.close())
  return {
    service,
    begin: Math.floor(Date.now() / 1000 / DAY_S - 1) * DAY_S,
    async mail(content, { from = SENDER, to, contentType = 'application/octet-stream' } = {}) {
      await transport.sendMail({
        envelope: { from, to: to ?? `dmarc-reports@${service.domain}` },
        from: `Reports <${from}>`,
        subject: 'Report Domain',
        text: 'A report is attached.',
        attachments: [{ filename: 'report', content: Buffer.from(content), contentType }],
      })
    },
    async read(query = '') {
      const answer = await service.call('GET', `/sendwright/v1/domains/${service.domain}/reports${query}`)
      assert.equal(answer.status, 200, answer.text)
      return answer.body
    },
  }
}

async function sendRaw(t: TestContext, service: TestService, raw: string): Promise<void> {
  const transport = createTransport({
    host: service.config.smtpHost,
    port: service.service.smtp.port,
    tls: { rejectUnauthorized: false },
  })
  t.after(() => transport.close())
  await transport.sendMail({ envelope: { from: SENDER, to: `dmarc-reports@${service.domain}` }, raw })
}

interface Row {
  ip: string
  count: number
  disposition?: string
  dkim?: string
  spf?: string
}

const rowXml = ({ ip, count, disposition = 'none', dkim = 'fail', spf = 'fail' }: Row) => `<record><row>
  <source_ip>${ip}</source_ip><count>${count}</count>
  <policy_evaluated><disposition>${disposition}</disposition><dkim>${dkim}</dkim><spf>${spf}</spf>
    <reason><type>forwarded</type><comment>a &amp; b</comment></reason></policy_evaluated></row>
  <identifiers><header_from>Mg.Example</header_from></identifiers>
  <auth_results><dkim><domain>mg.example</domain><selector>k1</selector><result>${dkim}</result></dkim>
    <spf><domain>mg.example</domain><result>${spf}</result></spf></auth_results></record>`

const dmarcXml = (domain: string, begin: number, rows: readonly Row[], id = 'r1') => `<?xml version="1.0"?>
<feedback xmlns="urn:ietf:params:xml:ns:dmarc-2.0"><report_metadata><org_name>Receiver &lt;Inc&gt;</org_name>
<email>postmaster@receiver.example</email><report_id>${id}</report_id>
<date_range><begin>${begin}</begin><end>${begin + DAY_S - 1}</end></date_range></report_metadata>
<policy_published><domain>${domain}</domain><adkim>r</adkim><aspf>r</aspf><p>reject</p><pct>100</pct></policy_published>
${rows.map(rowXml).join('\n')}</feedback>`

const tlsJson = (domain: string, begin: number) => ({
  'organization-name': 'Receiver Inc',
  'date-range': {
    'start-datetime': new Date(begin * 1000).toISOString(),
    'end-datetime': new Date((begin + DAY_S - 1) * 1000).toISOString(),
  },
  'contact-info': 'tls@receiver.example',
  'report-id': 't1',
  policies: [
    {
      policy: { 'policy-type': 'sts', 'policy-string': ['version: STSv1'], 'policy-domain': domain },
      summary: { 'total-successful-session-count': 90, 'total-failure-session-count': 10 },
      'failure-details': [
        {
          'result-type': 'certificate-expired',
          'sending-mta-ip': '192.0.2.9',
          'receiving-mx-hostname': `mx.${domain}`,
          'failed-session-count': '10',
        },
      ],
    },
    {
      policy: { 'policy-type': 'no-policy-found', 'policy-domain': 'other.example' },
      summary: { 'total-successful-session-count': 5, 'total-failure-session-count': 5 },
    },
  ],
})

/** An archive of one deflated file. */
function zipOf(name: string, content: Buffer): Buffer {
  const packed = deflateRawSync(content)
  const fields = Buffer.alloc(26)
  fields.writeUInt16LE(20, 0)
  fields.writeUInt16LE(8, 4)
  fields.writeUInt32LE(crc32(content), 10)
  fields.writeUInt32LE(packed.length, 14)
  fields.writeUInt32LE(content.length, 18)
  fields.writeUInt16LE(name.length, 22)
  const local = Buffer.concat([Buffer.from('PK\x03\x04'), fields, Buffer.from(name), packed])
  const central = Buffer.concat([
    Buffer.from('PK\x01\x02\x14\x00'),
    fields,
    Buffer.alloc(14),
    Buffer.from(name),
  ])
  const end = Buffer.alloc(18)
  end.writeUInt16LE(1, 4)
  end.writeUInt16LE(1, 6)
  end.writeUInt32LE(central.length, 8)
  end.writeUInt32LE(local.length, 12)
  return Buffer.concat([local, central, Buffer.from('PK\x05\x06'), end])
}

const ROWS: Row[] = [
  { ip: '192.0.2.1', count: 70, dkim: 'pass' },
  { ip: '192.0.2.1', count: 10, spf: 'pass' },
  { ip: '198.51.100.7', count: 5, disposition: 'quarantine' },
  { ip: '198.51.100.7', count: 15, disposition: 'reject' },
]

eachDatabase((database) => {
  test('DMARC and TLS reports are kept, counted once and summed up', async (t) => {
    const { service, begin, mail, read } = await start(t, database)
    const { domain } = service
    const xml = dmarcXml(domain, begin, ROWS)
    await mail(gzipSync(xml), { contentType: 'application/gzip' })
    await mail(gzipSync(xml))
    await mail(zipOf('second.xml', Buffer.from(dmarcXml(domain, begin, ROWS, 'r2'))))
    await mail(gzipSync(JSON.stringify(tlsJson(domain, begin))), {
      to: `TLS-Reports@${domain}`,
      contentType: 'application/tlsrpt+gzip',
    })
    const { totals, items, records } = await read()
    const source = (source_ip: string, passed: number, failed: number, quarantine = 0, reject = 0) => ({
      source_ip,
      messages: passed + failed,
      ...{
        passed,
        failed,
        dispositions: { none: passed + failed - quarantine - reject, quarantine, reject },
      },
    })
    const { source_ip: _, ...all } = source('', 160, 40, 10, 30)
    assert.deepEqual(totals, {
      dmarc: { ...all, sources: [source('192.0.2.1', 160, 0), source('198.51.100.7', 0, 40, 10, 30)] },
      tls: {
        ...{ sessions: 100, passed: 90, failed: 10 },
        failures: [{ result_type: 'certificate-expired', sessions: 10 }],
      },
      complaint: { complaints: 0, providers: [] },
    })
    assert.deepEqual(items.map(({ report_id }: Json) => report_id).sort(), ['r1', 'r2', 't1'])
    const first = items.find(({ report_id }: Json) => report_id === 'r1')
    const { id, received_at, rows, ...shown } = first
    assert.deepEqual(shown, {
      ...{ type: 'dmarc', sender: 'receiver.example', authenticated: true, organization: 'Receiver <Inc>' },
      ...{ contact: 'postmaster@receiver.example', report_id: 'r1', passed: 80, failed: 20, row_count: 4 },
      begin: new Date(begin * 1000).toISOString().replace('.000Z', 'Z'),
      end: new Date((begin + DAY_S - 1) * 1000).toISOString().replace('.000Z', 'Z'),
    })
    assert.deepEqual(rows[0], {
      ...{
        source_ip: '192.0.2.1',
        messages: 70,
        passed: true,
        disposition: 'none',
        dkim: 'pass',
        spf: 'fail',
      },
      ...{ header_from: 'mg.example', reasons: ['forwarded'] },
      dkim_results: [{ domain: 'mg.example', selector: 'k1', result: 'pass' }],
      spf_results: [{ domain: 'mg.example', result: 'fail' }],
    })
    assert.equal(records[0].value, `v=DMARC1; p=none; rua=mailto:dmarc-reports@${domain}`)
    assert.equal((await read('?type=tls')).items.length, 1)
    const page = await read('?limit=2')
    const next = new URL(page.paging.next)
    const rest = (await read(next.search)).items
    assert.deepEqual([...page.items, ...rest], items)
    assert.deepEqual((await read('?to=1000000000')).items, [])
    assert.match(received_at + id, /^20/)
  })
})

/** A report as the readers of packed files take it, whatever is around it. */
const PACKED: Readonly<Record<string, (xml: string) => Buffer>> = {
  'CR LF after gzip': (xml) => Buffer.concat([gzipSync(xml), Buffer.from('\r\n')]),
  'zeros after gzip': (xml) => Buffer.concat([gzipSync(xml), Buffer.alloc(600)]),
  'text after gzip': (xml) => Buffer.concat([gzipSync(xml), Buffer.from('-- \nsent by a program')]),
  'gzip in members': (xml) =>
    Buffer.concat([gzipSync(xml.slice(0, 300)), gzipSync(''), gzipSync(xml.slice(300)), Buffer.from('\n')]),
  'gzip with name, comment, extra field and checksum of its header': (xml) => gzipWithFields(xml),
  'gzip of gzip': (xml) => gzipSync(gzipSync(xml)),
  'bytes before and after ZIP': (xml) =>
    Buffer.concat([Buffer.from('begin\r\n'), zipOf('a.xml', Buffer.from(xml)), Buffer.from('\r\n')]),
  'gzip in ZIP': (xml) => zipOf('a.xml.gz', gzipSync(xml)),
  'UTF-16': (xml) => gzipSync(Buffer.from(`\ufeff${xml}`, 'utf16le')),
  'UTF-8 that is declared as UTF-16': (xml) => Buffer.from(xml.replace('?>', ' encoding="utf-16"?>')),
  'a schema around it that is not closed': (xml) =>
    Buffer.from(xml.replace('<feedback', '<xs:schema targetNamespace="urn:x"><feedback')),
  'a prefix for all names': (xml) =>
    Buffer.from(xml.replace(/<(\/?)(?=\w)/g, '<$1d:').replace('xmlns=', 'xmlns:d=')),
}

function gzipWithFields(xml: string): Buffer {
  const plain = gzipSync(xml)
  const head = Buffer.from(plain.subarray(0, 10))
  head[3] = 2 + 4 + 8 + 16
  const fields = Buffer.from('\x03\0abcname.xml\0a comment\0\x11\x22', 'latin1')
  return Buffer.concat([head, fields, plain.subarray(10)])
}

test('reports are read however they are packed and labelled', async (t) => {
  const { service, begin, mail, read } = await start(t)
  const { domain } = service
  const expected: string[] = []
  const xmlOf = (id: string) => {
    expected.push(id)
    return dmarcXml(domain, begin, ROWS, id)
  }
  for (const [id, pack] of Object.entries(PACKED)) await mail(pack(xmlOf(id)))
  await mail(gzipSync(xmlOf('text with a name')), { contentType: 'text/plain' })
  await mail(gzipSync(xmlOf('an image')), { contentType: 'image/png' })
  const base64 = gzipSync(xmlOf('base64 that is not declared')).toString('base64')
  await mail(base64.replace(/.{76}/g, '$&\r\n'), { contentType: 'application/gzip' })
  const { items } = await read('?limit=100')
  assert.deepEqual(items.map(({ report_id }: Json) => report_id).sort(), expected.sort())
  for (const { report_id, passed, failed } of items) assert.deepEqual([passed, failed], [80, 20], report_id)
})

test('a report whose base64 ends in CR LF after the gzip data', async (t) => {
  const { service, begin, read } = await start(t)
  const packed = Buffer.concat([gzipSync(dmarcXml(service.domain, begin, ROWS)), Buffer.from('\r\n')])
  const name = `receiver.example!${service.domain}!${begin}!${begin + DAY_S - 1}.xml.gz`
  const raw = [
    `From: ${SENDER}`,
    `To: dmarc-reports@${service.domain}`,
    'Subject: Report Domain',
    'MIME-Version: 1.0',
    `Content-Type: application/gzip; name="${name}"`,
    `Content-Disposition: attachment; filename="${name}"`,
    'Content-Transfer-Encoding: base64',
    '',
    ...(packed.toString('base64').match(/.{1,76}/g) ?? []),
    '',
  ].join('\r\n')
  await sendRaw(t, service, raw)
  const { items } = await read()
  assert.deepEqual([items[0]?.passed, items[0]?.failed], [80, 20])
})

test('reports that prove no sender count in no total, and others domains are out of reach', async (t) => {
  const { service, begin, mail, read } = await start(t)
  const { domain } = service
  await mail(gzipSync(dmarcXml(domain, begin, ROWS)), { from: 'reports@forger.example' })
  for (const other of ['victim.example', `x${domain}`])
    await mail(gzipSync(dmarcXml(other, begin, ROWS, other)))
  await mail(dmarcXml(domain, begin, ROWS), {
    to: 'dmarc-reports@mail.test.example',
    contentType: 'text/xml',
  })
  const { items, totals } = await read()
  const shown = items.map(({ sender, authenticated }: Json) => [sender, authenticated]).sort()
  assert.deepEqual(shown, [
    ['forger.example', false],
    ['receiver.example', true],
  ])
  assert.equal(totals.dmarc.messages, 100)
})

test('bombs, damaged reports and reports of other times are dropped, and the service goes on', async (t) => {
  const { service, begin, mail, read } = await start(t)
  const { domain } = service
  const xml = dmarcXml(domain, begin, ROWS, 'bad')
  const entities = '<!DOCTYPE a [<!ENTITY x "yyyy"><!ENTITY z "&x;&x;&x;&x;">]>'
  const bad: (Buffer | string)[] = [
    gzipSync(Buffer.alloc(30_000_000, '<')),
    gzipSync(`${xml.slice(0, -20)}${' '.repeat(21_000_000)}`),
    gzipSync(`<feedback>${'<a>'.repeat(3_000_000)}`),
    gzipSync(dmarcXml(domain, begin, Array(10_001).fill({ ip: '192.0.2.1', count: 1 }), 'bad')),
    gzipSync(`{"a":${'['.repeat(100_000)}`),
    gzipSync(`{"policies":[${'{},'.repeat(200_000)}{}]}`),
    gzipSync(xml).subarray(0, 200),
    gzipSync(xml).subarray(0, -5),
    Buffer.concat([gzipSync(xml), gzipSync('more').fill(0xff, 10)]),
    Buffer.concat([...Array(1_001).fill(gzipSync('')), gzipSync(xml)]),
    gzipSync(gzipSync(gzipSync(xml))),
    gzipSync(gzipSync(Buffer.alloc(30_000_000, '<'))),
    gzipSync(xml.replace('</feedback>', '')),
    zipOf('a.xml', Buffer.from(xml)).subarray(0, -5),
    gzipSync(dmarcXml(domain, begin - 60 * DAY_S, ROWS, 'bad')),
    gzipSync(dmarcXml(domain, begin + 10 * DAY_S, ROWS, 'bad')),
    gzipSync(dmarcXml(domain, begin, [{ ip: '192.0.2.1', count: 1e15 }], 'bad')),
    'no report at all',
  ]
  for (const content of bad) await mail(content)
  assert.deepEqual((await read()).items, [])
  await mail(`${entities}${dmarcXml(domain, begin, [{ ip: '&x;&z;', count: 3 }], 'good')}`)
  const { items } = await read()
  assert.deepEqual(
    items.map(({ rows }: Json) => rows[0].source_ip),
    ['&x;&z;'],
  )
})

test('filters that mean nothing are refused', async (t) => {
  const { service } = await start(t)
  const path = `/sendwright/v1/domains/${service.domain}/reports`
  for (const query of ['type=spam', 'from=yesterday', 'to=x', 'limit=0', 'page=middle']) {
    const answer = await service.call('GET', `${path}?${query}`)
    assert.equal(answer.status, 400, `${query}: ${answer.text}`)
  }
})
