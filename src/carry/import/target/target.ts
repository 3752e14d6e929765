/**
 * Makes entries in the running service, over its HTTP API: all its rules, rights and the audit log apply, and the
 * importing machine may be any. What exists already is left as it is, so an import can be repeated; only unsubscribes are
 * added to what exists, because nobody may get mail again by an import.
 */

import { ActionSyntaxError, parseAction } from '../../../receiving/routes/actions.ts'
import { ExpressionSyntaxError, parseExpression } from '../../../receiving/routes/match/expression.ts'
import { type ApiAnswer, type ApiClient, errorText, pathPart } from '../api-client.ts'
import {
  type DomainEntry,
  type Entry,
  type Item,
  type Kind,
  type ListEntry,
  type MemberEntry,
  nameOf,
  type RouteEntry,
  type SuppressionEntry,
  type TemplateEntry,
  type WebhookEntry,
} from '../entry.ts'
import type { Remark } from '../journal.ts'
import { createListWriter } from './lists.ts'
import {
  changed,
  existing,
  knownKeys,
  made,
  type Outcome,
  oneByOne,
  type Result,
  readOrFail,
  refused,
  skippedItems,
  type Writer,
  type WriterParts,
} from './result.ts'
import { createSuppressionWriter } from './suppressions.ts'
import { createTemplateWriter } from './templates.ts'

interface Taken {
  counts: [kind: Kind, outcome: Outcome][]
  remarks: Remark[]
  /** DNS records of new domains, as zone-file text. */
  zones: string[]
}

export type Target = ReturnType<typeof createTarget>

export function createTarget(client: ApiClient, isDryRun: boolean) {
  const domains = createDomainWriter(client, isDryRun)
  const parts: WriterParts = { client, isDryRun, hasDomain: domains.has }
  const webhooks = createWebhookWriter(parts)
  const templates = createTemplateWriter(parts)
  const lists = createListWriter(parts)
  const suppressions = createSuppressionWriter(parts)
  const routes = createRouteWriter(parts)

  /** Entries of one group, which are all of the same kind. */
  function write(entries: [Entry, ...Entry[]]): Promise<Result[]> {
    const [first] = entries
    switch (first.kind) {
      case 'domain':
        return domains.write(entries as DomainEntry[])
      case 'webhook':
        return webhooks(entries as WebhookEntry[])
      case 'template':
        return templates(entries as TemplateEntry[])
      case 'list':
        return lists.write(entries as ListEntry[])
      case 'member':
        return lists.writeMembers(entries as MemberEntry[])
      case 'route':
        return routes(entries as RouteEntry[])
      default:
        return suppressions(entries as SuppressionEntry[])
    }
  }

  return {
    /** @throws ApiUnavailable */
    async take(items: readonly Item[]): Promise<Taken> {
      const taken: Taken = { counts: [], remarks: [], zones: [] }
      const add = (item: Item, kind: Kind, name: string, { outcome, reason }: Result) => {
        const notes = item.notes?.join('; ') ?? ''
        const isChanged = outcome === 'made' && notes !== ''
        const last = isChanged ? 'changed' : outcome
        taken.counts.push([kind, last])
        if (last !== 'changed' && last !== 'refused') return
        const reasons = [reason, notes].filter((text) => text !== '').join('; ')
        taken.remarks.push({ kind, name, place: item.place, outcome: last, reason: reasons })
      }
      for (const group of groupsOf(items)) {
        const found = group.filter((item) => item.entry !== null)
        const entries = found.map((item) => item.entry as Entry)
        const results = entries.length > 0 ? await write(entries as [Entry, ...Entry[]]) : []
        found.forEach((item, index) => {
          const entry = item.entry as Entry
          add(item, entry.kind, nameOf(entry), results[index] as Result)
        })
        for (const item of group)
          if (item.entry === null) add(item, item.kind, item.name, refused(item.reason))
      }
      taken.zones = domains.takeZones()
      return taken
    },
  }
}

