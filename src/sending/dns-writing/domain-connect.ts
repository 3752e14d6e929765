/**
 * A link to a domain's DNS provider, where its owner lets the records be made (Domain Connect, draft-ietf-dconn-domainconnect,
 * synchronous flow). The provider must know the operator's template; what the template asks for is in docs/dns.md.
 *
 * 1. The TXT record `_domainconnect.<zone>` names the provider's interface.
 * 2. Its settings for the zone say where the pages are, and whether it knows the template is asked.
 * 3. The link has the variables of the domain, signed where the operator has a key.
 */
import { sign } from 'node:crypto'
import { foreignJsonIn } from '../../base/foreign-json.ts'
import { printableLine } from '../../base/printable.ts'
import { isPlainObject } from '../../base/values.ts'
import { confidentialUrl } from '../../platform/config/parsers.ts'
import type { HttpClient } from '../../platform/posts/http-client.ts'
import type { Resolver } from '../../protocols/dns/resolver.ts'
import { nameInZone, textIn, zoneNames } from './providers/api.ts'

export interface ConnectTemplate {
  providerId: string
  serviceId: string
  /** Null: links are not signed. */
  key: { host: string; pem: string } | null
}

interface ConnectParts {
  client: Pick<HttpClient, 'send'>
  resolver: Pick<Resolver, 'query'>
  template: ConnectTemplate
}

export interface ConnectLink {
  /** As the DNS provider calls itself; null: there is none that takes part. */
  provider: string | null
  /** Null: there is no link, and `reason` says why. */
  url: string | null
  reason: string
}

/** Where the settings are: a host, perhaps with a path. */
const INTERFACE = /^[a-z0-9.-]{1,253}(?:\/[\w./-]{0,200})?$/i
const PROVIDER_LENGTH_MAX = 100

/** `variables`: of the template. Never rejects because of DNS or the provider. */
export async function connectLink(
  { client, resolver, template }: ConnectParts,
  domain: string,
  variables: Readonly<Record<string, string>>,
): Promise<ConnectLink> {
  const none = (reason: string, provider: string | null = null) => ({ provider, url: null, reason })
  const found = await interfaceOf(resolver, domain)
  if (found === null) return none('The DNS provider of the domain does not take part in Domain Connect.')
  const { zone, host } = found
  const settings = await readJson(client, `https://${host}/v2/${zone}/settings`)
  const pages = confidentialUrl(textIn(settings, 'urlSyncUX'))
  const api = confidentialUrl(textIn(settings, 'urlAPI'))
  const provider = printableLine(
    textIn(settings, 'providerDisplayName') || textIn(settings, 'providerName') || host,
  ).slice(0, PROVIDER_LENGTH_MAX)
  if (pages === null || api === null) return none(`${provider} makes no records by a link.`, provider)
  const path = `/v2/domainTemplates/providers/${template.providerId}/services/${template.serviceId}`
  const known = await client.send({ url: trimmed(api) + path, method: 'GET' })
  if (known.kind !== 'answered' || known.status !== 200)
    return none(
      `${provider} does not know the template ${template.providerId}/${template.serviceId}.`,
      provider,
    )
  const own = nameInZone(domain, zone, '')
  const query = new URLSearchParams({
    domain: zone,
    ...(own !== '' && { host: own }),
    ...variables,
  }).toString()
  return { provider, url: `${trimmed(pages)}${path}/apply?${signed(query, template.key)}`, reason: '' }
}

const trimmed = ({ href }: URL) => href.replace(/\/+$/, '')

/** The nearest name at or above the domain that has the record. */
async function interfaceOf(resolver: Pick<Resolver, 'query'>, domain: string) {
  for (const zone of zoneNames(domain)) {
    const { records } = await resolver.query(`_domainconnect.${zone}`, 'TXT')
    const host = records.find((text) => INTERFACE.test(text))
    if (host !== undefined) return { zone, host }
  }
  return null
}

/** Empty for anything but an object with status 200. */
async function readJson(client: Pick<HttpClient, 'send'>, url: string): Promise<Record<string, unknown>> {
  const outcome = await client.send({ url, method: 'GET', headers: { accept: 'application/json' } })
  if (outcome.kind !== 'answered' || outcome.status !== 200) return {}
  const value = foreignJsonIn(outcome.body.toString())
  return isPlainObject(value) ? value : {}
}

/** RSA with SHA-256 over the query as it stands before the signature. */
function signed(query: string, key: ConnectTemplate['key']): string {
  if (key === null) return query
  const signature = sign('sha256', Buffer.from(query), key.pem).toString('base64')
  return `${query}&sig=${encodeURIComponent(signature)}&key=${encodeURIComponent(key.host)}`
}
