/** What Gmail says of domains, as `/v1/reputationanalytics/gpt` (reputation.md section 2). */
import { NotFound } from '../../base/process/errors.ts'
import { formatRfc3339 } from '../../base/time/dates.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import type { InputOf } from '../../platform/http/request/inputs.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
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

/** What a call asks for: whose domains, which of their days, and which part of the answer. */
async function askedOf(
  parts: GmailRouteParts,
  { input, caller }: { input(): InputOf<typeof PARAMS>; caller: Caller },
  name?: string,
) {
  const domain = name === undefined ? null : await ownDomain(parts.domains, caller, name)
  const page = input()
  const accountIds = domain === null ? await accountsOf(parts, caller, page) : [domain.accountId]
  return {
    ...{ domain, page, accountIds, range: rangeOf(page, parts.clock.now()) },
    of: { accountIds, ...(domain !== null && { domainId: domain.id }) },
    configured: await isConfigured(parts.store, 'google'),
  }
}

function dayRoutes(parts: GmailRouteParts): Operation[] {
  const { store } = parts
  return [
    api.get(`${PATH}/domains`, {
      id: 'listGptDomains',
      summary: 'What Gmail says of all domains, day by day',
      params: PARAMS,
      answers: { 200: GPT_DOMAINS },
      async handler(call) {
        const { of, range, page, configured } = await askedOf(parts, call)
        const { rows, total } = await gmailDays(store, of, range, page)
        return { domain: '', data: rows.map(dayView), total, configured }
      },
    }),
    api.get(`${PATH}/domains/{domain}`, {
      id: 'readGptDomain',
      summary: 'What Gmail says of a domain, day by day',
      params: PARAMS,
      answers: { 200: GPT_DOMAINS, 404: NOT_FOUND },
      async handler(call) {
        const { domain, of, range, page, configured } = await askedOf(parts, call, call.path.domain)
        const { id, name } = domain as Domain
        const { rows, total } = await gmailDays(store, of, range, page)
        const compliance = await complianceOf(store, id)
        return { domain: name, data: rows.map(dayView), total, compliance, configured }
      },
    }),
    api.get(`${PATH}/domains_list`, {
      id: 'listGptDomainNames',
      summary: 'Domains that Gmail says something of',
      params: PARAMS,
      answers: { 200: GPT_DOMAIN_LIST },
      async handler(call) {
        const { accountIds, range, page, configured } = await askedOf(parts, call)
        const found = await gmailDomains(store, accountIds, range)
        const data = found.map(({ name, newest }) => ({ name, date: timeOf(newest) }))
        return { ...pageOf(data, page), configured }
      },
    }),
  ]
}

/** Days that are read for loops and errors, which are counted within days. */
const ALL_DAYS = { limit: 10_000, offset: 0 }

function loopRoutes(parts: GmailRouteParts): Operation[] {
  async function loops(call: Parameters<typeof askedOf>[1], name?: string) {
    const { of, range, page, configured } = await askedOf(parts, call, name)
    const { rows } = await gmailDays(parts.store, of, range, ALL_DAYS)
    const data = rows.flatMap((row) =>
      loopsOf(row).map(({ id, rate }) => ({ name: row.name, id, ratio: rate, date: timeOf(row.day) })),
    )
    return { ...pageOf(data, page), configured }
  }
  return [
    api.get(`${PATH}/domainsfbl`, {
      id: 'listGptFeedbackLoops',
      summary: 'What Gmail says of the feedback loops of all domains',
      params: PARAMS,
      answers: { 200: GPT_LOOPS },
      handler: (call) => loops(call),
    }),
    api.get(`${PATH}/domainsfbl/{domain}`, {
      id: 'readGptFeedbackLoops',
      summary: 'What Gmail says of the feedback loops of a domain',
      params: PARAMS,
      answers: { 200: GPT_LOOPS, 404: NOT_FOUND },
      handler: (call) => loops(call, call.path.domain),
    }),
  ]
}

