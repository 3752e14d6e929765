/** Statistics over HTTP: filtered and grouped ones, and aggregates (tags-stats.md sections 1 and 4). */
import { BadRequest } from '../base/errors.ts'
import { invalidChoice, invalidFormat } from '../base/values.ts'
import { ownDomain } from '../domains/routes.ts'
import type { Caller } from '../http/auth.ts'
import { csvReply, prefersCsv } from '../http/csv-reply.ts'
import { type Operation, operation, type ParamDoc } from '../http/operation.ts'
import { limitAndSkip } from '../http/paging.ts'
import type { Params } from '../http/params.ts'
import {
  AGGREGATES,
  type Aggregate,
  aggregateOf,
  COUNTRIES,
  DEVICES,
  PLURALS,
  PROVIDERS,
  providerFilter,
  providerOfGroup,
  readAggregate,
  SUM_NAMES,
  type Sums,
} from './aggregates.ts'
import type { Dimension, FilterEntry } from './figures.ts'
import {
  COMMON,
  FOUND,
  inForm,
  knownTag,
  READ,
  READ_DOMAIN,
  type StatsRouteParts,
  scopeOf,
  TAG,
} from './routes.ts'
import { equal, readGroups, readStats, readTotal, type Stats } from './stats.ts'
import { readStatsQuery, STATS_PARAMS } from './stats-query.ts'

/** Section 4 rule 5. */
const FILTER_KEYS = ['domain', 'ip', 'ip_pool', 'provider', 'tag', 'country', 'subaccount'] as const
const GROUPS = ['total', 'time', 'day', 'month', ...FILTER_KEYS] as const
const DIMENSION_OF: Readonly<Record<(typeof FILTER_KEYS)[number], Dimension>> = {
  domain: 'domain',
  ip: 'ip',
  ip_pool: 'ip_pool',
  provider: 'recipient_domain',
  tag: 'tag',
  country: 'country',
  subaccount: 'subaccount',
}
const FILTERS_MAX = 20
const LIMIT = { default: 100, max: 1000 }

export function groupRoutes(parts: StatsRouteParts): Operation[] {
  return [domainsRoute(parts), filterRoute(parts), ...aggregateRoutes(parts), ...knownRoutes(parts)]
}

function domainsRoute({ figures, clock }: StatsRouteParts): Operation {
  return operation({
    ...COMMON,
    path: '/v3/stats/total/domains',
    id: 'readDomainsStats',
    tag: 'Stats',
    summary: 'Totals of all domains in one interval',
    auth: READ,
    params: [
      ...STATS_PARAMS.filter(({ name }) => name === 'event' || name === 'resolution'),
      { name: 'timestamp', type: 'date', description: 'A time in the interval', required: true },
      { name: 'limit', type: 'integer', description: 'Page size, 1 to 1000', default: LIMIT.default },
      { name: 'skip', type: 'integer', description: 'Leave out the first ones', default: 0 },
    ],
    responses: FOUND,
    async handler({ params, caller, headers }) {
      const at = params.date('timestamp')
      if (!at) throw new BadRequest('Missing mandatory parameter: timestamp')
      const { limit, skip } = limitAndSkip(params, LIMIT)
      const query = readStatsQuery(params, clock.now(), at.getTime())
      const scope = { accountIds: [caller.accountId], filter: [] }
      const found = await readGroups(figures, scope, query, { type: 'domain', dimension: 'domain' })
      return inForm({ ...found, stats: found.stats.slice(skip, skip + limit) }, headers)
    },
  })
}

function filterRoute(parts: StatsRouteParts): Operation {
  return operation({
    ...COMMON,
    path: '/v3/stats/filter',
    id: 'readFilteredStats',
    tag: 'Stats',
    summary: 'Totals by filter and group',
    auth: READ,
    params: [
      ...STATS_PARAMS,
      {
        name: 'filter',
        type: 'string',
        description: `key:value; the key is one of ${FILTER_KEYS.join(', ')}`,
        repeated: true,
      },
      { name: 'group', type: 'string', description: 'Default time', values: GROUPS },
    ],
    responses: FOUND,
    handler: async ({ params, caller, headers }) => inForm(await grouped(parts, params, caller), headers),
  })
}

async function grouped(
  { figures, accounts, clock }: StatsRouteParts,
  params: Params,
  caller: Caller,
): Promise<Stats> {
  const group = params.oneOf('group', GROUPS) ?? 'time'
  const asked = readStatsQuery(params, clock.now())
  const filter = filtersOf(params)
  const withChildren = group === 'subaccount' || filter.some(({ attribute }) => attribute === 'subaccount')
  const children = withChildren ? await accounts.childrenOf(caller.accountId) : []
  const scope = { accountIds: [caller.accountId, ...children], filter }
  switch (group) {
    case 'total':
      return readTotal(figures, scope, asked)
    case 'time':
      return readStats(figures, scope, asked)
    case 'day':
    case 'month':
      return readStats(figures, scope, readStatsQuery(params, clock.now(), null, group))
    default:
      return readGroups(figures, scope, asked, {
        type: group,
        dimension: DIMENSION_OF[group],
        ...(group === 'provider' && { keyOf: providerOfGroup }),
        ...(group === 'country' && { keyOf: (value: string) => value.toLowerCase() }),
      })
  }
}

