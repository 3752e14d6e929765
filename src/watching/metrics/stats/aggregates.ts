/** Sums of the last 30 days by provider, device or country (tags-stats.md section 4 rule 8). */
import type { Clock } from '../../../base/time/clock.ts'
import { DAY_MS } from '../../../base/time/durations.ts'
import { invalidChoice } from '../../../base/values.ts'
import type { Counts } from '../counters.ts'
import { countOf, type Figures, type FilterEntry } from '../figures.ts'
import { equal, type StatsScope } from './stats.ts'

/** Section 1 rule 9: providers are recipient domains here. */
export const PROVIDERS = (
  'gmail.com yahoo.com hotmail.com aol.com icloud.com mail.ru comcast.net outlook.com msn.com live.com orange.fr ' +
  'sbcglobal.net att.net ymail.com hotmail.co.uk verizon.net bellsouth.net me.com yandex.ru seznam.cz yahoo.co.uk ' +
  'hotmail.fr yahoo.com.tw rocketmail.com mailinator.com qq.com'
).split(' ')
const OTHER = 'other'

export const DEVICES = ['desktop', 'mobile', 'tablet', 'unknown'] as const

/** ISO 3166-1. */
export const COUNTRIES = (
  'ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bl bm bn bo bq br bs bt bv bw by bz ca cc cd cf cg ch ' +
  'ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg eh er es et fi fj fk fm fo fr ga gb gd ge gf gg gh gi gl gm gn ' +
  'gp gq gr gs gt gu gw gy hk hm hn hr ht hu id ie il im in io iq ir is it je jm jo jp ke kg kh ki km kn kp kr kw ky kz la lb lc li ' +
  'lk lr ls lt lu lv ly ma mc md me mf mg mh mk ml mm mn mo mp mq mr ms mt mu mv mw mx my mz na nc ne nf ng ni nl no np nr nu nz om ' +
  'pa pe pf pg ph pk pl pm pn pr ps pt pw py qa re ro rs ru rw sa sb sc sd se sg sh si sj sk sl sm sn so sr ss st sv sx sy sz tc td ' +
  'tf tg th tj tk tl tm tn to tr tt tv tw tz ua ug um us uy uz va vc ve vg vi vn vu wf ws ye yt za zm zw'
).split(' ')

/** A filter by provider; `other` is every domain that is not in the list. */
export const providerFilter = (name: string): FilterEntry =>
  name.toLowerCase() === OTHER
    ? { attribute: 'recipient_domain', comparator: '!=', values: PROVIDERS }
    : equal('recipient_domain', name)

export const providerOfGroup = (domain: string): string => (PROVIDERS.includes(domain) ? domain : OTHER)

export const AGGREGATES = ['country', 'device', 'provider'] as const
export type Aggregate = (typeof AGGREGATES)[number]

const DAYS = 30

/** In the order of the response's members. */
export const SUM_NAMES = [
  'accepted',
  'delivered',
  'opened',
  'clicked',
  'unique_opened',
  'unique_clicked',
  'unsubscribed',
  'complained',
] as const
export type Sums = Record<(typeof SUM_NAMES)[number], number>

/** @throws BadRequest when there is too much to read */
export async function readAggregate(
  figures: Figures,
  clock: Clock,
  scope: StatsScope,
  aggregate: Aggregate,
): Promise<Record<string, Sums>> {
  const now = clock.now()
  const query = {
    accountIds: scope.accountIds,
    startMs: now - DAYS * DAY_MS,
    endMs: now + 1,
    resolution: 'day',
    filter: scope.filter,
  } as const
  if (aggregate !== 'provider') {
    const rows = await figures.read({ ...query, dimensions: [aggregate] })
    return sorted(rows.map(({ values, counts }) => [(values[0] as string).toLowerCase(), sumsOf(counts)]))
  }
  const listed = [...scope.filter, equal('recipient_domain', ...PROVIDERS)]
  const rows = await figures.read({ ...query, filter: listed, dimensions: ['recipient_domain'] })
  const others = [...scope.filter, providerFilter(OTHER)]
  const [rest] = await figures.read({ ...query, filter: others, dimensions: [] })
  const known = rows.map(({ values, counts }): [string, Sums] => [values[0] as string, sumsOf(counts)])
  const other = sumsOf(rest?.counts as Counts)
  return sorted(Object.values(other).some((count) => count > 0) ? [...known, [OTHER, other]] : known)
}

const sorted = (entries: [string, Sums][]) => Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))

const sumsOf = (counts: Counts): Sums => ({
  accepted: countOf('accepted_count', counts),
  delivered: countOf('delivered_count', counts),
  opened: counts.opened,
  clicked: counts.clicked,
  unique_opened: counts.opened_unique,
  unique_clicked: counts.clicked_unique,
  unsubscribed: counts.unsubscribed,
  complained: counts.complained,
})

/** @throws BadRequest `'<value>' is not a valid value for type` */
export function aggregateOf(text: string): Aggregate {
  const found = AGGREGATES.find((name) => name === text || PLURALS[name] === text)
  if (!found) throw invalidChoice('type', text)
  return found
}

export const PLURALS = { country: 'countries', device: 'devices', provider: 'providers' } as const
