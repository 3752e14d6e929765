import { type ApiAnswer, errorText, pathPart } from '../api-client.ts'
import type { WebhookEntry } from '../entry.ts'
import {
  changed,
  existing,
  made,
  oneByOne,
  type Result,
  readOrFail,
  refused,
  type Writer,
  type WriterParts,
} from './result.ts'

interface AccountWebhook {
  webhook_id: string
  url: string
  event_types: string[]
  description: string
}

export function createWebhookWriter({ client, isDryRun, hasDomain }: WriterParts): Writer<WebhookEntry> {
  /** URLs by type, of the domain that was last asked for. */
  let ofDomain: { domain: string; urls: Map<string, string[]> } | null = null
  let ofAccount: AccountWebhook[] | null = null

  async function urlsOf(domain: string): Promise<Map<string, string[]>> {
    if (ofDomain?.domain === domain) return ofDomain.urls
    const answer = await client.call('GET', pathOf(domain))
    const webhooks = (answer.body?.['webhooks'] ?? {}) as Record<string, { urls: string[] }>
    const urls = new Map(Object.entries(webhooks).map(([type, one]) => [type, one.urls]))
    ofDomain = { domain, urls }
    return urls
  }

  async function writeOfDomain(domain: string, { url, event_types: types }: WebhookEntry): Promise<Result> {
    if (!(await hasDomain(domain))) return refused(`the service has no domain ${domain}`)
    const all = await urlsOf(domain)
    const missing = types.filter((type) => !all.get(type)?.includes(url))
    const faults: string[] = []
    for (const type of missing) {
      const urls = [...(all.get(type) ?? []), url]
      const answer = isDryRun ? null : await put(domain, type, urls)
      if (answer && answer.status !== 200) faults.push(`${type}: ${errorText(answer)}`)
      else all.set(type, urls)
    }
    return resultOf(types.length - missing.length, missing.length - faults.length, faults)
  }

  const put = (domain: string, type: string, urls: readonly string[]): Promise<ApiAnswer> =>
    urls.length === 1
      ? client.call('POST', pathOf(domain), { form: { id: type, url: urls } })
      : client.call('PUT', `${pathOf(domain)}/${pathPart(type)}`, { form: { url: urls } })

  async function writeOfAccount({ url, event_types: types, description }: WebhookEntry): Promise<Result> {
    ofAccount ??= (await readOrFail(client, '/v1/webhooks'))['webhooks'] as AccountWebhook[]
    const known = ofAccount.find((one) => one.url === url)
    const missing = types.filter((type) => !known?.event_types.includes(type))
    if (missing.length === 0) return existing
    if (isDryRun) return made
    const event_types = [...(known?.event_types ?? []), ...missing]
    const form = { url, event_types, description: known?.description ?? description }
    const answer = known
      ? await client.call('PUT', `/v1/webhooks/${known.webhook_id}`, { form })
      : await client.call('POST', '/v1/webhooks', { form })
    ofAccount = null
    return answer.status < 300 ? made : refused(errorText(answer))
  }

  return oneByOne((entry) =>
    entry.domain === null ? writeOfAccount(entry) : writeOfDomain(entry.domain, entry),
  )
}

const pathOf = (domain: string) => `/v3/domains/${pathPart(domain)}/webhooks`

function resultOf(present: number, added: number, faults: readonly string[]): Result {
  if (faults.length === 0) return added > 0 ? made : existing
  const reason = faults.join('; ')
  return added + present > 0 ? changed(reason) : refused(reason)
}
