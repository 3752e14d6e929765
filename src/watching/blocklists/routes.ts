/** Domains and addresses that are looked up in blocklists, over HTTP (monitoring.md). */
import { invalidFormat } from '../../base/values.ts'
import type { AccountDirectory } from '../../people/accounts/account-directory.ts'
import { jsonReply, noContent } from '../../platform/http/answer/reply.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import {
  flagParam,
  limitParam,
  parsedParam,
  skipParam,
  textParam,
} from '../../platform/http/request/inputs.ts'
import { ID_PAGE_PARAMS, idPage, pageUrl, pivotPaging } from '../../platform/http/request/paging.ts'
import type { BlocklistEventRow } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'
import { rootDomainOf } from '../../sending/domains/names/domain-names.ts'
import { readEvents } from './history.ts'
import type { Blocklist } from './lists.ts'
import type { DomainPlace, MonitoredDomains } from './monitored-domains.ts'
import type { MonitoredIps } from './monitored-ips.ts'
import {
  ADDED_DOMAIN,
  DOMAIN_EVENTS,
  DOMAIN_HEALTHS,
  DOMAIN_LISTS,
  IP_WORDS,
  MONITORED_DOMAINS,
  MONITORED_IP,
  MONITORED_IPS,
  NEW_IP,
  PENDING_DOMAIN,
  REMOVED_DOMAIN,
  REMOVED_IP,
  WATCHED_LISTS,
} from './shapes.ts'
import { monitoredDomainView, readChecks, type Views } from './views.ts'
import type { watchedLists } from './watched-lists.ts'

interface RouteParts {
  store: Store
  accounts: Pick<AccountDirectory, 'childrenOf'>
  baseUrl: string
  addressLists: readonly Blocklist[]
  domainLists: readonly Blocklist[]
  domains: MonitoredDomains
  ips: MonitoredIps
  views: Views
  watchedLists(): ReturnType<typeof watchedLists>
}

const api = operationsOf({ tag: 'Blocklists', auth: { area: 'domains' }, rateLimit: 'domains' })
const ipsApi = operationsOf({ tag: 'Blocklists', auth: { area: 'ips' } })
const DOMAINS = '/v1/inboxready/domains'
const IPS = '/v1/inboxready/ip_addresses'
const MONITORING = '/v1/monitoring/domains'
const UNKNOWN_DOMAIN = 'Domain not found'
const UNKNOWN_IP = 'IP not found'

const DOMAIN_PARAM = { domain: textParam('Name of the domain', { required: true }) }
const WITH_SUBACCOUNTS = {
  include_subaccounts: flagParam('Those of subaccounts as well', { default: false }),
}
const LIST_MAX = 1_000

export function blocklistRoutes(parts: RouteParts): Operation[] {
  const accountsOf = async (accountId: string, includes: boolean) => [
    accountId,
    ...(includes ? await parts.accounts.childrenOf(accountId) : []),
  ]
  return [
    ...domainRoutes(parts, accountsOf),
    ...addressRoutes(parts, accountsOf),
    ...monitoringRoutes(parts, accountsOf),
    api.get('/sendwright/v1/blocklists', {
      rateLimit: 'default',
      id: 'listWatchedBlocklists',
      summary: 'The lists that are watched, whether they answer usably, and what they have',
      description: 'For the first account only.',
      auth: { area: 'account', access: 'read', only: 'first' },
      answers: { 200: WATCHED_LISTS },
      async handler() {
        return { items: await parts.watchedLists() }
      },
    }),
  ]
}

type AccountsOf = (accountId: string, includes: boolean) => Promise<string[]>

/** Name and account of the last item of a page, in letters that need no escape. */
const PLACE_PARAM = parsedParam('Token of a page', (params, name): DomainPlace | undefined => {
  const token = params.text(name)
  if (token === undefined) return undefined
  const [domain, accountId, ...rest] = Buffer.from(token, 'base64url').toString().split(' ')
  if (!domain || !accountId || rest.length > 0 || !/^[\x21-\x7e]+$/.test(domain + accountId))
    throw invalidFormat(name, token)
  return { name: domain, accountId }
})

