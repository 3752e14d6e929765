/** Calls as a stranger makes them: by openapi-fetch, with types that openapi-typescript made (described-clients.test.ts). */
import createClient from 'openapi-fetch'
import type { paths } from './generated.d.ts'

const [baseUrl = '', key = '', domain = ''] = process.argv.slice(2)
const api = createClient<paths>({ baseUrl, headers: { authorization: `Basic ${btoa(`api:${key}`)}` } })

/** The answer of a call. @throws Error with the message of a refusal */
async function of<T>(call: Promise<{ data?: T; response: Response }>): Promise<T> {
  const { data, response } = await call
  if (data === undefined) throw new Error(`${response.url}: ${response.status}`)
  return data
}
const inDomain = { params: { path: { domain_name: domain } } }

const texts: string[] = [
  (await of(api.GET('/sendwright/v1/system'))).version,
  (await of(api.GET('/sendwright/v1/session'))).account.id,
  (await of(api.GET('/v1/keys'))).items.map(({ role }) => role).join(),
  (await of(api.GET('/v5/users'))).users.map(({ email }) => email).join(),
  (await of(api.GET('/v5/accounts/subaccounts'))).subaccounts.map(({ name }) => name).join(),
  (await of(api.GET('/v4/domains'))).items.map(({ name }) => name).join(),
  (await of(api.GET('/v4/domains/{name}', { params: { path: { name: domain } } }))).domain.state,
  (await of(api.GET('/sendwright/v1/domains/{name}/dns', { params: { path: { name: domain } } }))).dmarc
    .sentence,
  (await of(api.GET('/v1/dkim/keys'))).items.map(({ selector }) => selector).join(),
  (await of(api.GET('/v3/{domain_name}/bounces', inDomain))).paging.next,
  (await of(api.GET('/v3/{domain_name}/complaints', inDomain))).paging.next,
  (await of(api.GET('/v3/{domain_name}/unsubscribes', inDomain))).paging.next,
  (await of(api.GET('/v3/{domain_name}/whitelists', inDomain))).paging.next,
  (await of(api.GET('/v3/{domain_name}/templates', inDomain))).paging.first,
  (await of(api.GET('/v4/templates'))).items.map(({ name }) => name).join(),
  (await of(api.GET('/v3/lists/pages'))).items.map(({ address }) => address).join(),
  (await of(api.GET('/v3/routes'))).items.map(({ expression }) => expression).join(),
  (await of(api.GET('/v1/webhooks'))).webhooks.map(({ url }) => url).join(),
  (await of(api.GET('/v3/ip_pools'))).ip_pools.map(({ name }) => name).join(),
  (await of(api.GET('/v3/ips/details/all'))).items.map(({ ip }) => ip).join(),
  (await of(api.GET('/v3/ip_warmups'))).items.map(({ ip }) => ip).join(),
  (await of(api.GET('/v1/thresholds/alerts/send'))).items.map(({ metric }) => metric).join(),
  (await of(api.GET('/v1/thresholds/hits'))).items.map(({ latest_value }) => latest_value).join(),
  (await of(api.GET('/sendwright/v1/queue/lanes'))).items.map(({ site }) => site).join(),
  (await of(api.GET('/sendwright/v1/shaping'))).version,
  (await of(api.GET('/sendwright/v1/audit'))).items.map(({ action }) => action).join(),
  (await of(api.GET('/sendwright/v1/inbox'))).items.map(({ subject }) => subject).join(),
  (await of(api.GET('/sendwright/v1/scheduled'))).items.map(({ message_id }) => message_id).join(),
  (await of(api.GET('/v4/inbox/seedlists'))).items.map(({ name }) => name).join(),
  (await of(api.GET('/v4/address/validate/bulk'))).paging.next,
  (await of(api.GET('/v2/ip_whitelist'))).addresses.map(({ ip_address }) => ip_address).join(),
]
process.stdout.write(String(texts.length))
