/** Statistics over HTTP: totals of account, domain and tag (tags-stats.md sections 1 and 4). */

import type { CsvValue } from '../../../base/csv.ts'
import { NotFound } from '../../../base/process/errors.ts'
import type { Of } from '../../../base/shape.ts'
import { isPlainObject } from '../../../base/values.ts'
import type { Core } from '../../../core.ts'
import { csvReply, prefersCsv, type Reply } from '../../../platform/http/answer/reply.ts'
import { type Operation, operationsOf } from '../../../platform/http/operation.ts'
import { type InputOf, textParam } from '../../../platform/http/request/inputs.ts'
import type { Store } from '../../../platform/store/store.ts'
import type { Domain } from '../../../sending/domains/domain.ts'
import { ownDomain } from '../../../sending/domains/names/directory.ts'
import type { Figures, FilterEntry } from '../figures.ts'
import { CSV, STATS, TAG_STATS } from '../shapes.ts'
import { PROVIDERS, providerFilter } from './aggregates.ts'
import { equal, readStats, type Stats, type StatsScope } from './stats.ts'
import { STATS_PARAMS, statsQuery } from './stats-query.ts'

export interface StatsRouteParts extends Pick<Core, 'store' | 'domains' | 'clock'> {
  figures: Figures
  accounts: Core['accounts']
}

/** Deprecated in favour of the metrics operations. */
const api = operationsOf({
  tag: 'Tags',
  auth: { area: 'events', domain: 'domain' },
  rateLimit: 'analytics',
  deprecated: true,
})
export const READ = { area: 'events', access: 'read' } as const

const BAD = 'No event or an unknown one, a bad date, a range that is too long or runs backwards'
export const FOUND = { 200: [STATS, CSV], 400: BAD } as const
const FOUND_OF_TAG = { 200: [TAG_STATS, CSV], 400: BAD, 404: 'Domain or tag not found' } as const

export const TAG = textParam('In any letter case', { required: true })

/** Section 1: a part of a tag's statistics. */
const TAG_PARAMS = {
  ...STATS_PARAMS,
  provider: textParam(`A recipient domain, or other: all but ${PROVIDERS.join(', ')}`),
  device: textParam('desktop, mobile, tablet, other or unknown'),
  country: textParam('Two letters'),
}

/** The statistics in the form that the client accepts. */
export const inForm = <S extends Stats>(stats: S, headers: { accept?: string | undefined }) =>
  prefersCsv(headers.accept) ? statsCsv(stats) : stats

export function statsRoutes(parts: StatsRouteParts): Operation[] {
  const { figures, domains, clock } = parts
  return [
    api.get('/v3/stats/total', {
      id: 'readAccountStats',
      tag: 'Stats',
      summary: 'Totals of the account by hour, day or month',
      auth: READ,
      params: STATS_PARAMS,
      answers: FOUND,
      async handler({ input, caller, headers }) {
        const scope = { accountIds: [caller.accountId], filter: [] }
        return inForm(await readStats(figures, scope, statsQuery(input(), clock.now())), headers)
      },
    }),
    api.get('/v3/{domain}/stats/total', {
      id: 'readDomainStats',
      tag: 'Stats',
      summary: 'Totals of a domain by hour, day or month',
      params: STATS_PARAMS,
      answers: { ...FOUND, 404: 'Domain not found' },
      async handler({ input, path, caller, headers }) {
        const scope = scopeOf(await ownDomain(domains, caller, path.domain))
        return inForm(await readStats(figures, scope, statsQuery(input(), clock.now())), headers)
      },
    }),
    api.get('/v3/{domain}/tag/stats', {
      id: 'readTagStats',
      summary: 'Totals of a tag by hour, day or month',
      params: { tag: TAG, ...TAG_PARAMS },
      answers: FOUND_OF_TAG,
      async handler({ input, path, caller, headers }) {
        const domain = await ownDomain(domains, caller, path.domain)
        const { tag, ...given } = input()
        return inForm(await tagStats(parts, domain, tag, given), headers)
      },
    }),
    api.get('/v3/{domain}/tags/{tag}/stats', {
      id: 'readTagStatsByPath',
      summary: 'Totals of a tag by hour, day or month; the tag is in the path',
      params: TAG_PARAMS,
      answers: FOUND_OF_TAG,
      async handler({ input, path, caller, headers }) {
        const domain = await ownDomain(domains, caller, path.domain)
        return inForm(await tagStats(parts, domain, path.tag, input()), headers)
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
  given: InputOf<typeof TAG_PARAMS>,
): Promise<Of<typeof TAG_STATS>> {
  const query = statsQuery(given, clock.now())
  const known = await knownTag(store, domain, tag)
  const scope = scopeOf(domain, equal('tag', tag), ...tagFilters(given))
  return { ...known, ...(await readStats(figures, scope, query)) }
}

function tagFilters({ provider, device, country }: InputOf<typeof TAG_PARAMS>): FilterEntry[] {
  return [
    ...(provider === undefined ? [] : [providerFilter(provider)]),
    ...(device === undefined ? [] : [equal('device', device)]),
    ...(country === undefined ? [] : [equal('country', country)]),
  ]
}

/** One line per entry, one column per count. */
function statsCsv({ stats }: Stats): Reply {
  const lines = stats.map((entry) => new Map(cellsIn(entry, '')))
  const head = [...(lines[0]?.keys() ?? ['time'])]
  return csvReply(
    'stats.csv',
    head,
    lines.map((line) => head.map((name) => line.get(name) ?? null)),
  )
}

/** Members by path, such as `failed.permanent.bounce`. */
function cellsIn(members: Record<string, unknown>, path: string): [string, CsvValue][] {
  return Object.entries(members).flatMap(([name, value]): [string, CsvValue][] =>
    isPlainObject(value) ? cellsIn(value, `${path}${name}.`) : [[path + name, value as CsvValue]],
  )
}
