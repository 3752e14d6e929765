/** Sending domains over HTTP (domains.md D1, D3). */
import { NotFound } from '../base/errors.ts'
import type { Caller } from '../http/auth.ts'
import { formatGmt } from '../http/dates.ts'
import { type Operation, operation } from '../http/operation.ts'
import { limitAndSkip } from '../http/paging.ts'
import type { Store } from '../store/store.ts'
import type { DomainDirectory } from './directory.ts'
import { type Domain, domainOfRow } from './domain.ts'

const TAG = 'Domains'
const READ = { area: 'domains', access: 'read' } as const

export interface DomainRouteParts {
  store: Store
  domains: DomainDirectory
}

export function domainRoutes(parts: DomainRouteParts): Operation[] {
  return [
    operation({
      method: 'GET',
      path: '/v4/domains',
      aliases: ['/v3/domains'],
      id: 'listDomains',
      tag: TAG,
      summary: 'List sending domains',
      auth: READ,
      rateLimit: 'domains',
      params: [
        { name: 'limit', type: 'integer', description: '1 to 1000', default: 100 },
        { name: 'skip', type: 'integer', description: 'Leave out the first ones', default: 0 },
        { name: 'state', type: 'string', description: 'Only domains of this state', values: STATES },
        { name: 'sort', type: 'string', description: 'By name; default newest first', values: SORTS },
        { name: 'search', type: 'string', description: 'Part of the name' },
        { name: 'authority', type: 'string', description: 'DKIM authority; not together with state' },
      ],
      responses: { 200: { description: 'Domains' } },
      async handler({ params, caller }) {
        const page = limitAndSkip(params, {
          default: 100,
          max: 1000,
          text: "Limit parameter can't be larger than 1000",
        })
        const state = params.oneOf('state', STATES)
        return listDomains(parts.store, caller.accountId, {
          ...page,
          state,
          sort: params.oneOf('sort', SORTS),
          search: params.text('search')?.toLowerCase(),
          authority: state ? undefined : params.text('authority')?.toLowerCase(),
        })
      },
    }),
    operation({
      method: 'GET',
      path: '/v4/domains/{name}',
      aliases: ['/v3/domains/{name}'],
      id: 'readDomain',
      tag: TAG,
      summary: 'Read a sending domain',
      auth: READ,
      rateLimit: 'domains',
      params: [
        {
          name: 'h:extended',
          type: 'boolean',
          description: 'Adds dkim_host, mailfrom_host, pod',
          default: false,
        },
      ],
      responses: { 200: { description: 'The domain' } },
      async handler({ params, path, caller }) {
        const domain = await ownDomain(parts.domains, caller, path.name)
        const extended = params.boolean('h:extended') ?? params.boolean('extended') ?? false
        return { domain: { ...domainView(domain), ...(extended && extendedView(domain)) } }
      },
    }),
  ]
}

const STATES = ['active', 'unverified', 'disabled'] as const
const SORTS = ['name', 'name:asc', 'name:desc'] as const

/** The caller's domain of that name. @throws NotFound with the text of domain operations */
export async function ownDomain(domains: DomainDirectory, caller: Caller, name: string): Promise<Domain> {
  const domain = await domains.byName(name)
  if (!domain || domain.accountId !== caller.accountId) throw new NotFound('Domain not found')
  return domain
}

interface DomainQuery {
  limit: number
  skip: number
  state: string | undefined
  sort: string | undefined
  search: string | undefined
  authority: string | undefined
}

async function listDomains(store: Store, accountId: string, query: DomainQuery): Promise<object> {
  let rows = store.db.selectFrom('domains').where('account_id', '=', accountId)
  if (query.state) rows = rows.where('state', '=', query.state)
  if (query.authority) rows = rows.where('dkim_authority', '=', query.authority)
  // Names hold no % or _, so a search text with one finds nothing rather than everything.
  if (query.search) rows = rows.where('name', 'like', `%${query.search.replaceAll(/[%_\\]/g, '\u0000')}%`)
  const { count } = await rows.select((of) => of.fn.countAll<number>().as('count')).executeTakeFirstOrThrow()
  const ordered =
    query.sort === undefined
      ? rows.orderBy('created_at', 'desc').orderBy('id', 'desc')
      : rows.orderBy('name', query.sort === 'name:desc' ? 'desc' : 'asc')
  const found = await ordered.selectAll().limit(query.limit).offset(query.skip).execute()
  return { total_count: Number(count), items: found.map((row) => domainView(domainOfRow(row))) }
}

/** A domain as every domain operation shows it. */
export function domainView(domain: Domain): Record<string, unknown> {
  const { disabled } = domain
  return {
    id: domain.id,
    name: domain.name,
    created_at: formatGmt(new Date(domain.createdAt)),
    state: domain.state,
    type: domain.type,
    is_disabled: domain.state === 'disabled',
    smtp_login: '',
    spam_action: domain.spamAction,
    require_tls: domain.requireTls,
    skip_verification: domain.skipVerification,
    wildcard: domain.wildcard,
    use_automatic_sender_security: domain.useAutomaticSenderSecurity,
    encrypt_incoming_message: domain.encryptIncomingMessage,
    web_prefix: domain.webPrefix,
    web_scheme: domain.webScheme,
    message_ttl: domain.messageTtlSeconds,
    tracking_host: `${domain.webPrefix}.${domain.name}`,
    ...(domain.archiveTo && { archive_to: domain.archiveTo }),
    ...(disabled && {
      disabled: {
        code: disabled.code,
        note: disabled.note,
        reason: disabled.reason,
        permanently: disabled.permanently,
        ...(disabled.until !== undefined && { until: formatGmt(new Date(disabled.until)) }),
      },
    }),
  }
}

const extendedView = (domain: Domain) => ({
  dkim_host: domain.dkimAuthority,
  mailfrom_host: domain.mailfromHost,
  pod: 'default',
})
