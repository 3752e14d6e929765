/** One of each thing that the API names in paths, for an account; made over HTTP with its admin key. */
import assert from 'node:assert/strict'
import { type Answer, type CallOptions, eventually, type TestService } from './service.ts'

/** Values of path parts and parameters, by name. `template`: for `{name}` of a template. */
export type Holdings = Readonly<Record<string, string>>

export const RECIPIENT = 'recipient@example.org'

interface AccountFacts {
  id: string
  key: string
  word: string
  hookUrl: string
  /** Of its subaccount; of an account without one, an id that nothing has. */
  subaccountId: string
}

export const alertOf = (name: string) => ({
  ...{ name, metric: 'hard_bounce_rate', comparator: '>', limit: '0.5', dimension: 'domain' },
  alert_channels: ['email'],
})

export const limitOf = (name: string) => ({
  ...{ name, metric: 'seed_test_count', comparator: '>', limit: '500', dimension: 'domain' },
})

export const alertSetting = (domain = '') => ({
  ...{ event_type: 'ip_listed', channel: 'email' },
  settings: { emails: [`alerts@${domain}`] },
})

/** `word` marks everything of the account, so that nothing of two accounts has the same name. */
export async function plantHoldings(
  service: TestService,
  { id, key, word, hookUrl, subaccountId }: AccountFacts,
): Promise<Holdings> {
  const domain = `${word}.example`
  const [suppressed, member] = [`suppressed-${word}@example.org`, `member-${word}@example.org`]
  const call = async (method: string, path: string, options: CallOptions = {}) => {
    const answer = await service.call(method, path, { ...options, key })
    assert.ok([200, 202].includes(answer.status), `${method} ${path}: ${answer.text}`)
    return answer.body as Answer['body']
  }
  const post = (path: string, form: NonNullable<CallOptions['form']>) => call('POST', path, { form })

  await post('/v4/domains', { name: domain })
  const template = { name: `template-${word}`, template: 'Hello', tag: `version-${word}` }
  const second = { template: 'Hello', tag: `second-${word}` }
  for (const path of ['/v4/templates', `/v3/${domain}/templates`]) {
    await post(path, template)
    await post(`${path}/${template.name}/versions`, second)
    await post(path, { name: `old-${word}` })
  }
  await call('POST', '/v1/thresholds/alerts/send', { json: alertOf(`alert-${word}`) })
  await call('POST', '/v1/thresholds/limits', { json: limitOf(`limit-${word}`) })
  const { id: exported } = await post('/v3/exports', { url: '/v3/lists' })
  await eventually(
    'an export',
    async () => (await call('GET', `/v3/exports/${exported}`)).status === 'complete',
  )
  const about = { address: `person-${word}@example.org` }
  const { task } = await call('POST', '/sendwright/v1/people/export', { json: about })
  await eventually(
    'the export of a person',
    async () => (await call('GET', `/sendwright/v1/people/tasks/${task.id}`)).state === 'done',
  )
  const setting = await call('POST', '/v1/alerts/settings/events', { json: alertSetting(domain) })
  if ((await call('GET', '/v3/ips?dedicated=yes')).items.length === 0) await post('/v3/ips/request/new', {})
  const [ip = ''] = (await call('GET', '/v3/ips?dedicated=yes')).items
  const { pool_id: pool } = await post('/v3/ip_pools', { name: `pool-${word}`, ip })
  await post(`/v3/ip_warmups/${ip}`, {})
  await post('/v1/inboxready/domains', { domain: `monitored-${word}.com` })
  await post('/v3/lists', { address: `list@${domain}` })
  await post(`/v3/lists/list@${domain}/members`, { address: member })
  for (const kind of ['bounces', 'complaints', 'unsubscribes', 'whitelists'])
    await post(`/v3/${domain}/${kind}`, { address: suppressed })
  await post(`/v3/domains/${domain}/webhooks`, { id: 'accepted', url: `${hookUrl}/${word}` })
  const webhook = await post('/v1/webhooks', { url: `${hookUrl}/${word}/all`, event_types: 'clicked' })
  await post(`/v3/domains/${domain}/credentials`, { login: `login-${word}`, password: 'password-123' })
  await post('/v1/dkim/keys', { signing_domain: domain, selector: `selector-${word}`, bits: '1024' })
  await post('/v2/ip_whitelist', { address: '127.0.0.0/8' })
  await call('PUT', `/sendwright/v1/dns-providers/dns-${word}`, {
    json: { kind: 'desec', secret: word, api_url: 'http://127.0.74.99/' },
  })
  const route = await post('/v3/routes', {
    expression: `match_recipient("orders-${word}@")`,
    action: 'store()',
  })
  const addresses = () => new File(['nobody\n'], 'addresses.csv')
  for (const kind of ['bulk', 'preview'])
    await post(`/v4/address/validate/${kind}/validation-${word}`, { file: addresses() })
  await eventually('the validations', async () => {
    const path = `/v4/address/validate/preview/validation-${word}`
    return (await call('GET', path)).preview.status === 'preview_complete'
  })
  const seeds = await post('/v4/inbox/seedlists', { name: `seeds-${word}` })
  const placement = await call('POST', '/v4/inbox/tests', {
    json: { from: `a@${domain}`, subject: word, html: word },
  })
  const figure = await call('POST', '/sendwright/v1/shared-figures', {
    json: { title: word, query: { dimensions: ['time'], metrics: ['delivered_count'] } },
  })
  const email = `sandbox-${word}@example.org`
  await post('/v5/sandbox/auth_recipients', { email })
  const user = await post('/v5/users', { email: `user@${domain}`, name: word, role: 'basic' })
  const spare = await post('/v1/keys', { role: 'basic', description: word })
  const opened = await service.call('POST', '/sendwright/v1/session', { key: null, form: { key } })
  assert.equal(opened.status, 200)
  const [session] = (await call('GET', '/sendwright/v1/sessions')).items

  const mail = { from: `a@${domain}`, to: RECIPIENT, subject: word, text: word, 'o:tag': `tag-${word}` }
  const file = new File(['a book'], `${word}.txt`)
  const sent = await post(`/v3/${domain}/messages`, { ...mail, attachment: file })
  const deliverytime = String(Math.floor(Date.now() / 1000) + 3_600)
  const later = await post(`/v3/${domain}/messages`, { ...mail, 'o:deliverytime': deliverytime })
  const [first, captured, attempt] = await Promise.all([
    firstOf(`/v3/${domain}/events?event=accepted&message-id=${encodeURIComponent(bare(sent.id))}`),
    firstOf(`/sendwright/v1/inbox?subject=${word}`),
    firstOf('/sendwright/v1/webhooks/attempts?limit=1'),
  ])
  const deliveries = await call('GET', `/sendwright/v1/messages/${bare(sent.id)}/deliveries`)
  const events = await call('GET', `/v3/${domain}/events`)

  function firstOf(path: string) {
    return eventually(path, async () => (await call('GET', path)).items[0])
  }

  return {
    ...{ domain, name: domain, domain_name: domain, authority_name: domain, signing_domain: domain },
    ...{
      template: template.name,
      version: template.tag,
      old_template: `old-${word}`,
      selector: `selector-${word}`,
    },
    ...{
      list: `list@${domain}`,
      list_id: `validation-${word}`,
      seed_list: seeds.kid,
      result: placement.result_id,
      attribute: 'name',
      preview: `validation-${word}`,
      member,
      address: suppressed,
      spec: `login-${word}`,
      type: 'accepted',
      aggregate: 'providers',
      rate_limit: 'sending',
      route_id: route.route.id,
      email,
      arn: `arn:aws:sns:eu-west-1:123456789012:${word}`,
    },
    ...{ webhook_id: webhook.webhook_id, attempt: attempt.id, key_id: spare.key.id, user_id: user.id },
    ...{ session_id: session.id, storage_key: first.storage.key, message_id: bare(sent.id), n: '0' },
    ...{
      scheduled: bare(later.id),
      inbox: captured.id,
      delivery: deliveries.items[0].id,
      tag: `tag-${word}`,
    },
    ...{
      page_token: events.paging.next.split('/').at(-1),
      host: `email.${domain}`,
      entity_id: `entity-${word}`,
      monitored_domain: `monitored-${word}.com`,
    },
    ...{
      ...{ ip, addr: ip, pool_id: pool, pool_name: 'dynamic_good' },
      account: id,
      account_id: id,
      subaccount_id: subaccountId,
      alert: `alert-${word}`,
      limit: `limit-${word}`,
      relay: `relay-${word}`,
      event_sink: `sink-${word}`,
      dns_provider: `dns-${word}`,
      dns_change: word,
      setting: setting.id,
      export: exported,
      task_id: task.id,
      backup: word,
      figure_id: figure.id,
      new_name: `renamed-${word}`,
      new_tag: `copied-${word}`,
      hook: `${hookUrl}/${word}`,
    },
  }
}

const bare = (messageId: string) => messageId.slice(1, -1)

/** The same shapes, naming nothing that exists; `template` gives them. */
export function absentHoldings(template: Holdings, word: string): Holdings {
  const shaped = (value: string) => value.replaceAll(word, 'absent')
  const entries = Object.entries(template).map(([name, value]) => {
    const hasWord = value.includes(word)
    return [name, hasWord ? shaped(value) : (ABSENT_SHAPES[name]?.(value) ?? value)] as const
  })
  return Object.fromEntries(entries)
}

/** Another value in the form of this one. */
const other = (value: string) =>
  value.replace(/[0-9A-Za-z](?=[^0-9A-Za-z]*$)/, (last) => (last === '1' ? '2' : '1'))

const ABSENT_SHAPES: Record<string, (value: string) => string> = Object.fromEntries(
  [
    'webhook_id',
    'seed_list',
    'result',
    'attempt',
    'key_id',
    'user_id',
    'session_id',
    'account_id',
    'route_id',
    'subaccount_id',
    'setting',
    'export',
    'figure_id',
    'task_id',
    'storage_key',
    'inbox',
    'delivery',
    'page_token',
    'ip',
    'addr',
    'pool_id',
  ].map((name) => [name, other]),
)