function domainRoutes({ domains, domainLists, baseUrl }: RouteParts, accountsOf: AccountsOf): Operation[] {
  const isWatched = domainLists.length > 0
  return [
    api.get(DOMAINS, {
      id: 'listMonitoredDomains',
      summary: 'List the monitored domains: the sending domains and those that were added',
      params: {
        limit: limitParam(10, LIST_MAX, { above: 'cut' }),
        domain: textParam('Only this one'),
        ...WITH_SUBACCOUNTS,
        page: PLACE_PARAM,
      },
      answers: { 200: MONITORED_DOMAINS },
      async handler({ input, caller }) {
        const { limit, domain, include_subaccounts: includes, page: after } = input()
        const name = domain?.toLowerCase()
        const found = await domains.list(await accountsOf(caller.accountId, includes), { after, name, limit })
        const last = found.at(-1) ?? after
        const link = (place?: DomainPlace) =>
          pageUrl(baseUrl, DOMAINS, [
            ['limit', limit],
            ['domain', domain],
            ['include_subaccounts', includes ? 'true' : undefined],
            ['page', place && Buffer.from(`${place.name} ${place.accountId}`).toString('base64url')],
          ])
        return {
          items: found.map((one) => monitoredDomainView(one, isWatched)),
          paging: { first: link(), previous: link(), next: link(last && placeOf(last)), last: link() },
        }
      },
    }),
    api.post(DOMAINS, {
      id: 'addMonitoredDomain',
      audit: { subject: ['domain'], given: ['domain'] },
      summary: 'Monitor a domain; one that is no sending domain once it is verified',
      params: DOMAIN_PARAM,
      answers: { 200: ADDED_DOMAIN, 400: 'It is no domain, or there are too many' },
      async handler({ input, caller }) {
        const added = await domains.add(caller.accountId, input().domain)
        return { domain: monitoredDomainView(added, isWatched), message: 'The domain has been added' }
      },
    }),
    api.delete(DOMAINS, {
      id: 'removeMonitoredDomain',
      audit: { subject: ['domain'], given: ['domain'] },
      summary: 'Do not monitor a domain any more',
      params: DOMAIN_PARAM,
      answers: { 200: REMOVED_DOMAIN, 404: UNKNOWN_DOMAIN },
      async handler({ input, caller }) {
        return { message: `${await domains.remove(caller.accountId, input().domain)} has been removed` }
      },
    }),
    api.put(`${DOMAINS}/verify`, {
      id: 'verifyMonitoredDomain',
      audit: { subject: ['domain'], given: ['domain'] },
      summary: 'Look for the TXT record of a domain, for 24 hours',
      params: DOMAIN_PARAM,
      answers: { 200: PENDING_DOMAIN, 404: UNKNOWN_DOMAIN },
      async handler({ input, caller }) {
        await domains.verify(caller.accountId, input().domain)
        return { message: 'Domain pending verification' }
      },
    }),
  ]
}

const placeOf = ({ name, accountId }: DomainPlace): DomainPlace => ({ name, accountId })

function addressRoutes({ ips, views, store, addressLists }: RouteParts, accountsOf: AccountsOf): Operation[] {
  const viewOf = async (found: Awaited<ReturnType<MonitoredIps['list']>>) => {
    const checks = await readChecks(
      store,
      addressLists,
      found.map(({ ip }) => ip),
    )
    return found.map((one) => views.address(one, checks))
  }
  const one = async (found: Awaited<ReturnType<MonitoredIps['one']>>) => {
    const [view] = await viewOf([found])
    return view as NonNullable<typeof view>
  }
  return [
    ipsApi.get(IPS, {
      id: 'listMonitoredIps',
      summary: 'List the monitored addresses: those that the account may send from',
      params: { limit: limitParam(100, LIST_MAX, { above: 'cut' }), ...WITH_SUBACCOUNTS },
      answers: { 200: MONITORED_IPS },
      async handler({ input, caller }) {
        const { limit, include_subaccounts: includes } = input()
        return { items: await viewOf(await ips.list(await accountsOf(caller.accountId, includes), limit)) }
      },
    }),
    ipsApi.post(IPS, {
      id: 'addMonitoredIp',
      audit: { subject: ['ip'], given: ['ip', 'ip_pool'] },
      summary: 'Monitor an address that the account may send from, or describe it',
      body: NEW_IP,
      answers: {
        201: MONITORED_IP,
        400: 'It is no address',
        403: 'The account may not send from it',
        409: 'It was added before',
      },
      async handler({ document, caller }) {
        const { ip, ...words } = document()
        return jsonReply(await one(await ips.add(caller.accountId, ip, words)), { status: 201 })
      },
    }),
    ipsApi.get(`${IPS}/{ip}`, {
      id: 'readMonitoredIp',
      summary: 'Read a monitored address',
      answers: { 200: MONITORED_IP, 404: UNKNOWN_IP },
      handler: async ({ path, caller }) => one(await ips.one(caller.accountId, path.ip)),
    }),
    ipsApi.put(`${IPS}/{ip}`, {
      id: 'updateMonitoredIp',
      audit: { given: ['ip_pool'] },
      summary: 'Describe a monitored address',
      body: IP_WORDS,
      answers: { 200: MONITORED_IP, 404: UNKNOWN_IP },
      handler: async ({ path, document, caller }) =>
        one(await ips.update(caller.accountId, path.ip, document())),
    }),
    ipsApi.delete(`${IPS}/{ip}`, {
      id: 'removeMonitoredIp',
      summary: 'Do not monitor an address any more',
      answers: { 204: REMOVED_IP, 404: UNKNOWN_IP },
      async handler({ path, caller }) {
        await ips.remove(caller.accountId, path.ip)
        return noContent()
      },
    }),
  ]
}

