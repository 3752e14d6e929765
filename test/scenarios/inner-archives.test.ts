/** URLs of inner hosts are refused wherever a caller can have one stored to be called later. */
import assert from 'node:assert/strict'
import { before, type TestContext, test } from 'node:test'
import { createTransport } from 'nodemailer'
import { createDnsServer } from '../support/dns-server.ts'
import { startTestService, type TestService } from '../support/service.ts'

const PASSWORD = 'correct-horse'
const INNER = [
  'http://127.0.0.1/',
  'http://127.1:8080/in',
  'http://2130706433/',
  'http://0x7f.0.0.1/',
  'http://0177.0.0.1/',
  'http://localhost:5432/',
  'http://localhost./',
  'https://a.localhost/',
  'http://0.0.0.0/',
  'http://10.0.0.1/latest',
  'http://172.16.0.1/',
  'http://192.168.1.1/admin',
  'http://169.254.169.254/latest/meta-data/',
  'http://100.64.0.1/',
  'http://[::1]/',
  'http://[::ffff:10.0.0.1]/',
  'http://[fe80::1]/',
  'http://[fd00::1]/',
  'http://[64:ff9b::a00:1]/',
  'http://inside.test.example/',
]
const OUTER = 'https://archive.test.example/in'
const LATER = 'https://nobody.test.example/in'

let service: TestService

before(async (t) => {
  const dns = await createDnsServer()
  ;(t as TestContext).after(() => dns.close())
  dns.set('inside.test.example', 'A', ['10.0.0.1'])
  dns.set('archive.test.example', 'A', ['8.8.8.8'])
  service = await startTestService(t as TestContext, {
    SENDWRIGHT_DNS: `127.0.0.1:${dns.port}`,
    SENDWRIGHT_SMTP_PORT: '0',
  })
  const form = { password: PASSWORD }
  const path = `/v3/domains/${service.domain}/credentials/postmaster`
  assert.equal((await service.call('PUT', path, { form })).status, 200)
  assert.equal((await service.call('POST', '/v4/domains', { form: { name: 'set.example' } })).status, 200)
})

type Way = (url: string) => Promise<{ status: number; text: string }>

const message = { from: 'a@example.com', to: 'b@example.org', subject: 'x' }
const raw = (url: string) => `From: a@example.com\r\nX-Service-Archive-To: ${url}\r\n\r\nx\r\n`
let made = 0

const ways: Record<string, Way> = {
  'a new domain': (url) =>
    service.call('POST', '/v4/domains', { form: { name: `n${++made}.example`, archive_to: url } }),
  'a new domain of v3': (url) =>
    service.call('POST', '/v3/domains', { form: { name: `n${++made}.example`, archive_to: url } }),
  'a domain': (url) => service.call('PUT', '/v4/domains/set.example', { form: { archive_to: url } }),
  'a message': (url) => service.send({ ...message, text: 'x', 'o:archive-to': url }),
  'a message of a template': (url) => service.send({ ...message, template: 'known', 'o:archive-to': url }),
  'a MIME message': (url) => mime({ 'o:archive-to': url }, raw('')),
  'a field of a MIME message': (url) => mime({}, raw(url)),
  'a field of a submitted message': (url) => submitted(raw(url)),
  'a check of a message': async (url) => {
    const path = `/sendwright/v1/domains/${service.domain}/messages/check`
    const { status, text, body } = await service.call('POST', path, {
      form: { ...message, text: 'x', 'o:archive-to': url },
    })
    return { status: JSON.stringify(body).includes('is not a valid url') ? 400 : status, text }
  },
}

/** Ways that were closed before. */
const others: Record<string, Way> = {
  'a route': (url) =>
    service.call('POST', '/v3/routes', { form: { expression: 'catch_all()', action: `forward("${url}")` } }),
  'a notice of a route': (url) =>
    service.call('POST', '/v3/routes', {
      form: { expression: 'catch_all()', action: `store(notify="${url}")` },
    }),
  'a webhook': (url) => service.call('POST', '/v1/webhooks', { form: { url, event_types: 'opened' } }),
  'a webhook of a domain': (url) =>
    service.call('POST', '/v3/domains/set.example/webhooks', { form: { id: 'opened', url } }),
  'a channel of alerts': (url) =>
    service.call('POST', '/v1/alerts/settings/events', {
      json: { event_type: 'ip_listed', channel: 'webhook', settings: { url } },
    }),
}

async function mime(form: Record<string, string>, text: string) {
  const fields = new FormData()
  for (const [name, value] of Object.entries({ to: 'b@example.org', ...form })) fields.append(name, value)
  fields.append('message', new Blob([text]), 'm.eml')
  const url = new URL(`/v3/${service.domain}/messages.mime`, service.url)
  const authorization = `Basic ${Buffer.from(`api:${service.key}`).toString('base64')}`
  const answer = await fetch(url, { method: 'POST', headers: { authorization }, body: fields })
  return { status: answer.status, text: await answer.text() }
}

async function submitted(text: string) {
  const { smtp } = service.service
  const transport = createTransport({
    host: service.config.smtpHost,
    port: smtp.port,
    auth: { user: `postmaster@${service.domain}`, pass: PASSWORD },
    tls: { rejectUnauthorized: false },
  })
  try {
    await transport.sendMail({ envelope: { from: 'a@example.com', to: 'b@example.org' }, raw: text })
    return { status: 200, text: '' }
  } catch (error) {
    const { response = '' } = error as { response?: string }
    return { status: response.startsWith('554') ? 400 : 500, text: response }
  } finally {
    transport.close()
  }
}

for (const [name, way] of Object.entries({ ...ways, ...others })) {
  test(`${name} takes no URL of an inner host`, async () => {
    for (const url of INNER) {
      const { status, text } = await way(url)
      assert.equal(status, 400, `${url}: ${text}`)
      if (name in ways) assert.match(text, /archive_to|is not a valid url/)
    }
  })
}

for (const [name, way] of Object.entries(ways)) {
  if (name === 'a message of a template') continue
  test(`${name} takes the URL of an outer host, and of one that is not known yet`, async () => {
    for (const url of [OUTER, LATER]) {
      const { status, text } = await way(url)
      assert.equal(status, 200, `${url}: ${text}`)
    }
  })
}

test('the fault of an archive is named as that of any bad URL', async () => {
  const domain = await ways['a domain']?.('http://[::1]/')
  assert.equal(JSON.parse(domain?.text ?? '').message, "'http://[::1]/' is not a valid value for archive_to")
  const sent = await ways['a message']?.('http://10.0.0.1/')
  assert.equal(
    JSON.parse(sent?.text ?? '').message,
    "http://10.0.0.1/ is not a valid url (value of 'o:archive-to')",
  )
})
