/** Statistics over HTTP: filtered and grouped ones, and aggregates (tags-stats.md sections 1 and 4). */
import { BadRequest } from '../../../base/process/errors.ts'
import { invalidChoice, invalidFormat } from '../../../base/values.ts'
import { csvReply, prefersCsv } from '../../../platform/http/answer/reply.ts'
import { type Operation, operationsOf } from '../../../platform/http/operation.ts'
import { choiceParam, type InputOf, parsedParam, wordParam } from '../../../platform/http/request/inputs.ts'
import type { Params } from '../../../platform/http/request/params.ts'
import type { Caller } from '../../../platform/http/rights/auth.ts'
import { ownDomain } from '../../../sending/domains/names/directory.ts'
import type { Dimension, FilterEntry } from '../figures.ts'
import { CSV, KNOWN_VALUES, sumsBy, TAG_SUMS } from '../shapes.ts'
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
import { FOUND, inForm, knownTag, READ, type StatsRouteParts, scopeOf, TAG } from './routes.ts'
import { equal, readGroups, readStats, readTotal, type Stats } from './stats.ts'
import { INTERVAL_PARAMS, intervalQuery, STATS_PARAMS, statsQuery } from './stats-query.ts'

const api = operationsOf({
  tag: 'Tags',
  auth: { area: 'events', domain: 'domain' },
  rateLimit: 'analytics',
  deprecated: true,
})

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
const FILTER_PARAMS = {
  group: choiceParam('What to group by', GROUPS, { default: 'time' }),
  ...STATS_PARAMS,
  filter: parsedParam(`key:value; the key is one of ${FILTER_KEYS.join(', ')}`, filtersOf, {
    repeated: true,
  }),
}

export function groupRoutes(parts: StatsRouteParts): Operation[] {
  return [domainsRoute(parts), filterRoute(parts), ...aggregateRoutes(parts), ...knownRoutes(parts)]
}

function domainsRoute({ figures }: StatsRouteParts): Operation {
  return api.get('/v3/stats/total/domains', {
    id: 'readDomainsStats',
    tag: 'Stats',
    summary: 'Totals of all domains in one interval',
    auth: READ,
    params: INTERVAL_PARAMS,
    answers: FOUND,
    async handler({ input, params, caller, headers }) {
      const given = input()
      const query = intervalQuery(given, params.required('timestamp'))
      const scope = { accountIds: [caller.accountId], filter: [] }
      const found = await readGroups(figures, scope, query, { type: 'domain', dimension: 'domain' })
      return inForm({ ...found, stats: found.stats.slice(given.skip, given.skip + given.limit) }, headers)
    },
  })
}

function filterRoute(parts: StatsRouteParts): Operation {
  return api.get('/v3/stats/filter', {
    id: 'readFilteredStats',
    tag: 'Stats',
    summary: 'Totals by filter and group',
    auth: READ,
    params: FILTER_PARAMS,
    answers: FOUND,
    handler: async ({ input, caller, headers }) => inForm(await grouped(parts, input(), caller), headers),
  })
}

async function grouped(
  { figures, accounts, clock }: StatsRouteParts,
  { group, filter, ...given }: InputOf<typeof FILTER_PARAMS>,
  caller: Caller,
): Promise<Stats> {
  const asked = statsQuery(given, clock.now())
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
      return readStats(figures, scope, statsQuery({ ...given, resolution: group }, clock.now()))
    default:
      return readGroups(figures, scope, asked, {
        type: group,
        dimension: DIMENSION_OF[group],
        ...(group === 'provider' && { keyOf: providerOfGroup }),
        ...(group === 'country' && { keyOf: (value: string) => value.toLowerCase() }),
      })
  }
}

function filtersOf(params: Params, name: string): FilterEntry[] {
  const texts = params.texts(name)
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

const TAG_AGGREGATED = {
  200: [TAG_SUMS, CSV],
  400: 'An unknown type',
  404: 'Domain or tag not found',
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
    return prefersCsv(headers.accept)
      ? aggregateCsv(aggregate, sums)
      : { tag: known, ...Object.fromEntries([[aggregate, sums]]) }
  }
  const ofDomain = AGGREGATES.map((aggregate) =>
    api.get(`/v3/{domain}/aggregates/${PLURALS[aggregate]}`, {
      id: `read${PLURALS[aggregate].replace(/^./, (letter) => letter.toUpperCase())}Aggregate`,
      tag: 'Stats',
      summary: `Sums of a domain by ${aggregate}`,
      answers: { 200: [sumsBy(PLURALS[aggregate]), CSV], 404: 'Domain not found' },
      async handler({ path, caller, headers }) {
        const scope = scopeOf(await ownDomain(domains, caller, path.domain))
        const sums = await readAggregate(figures, clock, scope, aggregate)
        return prefersCsv(headers.accept) ? aggregateCsv(aggregate, sums) : { [PLURALS[aggregate]]: sums }
      },
    }),
  )
  return [
    ...ofDomain,
    api.get('/v3/{domain}/tag/stats/aggregates', {
      id: 'readTagAggregate',
      summary: 'Sums of a tag by country, device or provider',
      params: {
        tag: TAG,
        type: wordParam('What to sum up by', aggregateOf, { required: true, values: AGGREGATES }),
      },
      answers: TAG_AGGREGATED,
      async handler({ input, path, ...request }) {
        const { tag, type } = input()
        return ofTag(request, path.domain, tag, type)
      },
    }),
    api.get('/v3/{domain}/tags/{tag}/stats/aggregates/{type}', {
      id: 'readTagAggregateByPath',
      summary: 'Sums of a tag by countries, devices or providers; the tag is in the path',
      answers: TAG_AGGREGATED,
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
    api.get(`/v3/domains/{domain}/tag/${name}`, {
      id: `listTag${name.replace(/^./, (letter) => letter.toUpperCase())}`,
      summary: `The ${name} that statistics of tags know`,
      answers: { 200: KNOWN_VALUES, 404: 'Domain not found' },
      async handler({ path, caller }) {
        await ownDomain(domains, caller, path.domain)
        return { items }
      },
    }),
  )
}