function filtersOf(params: Params): FilterEntry[] {
  const texts = params.texts('filter')
  if (texts.length > FILTERS_MAX) throw new BadRequest(`more than ${FILTERS_MAX} filters`)
  return texts.map((text) => {
    const at = text.indexOf(':')
    const [name, value] = [text.slice(0, Math.max(0, at)).trim(), text.slice(at + 1).trim()]
    if (at < 0 || value === '') throw invalidFormat('filter', text)
    const key = FILTER_KEYS.find((known) => known === name)
    if (!key) throw invalidChoice('filter', name)
    if (key === 'provider') return providerFilter(value)
    return equal(DIMENSION_OF[key] as FilterEntry['attribute'], value)
  })
}

const AGGREGATED = {
  200: { description: 'Sums of the last 30 days; CSV for `Accept: text/csv`' },
  400: { description: 'An unknown type' },
  404: { description: 'Domain or tag not found' },
} as const

function aggregateRoutes(parts: StatsRouteParts): Operation[] {
  const { figures, domains, clock } = parts
  const ofTag = async (
    { caller, headers }: { caller: Caller; headers: { accept?: string | undefined } },
    name: string,
    tag: string,
    aggregate: Aggregate,
  ) => {
    const domain = await ownDomain(domains, caller, name)
    const { tag: known } = await knownTag(parts.store, domain, tag)
    const sums = await readAggregate(figures, clock, scopeOf(domain, equal('tag', tag)), aggregate)
    return prefersCsv(headers.accept) ? aggregateCsv(aggregate, sums) : { tag: known, [aggregate]: sums }
  }
  const ofDomain = AGGREGATES.map((aggregate) =>
    operation({
      ...COMMON,
      path: `/v3/{domain}/aggregates/${PLURALS[aggregate]}`,
      id: `read${PLURALS[aggregate].replace(/^./, (letter) => letter.toUpperCase())}Aggregate`,
      tag: 'Stats',
      summary: `Sums of a domain by ${aggregate}`,
      auth: READ_DOMAIN,
      params: [],
      responses: AGGREGATED,
      async handler({ path, caller, headers }) {
        const scope = scopeOf(await ownDomain(domains, caller, path.domain))
        const sums = await readAggregate(figures, clock, scope, aggregate)
        return prefersCsv(headers.accept) ? aggregateCsv(aggregate, sums) : { [PLURALS[aggregate]]: sums }
      },
    }),
  )
  const type: ParamDoc = {
    name: 'type',
    type: 'string',
    description: 'What to sum up by',
    required: true,
    values: AGGREGATES,
  }
  return [
    ...ofDomain,
    operation({
      ...COMMON,
      path: '/v3/{domain}/tag/stats/aggregates',
      id: 'readTagAggregate',
      tag: 'Tags',
      summary: 'Sums of a tag by country, device or provider',
      auth: READ_DOMAIN,
      params: [TAG, type],
      responses: AGGREGATED,
      handler: ({ params, path, ...request }) =>
        ofTag(request, path.domain, params.required('tag'), aggregateOf(params.required('type'))),
    }),
    operation({
      ...COMMON,
      path: '/v3/{domain}/tags/{tag}/stats/aggregates/{type}',
      id: 'readTagAggregateByPath',
      tag: 'Tags',
      summary: 'Sums of a tag by countries, devices or providers; the tag is in the path',
      auth: READ_DOMAIN,
      params: [],
      responses: AGGREGATED,
      handler: ({ path, ...request }) => ofTag(request, path.domain, path.tag, aggregateOf(path.type)),
    }),
  ]
}

/** A line for each value, a column for each count. */
const aggregateCsv = (aggregate: Aggregate, sums: Readonly<Record<string, Sums>>) =>
  csvReply(
    `${PLURALS[aggregate]}.csv`,
    [aggregate, ...SUM_NAMES],
    Object.entries(sums).map(([value, counts]) => [value, ...SUM_NAMES.map((name) => counts[name])]),
  )

function knownRoutes({ domains }: StatsRouteParts): Operation[] {
  const lists = { devices: DEVICES, providers: PROVIDERS, countries: COUNTRIES }
  return Object.entries(lists).map(([name, items]) =>
    operation({
      ...COMMON,
      path: `/v3/domains/{domain}/tag/${name}`,
      id: `listTag${name.replace(/^./, (letter) => letter.toUpperCase())}`,
      tag: 'Tags',
      summary: `The ${name} that statistics of tags know`,
      auth: READ_DOMAIN,
      params: [],
      responses: { 200: { description: 'All of them' }, 404: { description: 'Domain not found' } },
      async handler({ path, caller }) {
        await ownDomain(domains, caller, path.domain)
        return { items }
      },
    }),
  )
}
