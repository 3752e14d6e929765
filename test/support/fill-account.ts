/** Fills an account over HTTP with one of everything that the service keeps. */
import assert from 'node:assert/strict'
import { alertOf, alertSetting } from './account-holdings.ts'
import type { Answer, CallOptions, TestService } from './service.ts'
import { eventually } from './service.ts'
import type { Call } from './subaccounts.ts'

type Form = NonNullable<CallOptions['form']>

/** Addresses at this domain refuse for good, those at SLOW for now; others accept. */
export const REFUSING = 'refusing.example.org'
export const SLOW = 'slow.example.org'
/** For the service that accounts are filled in: mail is captured, and nothing is retried soon. */
export const FILLED_ENV = {
  SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
  SENDWRIGHT_TRANSCRIPTS: 'all',
  SENDWRIGHT_DNS: '127.0.0.1:9',
  SENDWRIGHT_IPS: '127.0.75.1,127.0.75.8=shared,127.0.75.2=spare,127.0.75.3=spare,127.0.75.4=spare',
}
const LARGE = 'x'.repeat(200_000)

export interface Filled {
  domain: string
  domainId: string
}

/** Replies of the built-in inbox to REFUSING and SLOW. */
export async function setFaults(service: TestService): Promise<void> {
  const json = [
    { recipient: `*@${REFUSING}`, stage: 'rcpt', reply: '550 5.1.1 no such user' },
    { recipient: `*@${SLOW}`, stage: 'rcpt', reply: '451 4.3.0 not now' },
  ]
  assert.equal((await service.call('PUT', '/sendwright/v1/inbox/faults', { json })).status, 200)
}

