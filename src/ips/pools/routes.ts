/** Pools over HTTP (ips-pools.md section 3). */

import { formatRfc3339 } from '../../base/dates.ts'
import { BadRequest } from '../../base/errors.ts'
import { type Operation, operation, type ParamDoc } from '../../http/operation.ts'
import { pageUrl } from '../../http/paging.ts'
import type { Params } from '../../http/params.ts'
import { readPageToken, writePageToken } from '../page-token.ts'
import { READ, started, WRITE } from '../routes.ts'
import type { PoolRow } from './pool-store.ts'
import type { PoolChange, Pools } from './pools.ts'

export const TAG = 'IP pools'
const PATH = '/v3/ip_pools' as const
const ALIAS = '/v1/ip_pools' as const
const ONE = `${PATH}/{pool_id}` as const
const ONE_ALIAS = `${ALIAS}/{pool_id}` as const
const SUCCESS = { message: 'success' }
export const STARTED = {
  200: { description: 'Begun in the background; `reference_id` names it in the log' },
} as const
/** Addresses named by one call. */
const IPS_MAX = 1_000
/** Names in one answer; the operation for domains has them all. */
const NAMES_MAX = 1_000

const REPEATED = (name: string, description: string): ParamDoc => ({
  name,
  type: 'string',
  repeated: true,
  description,
})
const EDIT_PARAMS: ParamDoc[] = [
  { name: 'name', type: 'string', description: 'At most 255 characters' },
  { name: 'description', type: 'string', description: 'At most 1000 characters' },
  REPEATED('add_ip', 'Dedicated address in no pool'),
  REPEATED('remove_ip', 'Address of the pool'),
  REPEATED('link_domain', 'Id or name of a domain that shall send from the pool'),
  REPEATED('unlink_domain', 'Id or name of a domain that shall send from a shared address'),
]

export interface PoolRouteParts {
  pools: Pools
  baseUrl: string
}

export function poolRoutes(parts: PoolRouteParts): Operation[] {
  return [...readRoutes(parts), ...changeRoutes(parts), ...memberRoutes(parts)]
}

