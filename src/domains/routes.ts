/** Sending domains over HTTP (domains.md D1-D6 and D12; own-operations.md section 6). */
import { NotFound } from '../base/errors.ts'
import type { Caller } from '../http/auth.ts'
import { type Operation, operation, type ParamDoc } from '../http/operation.ts'
import { limitAndSkip } from '../http/paging.ts'
import type { Params } from '../http/params.ts'
import { type Limiter, limitExceeded } from '../http/rate-limit.ts'
import { textReply } from '../http/reply.ts'
import { createDomain } from './create-domain.ts'
import { type DeletionParts, deleteDomain } from './deletion.ts'
import type { DomainDirectory } from './directory.ts'
import type { Domain } from './domain.ts'
import { listDomains } from './domain-list.ts'
import type { OwnRecordLooks } from './own-record-looks.ts'
import { CREATE_DOCS, readChanges, readNewDomain, readPassword, UPDATE_DOCS } from './settings.ts'
import { type UpdateParts, updateDomain } from './update-domain.ts'
import { readDnsState, type VerificationParts, verifyDomain } from './verification.ts'
import {
  domainView,
  explainedRecords,
  extendedView,
  recordStates,
  recordViews,
  serviceFaults,
} from './view.ts'
import { zoneText } from './zone.ts'

export interface DomainRouteParts extends UpdateParts, VerificationParts, DeletionParts {
  limiter: Limiter
  ownRecords: Pick<OwnRecordLooks, 'last' | 'look'>
  maxMessageTtlSeconds: number
  /** Starts the job that removes what belonged to a deleted domain. */
  wakeDeletion(): void
}

export const TAG = 'Domains'
export const READ = { area: 'domains', access: 'read' } as const
export const WRITE = { area: 'domains', access: 'write' } as const
export const COMMON = { tag: TAG, rateLimit: 'domains' } as const
const DOMAIN_ANSWER = { 200: { description: 'The domain and its records' } } as const

const STATES = ['active', 'unverified', 'disabled'] as const
const SORTS = ['name', 'name:asc', 'name:desc'] as const

const LIST_DOCS: ParamDoc[] = [
  { name: 'limit', type: 'integer', description: '1 to 1000', default: 100 },
  { name: 'skip', type: 'integer', description: 'Number of domains to skip', default: 0 },
  { name: 'state', type: 'string', description: 'Only domains of this state', values: STATES },
  { name: 'sort', type: 'string', description: 'By name; default newest first', values: SORTS },
  { name: 'search', type: 'string', description: 'Part of the name' },
  { name: 'authority', type: 'string', description: 'DKIM authority; not together with state' },
  {
    name: 'include_subaccounts',
    type: 'boolean',
    description: 'Include those of subaccounts',
    default: false,
  },
]

/** Settings whose values the audit log records; the others are either harmless by type, or secret. */
const RECORDED = [
  'web_prefix',
  'archive_to',
  'mailfrom_host',
  'dkim_host_name',
  'dkim_selector',
  'ips',
  'pool_id',
]

const READ_DOCS: ParamDoc[] = [
  { name: 'h:extended', type: 'boolean', description: 'Adds dkim_host, mailfrom_host, pod', default: false },
  { name: 'h:with_dns', type: 'boolean', description: 'With the DNS records', default: true },
  { name: 'extended', type: 'boolean', description: 'The same as h:extended' },
  { name: 'with_dns', type: 'boolean', description: 'The same as h:with_dns' },
]

export function domainRoutes(parts: DomainRouteParts): Operation[] {
  return [...readRoutes(parts), ...writeRoutes(parts), ...ownRoutes(parts)]
}

function readRoutes(parts: DomainRouteParts): Operation[] {
  return [
    operation({
      ...COMMON,
      method: 'GET',
      path: '/v4/domains',
      aliases: ['/v3/domains'],
      id: 'listDomains',
      summary: 'List sending domains',
      auth: READ,
      params: LIST_DOCS,
      responses: { 200: { description: 'Domains' } },
      handler: async ({ params, caller }) =>
        listDomains(parts.store, caller.accountId, readQuery(params), parts.clock.now()),
    }),
    operation({
      ...COMMON,
      method: 'GET',
      path: '/v4/domains/{name}',
      aliases: ['/v3/domains/{name}'],
      id: 'readDomain',
      summary: 'Read a sending domain',
      auth: READ,
      params: READ_DOCS,
      responses: DOMAIN_ANSWER,
      async handler({ params, path, caller }) {
        const extended = params.boolean('h:extended') ?? params.boolean('extended') ?? false
        const withDns = params.boolean('h:with_dns') ?? params.boolean('with_dns') ?? true
        const domain = await ownDomain(parts.domains, caller, path.name)
        const view = await domainViewOf(parts, domain)
        return {
          domain: { ...view, ...(extended && extendedView(domain)) },
          ...(withDns && (await recordsOf(parts, domain))),
        }
      },
    }),
  ]
}

function readQuery(params: Params) {
  const state = params.oneOf('state', STATES)
  return {
    ...limitAndSkip(params, {
      default: 100,
      max: 1000,
      text: "Limit parameter can't be larger than 1000",
    }),
    state,
    sort: params.oneOf('sort', SORTS),
    search: params.text('search')?.toLowerCase(),
    authority: state ? undefined : params.text('authority')?.toLowerCase(),
    includeSubaccounts: params.boolean('include_subaccounts') ?? false,
  }
}

