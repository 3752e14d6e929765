/** Delegations of pools over HTTP (ips-pools.md section 3). */
import { type Operation, operation } from '../../http/operation.ts'
import { READ, started, WRITE } from '../routes.ts'
import type { Delegations } from './delegations.ts'
import { STARTED, TAG } from './routes.ts'

const OF_POOL = '/v3/ip_pools/{pool_id}/delegate' as const
const ALIAS = '/v1/ip_pools/{pool_id}/delegate' as const
const OF_SUBACCOUNT = '/v5/accounts/subaccounts/{subaccount_id}/ip_pool' as const
const FOR_PARENTS = { ...WRITE, only: 'parent' } as const

export function delegationRoutes(delegations: Delegations): Operation[] {
  return [...poolSide(delegations), ...subaccountSide(delegations)]
}

function poolSide(delegations: Delegations): Operation[] {
  const subaccount = {
    name: 'subaccount_id',
    type: 'string',
    required: true,
    description: 'Id of a subaccount',
  } as const
  return [
    operation({
      method: 'PUT',
      path: OF_POOL,
      aliases: [ALIAS],
      id: 'delegateIpPool',
      audit: { given: ['subaccount_id'] },
      tag: TAG,
      summary: 'Let a subaccount use a pool, in place of the one it had',
      auth: FOR_PARENTS,
      params: [subaccount],
      responses: STARTED,
      handler: async ({ params, path, caller }) =>
        started(
          await delegations.add(caller.accountId, {
            poolId: path.pool_id,
            subaccountId: params.required('subaccount_id'),
          }),
        ),
    }),
    operation({
      method: 'DELETE',
      path: OF_POOL,
      aliases: [ALIAS],
      id: 'revokeIpPool',
      audit: { given: ['subaccount_id'] },
      tag: TAG,
      summary: 'End the use of a pool by a subaccount; its domains are unlinked',
      auth: FOR_PARENTS,
      params: [subaccount],
      responses: STARTED,
      handler: async ({ params, path, caller }) =>
        started(
          await delegations.remove(caller.accountId, {
            poolId: path.pool_id,
            subaccountId: params.required('subaccount_id'),
          }),
        ),
    }),
  ]
}

function subaccountSide(delegations: Delegations): Operation[] {
  const pool = { name: 'pool_id', type: 'string', required: true, description: 'Id of a pool' } as const
  return [
    operation({
      method: 'GET',
      path: '/v5/accounts/subaccounts/ip_pools/all',
      id: 'listIpPoolDelegations',
      tag: TAG,
      summary: 'List which subaccounts use which pools',
      auth: { ...READ, only: 'parent' },
      params: [],
      responses: { 200: { description: 'Delegations, at most 10000' } },
      async handler({ caller }) {
        const items = (await delegations.list(caller.accountId)).map(({ poolId, subaccountId }) => ({
          pool_id: poolId,
          subaccount_id: subaccountId,
        }))
        return { items, total_count: items.length }
      },
    }),
    operation({
      method: 'PUT',
      path: OF_SUBACCOUNT,
      id: 'delegateIpPoolToSubaccount',
      audit: { given: ['pool_id'] },
      tag: TAG,
      summary: 'Name the pool that a subaccount may use',
      auth: FOR_PARENTS,
      params: [pool],
      responses: STARTED,
      handler: async ({ params, path, caller }) =>
        started(
          await delegations.add(caller.accountId, {
            poolId: params.required('pool_id'),
            subaccountId: path.subaccount_id,
          }),
        ),
    }),
    operation({
      method: 'DELETE',
      path: OF_SUBACCOUNT,
      id: 'revokeIpPoolFromSubaccount',
      audit: { given: ['pool_id'] },
      tag: TAG,
      summary: 'Take the pool from a subaccount; its domains are unlinked',
      auth: FOR_PARENTS,
      params: [pool],
      responses: STARTED,
      handler: async ({ params, path, caller }) =>
        started(
          await delegations.remove(caller.accountId, {
            poolId: params.required('pool_id'),
            subaccountId: path.subaccount_id,
          }),
        ),
    }),
  ]
}
