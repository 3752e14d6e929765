/** Addresses over HTTP (ips-pools.md section 2), those of single domains excepted (domain-routes.ts). */
import { BadRequest } from '../base/errors.ts'
import { type Operation, operation, type ParamDoc } from '../http/operation.ts'
import { limitAndSkip } from '../http/paging.ts'
import type { Params } from '../http/params.ts'
import type { Store } from '../store/store.ts'
import { type Address, type AddressBook, dedicatedTo, SHARED, sharedFor } from './address-book.ts'
import type { KnownAddresses } from './known-addresses.ts'
import type { AddressRequests } from './requests.ts'
import { addressInNoPool, notEligible, ownAddress, visibleAddress } from './rules.ts'
import type { IpTasks } from './tasks.ts'
import { domainCounts, domainItem, domainsOfAddress, searchWords } from './view.ts'

export const TAG = 'IPs'
export const READ = { area: 'ips', access: 'read' } as const
export const WRITE = { area: 'ips', access: 'write' } as const
const ONE = '/v3/ips/{ip}' as const
const STARTED = {
  200: { description: 'Begun in the background; `reference_id` names it in the log' },
} as const

const FILTERS: ParamDoc[] = [
  { name: 'dedicated', type: 'boolean', description: 'Only dedicated ones, or only shared ones' },
  { name: 'enabled', type: 'boolean', description: 'Only those in use, or only others' },
]

export interface IpRouteParts {
  store: Store
  known: KnownAddresses
  tasks: IpTasks
  requests: AddressRequests
}

export function ipRoutes(parts: IpRouteParts): Operation[] {
  return [...listRoutes(parts), ...readRoutes(parts), ...requestRoutes(parts), ...domainTaskRoutes(parts)]
}

/** Those that an account may assign, in the order of the text. */
function listed(book: AddressBook, accountId: string, params: Params): Address[] {
  const [dedicated, enabled] = [params.boolean('dedicated'), params.boolean('enabled')]
  return [...dedicatedTo(book, accountId), ...sharedFor(book, accountId)].filter(
    (address) =>
      (dedicated === undefined || address.isDedicated === dedicated) &&
      (enabled === undefined || address.isEnabled === enabled),
  )
}

function listRoutes({ store, known }: IpRouteParts): Operation[] {
  return [
    operation({
      method: 'GET',
      path: '/v3/ips',
      id: 'listIps',
      tag: TAG,
      summary: 'List the addresses of the account',
      auth: READ,
      params: FILTERS,
      responses: { 200: { description: 'Its dedicated addresses and the shared ones' } },
      async handler({ params, caller }) {
        const book = known.book()
        const found = listed(book, caller.accountId, params)
        const free = dedicatedTo(book, caller.accountId).filter(({ poolId }) => poolId === null)
        return {
          items: found.map(({ ip }) => ip),
          details: found.map(({ ip, isWarming }) => ({ ip, ...(isWarming && { is_on_warmup: true }) })),
          assignable_to_pools: free.map(({ ip }) => ip),
          total_count: found.length,
        }
      },
    }),
    operation({
      method: 'GET',
      path: '/v3/ips/details/all',
      id: 'listIpDetails',
      tag: TAG,
      summary: 'List the addresses of the account with their settings',
      auth: READ,
      params: FILTERS,
      responses: { 200: { description: 'Addresses' } },
      async handler({ params, caller }) {
        const book = known.book()
        const found = listed(book, caller.accountId, params)
        const countOf = await domainCounts(store, book, caller.accountId)
        const items = found.map((address) => ({
          ...view(address),
          enabled: address.isEnabled,
          is_on_warmup: address.isWarming,
          ...(address.poolId !== null && { pool_id: address.poolId }),
          domains_count: countOf(address.ip),
        }))
        return { items, total_count: items.length }
      },
    }),
  ]
}

const view = ({ ip, rdns, isDedicated }: Address) => ({ ip, rdns, dedicated: isDedicated })

