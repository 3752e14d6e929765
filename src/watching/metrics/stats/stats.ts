/** Figures in the form of the statistics operations (tags-stats.md sections 3 and 4). */

import { BadRequest } from '../../../base/process/errors.ts'
import type { Of } from '../../../base/shape.ts'
import { formatUtc } from '../../../base/time/dates.ts'
import { type Counts, noCounts } from '../counters.ts'
import type { Dimension, Figures, FilterEntry } from '../figures.ts'
import { after } from '../intervals.ts'
import type { STATS, STATS_ENTRY } from '../shapes.ts'
import type { StatsEvent, StatsQuery } from './stats-query.ts'

/** What is counted. */
export interface StatsScope {
  accountIds: readonly string[]
  filter: readonly FilterEntry[]
}

export type Stats = Of<typeof STATS>
type Entry = Of<typeof STATS_ENTRY>

/** About 5 MB of JSON. */
const GROUPS_MAX = 10_000

export const equal = (attribute: FilterEntry['attribute'], ...values: string[]): FilterEntry => ({
  attribute,
  comparator: '=',
  values,
})

/** One entry per interval. */
export async function readStats(figures: Figures, scope: StatsScope, query: StatsQuery): Promise<Stats> {
  const { unit, start, end, events } = query
  const rows = await figures.read({ ...figureQuery(scope, query), dimensions: ['time'] })
  const counts = new Map(rows.map((row) => [Number(row.values[0]), row.counts]))
  const stats: Entry[] = []
  for (let at = start; at <= end; at = after(unit, at))
    stats.push(entry(at, events, counts.get(at) ?? noCounts()))
  return { ...headOf(query), stats }
}

/** One entry for the whole range. */
export async function readTotal(figures: Figures, scope: StatsScope, query: StatsQuery): Promise<Stats> {
  const [row] = await figures.read({ ...figureQuery(scope, query), dimensions: [] })
  return { ...headOf(query), stats: [entry(query.start, query.events, row?.counts ?? noCounts())] }
}

/** One entry per value, in the order of the values. `keyOf` renames values; those with the same key are added up. */
export async function readGroups(
  figures: Figures,
  scope: StatsScope,
  query: StatsQuery,
  group: { type: string; dimension: Dimension; keyOf?(value: string): string },
): Promise<Stats> {
  const rows = await figures.read({ ...figureQuery(scope, query), dimensions: [group.dimension] })
  const found = new Map<string, Counts>()
  for (const { values, counts } of rows) {
    const value = values[0] as string
    const key = group.keyOf ? group.keyOf(value) : value
    const known = found.get(key)
    found.set(key, known ? sumOf(known, counts) : counts)
  }
  if (found.size > GROUPS_MAX) throw new BadRequest(`more than ${GROUPS_MAX} groups: ask for a filter`)
  const sorted = [...found].sort(([a], [b]) => (a < b ? -1 : 1))
  const stats = sorted.map(([key, counts]) => ({
    ...entry(query.start, query.events, counts),
    type: { type: group.type, key },
  }))
  return { ...headOf(query), stats }
}

const sumOf = (a: Counts, b: Counts): Counts =>
  Object.fromEntries(
    Object.entries(a).map(([name, count]) => [name, count + b[name as keyof Counts]]),
  ) as unknown as Counts

const headOf = ({ start, end, unit }: StatsQuery) => ({
  start: formatUtc(new Date(start)),
  end: formatUtc(new Date(end)),
  resolution: unit,
})

const figureQuery = ({ accountIds, filter }: StatsScope, { start, end, unit }: StatsQuery) => ({
  accountIds,
  startMs: start,
  endMs: after(unit, end),
  resolution: unit,
  filter,
})

/** Section 3, member by member. */
function entry(start: number, events: readonly StatsEvent[], counts: Counts): Entry {
  const asked = (event: StatsEvent) => events.includes(event)
  return {
    time: formatUtc(new Date(start)),
    ...(asked('accepted') && {
      accepted: {
        incoming: counts.accepted_incoming,
        outgoing: counts.accepted_outgoing,
        total: counts.accepted_incoming + counts.accepted_outgoing,
      },
    }),
    ...(asked('delivered') && {
      delivered: {
        smtp: counts.delivered_smtp,
        http: counts.delivered_http,
        optimized: counts.delivered_optimized,
        total: counts.delivered_smtp + counts.delivered_http,
      },
    }),
    ...(asked('failed') && {
      failed: {
        temporary: { espblock: counts.failed_temporary_espblock, total: counts.failed_temporary },
        permanent: {
          'suppress-bounce': counts.failed_suppress_bounce,
          'suppress-unsubscribe': counts.failed_suppress_unsubscribe,
          'suppress-complaint': counts.failed_suppress_complaint,
          bounce: counts.failed_bounce,
          'delayed-bounce': counts.failed_delayed_bounce,
          webhook: counts.failed_webhook,
          optimized: counts.failed_optimized,
          total: counts.failed_permanent,
        },
      },
    }),
    ...(asked('opened') && { opened: { total: counts.opened, unique: counts.opened_unique } }),
    ...(asked('clicked') && { clicked: { total: counts.clicked, unique: counts.clicked_unique } }),
    ...(asked('unsubscribed') && { unsubscribed: { total: counts.unsubscribed } }),
    ...(asked('complained') && { complained: { total: counts.complained } }),
    ...(asked('stored') && { stored: { total: counts.stored } }),
  }
}
