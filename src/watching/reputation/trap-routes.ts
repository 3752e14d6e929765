/**
 * Hits of spam traps that Microsoft SNDS counts, as `/v1/spamtraps` and `/v2/spamtraps` (reputation.md section 4). SNDS
 * tells neither the kind of a trap nor the domain, sender or subject of its messages.
 */
import { BadRequest } from '../../base/process/errors.ts'
import { formatRfc3339 } from '../../base/time/dates.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import {
  choiceParam,
  limitParam,
  skipParam,
  textParam,
  textsParam,
  wordParam,
} from '../../platform/http/request/inputs.ts'
import { type Paging, pageUrl } from '../../platform/http/request/paging.ts'
import type { SndsDayRow } from '../../platform/store/schema.ts'
import { type DayRange, KEPT_MS, sndsDays } from './days.ts'
import { dayOf } from './google/figures.ts'
import { accountsOf, addressesOf, INCLUDE, type ScopeParts } from './scope.ts'
import { DIMENSIONS, TRAPS, TRAPS_2 } from './shapes.ts'

const api = operationsOf({ tag: 'Reputation', auth: { area: 'ips' }, rateLimit: 'analytics' })
const LIMITS = { limit: limitParam(100, 1_000, { above: 'cut' }), skip: skipParam() }
const GROUPS = ['domain', 'subject', 'ip', 'from'] as const
const PERIOD_MS = 7 * DAY_MS

interface TrapRouteParts extends ScopeParts {
  baseUrl: string
}

export function trapRoutes(parts: TrapRouteParts): Operation[] {
  return [firstVersion(parts), secondVersion(parts)]
}

function firstVersion(parts: TrapRouteParts): Operation {
  const { store, clock, baseUrl } = parts
  return api.get('/v1/spamtraps', {
    id: 'listSpamTrapHitsByDay',
    deprecated: true,
    summary: 'Hits of spam traps by day',
    params: {
      start: wordParam('First day, YYYY-MM-DD', dateIn, { required: true, example: '2026-11-01' }),
      end: wordParam('Last day, YYYY-MM-DD', dateIn, { required: true, example: '2026-11-26' }),
      sortby: choiceParam('What to sort by', ['date', 'totals', ...GROUPS], { default: 'date' }),
      groupby: choiceParam('Items for each value of it', GROUPS),
      ip: textsParam('Only of these addresses'),
      domain: textsParam('No hits: they are unknown by domain'),
      subject: textsParam('No hits: they are unknown by subject'),
      from: textsParam('No hits: they are unknown by sender'),
      ...LIMITS,
    },
    answers: { 200: TRAPS },
    async handler({ input, caller }) {
      const given = input()
      const { start, end, sortby, groupby, limit, skip } = given
      const unknown = [...given.domain, ...given.subject, ...given.from].length > 0
      const ips = unknown ? [] : asked(addressesOf(parts, [caller.accountId]), given.ip)
      const rows = await sndsDays(store, ips, rangeOf(start, end, clock.now()), 'hit')
      const groupOf = groupby === 'ip' ? ({ ip }: SndsDayRow) => ip : () => ''
      const items = groupby === undefined ? byDay(rows) : byDayAnd(rows, groupby, groupOf)
      if (sortby === 'totals') items.sort((one, other) => other.total - one.total)
      else if (sortby === 'ip') items.sort((one, other) => (one.ip ?? '').localeCompare(other.ip ?? ''))
      const carry = { start: textOf(start), end: textOf(end), sortby, groupby, limit }
      return {
        items: items.slice(skip, skip + limit),
        paging: paging(baseUrl, '/v1/spamtraps', carry, given, items.length),
      }
    },
  })
}

function secondVersion(parts: TrapRouteParts): Operation {
  const { store, clock, baseUrl } = parts
  return api.get('/v2/spamtraps', {
    id: 'listSpamTrapHits',
    summary: 'Hits of spam traps, by a dimension',
    params: {
      start: wordParam('From the day of this time on, RFC 3339; default 7 days before the end', timeIn),
      end: wordParam('To the day of this time, RFC 3339; default now', timeIn),
      dimension: choiceParam('Items for each value of it', DIMENSIONS, { default: 'timestamp' }),
      sort: textParam('`<dimension or total>:<asc or desc>`; default by the dimension'),
      ip: textsParam('Only of these addresses'),
      domain: textsParam('No hits: they are unknown by domain'),
      sender: textsParam('No hits: they are unknown by sender'),
      from: textsParam('No hits: they are unknown by From'),
      ...INCLUDE,
      ...LIMITS,
    },
    answers: { 200: TRAPS_2 },
    async handler({ input, caller }) {
      const given = input()
      const { dimension, sort, limit, skip } = given
      const unknown = [...given.domain, ...given.sender, ...given.from].length > 0
      const accountIds = unknown ? [] : await accountsOf(parts, caller, given)
      const to = given.end ?? clock.now()
      const range = rangeOf(given.start ?? to - PERIOD_MS, to, clock.now())
      const rows = await sndsDays(store, asked(addressesOf(parts, accountIds), given.ip), range, 'hit')
      const items = totals(rows, groupOf(dimension)).map(({ value, ...item }) => ({
        dimension: value,
        ...item,
      }))
      order(items, sort)
      const carry = { dimension, sort, limit, start: formatTime(given.start), end: formatTime(given.end) }
      return {
        items: items.slice(skip, skip + limit),
        paging: paging(baseUrl, '/v2/spamtraps', carry, given, items.length),
      }
    },
  })
}

