/** What Gmail says of domains, as `/v1/reputationanalytics/gpt` (reputation.md section 2). */
import { NotFound } from '../../base/process/errors.ts'
import { formatRfc3339 } from '../../base/time/dates.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import { type DomainDirectory, ownDomain } from '../../sending/domains/names/directory.ts'
import { complianceOf, type GMAIL_RATES, type GmailRow, gmailDays, gmailDomains, gmailMeans } from './days.ts'
import type { GmailDay, Requirement } from './google/figures.ts'
import {
  accountsOf,
  addressesOf,
  INCLUDE,
  isConfigured,
  PAGE_PARAMS,
  RANGE_PARAMS,
  rangeOf,
  type ScopeParts,
} from './scope.ts'
import {
  type DeliveryError,
  GPT_ADDRESS_LIST,
  GPT_ADDRESSES,
  GPT_DOMAIN_ADDRESSES,
  GPT_DOMAIN_LIST,
  GPT_DOMAINS,
  GPT_LOOPS,
  GPT_SUMMARY,
  GPT_SUMMARY_ADDRESSES,
  GPT_SUMMARY_DOMAINS,
  GPT_SUMMARY_ERRORS,
  type GptDomain,
} from './shapes.ts'

const PATH = '/v1/reputationanalytics/gpt'
const api = operationsOf({ tag: 'Reputation', auth: { area: 'domains' }, rateLimit: 'analytics' })
const PARAMS = { ...PAGE_PARAMS, ...RANGE_PARAMS, ...INCLUDE }
const NOT_FOUND = 'Domain not found'

interface GmailRouteParts extends ScopeParts {
  domains: DomainDirectory
}

export function gmailRoutes(parts: GmailRouteParts): Operation[] {
  return [...dayRoutes(parts), ...loopRoutes(parts), ...addressRoutes(parts), ...summaryRoutes(parts)]
}

function dayRoutes(parts: GmailRouteParts): Operation[] {
  const { store, clock, domains } = parts
  return [
    api.get(`${PATH}/domains`, {
      id: 'listGptDomains',
      summary: 'What Gmail says of all domains, day by day',
      params: PARAMS,
      answers: { 200: GPT_DOMAINS },
      async handler({ input, caller }) {
        const given = input()
        const accountIds = await accountsOf(parts, caller, given)
        const { rows, total } = await gmailDays(store, { accountIds }, rangeOf(given, clock.now()), given)
        return { domain: '', data: rows.map(dayView), total, configured: await isConfigured(store, 'google') }
      },
    }),
    api.get(`${PATH}/domains/{domain}`, {
      id: 'readGptDomain',
      summary: 'What Gmail says of a domain, day by day',
      params: PARAMS,
      answers: { 200: GPT_DOMAINS, 404: NOT_FOUND },
      async handler({ input, path, caller }) {
        const domain = await ownDomain(domains, caller, path.domain)
        const given = input()
        const of = scopeOf(domain)
        const { rows, total } = await gmailDays(store, of, rangeOf(given, clock.now()), given)
        return {
          domain: domain.name,
          data: rows.map(dayView),
          total,
          compliance: await complianceOf(store, domain.id),
          configured: await isConfigured(store, 'google'),
        }
      },
    }),
    api.get(`${PATH}/domains_list`, {
      id: 'listGptDomainNames',
      summary: 'Domains that Gmail says something of',
      params: PARAMS,
      answers: { 200: GPT_DOMAIN_LIST },
      async handler({ input, caller }) {
        const given = input()
        const accountIds = await accountsOf(parts, caller, given)
        const found = await gmailDomains(store, accountIds, rangeOf(given, clock.now()))
        const data = found.map(({ name, newest }) => ({ name, date: timeOf(newest) }))
        return { ...pageOf(data, given), configured: await isConfigured(store, 'google') }
      },
    }),
  ]
}

const scopeOf = ({ id, accountId }: Domain) => ({ accountIds: [accountId], domainId: id })

/** Days that are read for loops and errors, which are counted within days. */
const DAYS_MAX = 10_000

