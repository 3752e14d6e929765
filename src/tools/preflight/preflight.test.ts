import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type Database, eachDatabase } from '../../../test/support/databases.ts'
import { createDnsServer } from '../../../test/support/dns-server.ts'
import {
  type CallOptions,
  ownAddress,
  startTestService,
  type TestService,
} from '../../../test/support/service.ts'
import type { Store } from '../../platform/store/store.ts'

const NAME = 'shop.example'

interface Found {
  state: string
  sentence: string
  figures: Record<string, unknown>
}

/** The checks by name. */
async function check(
  service: TestService,
  form: CallOptions['form'],
  { domain = NAME, ...options }: CallOptions & { domain?: string } = {},
): Promise<Record<string, Found>> {
  const { status, body, text } = await service.call('POST', '/sendwright/v1/messages/check', {
    form: { domain, from: `Shop <news@${domain}>`, to: 'ann@example.org', ...form },
    ...options,
  })
  assert.equal(status, 200, text)
  return Object.fromEntries(body.checks.map(({ name, ...found }: Found & { name: string }) => [name, found]))
}

const states = (checks: Record<string, Found>, ...names: string[]) => names.map((name) => checks[name]?.state)

/** A service with a verified domain. */
async function start(t: TestContext, database: Database = 'sqlite', env: Record<string, string> = {}) {
  let store: Store | undefined
  const dns = await createDnsServer()
  t.after(() => dns.close())
  const service = await startTestService(
    t,
    { SENDWRIGHT_DNS: `${dns.host}:${dns.port}`, ...env },
    {
      database,
      areas: [
        ({ store: opened }) => {
          store = opened
          return {}
        },
      ],
    },
  )
  assert.ok(store)
  dns.set(NAME, 'TXT', [`v=spf1 include:${service.config.dnsTargets.spfIncludeHost} ~all`])
  dns.set(`_dmarc.${NAME}`, 'TXT', ['v=DMARC1; p=reject'])
  const { body } = await service.call('POST', '/v4/domains', { form: { name: NAME } })
  for (const { name, value, record_type: type } of body.sending_dns_records)
    if (name.includes('._domainkey.') && type === 'TXT') dns.set(name, 'TXT', [value])
  const verified = await service.call('PUT', `/v4/domains/${NAME}/verify`)
  assert.equal(verified.body.domain.state, 'active', verified.text)
  return { service, dns, store }
}

const GOOD = {
  subject: 'Spring sale',
  text: 'All about the sale: https://www.example.org/sale',
  html: `<p>${'All about the sale. '.repeat(10)}<a href="https://www.example.org/sale">Sale</a></p>`,
  'h:List-Unsubscribe': '<https://www.example.org/u>',
  'h:List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
}

eachDatabase((database) => {
  test('a good message passes, and nothing is sent or stored', async (t) => {
    const { service, store } = await start(t, database)
    const checks = await check(service, GOOD)
    const faults = Object.entries(checks).filter(([, { state }]) => state !== 'ok')
    assert.deepEqual(faults, [])
    assert.deepEqual(checks['dmarc']?.figures, { domain: NAME, policy: 'reject', aligned: true })
    await check(service, {
      ...GOOD,
      'o:tag': 'new-tag',
      attachment: new File([Buffer.alloc(2_000_000)], 'a.bin'),
    })
    const events = await service.events('', NAME)
    assert.deepEqual(events, [])
    const left = await readdir(join(service.config.dataFolder, 'spool'))
    assert.deepEqual(left, [])
    for (const table of ['messages', 'deliveries', 'tags', 'tracking_links'] as const) {
      const rows = await store.db.selectFrom(table).selectAll().execute()
      assert.deepEqual(rows, [], table)
    }
  })
})