const asked = (own: readonly string[], given: readonly string[]) =>
  given.length === 0 ? [...own] : own.filter((ip) => given.includes(ip))

const rangeOf = (from: number, to: number, now: number): DayRange => ({
  from: dayOf(Math.max(from, now - KEPT_MS)),
  to: dayOf(Math.min(to, now)),
})

/** @throws BadRequest */
function dateIn(text: string, name: string): number {
  const at = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN
  if (Number.isNaN(at)) throw new BadRequest(`${name} must be a date such as 2026-11-26`)
  return at
}

/** @throws BadRequest */
function timeIn(text: string, name: string): number {
  const at = /^\d{4}-\d{2}-\d{2}T/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(at)) throw new BadRequest(`${name} must be a time such as 2026-11-26T00:00:00Z`)
  return at
}

const formatTime = (ms: number | undefined) => (ms === undefined ? undefined : formatRfc3339(new Date(ms)))

const textOf = (day: number) => new Date(day).toISOString().slice(0, 10)

const hits = (total: number) => ({ pristine: 0, recycled: 0, typo: 0, harvested: 0, total })

/** Sums of what `groupOf` tells apart, without those of 0, by value. */
function totals(rows: readonly SndsDayRow[], groupOf: (row: SndsDayRow) => string) {
  return [...Map.groupBy(rows, groupOf)]
    .map(([value, some]) => ({ value, ...hits(some.reduce((sum, row) => sum + Number(row.trap_hits), 0)) }))
    .filter(({ total }) => total > 0)
    .sort((one, other) => one.value.localeCompare(other.value))
}

type DatedHits = { date: string; ip?: string; domain?: string; subject?: string; from?: string } & ReturnType<
  typeof hits
>

/** From the first day with hits to the last, those without between them included. */
function byDay(rows: readonly SndsDayRow[]): DatedHits[] {
  const found = new Map(
    totals(rows, ({ day }) => String(day)).map(({ value, total }) => [Number(value), total]),
  )
  const days = [...found.keys()]
  const items: DatedHits[] = []
  for (let day = Math.min(...days); day <= Math.max(...days); day += DAY_MS)
    items.push({ date: textOf(day), ...hits(found.get(day) ?? 0) })
  return items
}

function byDayAnd(
  rows: readonly SndsDayRow[],
  name: (typeof GROUPS)[number],
  groupOf: (row: SndsDayRow) => string,
): DatedHits[] {
  const days = [...Map.groupBy(rows, ({ day }) => Number(day))].sort(([one], [other]) => one - other)
  return days.flatMap(([day, some]) =>
    totals(some, groupOf).map(({ value, ...item }) => ({ date: textOf(day), [name]: value, ...item })),
  )
}

/** Rows are of addresses, which several accounts may share, so that accounts are not told apart either. */
function groupOf(dimension: (typeof DIMENSIONS)[number]): (row: SndsDayRow) => string {
  if (dimension === 'timestamp') return ({ day }) => formatRfc3339(new Date(Number(day)))
  return dimension === 'ip' ? ({ ip }) => ip : () => ''
}

/** @throws BadRequest */
function order(items: { dimension: string; total: number }[], sort: string | undefined): void {
  if (sort === undefined) return
  const [, field, direction] = /^([a-z_]+)(?::(asc|desc))?$/.exec(sort) ?? []
  if (field === undefined || !['total', ...DIMENSIONS].includes(field))
    throw new BadRequest('sort must be a dimension or total, with :asc or :desc')
  if (field === 'total') items.sort((one, other) => one.total - other.total)
  if (direction === 'desc') items.reverse()
}

function paging(
  baseUrl: string,
  path: string,
  carry: Readonly<Record<string, string | number | undefined>>,
  { skip, limit }: { skip: number; limit: number },
  count: number,
): Paging {
  const at = (place: number) => pageUrl(baseUrl, path, [...Object.entries(carry), ['skip', place]])
  return {
    first: at(0),
    previous: at(Math.max(0, skip - limit)),
    next: at(skip + limit),
    last: at(Math.max(0, Math.ceil(count / limit) - 1) * limit),
  }
}
