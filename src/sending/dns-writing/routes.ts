/** DNS providers, and writing the records of domains, over HTTP (dns-writing.md). */
import { BadRequest } from '../../base/process/errors.ts'
import { message } from '../../base/shape.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import type { DnsChangeRow } from '../../platform/store/schema.ts'
import { plainText } from '../../protocols/dns/presentation.ts'
import type { Domain } from '../domains/domain.ts'
import { type DomainDirectory, ownDomain } from '../domains/names/directory.ts'
import { changesIn, type createChangeRows } from './change-rows.ts'
import type { Changes, Outcome } from './changes.ts'
import type { ConnectLink } from './domain-connect.ts'
import { type KnownProviders, providerView } from './known-providers.ts'
import { digestOf, type PlanEntry, type StoredChange } from './plan.ts'
import { setKey } from './provider.ts'
import {
  APPLY_BODY,
  CHANGE,
  CHANGES,
  type ChangeView,
  LINK,
  PROVIDER,
  PROVIDER_BODY,
  PROVIDERS,
  UNDO_BODY,
} from './shapes.ts'

export interface WritingRouteParts {
  domains: DomainDirectory
  providers: KnownProviders
  rows: ReturnType<typeof createChangeRows>
  changes: Changes
  linkOf(domain: Domain): Promise<ConnectLink>
}

const api = operationsOf({ tag: 'DNS', auth: { area: 'domains' }, rateLimit: 'domains' })
/** Credentials are for those who may make keys, too. */
const MANAGE = { area: 'account', access: 'write' } as const
const PROVIDERS_PATH = '/sendwright/v1/dns-providers'
const PROVIDER_PATH = `${PROVIDERS_PATH}/{name}` as const
const CHANGES_PATH = '/sendwright/v1/domains/{name}/dns-changes'
const NO_PROVIDER = 'DNS provider not found'
const FAULT =
  'The provider refuses or does not answer, DNS has changed since, or another change is being written'

export const writingRoutes = (parts: WritingRouteParts): Operation[] => [
  ...providerRoutes(parts),
  ...changeRoutes(parts),
]

function providerRoutes({ providers }: WritingRouteParts): Operation[] {
  return [
    api.get(PROVIDERS_PATH, {
      id: 'listDnsProviders',
      summary: 'List the DNS providers of the account',
      answers: { 200: PROVIDERS },
      handler: async ({ caller }) => ({ items: (await providers.list(caller.accountId)).map(providerView) }),
    }),
    api.get(PROVIDER_PATH, {
      id: 'readDnsProvider',
      summary: 'Read a DNS provider',
      answers: { 200: PROVIDER, 404: NO_PROVIDER },
      handler: async ({ path, caller }) => providerView(await providers.one(caller.accountId, path.name)),
    }),
    api.put(PROVIDER_PATH, {
      id: 'putDnsProvider',
      audit: { given: ['kind', 'server', 'key_name', 'algorithm', 'access_key_id', 'api_url'] },
      summary: 'Make a DNS provider, or replace it',
      description:
        'The secret is stored sealed and never shown. It writes records of domains of this account only.',
      auth: MANAGE,
      body: PROVIDER_BODY,
      answers: { 200: PROVIDER },
      async handler({ document, path, caller }) {
        if (!/^[a-z0-9][a-z0-9._-]{0,31}$/.test(path.name)) throw new BadRequest('Invalid parameter: name')
        return providerView(await providers.put(caller.accountId, path.name, document()))
      },
    }),
    api.delete(PROVIDER_PATH, {
      id: 'deleteDnsProvider',
      summary: 'Remove a DNS provider and its secret; records stay',
      auth: MANAGE,
      answers: { 200: message('success', 'Removed'), 404: NO_PROVIDER },
      async handler({ path, caller }) {
        await providers.remove(caller.accountId, path.name)
        return { message: 'success' }
      },
    }),
  ]
}