test('content: what each check says of a bad message', async (t) => {
  const { service } = await start(t)
  const checks = await check(service, {
    subject: '',
    'o:dkim': 'no',
    html: `<p>Dear {{name}}</p><a href="http://127.0.0.1:3000/">x</a><a href="www.example.org">y</a>
      <a href="http://www.example.org/">z</a><img src="https://www.example.org/a.png">`,
    inline: new File([Buffer.alloc(1_100_000)], 'logo.png', { type: 'image/png' }),
  })
  const names = ['acceptance', 'subject', 'dkim', 'dmarc', 'one-click-unsubscribe', 'text-part', 'html-size']
  assert.deepEqual(states(checks, ...names), ['ok', 'failed', 'failed', 'ok', 'warning', 'warning', 'ok'])
  assert.deepEqual(states(checks, 'links', 'placeholders', 'images', 'size', 'spam'), [
    ...['failed', 'failed', 'warning', 'ok', undefined],
  ])
  assert.deepEqual(checks['placeholders']?.figures, { examples: ['{{name}}'] })
  assert.deepEqual(checks['links']?.figures, {
    ...{ links: 4, broken: 1, empty: 0, private: 1, insecure: 1, address: 0 },
    examples: {
      private: ['http://127.0.0.1:3000/'],
      broken: ['www.example.org'],
      insecure: ['http://www.example.org/'],
    },
  })
  assert.equal(checks['images']?.figures['bytes'], 1_100_000)
  assert.match(checks['images']?.sentence ?? '', /alt text.*smaller.*say in text/)
  const size = checks['size']?.figures['bytes']
  assert.ok(typeof size === 'number' && size > 1_400_000 && size < 1_600_000, String(size))
  const long = await check(service, { ...GOOD, html: `<p>${'word '.repeat(21_000)}</p>` })
  assert.deepEqual(states(long, 'html-size'), ['failed'])
})

test('tracking counts: the size, and the fields for one click', async (t) => {
  const { service, store } = await start(t)
  const { 'h:List-Unsubscribe': _, 'h:List-Unsubscribe-Post': __, ...plain } = GOOD
  const before = await check(service, plain)
  assert.match(before['one-click-unsubscribe']?.sentence ?? '', /There is no List-Unsubscribe field/)
  for (const what of ['unsubscribe', 'click', 'open'])
    await service.call('PUT', `/v3/domains/${NAME}/tracking/${what}`, { form: { active: 'yes' } })
  const target = `https://www.example.org/${'long-'.repeat(200)}`
  const after = await check(service, { ...plain, html: `${plain.html}<a href="${target}">x</a>` })
  assert.match(String(after['one-click-unsubscribe']?.figures['list-unsubscribe']), /^</)
  assert.equal(after['links']?.figures['links'], 3)
  const bytes = (found: typeof after) => found['html-size']?.figures['bytes'] as number
  assert.ok(bytes(after) > bytes(before) + 200)
  assert.deepEqual(await store.db.selectFrom('tracking_links').selectAll().execute(), [])
})

test('authentication: From of another domain, a domain that is not verified, the sandbox', async (t) => {
  const { service, dns } = await start(t)
  dns.set(`default._bimi.${NAME}`, 'TXT', ['v=BIMI1; l=http://a'])
  const foreign = await check(service, { ...GOOD, from: 'a@gmail.com' })
  assert.deepEqual(states(foreign, 'spf', 'dkim', 'dmarc', 'bimi'), [
    ...['warning', 'warning', 'failed', undefined],
  ])
  assert.match(foreign['dmarc']?.sentence ?? '', /write From with an address at shop\.example/)
  assert.deepEqual(states(await check(service, GOOD), 'bimi'), ['warning'])
  await service.call('POST', '/v4/domains', { form: { name: 'new.example' } })
  const unverified = await check(service, GOOD, { domain: 'new.example' })
  assert.notEqual(unverified['spf']?.state, 'ok')
  const sandbox = await check(service, GOOD, { domain: service.domain })
  assert.deepEqual(states(sandbox, 'spf', 'dkim', 'dmarc'), ['warning', 'warning', 'warning'])
})

