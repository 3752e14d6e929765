/** The public operations on DMARC reports (dmarc.md): from the domain to its sources, their hosts and addresses. */
import { BadRequest } from '../../../base/process/errors.ts'
import type { Clock } from '../../../base/time/clock.ts'
import { formatRfc3339 } from '../../../base/time/dates.ts'
import { DAY_MS } from '../../../base/time/durations.ts'
import { type Operation, operation } from '../../../platform/http/operation.ts'
import { dateParam, type InputOf } from '../../../platform/http/request/inputs.ts'
import type { Caller } from '../../../platform/http/rights/auth.ts'
import type { Store } from '../../../platform/store/store.ts'
import { isDmarcRecord } from '../../../protocols/dns/dmarc.ts'
import type { Resolver } from '../../../protocols/dns/resolver.ts'
import type { Domain } from '../../../sending/domains/domain.ts'
import { type DomainDirectory, ownDomain } from '../../../sending/domains/names/directory.ts'
import { dayOf } from '../store.ts'
import {
  accountDays,
  addressDays,
  chartOf,
  countsOf,
  type DayOfAddress,
  eventRows,
  grouped,
  messagesOf,
  type Period,
  type Place,
  placesOf,
} from './figures.ts'
import { advisedRecord } from './records.ts'
import {
  ADDRESS,
  DOMAIN,
  DOMAINS,
  HOST,
  RECORDS,
  REFERRAL,
  REFERRAL_REQUEST,
  SETUP,
  SOURCE,
} from './shapes.ts'

interface DmarcRouteParts {
  store: Store
  resolver: Resolver
  domains: DomainDirectory
  clock: Clock
  baseUrl: string
}

const PERIOD_MS = 30 * DAY_MS
/** As long as reports are kept. */
const PERIOD_MS_MAX = 366 * DAY_MS
const EVENTS_MAX = 100
/** Go's zero time: no report has come yet. */
const NEVER = '0001-01-01T00:00:00Z'
const PARAMS = {
  from: dateParam('Begin, Unix seconds; default 30 days before `to`'),
  to: dateParam('End, Unix seconds, only with `from`; default now'),
}
const READ = { area: 'domains', access: 'read' } as const
const COMMON = { tag: 'DMARC', rateLimit: 'analytics', auth: READ } as const
const LEVEL = { ...COMMON, method: 'GET', params: PARAMS } as const

export function dmarcRoutes(parts: DmarcRouteParts): Operation[] {
  const { store, domains, clock } = parts

  /** Mail of a domain that `keep` wants by its place. @throws NotFound for another's domain */
  async function levelOf(
    caller: Caller,
    path: { domain: string },
    period: Period,
    keep: ((ip: string, place: Place) => boolean) | null,
  ) {
    const domain = await ownDomain(domains, caller, path.domain)
    const all = await addressDays(store, domain.id, period)
    const placeOf = await placesOf(parts.resolver, all)
    const days = keep === null ? all : all.filter(({ ip }) => keep(ip, placeOf(ip)))
    return { days, placeOf, figures: await figuresOf(store, domain, period, days, keep === null) }
  }
  const periodOf = (given: InputOf<typeof PARAMS>) => readPeriod(given, clock.now())

  return [
    operation({
      ...LEVEL,
      path: '/v1/dmarc/domains',
      id: 'listDmarcDomains',
      summary: 'Mail of the domains by what receivers report',
      answers: { 200: DOMAINS },
      async handler({ input, caller }) {
        const { names, days } = await accountDays(store, caller.accountId, periodOf(input()))
        const sums = new Map(grouped(days, ({ domain }) => domain).map(({ key, total }) => [key, total]))
        return {
          domains: names.map((domain) => {
            const total = sums.get(domain) ?? { passed: 0, failed: 0, quarantined: 0, rejected: 0 }
            return { domain, email_count: messagesOf(total), ...countsOf(total) }
          }),
          pfqr_chart: chartOf(days),
        }
      },
    }),
    operation({
      ...LEVEL,
      path: '/v1/dmarc/domains/{domain}',
      id: 'readDmarcDomain',
      summary: 'Mail of a domain by source',
      answers: { 200: DOMAIN },
      async handler({ input, caller, path }) {
        const { days, placeOf, figures } = await levelOf(caller, path, periodOf(input()), null)
        const sources = partsOf(days, ({ ip }) => placeOf(ip).source)
        return { ...figures, sources: sources.map(({ key: source, ...part }) => ({ source, ...part })) }
      },
    }),
    operation({
      ...LEVEL,
      path: '/v1/dmarc/domains/{domain}/s/{source}',
      id: 'readDmarcSource',
      summary: 'Mail of a source by host',
      answers: { 200: SOURCE },
      async handler({ input, caller, path }) {
        const keep = (_: string, place: Place) => place.source === path.source
        const { days, placeOf, figures } = await levelOf(caller, path, periodOf(input()), keep)
        const hosts = partsOf(days, ({ ip }) => placeOf(ip).host)
        return { ...figures, hosts: hosts.map(({ key: host, ...part }) => ({ host, ...part })) }
      },
    }),
    operation({
      ...LEVEL,
      path: '/v1/dmarc/domains/{domain}/s/{source}/h/{host}',
      id: 'readDmarcHost',
      summary: 'Mail of a host by address',
      answers: { 200: HOST },
      async handler({ input, caller, path }) {
        const keep = (_: string, place: Place) => place.source === path.source && place.host === path.host
        const { days, figures } = await levelOf(caller, path, periodOf(input()), keep)
        const addresses = partsOf(days, ({ ip }) => ip)
        return {
          ...figures,
          ip_addresses: addresses.map(({ key: ip, ip_count: _, ...part }) => ({ ip, ...part })),
        }
      },
    }),
    operation({
      ...LEVEL,
      path: '/v1/dmarc/domains/{domain}/s/{source}/h/{host}/ip/{ip}',
      id: 'readDmarcAddress',
      summary: 'Mail of an address',
      answers: { 200: ADDRESS },
      async handler({ input, caller, path }) {
        const keep = (ip: string, place: Place) =>
          ip === path.ip && place.source === path.source && place.host === path.host
        const { figures } = await levelOf(caller, path, periodOf(input()), keep)
        return { ...figures, ruf: '' }
      },
    }),
    ...setupRoutes(parts),
  ]
}

