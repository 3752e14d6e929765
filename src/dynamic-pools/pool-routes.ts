/** The pools of an account over HTTP (dynamic-pools.md section 2, operations 5 to 9). */
import type { AccountDirectory } from '../accounts/account-directory.ts'
import { BadRequest, NotFound } from '../base/errors.ts'
import { type Operation, operation, type ParamDoc } from '../http/operation.ts'
import type { KnownAddresses } from '../ips/known-addresses.ts'
import { ipsOf } from '../ips/pools/routes.ts'
import { BANDS, type Band } from './bands.ts'
import { overviewOf, type PoolContents } from './contents.ts'
import { checkParent, ownerOf } from './pool-rules.ts'

export const TAG = 'Dynamic IP pools'
export const READ = { area: 'ips', access: 'read' } as const
export const WRITE = { area: 'ips', access: 'write' } as const
/** A subaccount uses the pools of its parent. */
const PARENT = { ...WRITE, only: 'parent' } as const
const PATH = '/v3/dynamic_pools' as const
export const SUCCESS = { message: 'success' }
const NO_BAND = 'none'

/** The sets of operation 6, by band. */
const SET_NAMES = {
  dynamic_good: 'good_reputation',
  dynamic_poor: 'poor_reputation',
  dynamic_new: 'new_senders',
} as const satisfies Record<Band, string>

export interface PoolRouteParts {
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

const IPS = (name: string, description: string, required = false): ParamDoc => ({
  ...{ name, type: 'string', repeated: true, description, required },
})

export function poolRoutes(parts: PoolRouteParts): Operation[] {
  return [...wholeRoutes(parts), ...memberRoutes(parts)]
}

function wholeRoutes({ known, accounts, contents }: PoolRouteParts): Operation[] {
  return [
    operation({
      method: 'GET',
      path: PATH,
      id: 'listDynamicPools',
      tag: TAG,
      summary: 'List the dynamic pools with their addresses',
      auth: READ,
      params: [],
      responses: { 200: { description: 'Pools; those of the parent for a subaccount' } },
      handler: async ({ caller }) => overviewOf(known.book(), await ownerOf(accounts, caller.accountId)),
    }),
    operation({
      method: 'POST',
      path: `${PATH}/all`,
      id: 'setDynamicPools',
      audit: { given: Object.values(SET_NAMES) },
      tag: TAG,
      summary: 'Set the addresses of all dynamic pools',
      auth: PARENT,
      params: BANDS.map((band) =>
        IPS(SET_NAMES[band], 'Dedicated addresses, repeated or with commas between', true),
      ),
      responses: { 200: { description: 'What they are now' }, 400: { description: 'Nothing was changed' } },
      async handler({ params, caller }) {
        await checkParent(accounts, caller.accountId)
        const ips = (band: Band) => {
          params.required(SET_NAMES[band])
          return ipsOf(params, [SET_NAMES[band]])
        }
        const [good, poor, fresh] = [ips('dynamic_good'), ips('dynamic_poor'), ips('dynamic_new')]
        await contents.set(caller.accountId, { dynamic_good: good, dynamic_poor: poor, dynamic_new: fresh })
        const { pools: _, ...sets } = overviewOf(known.book(), caller.accountId)
        return { ...SUCCESS, ...sets }
      },
    }),
    operation({
      method: 'DELETE',
      path: `${PATH}/all`,
      id: 'deleteDynamicPools',
      tag: TAG,
      summary: 'Remove the dynamic pools',
      auth: PARENT,
      params: [],
      responses: { 200: { description: 'Removed' }, 400: { description: 'Domains are enrolled in them' } },
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
    operation({
      method: 'POST',
      path: `${PATH}/{pool_name}/{ip}`,
      id: 'addDynamicPoolIp',
      tag: TAG,
      summary: 'Add an address to a dynamic pool',
      auth: PARENT,
      params: [],
      responses: { 200: { description: 'It is in the pool' } },
      async handler({ path, caller }) {
        await checkParent(accounts, caller.accountId)
        await contents.add(caller.accountId, bandOf(path.pool_name), path.ip)
        return SUCCESS
      },
    }),
    operation({
      method: 'PATCH',
      path: `${PATH}/{pool_name}`,
      id: 'updateDynamicPool',
      audit: { given: ['add_ip', 'remove_ip'] },
      tag: TAG,
      summary: 'Add and remove addresses of a dynamic pool',
      auth: PARENT,
      params: [IPS('add_ip', 'Dedicated address in no pool'), IPS('remove_ip', 'Address of the pool')],
      responses: { 200: { description: 'Changed' }, 400: { description: 'Nothing was changed' } },
      async handler({ params, path, caller }) {
        await checkParent(accounts, caller.accountId)
        const band = bandOf(path.pool_name)
        const [added, removed] = [ipsOf(params, ['add_ip']), ipsOf(params, ['remove_ip'])]
        if (added.length + removed.length === 0)
          throw new BadRequest('at least one of add_ip and remove_ip must be provided')
        await contents.edit(caller.accountId, band, added, removed)
        return SUCCESS
      },
    }),
    operation({
      method: 'POST',
      path: '/v3/ips/{addr}/ip_band',
      id: 'setIpBand',
      audit: { given: ['ip_band'] },
      tag: 'IPs',
      summary: 'Move an address into a dynamic pool, or out of it',
      auth: PARENT,
      params: [
        {
          name: 'ip_band',
          type: 'string',
          required: true,
          description: `Band, or \`${NO_BAND}\``,
          values: [...BANDS, NO_BAND],
        },
      ],
      responses: { 200: { description: 'Moved' }, 400: { description: 'Nothing was changed' } },
      async handler({ params, path, caller }) {
        await checkParent(accounts, caller.accountId)
        params.required('ip_band')
        const band = params.oneOf('ip_band', [...BANDS, NO_BAND] as const)
        await contents.place(
          caller.accountId,
          path.addr,
          band === undefined || band === NO_BAND ? null : band,
        )
        return SUCCESS
      },
    }),
  ]
}