test('a MIME message, a batch and a template', async (t) => {
  const { service } = await start(t)
  const mime = `From: a@${NAME}\r\nTo: b@example.org\r\nSubject: Hi\r\nContent-Type: text/html\r\n\r\n<img src="">`
  const raw = await check(service, { message: new File([mime], 'message.mime') })
  assert.deepEqual(states(raw, 'subject', 'text-part', 'images', 'links'), [
    ...['ok', 'warning', 'warning', 'failed'],
  ])
  const batch = {
    ...{ ...GOOD, subject: 'For %recipient.name% %recipient.other%' },
    'recipient-variables': JSON.stringify({ 'ann@example.org': { name: 'Ann' } }),
  }
  const found = await check(service, batch)
  assert.deepEqual(found['placeholders']?.figures, { examples: ['%recipient.other%'] })
  await service.call('POST', `/v3/${NAME}/templates`, {
    form: { name: 'welcome', template: '<p>Dear {{name}}</p>', headers: '{"Subject": "Welcome"}' },
  })
  const { html: _, subject: __, ...rest } = GOOD
  const templated = await check(service, { ...rest, template: 'welcome' })
  assert.deepEqual(states(templated, 'acceptance', 'subject', 'placeholders'), ['ok', 'ok', 'ok'])
  const missing = await check(service, { ...rest, template: 'absent' })
  assert.match(missing['acceptance']?.sentence ?? '', /template 'absent' not found/)
})

test('the score of a configured scorer', async (t) => {
  const rspamd = createServer(async (request, response) => {
    const mail = Buffer.concat(await request.toArray()).toString()
    const isSpam = mail.includes('BUY NOW')
    response.end(JSON.stringify({ score: isSpam ? 15.5 : -0.1, action: isSpam ? 'reject' : 'no action' }))
  })
  const host = ownAddress()
  await new Promise<void>((resolve) => rspamd.listen(0, host, resolve))
  t.after(() => rspamd.close())
  const address = rspamd.address()
  assert.ok(typeof address === 'object' && address)
  const { service } = await start(t, 'sqlite', { SENDWRIGHT_SPAM_SCORER: `rspamd://${host}:${address.port}` })
  const spam = await check(service, { ...GOOD, subject: 'BUY NOW' })
  assert.deepEqual([spam['spam']?.state, spam['spam']?.figures], ['failed', { score: 15.5 }])
  assert.equal((await check(service, GOOD))['spam']?.state, 'ok')
  const large = await check(service, { ...GOOD, attachment: new File([Buffer.alloc(1_100_000)], 'a.bin') })
  assert.match(large['spam']?.sentence ?? '', /no spam score/)
})

test('errors and rights: as sending, for a sending key in the path of its own domain', async (t) => {
  const { service } = await start(t)
  const call = (path: string, form: CallOptions['form'], key = service.key) =>
    service.call('POST', `/sendwright/v1/${path}`, { form: { ...form }, key })
  const good = { ...GOOD, from: `a@${NAME}`, to: 'ann@example.org' }
  const absent = await call('messages/check', { ...good, domain: 'absent.example' })
  assert.deepEqual([absent.status, absent.body.message], [404, 'Domain not found: absent.example'])
  const noTo = await call('messages/check', { ...good, domain: NAME, to: '' })
  assert.deepEqual([noTo.status, noTo.body.message], [400, 'to parameter is missing'])
  assert.equal((await call('messages/check', good)).status, 400)
  const made = await service.call('POST', '/v1/keys', {
    form: { role: 'sending', kind: 'domain', domain_name: NAME },
  })
  const secret = made.body.key.secret as string
  assert.equal((await call(`domains/${NAME}/messages/check`, good, secret)).status, 200)
  assert.equal((await call(`domains/${service.domain}/messages/check`, good, secret)).status, 401)
  assert.equal((await call('messages/check', { ...good, domain: NAME }, secret)).status, 401)
})