function loopRoutes(parts: GmailRouteParts): Operation[] {
  const { store, clock, domains } = parts
  const loops = (rows: readonly GmailRow[]) =>
    rows.flatMap((row) =>
      loopsOf(row).map(({ id, rate }) => ({ name: row.name, id, ratio: rate, date: timeOf(row.day) })),
    )
  const all = { limit: DAYS_MAX, offset: 0 }
  return [
    api.get(`${PATH}/domainsfbl`, {
      id: 'listGptFeedbackLoops',
      summary: 'What Gmail says of the feedback loops of all domains',
      params: PARAMS,
      answers: { 200: GPT_LOOPS },
      async handler({ input, caller }) {
        const given = input()
        const accountIds = await accountsOf(parts, caller, given)
        const { rows } = await gmailDays(store, { accountIds }, rangeOf(given, clock.now()), all)
        return { ...pageOf(loops(rows), given), configured: await isConfigured(store, 'google') }
      },
    }),
    api.get(`${PATH}/domainsfbl/{domain}`, {
      id: 'readGptFeedbackLoops',
      summary: 'What Gmail says of the feedback loops of a domain',
      params: PARAMS,
      answers: { 200: GPT_LOOPS, 404: NOT_FOUND },
      async handler({ input, path, caller }) {
        const domain = await ownDomain(domains, caller, path.domain)
        const given = input()
        const { rows } = await gmailDays(store, scopeOf(domain), rangeOf(given, clock.now()), all)
        return { ...pageOf(loops(rows), given), configured: await isConfigured(store, 'google') }
      },
    }),
  ]
}

/** Version 2 of Google's API names no addresses, so that these lists are empty. */
function addressRoutes(parts: GmailRouteParts): Operation[] {
  const { store, domains } = parts
  const none = async () => ({ data: [], total: 0, configured: await isConfigured(store, 'google') })
  const description = "Always empty: version 2 of Google's API names no addresses."
  return [
    api.get(`${PATH}/addresses`, {
      id: 'listGptAddresses',
      summary: 'What Gmail says of all addresses, day by day',
      description,
      params: PARAMS,
      answers: { 200: GPT_ADDRESSES },
      async handler({ input }) {
        input()
        return { address: '', ...(await none()) }
      },
    }),
    api.get(`${PATH}/addresses/{ip}`, {
      id: 'readGptAddress',
      summary: 'What Gmail says of an address, day by day',
      description,
      params: PARAMS,
      answers: { 200: GPT_ADDRESSES, 404: 'Address not found' },
      async handler({ input, path, caller }) {
        const accountIds = await accountsOf(parts, caller, input())
        if (!addressesOf(parts, accountIds).includes(path.ip)) throw new NotFound('Address not found')
        return { address: path.ip, ...(await none()) }
      },
    }),
    api.get(`${PATH}/addresses_list`, {
      id: 'listGptAddressNames',
      summary: 'Addresses that Gmail says something of',
      description,
      params: PARAMS,
      answers: { 200: GPT_ADDRESS_LIST },
      async handler({ input }) {
        input()
        return none()
      },
    }),
    api.get(`${PATH}/domains/{domain}/addresses`, {
      id: 'listGptDomainAddresses',
      summary: 'What Gmail says of the addresses of a domain, day by day',
      description,
      params: PARAMS,
      answers: { 200: GPT_DOMAIN_ADDRESSES, 404: NOT_FOUND },
      async handler({ input, path, caller }) {
        input()
        const { name } = await ownDomain(domains, caller, path.domain)
        return { domain: name, ...(await none()) }
      },
    }),
    api.get(`${PATH}/summary/addresses`, {
      id: 'summarizeGptAddresses',
      summary: 'What Gmail says of each address on the whole',
      description,
      params: PARAMS,
      answers: { 200: GPT_SUMMARY_ADDRESSES },
      async handler({ input }) {
        input()
        return none()
      },
    }),
  ]
}