/** Version 2 of Google's API names no addresses, so that these lists are empty. */
function addressRoutes(parts: GmailRouteParts): Operation[] {
  const { store, domains } = parts
  const none = async (input: () => object) => {
    input()
    return { data: [], total: 0, configured: await isConfigured(store, 'google') }
  }
  const common = {
    description: "Always empty: version 2 of Google's API names no addresses.",
    params: PARAMS,
  }
  return [
    api.get(`${PATH}/addresses`, {
      ...common,
      id: 'listGptAddresses',
      summary: 'What Gmail says of all addresses, day by day',
      answers: { 200: GPT_ADDRESSES },
      handler: async ({ input }) => ({ address: '', ...(await none(input)) }),
    }),
    api.get(`${PATH}/addresses/{ip}`, {
      ...common,
      id: 'readGptAddress',
      summary: 'What Gmail says of an address, day by day',
      answers: { 200: GPT_ADDRESSES, 404: 'Address not found' },
      async handler({ input, path, caller }) {
        const accountIds = await accountsOf(parts, caller, input())
        if (!addressesOf(parts, accountIds).includes(path.ip)) throw new NotFound('Address not found')
        return { address: path.ip, ...(await none(input)) }
      },
    }),
    api.get(`${PATH}/addresses_list`, {
      ...common,
      id: 'listGptAddressNames',
      summary: 'Addresses that Gmail says something of',
      answers: { 200: GPT_ADDRESS_LIST },
      handler: ({ input }) => none(input),
    }),
    api.get(`${PATH}/domains/{domain}/addresses`, {
      ...common,
      id: 'listGptDomainAddresses',
      summary: 'What Gmail says of the addresses of a domain, day by day',
      answers: { 200: GPT_DOMAIN_ADDRESSES, 404: NOT_FOUND },
      async handler({ input, path, caller }) {
        input()
        const { name } = await ownDomain(domains, caller, path.domain)
        return { domain: name, ...(await none(input)) }
      },
    }),
    api.get(`${PATH}/summary/addresses`, {
      ...common,
      id: 'summarizeGptAddresses',
      summary: 'What Gmail says of each address on the whole',
      answers: { 200: GPT_SUMMARY_ADDRESSES },
      handler: ({ input }) => none(input),
    }),
  ]
}

function summaryRoutes(parts: GmailRouteParts): Operation[] {
  const { store } = parts
  return [
    api.get(`${PATH}/summary`, {
      id: 'summarizeGpt',
      summary: 'What Gmail says of all domains on the whole',
      params: PARAMS,
      answers: { 200: GPT_SUMMARY },
      async handler(call) {
        const { accountIds, range, configured } = await askedOf(parts, call)
        const means = await gmailMeans(store, accountIds, range)
        return { domains: Number(means.domains), days: Number(means.days), ...ratiosOf(means), configured }
      },
    }),
    api.get(`${PATH}/summary/domains`, {
      id: 'summarizeGptDomains',
      summary: 'What Gmail says of each domain on the whole',
      params: PARAMS,
      answers: { 200: GPT_SUMMARY_DOMAINS },
      async handler(call) {
        const { accountIds, range, page, configured } = await askedOf(parts, call)
        const { data, total } = pageOf(await gmailDomains(store, accountIds, range), page)
        const views = data.map((row) => ({
          ...{ name: row.name, days: Number(row.days), date: timeOf(row.newest), ...ratiosOf(row) },
          reputation: UNKNOWN,
          compliance: JSON.parse(row.compliance_json ?? '[]') as Requirement[],
        }))
        return { data: views, total, configured }
      },
    }),
    api.get(`${PATH}/summary/errors`, {
      id: 'summarizeGptErrors',
      summary: 'Why Gmail has refused or deferred mail',
      params: PARAMS,
      answers: { 200: GPT_SUMMARY_ERRORS },
      async handler(call) {
        const { of, range, page, configured } = await askedOf(parts, call)
        const { rows } = await gmailDays(store, of, range, ALL_DAYS)
        return { ...pageOf(meanErrors(rows), page), configured }
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
