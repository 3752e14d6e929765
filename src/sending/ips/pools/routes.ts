/** Pools over HTTP (ips-pools.md section 3). */

import { BadRequest } from '../../../base/process/errors.ts'
import type { Of } from '../../../base/shape.ts'
import { formatRfc3339 } from '../../../base/time/dates.ts'
import { type Operation, operationsOf } from '../../../platform/http/operation.ts'
import {
  givenParam,
  integerParam,
  otherParam,
  parsedParam,
  textParam,
  textsParam,
} from '../../../platform/http/request/inputs.ts'
import { pageUrl } from '../../../platform/http/request/paging.ts'
import type { Params } from '../../../platform/http/request/params.ts'
import { PAGE_PARAM, writePageToken } from '../page-token.ts'
import { SUCCESS, started } from '../routes.ts'
import {
  ADDED_IPS,
  DONE,
  type POOL,
  POOL_CREATED,
  POOL_DOMAINS,
  POOL_LIST,
  POOL_READ,
  STARTED,
} from '../shapes.ts'
import type { PoolRow } from './pool-store.ts'
import type { Pools } from './pools.ts'

const api = operationsOf({ tag: 'IP pools', auth: { area: 'ips' } })
const PATH = '/v3/ip_pools' as const
const ALIAS = '/v1/ip_pools' as const
const ONE = `${PATH}/{pool_id}` as const
const ONE_ALIAS = `${ALIAS}/{pool_id}` as const
/** Addresses named by one call. */
const IPS_MAX = 1_000
/** Names in one answer; the operation for domains has them all. */
const NAMES_MAX = 1_000

/** Addresses, repeated or with commas between. */
export const ipsParam = (description: string) =>
  parsedParam(description, (params, name) => ipsOf(params, [name]), { repeated: true })

const EDIT_PARAMS = {
  name: textParam('At most 255 characters'),
  description: givenParam('At most 1000 characters'),
  add_ip: ipsParam('Dedicated address in no pool'),
  remove_ip: ipsParam('Address of the pool'),
  link_domain: textsParam('Id or name of a domain that shall send from the pool'),
  unlink_domain: textsParam('Id or name of a domain that shall send from a shared address'),
}

export interface PoolRouteParts {
  pools: Pools
  baseUrl: string
}

export function poolRoutes(parts: PoolRouteParts): Operation[] {
  return [...readRoutes(parts), ...changeRoutes(parts), ...memberRoutes(parts)]
}

const view = (pool: PoolRow): Of<typeof POOL> => ({
  pool_id: pool.id,
  name: pool.name,
  description: pool.description,
  ips: pool.members.map(({ ip }) => ip),
  is_linked: pool.isLinked,
  is_inherited: pool.isInherited,
  metadata: {
    assignments: Object.fromEntries(
      pool.members.map(({ ip, linkedAt }) => [ip, { linked_at: formatRfc3339(new Date(linkedAt)) }]),
    ),
  },
})

function readRoutes({ pools, baseUrl }: PoolRouteParts): Operation[] {
  return [
    api.get(PATH, {
      aliases: [ALIAS],
      id: 'listIpPools',
      summary: 'List pools, an inherited one last',
      answers: { 200: POOL_LIST },
      handler: async ({ caller }) => ({
        ip_pools: (await pools.list(caller.accountId)).map(view),
        ...SUCCESS,
      }),
    }),
    api.get(ONE, {
      aliases: [ONE_ALIAS],
      id: 'readIpPool',
      summary: 'Read a pool',
      answers: { 200: POOL_READ },
      async handler({ path, caller }) {
        const pool = await pools.read(caller.accountId, path.pool_id)
        const linked = await pools.domains(pool, caller.accountId, '', NAMES_MAX)
        const details = { ...view(pool), linked_domains: linked.map(({ name }) => name) }
        return { ...details, details, ...SUCCESS }
      },
    }),
    api.get(`${ONE}/domains`, {
      aliases: [`${ONE_ALIAS}/domains`],
      id: 'listIpPoolDomains',
      summary: 'List the domains that are linked to a pool',
      params: {
        limit: integerParam('Page size, 10 to 500', { min: 10, max: 500, default: 10 }),
        page: PAGE_PARAM,
      },
      answers: { 200: POOL_DOMAINS },
      async handler({ input, path, caller }) {
        const { limit, page: after } = input()
        const pool = await pools.read(caller.accountId, path.pool_id)
        const domains = await pools.domains(pool, caller.accountId, after, limit)
        const url = (page?: string) =>
          pageUrl(baseUrl, `${PATH}/${pool.id}/domains`, [
            ['limit', limit],
            ['page', page],
          ])
        const next = url(writePageToken(domains.at(-1)?.id ?? (after || '~')))
        return { domains, paging: { first: url(), next } }
      },
    }),
  ]
}