function writeRoutes(parts: DomainRouteParts): Operation[] {
  const create = (version: 'v3' | 'v4', message: string) =>
    operation({
      ...COMMON,
      method: 'POST',
      path: `/${version}/domains`,
      id: version === 'v4' ? 'createDomain' : 'createDomainV3',
      audit: { action: 'domain.create', subject: ['name'], given: RECORDED },
      summary: 'Add a sending domain',
      auth: WRITE,
      params: CREATE_DOCS,
      responses: DOMAIN_ANSWER,
      async handler({ params, caller }) {
        const wanted = readNewDomain(params, parts.maxMessageTtlSeconds)
        return answerWith(parts, await createDomain(parts, caller, wanted), message)
      },
    })
  return [
    create('v4', 'Domain DNS records have been created'),
    create('v3', 'Domain DNS records have been created'),
    operation({
      ...COMMON,
      method: 'PUT',
      path: '/v4/domains/{name}',
      aliases: ['/v3/domains/{name}'],
      id: 'updateDomain',
      audit: { given: RECORDED },
      summary: 'Change settings of a domain',
      auth: WRITE,
      params: UPDATE_DOCS,
      responses: DOMAIN_ANSWER,
      async handler({ params, path, caller }) {
        const domain = await ownDomain(parts.domains, caller, path.name)
        const password = readPassword(params)
        const after = await updateDomain(parts, domain, readChanges(params, parts.maxMessageTtlSeconds))
        if (password !== undefined) await parts.setPostmasterPassword(after, password)
        return answerWith(parts, after, 'Domain has been updated')
      },
    }),
    operation({
      ...COMMON,
      method: 'PUT',
      path: '/v4/domains/{name}/verify',
      aliases: ['/v3/domains/{name}/verify'],
      id: 'verifyDomain',
      summary: 'Look up the records of a domain now and set its state',
      auth: WRITE,
      params: [],
      responses: { ...DOMAIN_ANSWER, 429: { description: 'More than ten times a minute' } },
      async handler({ path, caller }) {
        const domain = await ownDomain(parts.domains, caller, path.name)
        const grant = await parts.limiter.take('domain-verify', domain.id)
        if (grant && !grant.allowed) throw limitExceeded('domain-verify', grant.retrySeconds, domain.name)
        const [after] = await Promise.all([verifyDomain(parts, domain, 'by-caller'), parts.ownRecords.look()])
        if (!after) throw new NotFound('Domain not found')
        return answerWith(parts, after, 'Domain DNS records have been updated')
      },
    }),
    operation({
      ...COMMON,
      method: 'DELETE',
      path: '/v3/domains/{name}',
      aliases: ['/v4/domains/{name}'],
      id: 'deleteDomain',
      summary: 'Delete a domain and, in the background, what belongs to it',
      auth: WRITE,
      params: [],
      responses: { 200: { description: 'The domain is no longer visible' } },
      async handler({ path, caller }) {
        await deleteDomain(parts, await ownDomain(parts.domains, caller, path.name))
        parts.wakeDeletion()
        return { message: 'Domain will be deleted in the background' }
      },
    }),
  ]
}

function ownRoutes(parts: DomainRouteParts): Operation[] {
  return [
    operation({
      ...COMMON,
      method: 'GET',
      path: '/sendwright/v1/domains/{name}/zone',
      id: 'readDomainZone',
      summary: 'All DNS records of a domain as zone-file text',
      auth: READ,
      params: [],
      responses: { 200: { description: 'Zone-file text', contentType: 'text/plain' } },
      async handler({ path, caller }) {
        const domain = await ownDomain(parts.domains, caller, path.name)
        const dns = await readDnsState(parts.store, domain)
        return textReply(zoneText(domain.name, recordStates(domain, dns, parts.targets), parts.targets))
      },
    }),
    operation({
      ...COMMON,
      method: 'GET',
      path: '/sendwright/v1/domains/{name}/dns',
      id: 'explainDomainDns',
      summary: 'What DNS returned for each record at the last check, and what to change',
      auth: READ,
      params: [],
      responses: {
        200: {
          description: "Records with sentences, advice about DMARC, and faults of the service's own records",
        },
      },
      async handler({ path, caller }) {
        const domain = await ownDomain(parts.domains, caller, path.name)
        const dns = await readDnsState(parts.store, domain)
        return {
          ...explainedRecords(recordStates(domain, dns, parts.targets), dns, parts.targets),
          service: serviceFaults(parts.ownRecords.last()),
        }
      },
    }),
  ]
}

/** The caller's domain of that name. @throws NotFound with the text of domain operations */
export async function ownDomain(domains: DomainDirectory, caller: Caller, name: string): Promise<Domain> {
  const domain = await domains.byName(name)
  if (!domain || domain.accountId !== caller.accountId) throw new NotFound('Domain not found')
  return domain
}

async function answerWith(parts: DomainRouteParts, domain: Domain, message: string): Promise<object> {
  return { message, domain: await domainViewOf(parts, domain), ...(await recordsOf(parts, domain)) }
}

async function recordsOf(parts: DomainRouteParts, domain: Domain) {
  return recordViews(recordStates(domain, await readDnsState(parts.store, domain), parts.targets))
}

async function domainViewOf({ store }: DomainRouteParts, domain: Domain) {
  const account = await store.db
    .selectFrom('accounts')
    .select('parent_id')
    .where('id', '=', domain.accountId)
    .executeTakeFirst()
  return domainView(domain, Boolean(account?.parent_id))
}
