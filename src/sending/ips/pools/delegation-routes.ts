/** Delegations of pools over HTTP (ips-pools.md section 3). */

import { type Operation, operationsOf } from '../../../platform/http/operation.ts'
import { textParam } from '../../../platform/http/request/inputs.ts'
import { started } from '../routes.ts'
import { DELEGATION_LIST, STARTED } from '../shapes.ts'
import type { Delegations } from './delegations.ts'

const api = operationsOf({ tag: 'IP pools', auth: { area: 'ips', only: 'parent' } })

const OF_POOL = '/v3/ip_pools/{pool_id}/delegate' as const
const ALIAS = '/v1/ip_pools/{pool_id}/delegate' as const
const OF_SUBACCOUNT = '/v5/accounts/subaccounts/{subaccount_id}/ip_pool' as const

export function delegationRoutes(delegations: Delegations): Operation[] {
  return [...poolSide(delegations), ...subaccountSide(delegations)]
}

function poolSide(delegations: Delegations): Operation[] {
  const params = { subaccount_id: textParam('Id of a subaccount', { required: true }) }
  return [
    api.put(OF_POOL, {
      aliases: [ALIAS],
      id: 'delegateIpPool',
      audit: { given: ['subaccount_id'] },
      summary: 'Let a subaccount use a pool, in place of the one it had',
      params,
      answers: { 200: STARTED },
      async handler({ input, path, caller }) {
        const use = { poolId: path.pool_id, subaccountId: input().subaccount_id }
        return started(await delegations.add(caller.accountId, use))
      },
    }),
    api.delete(OF_POOL, {
      aliases: [ALIAS],
      id: 'revokeIpPool',
      audit: { given: ['subaccount_id'] },
      summary: 'End the use of a pool by a subaccount; its domains are unlinked',
      params,
      answers: { 200: STARTED },
      async handler({ input, path, caller }) {
        const use = { poolId: path.pool_id, subaccountId: input().subaccount_id }
        return started(await delegations.remove(caller.accountId, use))
      },
    }),
  ]
}

function subaccountSide(delegations: Delegations): Operation[] {
  const params = { pool_id: textParam('Id of a pool', { required: true }) }
  return [
    api.get('/v5/accounts/subaccounts/ip_pools/all', {
      id: 'listIpPoolDelegations',
      summary: 'List which subaccounts use which pools',
      answers: { 200: DELEGATION_LIST },
      async handler({ caller }) {
        const items = (await delegations.list(caller.accountId)).map(({ poolId, subaccountId }) => ({
          pool_id: poolId,
          subaccount_id: subaccountId,
        }))
        return { items, total_count: items.length }
      },
    }),
    api.put(OF_SUBACCOUNT, {
      id: 'delegateIpPoolToSubaccount',
      audit: { given: ['pool_id'] },
      summary: 'Name the pool that a subaccount may use',
      params,
      answers: { 200: STARTED },
      async handler({ input, path, caller }) {
        const use = { poolId: input().pool_id, subaccountId: path.subaccount_id }
        return started(await delegations.add(caller.accountId, use))
      },
    }),
    api.delete(OF_SUBACCOUNT, {
      id: 'revokeIpPoolFromSubaccount',
      audit: { given: ['pool_id'] },
      summary: 'Take the pool from a subaccount; its domains are unlinked',
      params,
      answers: { 200: STARTED },
      async handler({ input, path, caller }) {
        const use = { poolId: input().pool_id, subaccountId: path.subaccount_id }
        return started(await delegations.remove(caller.accountId, use))
      },
    }),
  ]
}