/** `hook`: a URL that takes webhooks and archived mail, and fails. */
export async function fillAccount(
  service: TestService,
  call: Call,
  domain: string,
  hook: string,
): Promise<Filled> {
  const ok = async (method: string, path: string, options?: CallOptions): Promise<Answer> => {
    const answer = await call(method, path, options)
    assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${answer.text}`)
    return answer
  }
  const form = (method: string, path: string, fields: Form) => ok(method, path, { form: fields })
  const made = await form('POST', '/v4/domains', { name: domain, archive_to: `${hook}/archive` })
  await form('POST', '/v1/dkim/keys', { signing_domain: domain, selector: 'mine' })
  for (const kind of ['open', 'click', 'unsubscribe'])
    await form('PUT', `/v3/domains/${domain}/tracking/${kind}`, { active: 'yes' })
  await fillPeople(service, call, form, domain)
  await fillTexts(form, domain)
  await form('POST', `/v3/domains/${domain}/webhooks`, { id: 'delivered', url: `${hook}/domain` })
  await form('POST', '/v1/webhooks', { url: `${hook}/account`, event_types: 'accepted' })
  await fillLists(ok, form, domain)
  await fillSuppressions(form, domain)
  await fillSettings(ok, form, domain)
  await fillIps(ok, form, domain)
  await sendAll(form, domain)
  await eventually('all attempts', async () => {
    const { items } = (await call('GET', `/v3/${domain}/events?limit=300`)).body
    const names = items.map(({ event, severity }: Record<string, string>) => `${event} ${severity ?? ''}`)
    return ['delivered ', 'failed permanent', 'failed temporary', 'list_uploaded '].every((name) =>
      names.includes(name),
    )
  })
  await eventually('all validations', async () => {
    const { jobs } = (await call('GET', '/v4/address/validate/bulk')).body
    const { previews } = (await call('GET', '/v4/address/validate/preview')).body
    const isOver = ({ status }: { status: string }) => ['uploaded', 'preview_complete'].includes(status)
    return [...jobs, ...previews].every(isOver)
  })
  return { domain, domainId: made.body.domain.id }
}

async function fillPeople(
  service: TestService,
  call: Call,
  form: (method: string, path: string, fields: Form) => Promise<Answer>,
  domain: string,
): Promise<void> {
  await form('POST', `/v3/domains/${domain}/credentials`, { login: 'app', password: 'long enough' })
  await form('PUT', '/v5/accounts', { inactive_session_timeout: '3600' })
  await form('POST', '/v5/users', {
    email: `${domain.split('.')[0]}@people.example.org`,
    name: 'Ann',
    role: 'admin',
  })
  const { secret: key } = (await form('POST', '/v1/keys', { role: 'admin' })).body.key
  await form('POST', '/v1/keys', { role: 'sending', kind: 'domain', domain_name: domain })
  const json = { key }
  assert.equal((await service.call('POST', '/sendwright/v1/session', { key: null, json })).status, 200)
  assert.equal((await service.call('POST', '/sendwright/v1/login-links', { key })).status, 200)
  const headers = { 'idempotency-key': `once-${domain}` }
  const repeatable = { headers, form: { address: `once@${domain}` } }
  assert.equal((await call('POST', '/v3/lists', repeatable)).status, 200)
}

async function fillTexts(
  form: (method: string, path: string, fields: Form) => Promise<Answer>,
  domain: string,
): Promise<void> {
  const fields = { name: 'hello', description: 'd', tag: 'one', template: '<p>{{name}}</p>' }
  await form('POST', `/v3/${domain}/templates`, fields)
  await form('POST', '/v4/templates', fields)
}

async function fillLists(
  ok: (method: string, path: string, options?: CallOptions) => Promise<Answer>,
  form: (method: string, path: string, fields: Form) => Promise<Answer>,
  domain: string,
): Promise<void> {
  const path = `/v3/lists/news@${domain}`
  await form('POST', '/v3/lists', { address: `news@${domain}`, access_level: 'everyone' })
  await form('POST', `${path}/members`, { address: 'reader@example.org', vars: '{"a":1}' })
  const members = Array.from({ length: 120 }, (_, index) => ({ address: `m${index}@lists.example.org` }))
  await form('POST', `${path}/members.json`, { members: JSON.stringify(members) })
  await form('POST', `/v3/${domain}/messages`, { ...mail(domain), to: `news@${domain}` })
  await ok('GET', path)
  await form('POST', `${path}/validate`, {})
  for (const kind of ['bulk', 'preview']) {
    const file = new File([`nobody-at-${domain}\n`], 'addresses.csv')
    await form('POST', `/v4/address/validate/${kind}/of-${domain}`, { file })
  }
  await ok('GET', '/v4/address/validate?address=nobody')
  await form('POST', '/v4/inbox/seedlists', { name: domain })
  await ok('POST', '/v4/inbox/tests', { json: { from: `a@${domain}`, subject: 'Hello', html: 'Hi.' } })
}

async function fillSuppressions(
  form: (method: string, path: string, fields: Form) => Promise<Answer>,
  domain: string,
): Promise<void> {
  for (const kind of ['bounces', 'complaints', 'unsubscribes', 'whitelists']) {
    await form('POST', `/v3/${domain}/${kind}`, { address: `${kind}@suppressed.example.org` })
    const file = new File([`address\ni-${kind}@suppressed.example.org\n`], 'list.csv', { type: 'text/csv' })
    await form('POST', `/v3/${domain}/${kind}/import`, { file })
  }
  const policy = `/sendwright/v1/domains/${domain}/suppression-policy`
  await form('PUT', policy, { soft_bounces_to_suppress: '3' })
  await form('PUT', `/sendwright/v1/domains/${domain}/retention`, { messages: '2' })
}

async function fillSettings(
  ok: (method: string, path: string, options?: CallOptions) => Promise<Answer>,
  form: (method: string, path: string, fields: Form) => Promise<Answer>,
  domain: string,
): Promise<void> {
  await form('POST', '/v1/keys/public', {})
  await form('POST', '/v2/ip_whitelist', { address: '127.0.0.0/8' })
  await form('PUT', '/v5/accounts/limit/custom/monthly', { limit: '100000' })
  await form('POST', '/v5/sandbox/auth_recipients', { email: `sandbox@people.example.org` })
  await form('POST', '/v3/routes', { expression: `match_recipient("@${domain}")`, action: 'store()' })
  await ok('POST', '/v1/thresholds/alerts/send', { json: alertOf(`of ${domain}`) })
  await ok('POST', '/v1/alerts/settings/events', { json: alertSetting(domain) })
}

async function fillIps(
  ok: (method: string, path: string, options?: CallOptions) => Promise<Answer>,
  form: (method: string, path: string, fields: Form) => Promise<Answer>,
  domain: string,
): Promise<void> {
  await form('POST', '/v3/ips/request/new', {})
  const [ip = ''] = (await ok('GET', '/v3/ips?dedicated=yes')).body.items as string[]
  await form('POST', '/v3/ip_pools', { name: domain, ip })
  await form('POST', `/v3/domains/${domain}/ips`, { ip: 'shared' })
  await form('POST', `/v3/domains/${domain}/ips`, { ip })
}

const mail = (domain: string) => ({
  from: `shop@${domain}`,
  subject: 'Hello',
  text: 'Hi.',
  html: `<p><a href="https://example.org/?q=${'y'.repeat(1_500)}">x</a></p>`,
  'o:tag': ['one', 'two'],
})

async function sendAll(
  form: (method: string, path: string, fields: Form) => Promise<Answer>,
  domain: string,
): Promise<void> {
  const path = `/v3/${domain}/messages`
  const later = new Date(Date.now() + 3_600_000).toUTCString()
  await form('POST', path, { ...mail(domain), to: 'alice@example.org' })
  await form('POST', path, { ...mail(domain), to: 'alice@example.org', 'o:archive-to': '' })
  const attachment = new File([LARGE], 'large.txt', { type: 'text/plain' })
  await form('POST', path, {
    ...mail(domain),
    to: 'bob@example.org',
    attachment,
    html: LARGE + LARGE + LARGE,
  })
  await form('POST', path, { ...mail(domain), to: [`a@${REFUSING}`, `a@${SLOW}`] })
  await form('POST', path, { ...mail(domain), to: 'later@example.org', 'o:deliverytime': later })
  const variables = JSON.stringify({ 'c@example.org': { name: 'C' }, 'd@example.org': { name: 'D' } })
  await form('POST', path, {
    ...mail(domain),
    to: ['c@example.org', 'd@example.org'],
    'recipient-variables': variables,
  })
}