function summaryRoutes(parts: GmailRouteParts): Operation[] {
  const { store, clock } = parts
  return [
    api.get(`${PATH}/summary`, {
      id: 'summarizeGpt',
      summary: 'What Gmail says of all domains on the whole',
      params: PARAMS,
      answers: { 200: GPT_SUMMARY },
      async handler({ input, caller }) {
        const given = input()
        const accountIds = await accountsOf(parts, caller, given)
        const means = await gmailMeans(store, accountIds, rangeOf(given, clock.now()))
        return {
          domains: Number(means.domains),
          days: Number(means.days),
          ...ratiosOf(means),
          configured: await isConfigured(store, 'google'),
        }
      },
    }),
    api.get(`${PATH}/summary/domains`, {
      id: 'summarizeGptDomains',
      summary: 'What Gmail says of each domain on the whole',
      params: PARAMS,
      answers: { 200: GPT_SUMMARY_DOMAINS },
      async handler({ input, caller }) {
        const given = input()
        const accountIds = await accountsOf(parts, caller, given)
        const found = await gmailDomains(store, accountIds, rangeOf(given, clock.now()))
        const page = pageOf(found, given)
        return {
          data: page.data.map((row) => ({
            ...{ name: row.name, days: Number(row.days), date: timeOf(row.newest), ...ratiosOf(row) },
            reputation: UNKNOWN,
            compliance: JSON.parse(row.compliance_json ?? '[]') as Requirement[],
          })),
          total: page.total,
          configured: await isConfigured(store, 'google'),
        }
      },
    }),
    api.get(`${PATH}/summary/errors`, {
      id: 'summarizeGptErrors',
      summary: 'Why Gmail has refused or deferred mail',
      params: PARAMS,
      answers: { 200: GPT_SUMMARY_ERRORS },
      async handler({ input, caller }) {
        const given = input()
        const accountIds = await accountsOf(parts, caller, given)
        const all = { limit: DAYS_MAX, offset: 0 }
        const { rows } = await gmailDays(store, { accountIds }, rangeOf(given, clock.now()), all)
        return { ...pageOf(meanErrors(rows), given), configured: await isConfigured(store, 'google') }
      },
    }),
  ]
}

/** Over all days, those without the error included; the most frequent first. */
function meanErrors(rows: readonly GmailRow[]): DeliveryError[] {
  const sums = new Map<string, DeliveryError>()
  for (const error of rows.flatMap(errorsOf)) {
    const key = `${error.error_class} ${error.error_type}`
    const before = sums.get(key)?.error_ratio ?? 0
    sums.set(key, { ...error, error_ratio: before + error.error_ratio })
  }
  return [...sums.values()]
    .map((error) => ({ ...error, error_ratio: error.error_ratio / rows.length }))
    .sort((one, other) => other.error_ratio - one.error_ratio)
}

/** The API of Google has no reputation any more. */
const UNKNOWN = 0

type Rates = Readonly<Record<(typeof GMAIL_RATES)[number], number | string | null>>

const RATIO_NAMES = [
  ['spam_rate', 'user_reported_spam_ratio'],
  ['spf_rate', 'spf_success_ratio'],
  ['dkim_rate', 'dkim_success_ratio'],
  ['dmarc_rate', 'dmarc_success_ratio'],
  ['tls_rate', 'inbound_encryption_ratio'],
  ['error_rate', 'delivery_error_ratio'],
] as const

const ratiosOf = (row: Rates) =>
  Object.fromEntries(RATIO_NAMES.map(([rate, ratio]) => [ratio, Number(row[rate] ?? 0)])) as Record<
    (typeof RATIO_NAMES)[number][1],
    number
  >

const timeOf = (day: number | string) => formatRfc3339(new Date(Number(day)))

const loopsOf = ({ loops_json: json }: GmailRow) => JSON.parse(json) as GmailDay['loops']

const CLASSES: Readonly<Record<string, string>> = { reject: 'PERMANENT_ERROR', temp_fail: 'TEMPORARY_ERROR' }

const errorsOf = ({ errors_json: json }: GmailRow): DeliveryError[] =>
  (JSON.parse(json) as GmailDay['errorRates']).map(({ type, reason, rate }) => ({
    error_class: CLASSES[type] ?? type.toUpperCase(),
    error_type: reason.toUpperCase(),
    error_ratio: rate,
  }))

const dayView = (row: GmailRow): GptDomain => ({
  account_id: row.account_id,
  name: row.name,
  ...ratiosOf(row),
  delivery_errors: errorsOf(row),
  reputation: UNKNOWN,
  date: timeOf(row.day),
  ip_counts: [],
  feedback_loops: loopsOf(row).map(({ id, rate }) => ({ id, spam_ratio: rate })),
})

const pageOf = <T>(all: readonly T[], { offset, limit }: { offset: number; limit: number }) => ({
  data: all.slice(offset, offset + limit),
  total: all.length,
})
