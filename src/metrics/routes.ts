/** Statistics over HTTP: totals of account, domain and tag (tags-stats.md sections 1 and 4). */
import type { Clock } from '../base/clock.ts'
import { NotFound } from '../base/errors.ts'
import type { Core } from '../core.ts'
import type { DomainDirectory } from '../domains/directory.ts'
import type { Domain } from '../domains/domain.ts'
import { ownDomain } from '../domains/routes.ts'
import { prefersCsv } from '../http/csv-reply.ts'
import { type Operation, operation, type ParamDoc } from '../http/operation.ts'
import type { Params } from '../http/params.ts'
import type { Store } from '../store/store.ts'
import { PROVIDERS, providerFilter } from './aggregates.ts'
import type { Figures, FilterEntry } from './figures.ts'
import { equal, readStats, type Stats, type StatsScope } from './stats.ts'
import { statsCsv } from './stats-csv.ts'
import { readStatsQuery, STATS_PARAMS } from './stats-query.ts'

export interface StatsRouteParts {
  store: Store
  figures: Figures
  domains: DomainDirectory
  accounts: Core['accounts']
  clock: Clock
}

/** Deprecated in favour of the metrics operations. */
export const COMMON = { method: 'GET', deprecated: true, rateLimit: 'analytics' } as const
export const READ = { area: 'events', access: 'read' } as const
export const READ_DOMAIN = { ...READ, domain: 'domain' } as const

export const FOUND = {
  200: {
    description:
      'One entry per interval, with the members of the requested events; CSV for `Accept: text/csv`',
  },
  400: { description: 'No event or an unknown one, a bad date, a range that is too long or runs backwards' },
} as const
export const FOUND_OF_DOMAIN = { ...FOUND, 404: { description: 'Domain not found' } } as const
export const FOUND_OF_TAG = { ...FOUND, 404: { description: 'Domain or tag not found' } } as const

export const TAG: ParamDoc = {
  name: 'tag',
  type: 'string',
  description: 'In any letter case',
  required: true,
}

/** Section 1: parts of a tag's statistics. */
const TAG_FILTERS: readonly ParamDoc[] = [
  {
    name: 'provider',
    type: 'string',
    description: `A recipient domain, or other: all but ${PROVIDERS.join(', ')}`,
  },
  { name: 'device', type: 'string', description: 'desktop, mobile, tablet, other or unknown' },
  { name: 'country', type: 'string', description: 'Two letters' },
]

/** The statistics in the form that the client accepts. */
export const inForm = (stats: Stats, headers: { accept?: string | undefined }) =>
  prefersCsv(headers.accept) ? statsCsv(stats) : stats

export function statsRoutes(parts: StatsRouteParts): Operation[] {
  const { figures, domains, clock } = parts
  return [
    operation({
      ...COMMON,
      path: '/v3/stats/total',
      id: 'readAccountStats',
      tag: 'Stats',
      summary: 'Totals of the account by hour, day or month',
      auth: READ,
      params: STATS_PARAMS,
      responses: FOUND,
      async handler({ params, caller, headers }) {
        const scope = { accountIds: [caller.accountId], filter: [] }
        return inForm(await readStats(figures, scope, readStatsQuery(params, clock.now())), headers)
      },
    }),
    operation({
      ...COMMON,
      path: '/v3/{domain}/stats/total',
      id: 'readDomainStats',
      tag: 'Stats',
      summary: 'Totals of a domain by hour, day or month',
      auth: READ_DOMAIN,
      params: STATS_PARAMS,
      responses: FOUND_OF_DOMAIN,
      async handler({ params, path, caller, headers }) {
        const scope = scopeOf(await ownDomain(domains, caller, path.domain))
        return inForm(await readStats(figures, scope, readStatsQuery(params, clock.now())), headers)
      },
    }),
    operation({
      ...COMMON,
      path: '/v3/{domain}/tag/stats',
      id: 'readTagStats',
      tag: 'Tags',
      summary: 'Totals of a tag by hour, day or month',
      auth: READ_DOMAIN,
      params: [TAG, ...STATS_PARAMS, ...TAG_FILTERS],
      responses: FOUND_OF_TAG,
      async handler({ params, path, caller, headers }) {
        const domain = await ownDomain(domains, caller, path.domain)
        return inForm(await tagStats(parts, domain, params.required('tag'), params), headers)
      },
    }),
    operation({
      ...COMMON,
      path: '/v3/{domain}/tags/{tag}/stats',
      id: 'readTagStatsByPath',
      tag: 'Tags',
      summary: 'Totals of a tag by hour, day or month; the tag is in the path',
      auth: READ_DOMAIN,
      params: [...STATS_PARAMS, ...TAG_FILTERS],
      responses: FOUND_OF_TAG,
      async handler({ params, path, caller, headers }) {
        const domain = await ownDomain(domains, caller, path.domain)
        return inForm(await tagStats(parts, domain, path.tag, params), headers)
      },
    }),
  ]
}

export const scopeOf = ({ accountId, name }: Domain, ...filter: FilterEntry[]): StatsScope => ({
  accountIds: [accountId],
  filter: [equal('domain', name), ...filter],
})

/** The tag as the domain first spelled it. @throws NotFound `Tag not found` */
export async function knownTag(
  store: Store,
  domain: Domain,
  tag: string,
): Promise<{ tag: string; description: string }> {
  const known = await store.db
    .selectFrom('tags')
    .select(['tag', 'description'])
    .where('domain_id', '=', domain.id)
    .where('tag_key', '=', tag.toLowerCase())
    .executeTakeFirst()
  if (!known) throw new NotFound('Tag not found')
  return known
}

/** @throws NotFound `Tag not found` */
async function tagStats(
  { store, figures, clock }: StatsRouteParts,
  domain: Domain,
  tag: string,
  params: Params,
): Promise<Stats & { tag: string; description: string }> {
  const query = readStatsQuery(params, clock.now())
  const known = await knownTag(store, domain, tag)
  const scope = scopeOf(domain, equal('tag', tag), ...tagFilters(params))
  return { ...known, ...(await readStats(figures, scope, query)) }
}

function tagFilters(params: Params): FilterEntry[] {
  const [provider, device, country] = ['provider', 'device', 'country'].map((name) => params.text(name))
  return [
    ...(provider === undefined ? [] : [providerFilter(provider)]),
    ...(device === undefined ? [] : [equal('device', device)]),
    ...(country === undefined ? [] : [equal('country', country)]),
  ]
}
