/** Addresses of one domain over HTTP (ips-pools.md section 2). */
import { BadRequest } from '../base/errors.ts'
import type { DomainDirectory } from '../domains/directory.ts'
import { ownDomain } from '../domains/routes.ts'
import { type Operation, operation } from '../http/operation.ts'
import { ALL, addressesOf, type DomainAddressChanges } from './domain-addresses.ts'
import type { KnownAddresses } from './known-addresses.ts'
import { READ, TAG, WRITE } from './routes.ts'

const PATH = '/v3/domains/{name}/ips' as const
/** Where the official Python client asks. */
const ALIAS = '/v4/domains/{name}/ips' as const
/** In place of an address: the linked pool. */
const POOL = 'ip_pool'
const SUCCESS = { message: 'success' }

export interface DomainIpRouteParts {
  known: KnownAddresses
  domains: DomainDirectory
  changes: DomainAddressChanges
}

export function domainIpRoutes({ known, domains, changes }: DomainIpRouteParts): Operation[] {
  return [
    operation({
      method: 'GET',
      path: PATH,
      aliases: [ALIAS],
      id: 'listDomainIps',
      tag: TAG,
      summary: 'List the addresses that a domain sends from',
      auth: READ,
      params: [],
      responses: { 200: { description: 'Addresses' } },
      async handler({ path, caller }) {
        const items = addressesOf(known.book(), await ownDomain(domains, caller, path.name))
        return { items, total_count: items.length }
      },
    }),
    operation({
      method: 'POST',
      path: PATH,
      aliases: [ALIAS],
      id: 'addDomainIp',
      audit: { given: ['ip', 'pool_id'] },
      tag: TAG,
      summary: 'Assign an address to a domain, or link a pool',
      auth: WRITE,
      params: [
        { name: 'ip', type: 'string', description: 'Dedicated address of the account, or `shared`' },
        { name: 'pool_id', type: 'string', description: 'Pool to link instead' },
      ],
      responses: { 200: { description: 'Done' } },
      async handler({ params, path, caller }) {
        const domain = await ownDomain(domains, caller, path.name)
        const [ip, poolId] = [params.text('ip'), params.text('pool_id')]
        if (ip !== undefined && poolId !== undefined)
          throw new BadRequest('only one of ip and pool_id may be provided')
        if (poolId !== undefined) await changes.link(domain, poolId)
        else await changes.assign(domain, params.required('ip'))
        return SUCCESS
      },
    }),
    operation({
      method: 'DELETE',
      path: `${PATH}/{ip}`,
      aliases: ['/v3/domains/{name}/pool/{ip}', `${ALIAS}/{ip}`],
      id: 'removeDomainIp',
      audit: { given: ['ip', 'pool_id'] },
      tag: TAG,
      summary: `Remove an address from a domain, all of them (\`${ALL}\`), or its linked pool (\`${POOL}\`)`,
      auth: WRITE,
      params: [
        {
          name: 'ip',
          in: 'query',
          type: 'string',
          description: 'Address in no pool, or `shared`, to use instead',
        },
        { name: 'pool_id', type: 'string', description: `With \`${POOL}\`: pool to use instead` },
      ],
      responses: { 200: { description: 'Done' } },
      async handler({ params, path, caller }) {
        const domain = await ownDomain(domains, caller, path.name)
        if (path.ip !== POOL) await changes.remove(domain, path.ip, params.text('ip'))
        else await changes.unlink(domain, { ip: params.text('ip'), poolId: params.text('pool_id') })
        return SUCCESS
      },
    }),
  ]
}