const view = (pool: PoolRow) => ({
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
    operation({
      method: 'GET',
      path: PATH,
      aliases: [ALIAS],
      id: 'listIpPools',
      tag: TAG,
      summary: 'List pools, an inherited one last',
      auth: READ,
      params: [],
      responses: { 200: { description: 'Pools' } },
      handler: async ({ caller }) => ({
        ip_pools: (await pools.list(caller.accountId)).map(view),
        ...SUCCESS,
      }),
    }),
    operation({
      method: 'GET',
      path: ONE,
      aliases: [ONE_ALIAS],
      id: 'readIpPool',
      tag: TAG,
      summary: 'Read a pool',
      auth: READ,
      params: [],
      responses: { 200: { description: `The pool, with the names of up to ${NAMES_MAX} linked domains` } },
      async handler({ path, caller }) {
        const pool = await pools.read(caller.accountId, path.pool_id)
        const linked = await pools.domains(pool, caller.accountId, '', NAMES_MAX)
        const details = { ...view(pool), linked_domains: linked.map(({ name }) => name) }
        return { ...details, details, ...SUCCESS }
      },
    }),
    operation({
      method: 'GET',
      path: `${ONE}/domains`,
      aliases: [`${ONE_ALIAS}/domains`],
      id: 'listIpPoolDomains',
      tag: TAG,
      summary: 'List the domains that are linked to a pool',
      auth: READ,
      params: [
        { name: 'limit', type: 'integer', description: '10 to 500', default: 10 },
        { name: 'page', type: 'string', description: 'Token of a page' },
      ],
      responses: { 200: { description: 'A page; the one after the last is empty' } },
      async handler({ params, path, caller }) {
        const limit = params.integer('limit', { min: 10, max: 500, default: 10 })
        const after = readPageToken(params, 'page')
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
    operation({
      method: 'POST',
      path: PATH,
      aliases: [ALIAS],
      id: 'createIpPool',
      audit: { given: ['name', 'ip', 'ips'], made: ['pool_id'] },
      tag: TAG,
      summary: 'Create a pool',
      auth: WRITE,
      params: [
        { name: 'name', type: 'string', required: true, description: 'At most 255 characters' },
        { name: 'description', type: 'string', description: 'At most 1000 characters' },
        REPEATED('ip', 'Dedicated address in no pool'),
        REPEATED('ips', 'The same, or several with commas between'),
      ],
      responses: { 200: { description: 'Created' } },
      async handler({ params, caller }) {
        const name = params.required('name')
        const ips = ipsOf(params, ['ip', 'ips'])
        const poolId = await pools.create(caller.accountId, name, params.text('description') ?? '', ips)
        return { ...SUCCESS, pool_id: poolId }
      },
    }),
    operation({
      method: 'PATCH',
      path: ONE,
      aliases: [ONE_ALIAS],
      id: 'updateIpPool',
      audit: { given: EDIT_PARAMS.map(({ name }) => name).filter((name) => name !== 'description') },
      tag: TAG,
      summary: 'Change a pool, its addresses and its domains',
      auth: WRITE,
      params: EDIT_PARAMS,
      responses: { 200: { description: 'Changed' }, 400: { description: 'Nothing to change, or refused' } },
      async handler({ params, path, caller }) {
        const change: PoolChange = {
          name: params.text('name'),
          description: params.given('description'),
          addIps: ipsOf(params, ['add_ip']),
          removeIps: ipsOf(params, ['remove_ip']),
          linkDomains: params.texts('link_domain'),
          unlinkDomains: params.texts('unlink_domain'),
        }
        await pools.edit(caller.accountId, path.pool_id, change)
        return SUCCESS
      },
    }),
    operation({
      method: 'DELETE',
      path: ONE,
      aliases: [ONE_ALIAS],
      id: 'deleteIpPool',
      audit: { given: ['ip', 'pool_id'], made: ['reference_id'] },
      tag: TAG,
      summary: 'Delete a pool; its domains get the replacement',
      auth: WRITE,
      params: [
        { name: 'ip', type: 'string', description: 'Replacement: dedicated address in no pool, or `shared`' },
        { name: 'pool_id', in: 'query', type: 'string', description: 'Replacement: another pool' },
      ],
      responses: STARTED,
      handler: async ({ params, path, caller }) =>
        started(
          await pools.remove(caller.accountId, path.pool_id, {
            ip: params.text('ip'),
            poolId: params.text('pool_id'),
          }),
        ),
    }),
  ]
}

function memberRoutes({ pools }: PoolRouteParts): Operation[] {
  return [
    operation({
      method: 'PUT',
      path: `${ONE}/ips/{ip}`,
      aliases: [`${ONE_ALIAS}/ips/{ip}`],
      id: 'addIpPoolIp',
      tag: TAG,
      summary: 'Add an address to a pool',
      auth: WRITE,
      params: [],
      responses: STARTED,
      handler: async ({ path, caller }) =>
        started(await pools.addIps(caller.accountId, path.pool_id, [path.ip])),
    }),
    operation({
      method: 'DELETE',
      path: `${ONE}/ips/{ip}`,
      aliases: [`${ONE_ALIAS}/ips/{ip}`],
      id: 'removeIpPoolIp',
      tag: TAG,
      summary: 'Remove an address from a pool',
      auth: WRITE,
      params: [],
      responses: STARTED,
      handler: async ({ path, caller }) =>
        started(await pools.removeIp(caller.accountId, path.pool_id, path.ip)),
    }),
    operation({
      method: 'POST',
      path: `${ONE}/ips.json`,
      aliases: [`${ONE_ALIAS}/ips.json`],
      id: 'addIpPoolIps',
      audit: { given: ['ips'] },
      tag: TAG,
      summary: 'Add addresses to a pool',
      auth: WRITE,
      params: [],
      body: {
        description: 'Addresses',
        schema: {
          type: 'object',
          required: ['ips'],
          properties: { ips: { type: 'array', items: { type: 'string' }, maxItems: IPS_MAX } },
        },
      },
      responses: STARTED,
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