function setupRoutes({ store, resolver, domains, baseUrl }: DmarcRouteParts): Operation[] {
  return [
    operation({
      ...COMMON,
      method: 'GET',
      path: '/v1/dmarc/records/{domain}',
      id: 'readDmarcRecord',
      summary: 'The DMARC record of a domain, and the one to publish',
      answers: { 200: RECORDS },
      async handler({ caller, path }) {
        const { name } = await ownDomain(domains, caller, path.domain)
        const { records } = await resolver.query(`_dmarc.${name}`, 'TXT')
        return advisedRecord(name, records.find(isDmarcRecord) ?? '')
      },
    }),
    operation({
      ...COMMON,
      method: 'GET',
      path: '/v1/dmarc/setup',
      id: 'readDmarcSetup',
      summary: 'Since when DMARC reports come',
      answers: { 200: SETUP },
      async handler({ caller }) {
        const [row] = await store.read({
          sql: `SELECT min(t.day_at) AS first, max(t.day_at) AS last FROM domains d
            JOIN domain_report_totals t ON t.domain_id = d.id AND t.type = 'dmarc' AND t.name = ''
            WHERE d.account_id = ?`,
          values: [caller.accountId],
        })
        const timeOf = (at: unknown) => (at == null ? NEVER : formatRfc3339(new Date(Number(at))))
        const last = timeOf(row?.['last'])
        const CreatedAt = timeOf(row?.['first'])
        return { InstanceID: caller.accountId, CreatedAt, UpdatedAt: last, LastAccessed: last }
      },
    }),
    operation({
      ...COMMON,
      method: 'POST',
      path: '/v1/dmarc/referral',
      id: 'readDmarcReferral',
      summary: 'Where DMARC reports are shown: the dashboard of this service',
      audit: { exempt: 'reads only' },
      body: REFERRAL_REQUEST,
      answers: { 200: REFERRAL },
      handler: async () => ({ referral_uri: `${baseUrl}/` }),
    }),
  ]
}

/** @throws BadRequest */
function readPeriod({ from, to }: InputOf<typeof PARAMS>, now: number): Period {
  if (to !== undefined && from === undefined) throw new BadRequest("'from' is required with 'to'")
  const end = to?.getTime() ?? now
  const begin = from?.getTime() ?? end - PERIOD_MS
  if (begin > end || end - begin > PERIOD_MS_MAX)
    throw new BadRequest("'from' must be before 'to', and at most 366 days before it")
  return { from: dayOf(begin), to: end }
}

const partsOf = (days: readonly DayOfAddress[], keyOf: (row: DayOfAddress) => string) =>
  grouped(days, keyOf).map(({ key, total, rows }) => ({
    key,
    email_count: messagesOf(total),
    ip_count: new Set(rows.map(({ ip }) => ip)).size,
    ...countsOf(total),
  }))

/** `isWhole`: also events of addresses that the totals do not tell apart. */
async function figuresOf(
  store: Store,
  domain: Domain,
  period: Period,
  days: readonly DayOfAddress[],
  isWhole: boolean,
) {
  const addresses = new Set(days.map(({ ip }) => ip))
  const rows = await eventRows(store, domain.id, period)
  const events = isWhole ? rows : rows.filter(({ source_ip: ip }) => addresses.has(ip))
  const count = (some: typeof events) => some.reduce((sum, { messages }) => sum + messages, 0)
  const failing = events.filter(({ spf, dkim }) => spf === 'fail' || dkim === 'fail')
  return {
    email_count: days.reduce((sum, day) => sum + messagesOf(day), 0),
    ip_count: addresses.size,
    spf_fail_events: count(events.filter(({ spf }) => spf === 'fail')),
    dkim_fail_events: count(events.filter(({ dkim }) => dkim === 'fail')),
    auth_fail_events: count(events.filter(({ passed }) => !passed)),
    pfqr_chart: chartOf(days),
    auth_events: failing
      .toSorted((one, other) => other.messages - one.messages)
      .slice(0, EVENTS_MAX)
      .map(({ beginAt, ...row }) => ({ ...row, begin: formatRfc3339(new Date(beginAt)) })),
  }
}