/** Entries that one call can make together: of one kind, and of one list. */
const groupsOf = (items: readonly Item[]): Item[][] => [
  ...Map.groupBy(items, ({ entry }) => (entry === null ? 'none' : groupKey(entry))).values(),
]

function groupKey(entry: Entry): string {
  if (entry.kind === 'member') return `member ${entry.list.toLowerCase()}`
  return 'record' in entry ? `${entry.kind} ${(entry as SuppressionEntry).domain}` : entry.kind
}

/** Routes have no name: one that is the same in all its fields exists. */
export function createRouteWriter({ client, isDryRun }: WriterParts): Writer<RouteEntry> {
  const routes = knownKeys(() => skippedItems<RouteEntry>(client, '/v3/routes'), fieldsKey)

  async function write(entry: RouteEntry): Promise<Result> {
    const known = await routes.get()
    if (known.has(fieldsKey(entry))) return existing
    const fault = faultOf(entry)
    if (fault !== null) return refused(fault)
    if (!isDryRun) {
      const { priority, description, expression, actions } = entry
      const form = { priority: String(priority), description, expression, action: actions }
      const answer = await client.call('POST', '/v3/routes', { form })
      if (answer.status !== 200) return refused(errorText(answer))
    }
    known.add(fieldsKey(entry))
    return made
  }

  return oneByOne(write)
}

const fieldsKey = ({ priority, description, expression, actions }: RouteEntry) =>
  JSON.stringify([priority, description, expression, actions])

function faultOf({ expression, actions }: RouteEntry): string | null {
  try {
    parseExpression(expression)
    for (const action of actions) parseAction(action)
    return null
  } catch (error) {
    if (error instanceof ExpressionSyntaxError || error instanceof ActionSyntaxError) return error.message
    throw error
  }
}

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

/** More selectors than any service publishes for a domain. */
const SELECTORS_TRIED_MAX = 100

export function createDomainWriter(client: ApiClient, isDryRun: boolean) {
  const names = knownKeys(
    () => skippedItems<{ name: string }>(client, '/v4/domains'),
    ({ name }) => name.toLowerCase(),
  )
  let zones: string[] = []

  async function makeDomain(entry: DomainEntry): Promise<Result> {
    const { name, settings, selectors, tracking } = entry
    const form = { name, dkim_selector: freeSelector(selectors) }
    const answer = await client.call('POST', '/v4/domains', { form })
    if (answer.status !== 200) return refused(errorText(answer))
    const path = pathPart(name)
    const faults: string[] = []
    const put = async (where: string, fields: Record<string, string>) => {
      const done = await client.call('PUT', where, { form: fields })
      if (done.status !== 200) faults.push(`${Object.keys(fields).join(', ')} not taken: ${errorText(done)}`)
    }
    for (const [field, value] of Object.entries(settings))
      await put(`/v4/domains/${path}`, { [field]: value })
    for (const [kind, fields] of Object.entries(tracking))
      await put(`/v3/domains/${path}/tracking/${kind}`, fields)
    const zone = await client.call('GET', `/sendwright/v1/domains/${path}/zone`)
    if (zone.status === 200) zones.push(zone.text)
    return faults.length === 0 ? made : changed(faults.join('; '))
  }

  return {
    write: oneByOne<DomainEntry>(async (entry) => {
      const all = await names.get()
      if (all.has(entry.name)) return existing
      const result = isDryRun ? made : await makeDomain(entry)
      if (result.outcome !== 'refused') all.add(entry.name)
      return result
    }),
    has: async (name: string): Promise<boolean> => (await names.get()).has(name.toLowerCase()),
    /** Zone-file text of the domains made since the last call. */
    takeZones(): string[] {
      const taken = zones
      zones = []
      return taken
    },
  }
}

/** A selector that the former service does not use: both keys are published while mail may leave from either. */
function freeSelector(selectors: readonly string[]): string {
  const used = new Set(selectors.map((selector) => selector.toLowerCase()))
  const numbers = Array.from({ length: SELECTORS_TRIED_MAX }, (_, index) => `k${index + 1}`)
  return numbers.find((selector) => !used.has(selector)) ?? 'sendwright'
}
