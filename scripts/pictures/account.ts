/** What an account of a shop has, for pictures: made over HTTP, with mail that providers take, put off and refuse. */
import type { createDnsServer } from '../../test/support/dns-server.ts'
import { type CallOptions, eventually, type TestService } from '../../test/support/service.ts'
import type { Sink } from '../../test/support/smtp-sink.ts'
import { RECEIVERS } from './history.ts'

type Dns = Awaited<ReturnType<typeof createDnsServer>>
type Form = NonNullable<CallOptions['form']>

export const DOMAINS = ['shop.example.com', 'news.example.com', 'accounts.example.com'] as const
const [SHOP, NEWS, ACCOUNTS] = DOMAINS
/** Its records are not set yet. */
const NEW_DOMAIN = 'mail.example.net'
export const IPS = ['203.0.113.10', '203.0.113.11', '203.0.113.12'] as const
/** For the dynamic pools. */
export const REPUTED = ['203.0.113.16', '203.0.113.17'] as const
export const HOOKS = 'hooks.example.com'

/** Calls the API. @throws Error with the answer unless it is a success */
function caller(service: TestService) {
  const ok = async (method: string, path: string, options: CallOptions = {}) => {
    const answer = await service.call(method, path, options)
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`)
    return answer.body
  }
  return {
    get: (path: string) => ok('GET', path),
    post: (path: string, form: Form = {}) => ok('POST', path, { form }),
    put: (path: string, form: Form = {}) => ok('PUT', path, { form }),
    json: (method: string, path: string, json: unknown) => ok(method, path, { json }),
  }
}
type Caller = ReturnType<typeof caller>

/** Everything but mail. */
export async function fillAccount(service: TestService, dns: Dns): Promise<void> {
  const call = caller(service)
  await call.put('/v5/accounts', { name: 'Example Shop' })
  for (const name of DOMAINS) await addDomain(call, dns, name)
  await call.post('/v4/domains', { name: NEW_DOMAIN })
  for (const kind of ['open', 'click', 'unsubscribe'])
    for (const name of [SHOP, NEWS]) await call.put(`/v3/domains/${name}/tracking/${kind}`, { active: 'yes' })
  await fillPeople(call)
  await fillTemplates(call)
  await fillLists(call)
  await fillSuppressions(call)
  await fillHooks(call)
  await fillIps(call)
  await fillAlerts(call)
  await fillValidation(call)
  await fillRelay(call)
}

/** With the records that the service asks for. */
async function addDomain(call: Caller, dns: Dns, name: string): Promise<void> {
  const made = await call.post('/v4/domains', { name, web_scheme: 'https' })
  const records = [...made.sending_dns_records, ...made.receiving_dns_records]
  const mx: [number, string][] = []
  for (const { record_type: type, name: host, value, priority } of records) {
    if (type === 'MX') mx.push([Number(priority), value])
    else if (type === 'TXT') dns.set(host, 'TXT', [value])
    else if (type === 'CNAME') dns.set(host, 'CNAME', [value])
  }
  dns.set(name, 'MX', mx)
  dns.set(`_dmarc.${name}`, 'TXT', [`v=DMARC1; p=quarantine; rua=mailto:dmarc@${name}`])
  await call.put(`/v4/domains/${name}/verify`)
  await call.post(`/v3/domains/${name}/credentials`, {
    login: `app@${name}`,
    password: 'correct horse battery',
  })
}

async function fillPeople(call: Caller): Promise<void> {
  const users = [
    ['Ann Archer', 'ann@example.com', 'admin'],
    ['Ben Baker', 'ben@example.com', 'developer'],
    ['Cleo Cook', 'cleo@example.com', 'support'],
    ['Dana Draper', 'dana@example.com', 'basic'],
  ] as const
  for (const [name, email, role] of users) await call.post('/v5/users', { name, email, role })
  await call.post('/v1/keys', { role: 'developer', description: 'Shop, production' })
  await call.post('/v1/keys', { role: 'basic', description: 'Monthly report' })
  await call.post('/v1/keys', {
    role: 'sending',
    kind: 'domain',
    domain_name: NEWS,
    description: 'Newsletter',
    expiration: String(90 * 86_400),
  })
  for (const name of ['Branch Berlin', 'Branch Lyon']) await call.post('/v5/accounts/subaccounts', { name })
  await call.put('/v5/accounts/limit/custom/monthly', { limit: '50000' })
  await call.post('/v2/ip_whitelist', { address: '127.0.0.0/8', description: 'This machine' })
  await call.post('/v2/ip_whitelist', { address: '192.0.2.0/24', description: 'Office' })
}

const SPRING_OFFER = `<mjml>
  <mj-body background-color="#f4f5f6">
    <mj-section background-color="#ffffff">
      <mj-column>
        <mj-text line-height="1.6"><h1>Spring is here</h1><p>Dear {{name}}, the first teas of the year have <strong>arrived</strong>.</p></mj-text>
      </mj-column>
    </mj-section>
    <mj-raw>{{#each products}}</mj-raw>
    <mj-section background-color="#ffffff" css-class="product">
      <mj-column width="70%">
        <mj-text line-height="1.6"><strong>{{name}}</strong><br>{{price}}</mj-text>
      </mj-column>
      <mj-column width="30%">
        <mj-button href="https://www.shop.example.com/" background-color="#0f766e">View</mj-button>
      </mj-column>
    </mj-section>
    <mj-raw>{{/each}}</mj-raw>
    <mj-section css-class="footer">
      <mj-column>
        <mj-text align="center" font-size="12px" color="#666666">Example Shop<br><a href="%unsubscribe_url%">Unsubscribe</a></mj-text>
      </mj-column>
    </mj-section>
  </mj-body>
</mjml>
`

async function fillTemplates(call: Caller): Promise<void> {
  const content = (title: string, text: string) =>
    `<h1 style="font-family: sans-serif">${title}</h1>\n<p>Dear {{name}},</p>\n<p>${text}</p>\n<p><a href="https://www.shop.example.com/orders/{{order}}">See your order</a></p>`
  const templates = [
    ['order-shipped', 'An order leaves the house', 'On its way', 'your order {{order}} has left our house.'],
    ['receipt', 'After each payment', 'Thank you', 'we have received your payment for order {{order}}.'],
    ['welcome', 'The first mail to a customer', 'Welcome', 'good to have you here.'],
    ['password-reset', 'Link for a new password', 'A new password', 'follow the link within an hour.'],
  ] as const
  for (const [name, description, title, text] of templates) {
    const headers = JSON.stringify({ From: `Example Shop <orders@${SHOP}>`, Subject: title })
    const template = content(title, text)
    await call.post(`/v3/${SHOP}/templates`, { name, description, template, headers, tag: 'first' })
  }
  await call.post(`/v3/${SHOP}/templates`, {
    name: 'spring-offer',
    description: 'Three teas for regular customers',
    mjml: SPRING_OFFER,
    headers: JSON.stringify({ From: `Example Shop <news@${SHOP}>`, Subject: 'Spring teas for {{name}}' }),
    sample: JSON.stringify({
      name: 'Ada',
      products: [{ name: 'First Flush', price: '€ 14' }, { name: 'White Peony' }],
    }),
    tag: 'first',
  })
  const second = content('On its way', 'your order {{order}} arrives tomorrow.')
  const path = `/v3/${SHOP}/templates/order-shipped/versions`
  const headers = JSON.stringify({
    From: `Example Shop <orders@${SHOP}>`,
    Subject: 'Order {{order}} arrives tomorrow',
  })
  await call.post(path, { tag: 'with-date', template: second, headers, comment: 'Says when', active: 'yes' })
}

async function fillLists(call: Caller): Promise<void> {
  const lists = [
    ['recipes', 'Recipes', 'Every Friday, for everybody who asked'],
    ['offers', 'Offers', 'Twice a month'],
    ['staff', 'Staff', 'All who work in the shops'],
  ] as const
  for (const [at, [local, name, description]] of lists.entries()) {
    const address = `${local}@${NEWS}`
    const level = at === 2 ? 'members' : 'readonly'
    await call.post('/v3/lists', { address, name, description, access_level: level })
    const members = Array.from({ length: 140 - at * 55 }, (_, n) => ({
      address: `${NAMES[n % NAMES.length]?.toLowerCase()}-${n + 1}@${RECEIVERS[n % RECEIVERS.length]?.domain}`,
      name: `${NAMES[n % NAMES.length]} ${String.fromCharCode(65 + (n % 26))}.`,
      subscribed: n % 9 !== 4,
    }))
    await call.post(`/v3/lists/${address}/members.json`, { members: JSON.stringify(members) })
  }
}

const NAMES = ['Alice', 'Bob', 'Carol', 'David', 'Erin', 'Frank', 'Grace', 'Heidi', 'Ivan', 'Judy', 'Mallory']

async function fillSuppressions(call: Caller): Promise<void> {
  for (let n = 1; n <= 9; n++)
    await call.post(`/v3/${SHOP}/bounces`, {
      address: `reader-${n * 37}@${RECEIVERS[n % RECEIVERS.length]?.domain}`,
      code: n % 3 === 0 ? '552' : '550',
      error: n % 3 === 0 ? '5.2.2 The mailbox is full' : '5.1.1 No such user here',
    })
  for (const address of ['reader-71@family.example', 'reader-90@people.example'])
    await call.post(`/v3/${SHOP}/complaints`, { address })
  for (const address of ['reader-12@readers.example', 'reader-13@studio.example'])
    await call.post(`/v3/${SHOP}/unsubscribes`, { address, tag: '*' })
  await call.post(`/v3/${SHOP}/whitelists`, { domain: 'example.com', reason: 'our own' })
}

async function fillHooks(call: Caller): Promise<void> {
  const url = `http://${HOOKS}`
  for (const id of ['delivered', 'permanent_fail', 'complained'])
    await call.post(`/v3/domains/${SHOP}/webhooks`, { id, url: `${url}/shop/events` })
  await call.post(`/v3/domains/${NEWS}/webhooks`, { id: 'temporary_fail', url: `${url}/crm/mail` })
  const fields = { url: `${url}/archive`, event_types: 'accepted', description: 'Archive' }
  await call.post('/v1/webhooks', fields)
  await call.post('/v3/routes', {
    priority: '1',
    description: 'Questions about orders',
    expression: `match_recipient("orders@${SHOP}")`,
    action: [`forward("${url}/orders")`, 'stop()'],
  })
  await call.post('/v3/routes', {
    priority: '5',
    description: 'Everything else is kept',
    expression: 'catch_all()',
    action: 'store()',
  })
}

async function fillIps(call: Caller): Promise<void> {
  await call.post('/v3/ips/request/new')
  await call.post('/v3/ips/request/new')
  const items = (await call.get('/v3/ips?dedicated=yes')).items as string[]
  const fresh = items.filter((ip) => ![...IPS, ...REPUTED].some((known) => known === ip))
  const made = await call.post('/v3/ip_pools', {
    name: 'Orders',
    description: 'Mail that people wait for',
    ip: [IPS[0], IPS[1]],
  })
  await call.post('/v3/ip_pools', { name: 'Newsletters', description: 'Once a week', ip: [IPS[2]] })
  await call.post(`/v3/domains/${SHOP}/ips`, { pool_id: made.pool_id })
  const [warming = '', spare = ''] = fresh
  await call.post(`/v3/ip_warmups/${warming}`)
  await call.post(`/v3/domains/${NEWS}/ips`, { ip: warming })
  await call.post('/v3/dynamic_pools/all', {
    good_reputation: REPUTED[0],
    poor_reputation: REPUTED[1],
    new_senders: spare,
  })
  await call.post(`/v3/domains/${ACCOUNTS}/dynamic_pools`)
}

/** Nothing goes through it: mail is delivered directly. */
async function fillRelay(call: Caller): Promise<void> {
  const login = { username: 'shop', password: 'correct horse battery' }
  await call.json('POST', '/sendwright/v1/relays', { name: 'reserve', host: 'smtp.example.net', login })
}

async function fillAlerts(call: Caller): Promise<void> {
  const alerts = [
    ['Bounces of a domain', 'hard_bounce_rate', '0.05', 'domain', '1d'],
    ['Complaints', 'complained_rate', '0.001', 'domain', '7d'],
    ['A provider puts us off', 'temporary_fail_rate', '0.1', 'recipient_provider', '1d'],
  ] as const
  for (const [name, metric, limit, dimension, period] of alerts)
    await call.json('POST', '/v1/thresholds/alerts/send', {
      ...{ name, metric, comparator: '>', limit, dimension, period },
      alert_channels: ['email'],
    })
  for (const event_type of ['send_alert', 'ip_listed'])
    await call.json('POST', '/v1/alerts/settings/events', {
      ...{ event_type, channel: 'email' },
      settings: { emails: ['postmaster@example.com'] },
    })
}

async function fillValidation(call: Caller): Promise<void> {
  const lines = RECEIVERS.flatMap(({ domain }, at) => [`reader-${at}@${domain}`, `info@${domain}`])
  const file = new File([['address', ...lines, 'not an address', ''].join('\n')], 'customers.csv')
  await call.post('/v4/address/validate/bulk/customers-2026', { file })
  await call.post('/v4/inbox/seedlists', { name: 'Newsletter' })
  await call.json('POST', '/v4/inbox/tests', {
    from: `news@${NEWS}`,
    subject: 'Five recipes for the first frost',
    html: '<h1>Five recipes</h1><p>For the first frost.</p>',
  })
  await eventually('the validation', async () => {
    const { jobs } = await call.get('/v4/address/validate/bulk')
    return jobs.every(({ status }: { status: string }) => status === 'uploaded')
  })
}

/** Replies of the providers, each with its own sink; `late-` and `gone-` begin addresses that they do not take. */
export function setReplies(sinks: ReadonlyMap<string, Sink>): void {
  const gone = '550 5.1.1 The email account that you tried to reach does not exist'
  for (const { domain, mx } of RECEIVERS) {
    const sink = sinks.get(domain)
    sink?.on('CONNECT', `220 ${mx} ESMTP ready`)
    sink?.on('EHLO', `250-${mx} at your service\r\n250-SIZE 35882577\r\n250 8BITMIME`)
    sink?.on('RCPT TO', (_session, event) => {
      if (event.includes('<gone-')) return gone
      return event.includes('<late-') ? (LATE[domain] ?? '250 2.1.5 OK') : '250 2.1.5 OK'
    })
  }
}

const LATE: Record<string, string> = {
  'family.example': '451 4.7.0 [TSS04] Messages temporarily deferred due to user complaints',
  'people.example': '451 4.7.500 Server busy. Please try again later',
  'village.example': '452 4.2.2 The mailbox is full',
}

const HTML = `<div style="font-family: sans-serif; max-width: 480px">
<h1 style="font-size: 22px">On its way</h1>
<p>Your order has left our house. It arrives tomorrow between 9 and 12 o’clock.</p>
<p><a href="https://www.shop.example.com/orders" style="background: #14532d; color: #fff; padding: 10px 16px; text-decoration: none">See your order</a></p>
<p style="color: #555">Example Shop, 1 Market Street</p></div>`

/** Mail of the last minute, and some for later. Resolves when each has been tried. */
export async function sendMail(service: TestService): Promise<void> {
  const call = caller(service)
  const people = ['alice', 'bob', 'carol', 'david', 'erin', 'frank']
  for (const [at, person] of people.entries()) {
    const { domain } = RECEIVERS[at] as (typeof RECEIVERS)[number]
    const address = person === 'bob' ? `late-bob@${domain}` : `${person}@${domain}`
    await call.post(`/v3/${SHOP}/messages`, letter(`Your order 2026-${4_711 + at} is on its way`, address))
  }
  const others = ['late-heidi@people.example', 'late-ivan@village.example', 'gone-judy@readers.example']
  await call.post(`/v3/${SHOP}/messages`, { ...letter('Your order 2026-4720 is on its way'), to: others })
  for (let n = 0; n < 24; n++) {
    const { domain } = RECEIVERS[n % RECEIVERS.length] as (typeof RECEIVERS)[number]
    const late = n === 8 ? 'late-' : ''
    const fields = letter('Five recipes for the first frost', `${late}reader-${n}@${domain}`)
    await call.post(`/v3/${NEWS}/messages`, {
      ...fields,
      from: `Example Shop <news@${NEWS}>`,
      'o:tag': 'newsletter',
    })
  }
  for (const [at, hours] of [2, 20, 44].entries()) {
    const time = new Date(Date.now() + hours * 3_600_000).toUTCString()
    const fields = letter(`Offer of the week ${47 + at}`, `reader-${at}@${RECEIVERS[at]?.domain}`)
    await call.post(`/v3/${NEWS}/messages`, {
      ...fields,
      from: `Example Shop <news@${NEWS}>`,
      'o:tag': 'newsletter',
      'o:deliverytime': time,
    })
  }
  await eventually('an attempt for each', async () => {
    const { items } = await call.get('/sendwright/v1/queue/lanes')
    // What a lane in back-off holds has had a reply already.
    return items.every(
      (lane: { due: number; backed_off_until: string | null }) =>
        lane.due === 0 || lane.backed_off_until !== null,
    )
  })
}

const letter = (subject: string, to = '') => ({
  from: `Example Shop <orders@${SHOP}>`,
  to,
  subject,
  text: 'Your order has left our house. It arrives tomorrow between 9 and 12 o’clock.',
  html: HTML,
  'o:tag': 'shipping',
})

/** For a service that captures its mail. */
export async function sendCaptured(service: TestService): Promise<void> {
  const call = caller(service)
  for (const [at, person] of NAMES.entries()) {
    const subject = at % 3 === 0 ? 'Confirm your address' : `Your order 2026-${4_731 + at} is on its way`
    await call.post(`/v3/${SHOP}/messages`, letter(subject, `${person.toLowerCase()}@readers.example`))
  }
  await eventually('the mail in the inbox', async () => {
    const { items } = await call.get('/sendwright/v1/inbox')
    return items.length >= NAMES.length
  })
}