function monitoringRoutes(
  { domains, domainLists, views, store, baseUrl }: RouteParts,
  accountsOf: AccountsOf,
): Operation[] {
  const EVENT_PARAMS = { limit: limitParam(100, LIST_MAX, { above: 'cut' }), ...ID_PAGE_PARAMS }

  const eventView = ({ created_at, event, subject, account_id, list }: BlocklistEventRow) => ({
    ...{ timestamp: new Date(Number(created_at)).toISOString(), event, domain: subject, account_id, list },
    name: views.nameOf(list),
  })

  async function eventPage(
    of: { accountIds: readonly string[]; domain?: string },
    { limit, ...at }: { limit: number } & Parameters<typeof idPage>[0],
    path: string,
    carry: Readonly<Record<string, string | undefined>> = {},
  ) {
    const page = idPage(at)
    const rows = await readEvents(store, { ...of, page, limit })
    const paging = pivotPaging({
      ...{ baseUrl, path, pivotName: 'id', firstItem: rows.at(0)?.id, lastItem: rows.at(-1)?.id },
      pivot: 'pivot' in page ? page.pivot : undefined,
      carry: { limit, ...carry },
    })
    return { events: rows.map(eventView), paging }
  }

  return [
    api.get(MONITORING, {
      id: 'listDomainHealth',
      summary: 'List the domains that are looked up, with the lists that have them',
      params: { limit: limitParam(LIST_MAX, LIST_MAX), skip: skipParam(), ...WITH_SUBACCOUNTS },
      answers: { 200: DOMAIN_HEALTHS },
      async handler({ input, caller }) {
        const { limit, skip, include_subaccounts: includes } = input()
        const all = await domains.list(await accountsOf(caller.accountId, includes), { limit: skip + limit })
        const found = all.slice(skip).filter(({ added }) => added === null || added.verified_at !== null)
        const checks = await readChecks(
          store,
          domainLists,
          found.map(({ name }) => rootDomainOf(name)),
        )
        return { domains: found.map((one) => views.domainHealth(one, checks)) }
      },
    }),
    api.get(`${MONITORING}/events`, {
      id: 'listBlocklistEvents',
      summary: 'When domains were listed and delisted, newest first',
      params: { ...WITH_SUBACCOUNTS, ...EVENT_PARAMS },
      answers: { 200: DOMAIN_EVENTS },
      async handler({ input, caller }) {
        const { include_subaccounts: includes, ...at } = input()
        const accountIds = await accountsOf(caller.accountId, includes)
        return eventPage({ accountIds }, at, `${MONITORING}/events`, {
          include_subaccounts: includes ? 'true' : undefined,
        })
      },
    }),
    api.get(`${MONITORING}/{monitored_domain}/blocklists`, {
      id: 'listBlocklistsOfDomain',
      summary: 'The lists that have a domain',
      answers: { 200: DOMAIN_LISTS, 404: UNKNOWN_DOMAIN },
      async handler({ path, caller }) {
        const root = rootDomainOf((await domains.one(caller.accountId, path.monitored_domain)).name)
        const checks = await readChecks(store, domainLists, [root])
        return { blocklists: views.listedDomains(checks.get(root) ?? []) }
      },
    }),
    api.get(`${MONITORING}/{monitored_domain}/events`, {
      id: 'listBlocklistEventsOfDomain',
      summary: 'When a domain was listed and delisted, newest first',
      params: EVENT_PARAMS,
      answers: { 200: DOMAIN_EVENTS, 404: UNKNOWN_DOMAIN },
      async handler({ path, input, caller }) {
        const { name } = await domains.one(caller.accountId, path.monitored_domain)
        const of = { accountIds: [caller.accountId], domain: name }
        return eventPage(of, input(), `${MONITORING}/${encodeURIComponent(name)}/events`)
      },
    }),
  ]
}
