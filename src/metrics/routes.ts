/** Statistics over HTTP: totals of account, domain and tag (tags-stats.md sections 1 and 4). */
import type { Clock } from '../base/clock.ts'
import { BadRequest, NotFound } from '../base/errors.ts'
import type { DomainDirectory } from '../domains/directory.ts'
import type { Domain } from '../domains/domain.ts'
import { ownDomain } from '../domains/routes.ts'
import { type Operation, operation, type ParamDoc } from '../http/operation.ts'
import type { Params } from '../http/params.ts'
import type { Store } from '../store/store.ts'
import { readStats } from './stats.ts'
import { readStatsQuery, STATS_PARAMS } from './stats-query.ts'

export interface StatsRouteParts {
  store: Store
  domains: DomainDirectory
  clock: Clock
}

/** Deprecated in favour of the metrics operations. */
const COMMON = { method: 'GET', deprecated: true, rateLimit: 'analytics' } as const
const READ = { area: 'events', access: 'read' } as const
const READ_DOMAIN = { ...READ, domain: 'domain' } as const

const FOUND = {
  200: { description: 'One entry per interval, with the members of the requested events' },
  400: { description: 'No event or an unknown one, a bad date, a range that is too long or runs backwards' },
} as const
const FOUND_OF_DOMAIN = { ...FOUND, 404: { description: 'Domain not found' } } as const
const FOUND_OF_TAG = { ...FOUND, 404: { description: 'Domain or tag not found' } } as const

/** Counters do not have these dimensions. */
const UNSUPPORTED = ['provider', 'device', 'country'] as const

const TAG: ParamDoc = { name: 'tag', type: 'string', description: 'In any letter case', required: true }

export function statsRoutes(parts: StatsRouteParts): Operation[] {
  const { store, domains, clock } = parts
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
      async handler({ params, caller }) {
        const scope = { accountId: caller.accountId, domainName: null, tag: null }
        return readStats(store, scope, readStatsQuery(params, clock.now()))
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
      async handler({ params, path, caller }) {
        const { accountId, name } = await ownDomain(domains, caller, path.domain)
        const scope = { accountId, domainName: name, tag: null }
        return readStats(store, scope, readStatsQuery(params, clock.now()))
      },
    }),
    operation({
      ...COMMON,
      path: '/v3/{domain}/tag/stats',
      id: 'readTagStats',
      tag: 'Tags',
      summary: 'Totals of a tag by hour, day or month',
      auth: READ_DOMAIN,
      params: [TAG, ...STATS_PARAMS],
      responses: FOUND_OF_TAG,
      async handler({ params, path, caller }) {
        const domain = await ownDomain(domains, caller, path.domain)
        return tagStats(parts, domain, params.required('tag'), params)
      },
    }),
    operation({
      ...COMMON,
      path: '/v3/{domain}/tags/{tag}/stats',
      id: 'readTagStatsByPath',
      tag: 'Tags',
      summary: 'Totals of a tag by hour, day or month; the tag is in the path',
      auth: READ_DOMAIN,
      params: STATS_PARAMS,
      responses: FOUND_OF_TAG,
      async handler({ params, path, caller }) {
        return tagStats(parts, await ownDomain(domains, caller, path.domain), path.tag, params)
      },
    }),
  ]
}

/** @throws NotFound `Tag not found`; BadRequest also for an unsupported filter: figures without it would be wrong. */
async function tagStats({ store, clock }: StatsRouteParts, domain: Domain, tag: string, params: Params) {
  const query = readStatsQuery(params, clock.now())
  const filter = UNSUPPORTED.find((name) => params.text(name) !== undefined)
  if (filter) throw new BadRequest(`The '${filter}' parameter is not supported`)
  const known = await store.db
    .selectFrom('tags')
    .select('tag')
    .where('domain_id', '=', domain.id)
    .where('tag_key', '=', tag.toLowerCase())
    .executeTakeFirst()
  if (!known) throw new NotFound('Tag not found')
  const scope = { accountId: domain.accountId, domainName: domain.name, tag }
  return { tag: known.tag, description: '', ...(await readStats(store, scope, query)) }
}
