/** The public operations on DMARC reports (dmarc.md): from the domain to its sources, their hosts and addresses. */
import { Turns } from '../../../base/flow/gate.ts'
import { BadRequest } from '../../../base/process/errors.ts'
import { formatRfc3339 } from '../../../base/time/dates.ts'
import { DAY_MS } from '../../../base/time/durations.ts'
import type { Core } from '../../../core.ts'
import { type Operation, operationsOf } from '../../../platform/http/operation.ts'
import { dateParam, type InputOf } from '../../../platform/http/request/inputs.ts'
import type { Caller } from '../../../platform/http/rights/auth.ts'
import type { Store } from '../../../platform/store/store.ts'
import { isDmarcRecord } from '../../../protocols/dns/dmarc.ts'
import type { Domain } from '../../../sending/domains/domain.ts'
import { ownDomain } from '../../../sending/domains/names/directory.ts'
import { dayOf, OTHER } from '../store.ts'
import type { Sums } from '../summary.ts'
import {
  type AddressSums,
  accountMail,
  addressMail,
  type Chosen,
  chartOf,
  countsOf,
  dayMail,
  eventRows,
  grouped,
  messagesOf,
  type Period,
  totalOf,
} from './figures.ts'
import { createPlaces, type Place, UNKNOWN_PLACE } from './places.ts'
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

interface DmarcRouteParts extends Pick<Core, 'store' | 'resolver' | 'domains' | 'clock'> {
  baseUrl: string
}

const PERIOD_MS = 30 * DAY_MS
/** As long as reports are kept. */
const PERIOD_MS_MAX = 366 * DAY_MS
const EVENTS_MAX = 100
/** Addresses with the most mail, whose names are looked up for one answer. */
const NAMED_MAX = 100
/** Queries of one account that may wait; each reads and adds up a year at most. */
const WAITING_MAX = 50
/** Go's zero time: no report has come yet. */
const NEVER = '0001-01-01T00:00:00Z'
const PARAMS = {
  from: dateParam('Begin, Unix seconds; default 30 days before `to`'),
  to: dateParam('End, Unix seconds, only with `from`; default now'),
}

const api = operationsOf({ tag: 'DMARC', auth: { area: 'domains' }, rateLimit: 'domains' })

export function dmarcRoutes(parts: DmarcRouteParts): Operation[] {
  const { store, domains, clock } = parts
  const placesOf = createPlaces(parts)
  const turns = new Turns(WAITING_MAX)

  /** Mail of a domain from addresses of a place, or from one of them. @throws NotFound for another's domain */
  async function levelOf(
    caller: Caller,
    { domain: name, ip, ...wanted }: Partial<Place> & { domain: string; ip?: string },
    period: Period,
  ) {
    const domain = await ownDomain(domains, caller, name)
    return turns.run(caller.accountId, async () => {
      const told = { ips: [OTHER], isAllBut: true }
      const { addresses: named } = await addressMail(store, domain.id, period, told, NAMED_MAX)
      const ips = named.map((address) => address.ip)
      const places = await placesOf(caller.accountId, ips)
      places.set(OTHER, { source: OTHER, host: OTHER })
      const chosen = ofAddress(chosenBy(places, wanted), ip)
      const placeOf = (one: AddressSums) => places.get(one.ip) ?? UNKNOWN_PLACE
      return { placeOf, ...(await figuresOf(store, domain, period, chosen)) }
    })
  }
  const periodOf = (given: InputOf<typeof PARAMS>) => readPeriod(given, clock.now())

  return [
    api.get('/v1/dmarc/domains', {
      params: PARAMS,
      id: 'listDmarcDomains',
      summary: 'Mail of the domains by what receivers report',
      answers: { 200: DOMAINS },
      async handler({ input, caller }) {
        const mail = await accountMail(store, caller.accountId, periodOf(input()))
        return {
          domains: mail.domains.map(({ domain, ...sums }) => ({
            ...{ domain, email_count: messagesOf(sums) },
            ...countsOf(sums),
          })),
          pfqr_chart: chartOf(mail.days),
        }
      },
    }),
    api.get('/v1/dmarc/domains/{domain}', {
      params: PARAMS,
      id: 'readDmarcDomain',
      summary: 'Mail of a domain by source',
      answers: { 200: DOMAIN },
      async handler({ input, caller, path }) {
        const { figures, placeOf, ...level } = await levelOf(caller, path, periodOf(input()))
        const sources = partsOf(level, (one) => placeOf(one).source)
        return { ...figures, sources: sources.map(({ key: source, ...part }) => ({ source, ...part })) }
      },
    }),
    api.get('/v1/dmarc/domains/{domain}/s/{source}', {
      params: PARAMS,
      id: 'readDmarcSource',
      summary: 'Mail of a source by host',
      answers: { 200: SOURCE },
      async handler({ input, caller, path }) {
        const { figures, placeOf, ...level } = await levelOf(caller, path, periodOf(input()))
        const hosts = partsOf(level, (one) => placeOf(one).host)
        return { ...figures, hosts: hosts.map(({ key: host, ...part }) => ({ host, ...part })) }
      },
    }),
    api.get('/v1/dmarc/domains/{domain}/s/{source}/h/{host}', {
      params: PARAMS,
      id: 'readDmarcHost',
      summary: 'Mail of a host by address',
      answers: { 200: HOST },
      async handler({ input, caller, path }) {
        const { figures, addresses } = await levelOf(caller, path, periodOf(input()))
        return {
          ...figures,
          ip_addresses: addresses.map((sums) => ({
            ...{ ip: sums.ip, email_count: messagesOf(sums) },
            ...countsOf(sums),
          })),
        }
      },
    }),
    api.get('/v1/dmarc/domains/{domain}/s/{source}/h/{host}/ip/{ip}', {
      params: PARAMS,
      id: 'readDmarcAddress',
      summary: 'Mail of an address',
      answers: { 200: ADDRESS },
      async handler({ input, caller, path }) {
        const { figures } = await levelOf(caller, path, periodOf(input()))
        return { ...figures, ruf: '' }
      },
    }),
    ...setupRoutes(parts),
  ]
}