function readRoutes({ store, known }: IpRouteParts): Operation[] {
  return [
    operation({
      method: 'GET',
      path: ONE,
      id: 'readIp',
      tag: TAG,
      summary: 'Read an address',
      auth: READ,
      params: [],
      responses: { 200: { description: 'The address' } },
      handler: async ({ path, caller }) => view(visibleAddress(known.book(), caller.accountId, path.ip)),
    }),
    operation({
      method: 'GET',
      path: `${ONE}/domains`,
      id: 'listIpDomains',
      tag: TAG,
      summary: 'List the domains that send from an address',
      auth: READ,
      params: [
        { name: 'limit', type: 'integer', description: '1 to 1000', default: 100 },
        { name: 'skip', type: 'integer', description: 'Leave out the first ones', default: 0 },
        { name: 'search', type: 'string', description: 'Words, one of which the name contains' },
      ],
      responses: { 200: { description: 'Domains by id' } },
      async handler({ params, path, caller }) {
        const book = known.book()
        const { ip } = visibleAddress(book, caller.accountId, path.ip)
        const page = {
          ...limitAndSkip(params, { default: 100, max: 1000 }),
          words: searchWords(params.text('search') ?? ''),
        }
        const { items, total } = await domainsOfAddress(store, book, caller.accountId, ip, page)
        return { items: items.map((domain) => domainItem(book, domain)), total_count: total }
      },
    }),
  ]
}

function requestRoutes({ known, requests }: IpRouteParts): Operation[] {
  return [
    operation({
      method: 'GET',
      path: '/v3/ips/request/new',
      id: 'readAvailableIps',
      tag: TAG,
      summary: 'Count the addresses that the account may request',
      auth: READ,
      params: [],
      responses: { 200: { description: 'Numbers of dedicated and of shared ones' } },
      handler: async ({ caller }) => ({
        allowed: { dedicated: requests.spare(), shared: sharedFor(known.book(), caller.accountId).length },
      }),
    }),
    operation({
      method: 'POST',
      path: '/v3/ips/request/new',
      id: 'requestIp',
      tag: TAG,
      summary: 'Get a dedicated address that no account has',
      auth: WRITE,
      params: [],
      responses: { 200: { description: 'The account has one more' }, 400: { description: 'There is none' } },
      async handler({ caller }) {
        await requests.take(caller.accountId)
        return { message: 'success' }
      },
    }),
  ]
}

function domainTaskRoutes({ known, tasks }: IpRouteParts): Operation[] {
  return [
    operation({
      method: 'POST',
      path: `${ONE}/domains`,
      id: 'assignIpToDomains',
      audit: { made: ['reference_id'] },
      tag: TAG,
      summary: 'Assign an address to all domains without a linked or dynamic pool',
      auth: WRITE,
      params: [],
      responses: STARTED,
      async handler({ path, caller }) {
        const { ip } = ownAddress(known.book(), caller.accountId, path.ip)
        return started(await tasks.add(caller.accountId, { kind: 'assign', ip }))
      },
    }),
    operation({
      method: 'DELETE',
      path: `${ONE}/domains`,
      id: 'removeIpFromDomains',
      audit: { given: ['alternative'], made: ['reference_id'] },
      tag: TAG,
      summary: 'Remove an address from all domains that have another one',
      auth: WRITE,
      params: [
        { name: 'alternative', type: 'string', description: 'Address that takes its place, or `shared`' },
      ],
      responses: STARTED,
      async handler({ params, path, caller }) {
        const book = known.book()
        const { ip } = visibleAddress(book, caller.accountId, path.ip)
        const alternative = alternativeOf(book, caller.accountId, ip, params.text('alternative'))
        return started(await tasks.add(caller.accountId, { kind: 'unassign', ip, alternative }))
      },
    }),
  ]
}

export const started = (referenceId: string) => ({ message: 'started', reference_id: referenceId })

/** @throws as `addressInNoPool`; BadRequest for the address itself, and where there is no shared one */
function alternativeOf(
  book: AddressBook,
  accountId: string,
  ip: string,
  text: string | undefined,
): string | null {
  if (text === undefined) return null
  if (text === SHARED) {
    if (!sharedFor(book, accountId).some(({ isEnabled }) => isEnabled)) throw notEligible()
    return SHARED
  }
  const alternative = addressInNoPool(book, accountId, text).ip
  if (alternative === ip) throw new BadRequest('alternative must be another IP')
  return alternative
}