function changeRoutes({ pools }: PoolRouteParts): Operation[] {
  return [
    api.post(PATH, {
      aliases: [ALIAS],
      id: 'createIpPool',
      audit: { given: ['name', 'ip', 'ips'], made: ['pool_id'] },
      summary: 'Create a pool',
      params: {
        name: textParam('At most 255 characters', { required: true }),
        description: textParam('At most 1000 characters', { default: '' }),
        ip: otherParam('Dedicated address in no pool', { repeated: true }),
        ips: parsedParam(
          'The same, or several with commas between',
          (params) => ipsOf(params, ['ip', 'ips']),
          { repeated: true },
        ),
      },
      answers: { 200: POOL_CREATED, 404: 'An address is unknown, or belongs to another account' },
      async handler({ input, caller }) {
        const { name, description, ips } = input()
        return { ...SUCCESS, pool_id: await pools.create(caller.accountId, name, description, ips) }
      },
    }),
    api.patch(ONE, {
      aliases: [ONE_ALIAS],
      id: 'updateIpPool',
      audit: { given: Object.keys(EDIT_PARAMS).filter((name) => name !== 'description') },
      summary: 'Change a pool, its addresses and its domains',
      params: EDIT_PARAMS,
      answers: { 200: DONE, 400: 'Nothing to change, or refused' },
      async handler({ input, path, caller }) {
        const { name, description, ...given } = input()
        await pools.edit(caller.accountId, path.pool_id, {
          name,
          description,
          addIps: given.add_ip,
          removeIps: given.remove_ip,
          linkDomains: given.link_domain,
          unlinkDomains: given.unlink_domain,
        })
        return SUCCESS
      },
    }),
    api.delete(ONE, {
      aliases: [ONE_ALIAS],
      id: 'deleteIpPool',
      audit: { given: ['ip', 'pool_id'], made: ['reference_id'] },
      summary: 'Delete a pool; its domains get the replacement',
      params: {
        ip: textParam('Replacement: dedicated address in no pool, or `shared`'),
        pool_id: textParam('Replacement: another pool', { in: 'query' }),
      },
      answers: { 200: STARTED },
      async handler({ input, path, caller }) {
        const { ip, pool_id: poolId } = input()
        return started(await pools.remove(caller.accountId, path.pool_id, { ip, poolId }))
      },
    }),
  ]
}

function memberRoutes({ pools }: PoolRouteParts): Operation[] {
  return [
    api.put(`${ONE}/ips/{ip}`, {
      aliases: [`${ONE_ALIAS}/ips/{ip}`],
      id: 'addIpPoolIp',
      summary: 'Add an address to a pool',
      answers: { 200: STARTED },
      handler: async ({ path, caller }) =>
        started(await pools.addIps(caller.accountId, path.pool_id, [path.ip])),
    }),
    api.delete(`${ONE}/ips/{ip}`, {
      aliases: [`${ONE_ALIAS}/ips/{ip}`],
      id: 'removeIpPoolIp',
      summary: 'Remove an address from a pool',
      answers: { 200: STARTED },
      handler: async ({ path, caller }) =>
        started(await pools.removeIp(caller.accountId, path.pool_id, path.ip)),
    }),
    api.post(`${ONE}/ips.json`, {
      aliases: [`${ONE_ALIAS}/ips.json`],
      id: 'addIpPoolIps',
      audit: { given: ['ips'] },
      summary: 'Add addresses to a pool',
      body: ADDED_IPS,
      answers: { 200: STARTED },
      async handler({ params, path, caller }) {
        const ips = ipsOf(params, ['ips'])
        if (ips.length === 0) throw new BadRequest('Missing mandatory parameter: ips')
        return started(await pools.addIps(caller.accountId, path.pool_id, ips))
      },
    }),
  ]
}

/** Repeated, or with commas between. @throws BadRequest for more than one call may name */
export function ipsOf(params: Params, names: readonly string[]): string[] {
  const ips = names
    .flatMap((name) => params.texts(name))
    .flatMap((text) => text.split(',', IPS_MAX + 1))
    .map((text) => text.trim())
    .filter((text) => text !== '')
  if (ips.length > IPS_MAX) throw new BadRequest(`at most ${IPS_MAX} IPs may be given`)
  return ips
}