function changeRoutes({ domains, rows, changes, linkOf }: WritingRouteParts): Operation[] {
  return [
    api.get(CHANGES_PATH, {
      id: 'listDnsChanges',
      summary: 'What was written in DNS for a domain',
      answers: { 200: CHANGES, 404: 'Domain not found' },
      async handler({ path, caller }) {
        const domain = await ownDomain(domains, caller, path.name)
        return { items: (await rows.list(domain.id)).map((row) => storedView(domain.name, row)) }
      },
    }),
    api.get('/sendwright/v1/domains/{name}/dns-link', {
      id: 'readDnsLink',
      summary: 'A link to the DNS provider of a domain that makes its records (Domain Connect)',
      answers: { 200: LINK, 404: 'Domain not found' },
      handler: async ({ path, caller }) => linkOf(await ownDomain(domains, caller, path.name)),
    }),
    api.post(CHANGES_PATH, {
      id: 'createDnsChange',
      audit: {
        action: 'dns-change.create',
        given: ['provider', 'replace', 'digest', 'dry_run'],
        made: ['id', 'state'],
      },
      summary: 'Write the records of a domain at its DNS provider, or say what would be written',
      description:
        'Nothing but records of the domain is written. What stands there of others is left, with the reason.',
      body: APPLY_BODY,
      answers: { 200: CHANGE, 404: 'Domain or DNS provider not found', 409: FAULT },
      async handler({ document, path, caller, signal }) {
        const domain = await ownDomain(domains, caller, path.name)
        const { provider, replace = [], dry_run: isDryRun = false, digest } = document()
        return outcomeView(
          domain.name,
          await changes.apply(domain, { provider, replace, isDryRun, digest }, signal),
        )
      },
    }),
    api.post(`${CHANGES_PATH}/{id}/undo`, {
      id: 'undoDnsChange',
      audit: { given: ['dry_run'], made: ['state'] },
      summary: 'Take a change in DNS back, or say what that would do',
      body: UNDO_BODY,
      answers: { 200: CHANGE, 404: 'There is no such domain, change or provider', 409: FAULT },
      async handler({ document, path, caller, signal }) {
        const domain = await ownDomain(domains, caller, path.name)
        const { dry_run: isDryRun = false } = document()
        return outcomeView(domain.name, await changes.undo(domain, path.id, isDryRun, signal))
      },
    }),
  ]
}

function outcomeView(domain: string, { provider, undoes, plan, row }: Outcome): ChangeView {
  const stored = new Map((row ? changesIn(row) : []).map((change) => [setKey(change), change]))
  return {
    ...{ id: row?.id ?? null, domain, provider, undoes },
    state: row?.state ?? (plan.changes.length === 0 ? 'unchanged' : 'planned'),
    digest: digestOf(provider, plan.changes),
    entries: plan.entries.map((entry) => entryView(entry, stored.get(setKey(entry)))),
    error: row?.error ?? null,
    created_at: row && new Date(Number(row.created_at)).toISOString(),
  }
}

function storedView(domain: string, row: DnsChangeRow): ChangeView {
  const changes = changesIn(row)
  return {
    ...{ id: row.id, domain, provider: row.provider, undoes: row.undoes, state: row.state },
    digest: digestOf(row.provider, changes),
    entries: changes.map((change) => entryView({ ...change, ...nameOf(change), reason: '' }, change)),
    error: row.error,
    created_at: new Date(Number(row.created_at)).toISOString(),
  }
}

function nameOf({ purposes: [purpose = 'spf'], add, remove }: StoredChange) {
  const action = remove.length === 0 ? 'add' : add.length === 0 ? 'remove' : 'change'
  return { purpose, action } as const
}

function entryView(entry: PlanEntry, stored: StoredChange | undefined): ChangeView['entries'][number] {
  const { purpose, name, type, action, reason } = entry
  const texts = (values: readonly string[]) => values.map((value) => plainText(type, value))
  return {
    ...{ purpose, name, type, action, reason, add: texts(entry.add), remove: texts(entry.remove) },
    written: action === 'unchanged' ? true : action === 'left' ? null : (stored?.written ?? null),
  }
}
