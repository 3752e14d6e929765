/**
 * Makes entries in the running service, over its HTTP API: all its rules, rights and the audit log apply, and the
 * importing machine may be any. What exists already is left as it is, so an import can be repeated; only unsubscribes are
 * added to what exists, because nobody may get mail again by an import.
 */
import type { ApiClient } from '../api-client.ts'
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
import { createDomainWriter } from './domains.ts'
import { createListWriter } from './lists.ts'
import { type Outcome, type Result, refused, type WriterParts } from './result.ts'
import { createRouteWriter } from './routes.ts'
import { createSuppressionWriter } from './suppressions.ts'
import { createTemplateWriter } from './templates.ts'
import { createWebhookWriter } from './webhooks.ts'

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
function groupsOf(items: readonly Item[]): Item[][] {
  const groups = new Map<string, Item[]>()
  for (const item of items) {
    const key = item.entry === null ? 'none' : groupKey(item.entry)
    const group = groups.get(key)
    if (group) group.push(item)
    else groups.set(key, [item])
  }
  return [...groups.values()]
}

function groupKey(entry: Entry): string {
  if (entry.kind === 'member') return `member ${entry.list.toLowerCase()}`
  return 'record' in entry ? `${entry.kind} ${(entry as SuppressionEntry).domain}` : entry.kind
}
