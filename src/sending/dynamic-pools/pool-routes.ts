/** The pools of an account over HTTP (dynamic-pools.md section 2, operations 5 to 9). */

import { BadRequest, NotFound } from '../../base/process/errors.ts'
import type { AccountDirectory } from '../../people/accounts/account-directory.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { choiceParam, parsedParam } from '../../platform/http/request/inputs.ts'
import type { KnownAddresses } from '../ips/known-addresses.ts'
import { ipsOf, ipsParam } from '../ips/pools/routes.ts'
import { READ, SUCCESS } from '../ips/routes.ts'
import { DONE } from '../ips/shapes.ts'
import { BANDS, type Band } from './bands.ts'
import { overviewOf, type PoolContents } from './contents.ts'
import { checkParent, ownerOf } from './pool-rules.ts'
import { POOL_OVERVIEW, POOLS_SET } from './shapes.ts'

/** A subaccount uses the pools of its parent. */
const api = operationsOf({ tag: 'Dynamic IP pools', auth: { area: 'ips', only: 'parent' } })
const PATH = '/v3/dynamic_pools' as const
const NO_BAND = 'none'
const PLACES = [...BANDS, NO_BAND] as const

/** The sets of operation 6, by band. */
const SET_NAMES = {
  dynamic_good: 'good_reputation',
  dynamic_poor: 'poor_reputation',
  dynamic_new: 'new_senders',
} as const satisfies Record<Band, string>

interface PoolRouteParts {
  known: KnownAddresses
  accounts: AccountDirectory
  contents: PoolContents
}

/** The band, or the name of its set. @throws NotFound */
function bandOf(name: string): Band {
  const band = BANDS.find((one) => one === name || SET_NAMES[one] === name)
  if (band === undefined) throw new NotFound('pool not found')
  return band
}

/** Commas alone are an empty set, which is refused later. */
const SET = {
  ...parsedParam(
    'Dedicated addresses, repeated or with commas between',
    (params, name) => {
      params.required(name)
      return ipsOf(params, [name])
    },
    { repeated: true },
  ),
  required: true,
}

export function poolRoutes(parts: PoolRouteParts): Operation[] {
  return [...wholeRoutes(parts), ...memberRoutes(parts)]
}

function wholeRoutes({ known, accounts, contents }: PoolRouteParts): Operation[] {
  return [
    api.get(PATH, {
      id: 'listDynamicPools',
      summary: 'List the dynamic pools with their addresses',
      auth: READ,
      answers: { 200: POOL_OVERVIEW },
      handler: async ({ caller }) => overviewOf(known.book(), await ownerOf(accounts, caller.accountId)),
    }),
    api.post(`${PATH}/all`, {
      id: 'setDynamicPools',
      audit: { given: Object.values(SET_NAMES) },
      summary: 'Set the addresses of all dynamic pools',
      params: { good_reputation: SET, poor_reputation: SET, new_senders: SET },
      answers: { 200: POOLS_SET, 400: 'Nothing was changed' },
      async handler({ input, caller }) {
        await checkParent(accounts, caller.accountId)
        const { good_reputation: good, poor_reputation: poor, new_senders: fresh } = input()
        await contents.set(caller.accountId, { dynamic_good: good, dynamic_poor: poor, dynamic_new: fresh })
        const { pools: _, ...sets } = overviewOf(known.book(), caller.accountId)
        return { ...SUCCESS, ...sets }
      },
    }),
    api.delete(`${PATH}/all`, {
      id: 'deleteDynamicPools',
      summary: 'Remove the dynamic pools',
      answers: { 200: DONE, 400: 'Domains are enrolled in them' },
      async handler({ caller }) {
        await checkParent(accounts, caller.accountId)
        await contents.remove(caller.accountId)
        return SUCCESS
      },
    }),
  ]
}

function memberRoutes({ accounts, contents }: PoolRouteParts): Operation[] {
  return [
    api.post(`${PATH}/{pool_name}/{ip}`, {
      id: 'addDynamicPoolIp',
      summary: 'Add an address to a dynamic pool',
      answers: { 200: DONE },
      async handler({ path, caller }) {
        await checkParent(accounts, caller.accountId)
        await contents.add(caller.accountId, bandOf(path.pool_name), path.ip)
        return SUCCESS
      },
    }),
    api.patch(`${PATH}/{pool_name}`, {
      id: 'updateDynamicPool',
      audit: { given: ['add_ip', 'remove_ip'] },
      summary: 'Add and remove addresses of a dynamic pool',
      params: {
        add_ip: ipsParam('Dedicated address in no pool'),
        remove_ip: ipsParam('Address of the pool'),
      },
      answers: { 200: DONE, 400: 'Nothing was changed' },
      async handler({ input, path, caller }) {
        await checkParent(accounts, caller.accountId)
        const band = bandOf(path.pool_name)
        const { add_ip: added, remove_ip: removed } = input()
        if (added.length + removed.length === 0)
          throw new BadRequest('at least one of add_ip and remove_ip must be provided')
        await contents.edit(caller.accountId, band, added, removed)
        return SUCCESS
      },
    }),
    api.post('/v3/ips/{addr}/ip_band', {
      id: 'setIpBand',
      audit: { given: ['ip_band'] },
      tag: 'IPs',
      summary: 'Move an address into a dynamic pool, or out of it',
      params: { ip_band: choiceParam(`Band, or \`${NO_BAND}\``, PLACES, { required: true }) },
      answers: { 200: DONE, 400: 'Nothing was changed' },
      async handler({ input, path, caller }) {
        await checkParent(accounts, caller.accountId)
        const { ip_band: band } = input()
        await contents.place(caller.accountId, path.addr, band === NO_BAND ? null : band)
        return SUCCESS
      },
    }),
  ]
}