function setupRoutes({ store, resolver, domains, baseUrl }: DmarcRouteParts): Operation[] {
  return [
    api.get('/v1/dmarc/records/{domain}', {
      id: 'readDmarcRecord',
      summary: 'The DMARC record of a domain, and the one to publish',
      answers: { 200: RECORDS },
      async handler({ caller, path }) {
        const { name } = await ownDomain(domains, caller, path.domain)
        const { records } = await resolver.query(`_dmarc.${name}`, 'TXT')
        return advisedRecord(name, records.find(isDmarcRecord) ?? '')
      },
    }),
    api.get('/v1/dmarc/setup', {
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
    api.post('/v1/dmarc/referral', {
      auth: { area: 'domains', access: 'read' },
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

/** The addresses whose place has what is wanted. Those whose place was not looked up are unknown. */
function chosenBy(places: ReadonlyMap<string, Place>, { source, host }: Partial<Place>): Chosen {
  const isWanted = (place: Place) =>
    (source === undefined || place.source === source) && (host === undefined || place.host === host)
  const isAllBut = isWanted(UNKNOWN_PLACE)
  const ips = [...places].filter(([, place]) => isWanted(place) !== isAllBut).map(([ip]) => ip)
  return { ips, isAllBut }
}

function ofAddress(chosen: Chosen, ip: string | undefined): Chosen {
  if (ip === undefined) return chosen
  return { ips: chosen.ips.includes(ip) === chosen.isAllBut ? [] : [ip], isAllBut: false }
}

interface Level {
  /** With the most mail. */
  addresses: readonly AddressSums[]
  /** Sums of the other addresses. */
  rest: Sums
  restCount: number
}

function partsOf({ addresses, rest, restCount }: Level, keyOf: (row: AddressSums) => string) {
  const parts = addresses.map((row) => ({ ...row, key: keyOf(row), count: 1 }))
  if (restCount > 0) parts.push({ ...rest, ip: '', key: UNKNOWN_PLACE.source, count: restCount })
  return grouped(parts, ({ key }) => key).map(({ key, total, rows }) => ({
    ...{ key, email_count: messagesOf(total), ip_count: rows.reduce((sum, { count }) => sum + count, 0) },
    ...countsOf(total),
  }))
}

async function figuresOf(store: Store, domain: Domain, period: Period, chosen: Chosen) {
  const [{ addresses, count: ip_count }, days, rows] = await Promise.all([
    addressMail(store, domain.id, period, chosen),
    dayMail(store, domain.id, period, chosen),
    eventRows(store, domain.id, period),
  ])
  const total = totalOf(days)
  // Those of all addresses are also of addresses that the totals do not tell apart.
  const isWhole = chosen.isAllBut && chosen.ips.length === 0
  const ips = new Set(addresses.map(({ ip }) => ip))
  const events = isWhole ? rows : rows.filter(({ source_ip: ip }) => ips.has(ip))
  const count = (some: typeof events) => some.reduce((sum, { messages }) => sum + messages, 0)
  const failing = events.filter(({ spf, dkim }) => spf === 'fail' || dkim === 'fail')
  const figures = {
    ...{ email_count: messagesOf(total), ip_count },
    spf_fail_events: count(events.filter(({ spf }) => spf === 'fail')),
    dkim_fail_events: count(events.filter(({ dkim }) => dkim === 'fail')),
    auth_fail_events: count(events.filter(({ passed }) => !passed)),
    pfqr_chart: chartOf(days),
    auth_events: failing
      .toSorted((one, other) => other.messages - one.messages)
      .slice(0, EVENTS_MAX)
      .map(({ beginAt, ...row }) => ({ ...row, begin: formatRfc3339(new Date(beginAt)) })),
  }
  const rest = difference(total, totalOf(addresses))
  return { figures, addresses, rest, restCount: ip_count - addresses.length }
}

const difference = (one: Sums, other: Sums): Sums => ({
  ...{ passed: one.passed - other.passed, failed: one.failed - other.failed },
  ...{ quarantined: one.quarantined - other.quarantined, rejected: one.rejected - other.rejected },
})
