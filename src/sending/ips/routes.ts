/** Addresses over HTTP (ips-pools.md section 2), those of single domains excepted (domain-routes.ts). */
import { BadRequest } from '../../base/process/errors.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import {
  flagParam,
  type InputOf,
  limitParam,
  skipParam,
  textParam,
} from '../../platform/http/request/inputs.ts'
import type { Store } from '../../platform/store/store.ts'
import { type Address, type AddressBook, dedicatedTo, SHARED, sharedFor } from './address-book.ts'
import type { KnownAddresses } from './known-addresses.ts'
import type { AddressRequests } from './requests.ts'
import { addressInNoPool, notEligible, ownAddress, visibleAddress } from './rules.ts'
import {
  ADDRESS,
  ADDRESS_DETAILS,
  ADDRESS_DOMAINS,
  ADDRESS_LIST,
  AVAILABLE,
  DONE,
  STARTED,
} from './shapes.ts'
import type { IpTasks } from './tasks/tasks.ts'
import { domainCounts, domainItem, domainsOfAddress, searchWords } from './view.ts'

const api = operationsOf({ tag: 'IPs', auth: { area: 'ips' } })
export const READ = { area: 'ips', access: 'read' } as const
export const WRITE = { area: 'ips', access: 'write' } as const
const ONE = '/v3/ips/{ip}' as const
export const SUCCESS = { message: 'success' }

const FILTERS = {
  dedicated: flagParam('Only dedicated ones, or only shared ones'),
  enabled: flagParam('Only those in use, or only others'),
}

interface IpRouteParts {
  store: Store
  known: KnownAddresses
  tasks: IpTasks
  requests: AddressRequests
}

export function ipRoutes(parts: IpRouteParts): Operation[] {
  return [...listRoutes(parts), ...readRoutes(parts), ...requestRoutes(parts), ...domainTaskRoutes(parts)]
}

/** Addresses that an account may assign, in the order of the text. */
function listed(book: AddressBook, accountId: string, { dedicated, enabled }: InputOf<typeof FILTERS>) {
  return [...dedicatedTo(book, accountId), ...sharedFor(book, accountId)].filter(
    (address) =>
      (dedicated === undefined || address.isDedicated === dedicated) &&
      (enabled === undefined || address.isEnabled === enabled),
  )
}

function listRoutes({ store, known }: IpRouteParts): Operation[] {
  return [
    api.get('/v3/ips', {
      id: 'listIps',
      summary: 'List the addresses of the account',
      params: FILTERS,
      answers: { 200: ADDRESS_LIST },
      async handler({ input, caller }) {
        const book = known.book()
        const found = listed(book, caller.accountId, input())
        const free = dedicatedTo(book, caller.accountId).filter(({ poolId }) => poolId === null)
        return {
          items: found.map(({ ip }) => ip),
          details: found.map(({ ip, isWarming }) => ({ ip, ...(isWarming && { is_on_warmup: true }) })),
          assignable_to_pools: free.map(({ ip }) => ip),
          total_count: found.length,
        }
      },
    }),
    api.get('/v3/ips/details/all', {
      id: 'listIpDetails',
      summary: 'List the addresses of the account with their settings',
      params: FILTERS,
      answers: { 200: ADDRESS_DETAILS },
      async handler({ input, caller }) {
        const book = known.book()
        const found = listed(book, caller.accountId, input())
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
    api.get(ONE, {
      id: 'readIp',
      summary: 'Read an address',
      answers: { 200: ADDRESS },
      handler: async ({ path, caller }) => view(visibleAddress(known.book(), caller.accountId, path.ip)),
    }),
    api.get(`${ONE}/domains`, {
      id: 'listIpDomains',
      summary: 'List the domains that send from an address',
      params: {
        limit: limitParam(100, 1000),
        skip: skipParam(),
        search: textParam('Words, one of which the name contains', { default: '' }),
      },
      answers: { 200: ADDRESS_DOMAINS },
      async handler({ input, path, caller }) {
        const book = known.book()
        const { ip } = visibleAddress(book, caller.accountId, path.ip)
        const { search, ...part } = input()
        const page = { ...part, words: searchWords(search) }
        const { items, total } = await domainsOfAddress(store, book, caller.accountId, ip, page)
        return { items: items.map((domain) => domainItem(book, domain)), total_count: total }
      },
    }),
  ]
}

function requestRoutes({ known, requests }: IpRouteParts): Operation[] {
  return [
    api.get('/v3/ips/request/new', {
      id: 'readAvailableIps',
      summary: 'Count the addresses that the account may request',
      answers: { 200: AVAILABLE },
      handler: async ({ caller }) => ({
        allowed: { dedicated: requests.spare(), shared: sharedFor(known.book(), caller.accountId).length },
      }),
    }),
    api.post('/v3/ips/request/new', {
      id: 'requestIp',
      summary: 'Get a dedicated address that no account has',
      answers: { 200: DONE, 400: 'There is none' },
      async handler({ caller }) {
        await requests.take(caller.accountId)
        return SUCCESS
      },
    }),
  ]
}

function domainTaskRoutes({ known, tasks }: IpRouteParts): Operation[] {
  return [
    api.post(`${ONE}/domains`, {
      id: 'assignIpToDomains',
      audit: { made: ['reference_id'] },
      summary: 'Assign an address to all domains without a linked or dynamic pool',
      answers: { 200: STARTED },
      async handler({ path, caller }) {
        const { ip } = ownAddress(known.book(), caller.accountId, path.ip)
        return started(await tasks.add(caller.accountId, { kind: 'assign', ip }))
      },
    }),
    api.delete(`${ONE}/domains`, {
      id: 'removeIpFromDomains',
      audit: { given: ['alternative'], made: ['reference_id'] },
      summary: 'Remove an address from all domains that have another one',
      params: { alternative: textParam('Address that takes its place, or `shared`') },
      answers: { 200: STARTED },
      async handler({ input, path, caller }) {
        const book = known.book()
        const { ip } = visibleAddress(book, caller.accountId, path.ip)
        const alternative = alternativeOf(book, caller.accountId, ip, input().alternative)
        return started(await tasks.add(caller.accountId, { kind: 'unassign', ip, alternative }))
      },
    }),
  ]
}

export const started = (referenceId: string) => ({ message: 'started', reference_id: referenceId })

/** @throws as `addressInNoPool`; BadRequest for the address itself, and where there is no shared one */
function alternativeOf(book: AddressBook, accountId: string, ip: string, text: string | undefined) {
  if (text === undefined) return null
  if (text === SHARED) {
    if (!sharedFor(book, accountId).some(({ isEnabled }) => isEnabled)) throw notEligible()
    return SHARED
  }
  const alternative = addressInNoPool(book, accountId, text).ip
  if (alternative === ip) throw new BadRequest('alternative must be another IP')
  return alternative
}
