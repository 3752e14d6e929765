/** Addresses of one domain over HTTP (ips-pools.md section 2). */
import { BadRequest } from '../../../base/process/errors.ts'
import { type Operation, operation } from '../../../platform/http/operation.ts'
import { textParam } from '../../../platform/http/request/inputs.ts'
import { type DomainDirectory, ownDomain } from '../../domains/names/directory.ts'
import type { KnownAddresses } from '../known-addresses.ts'
import { READ, SUCCESS, TAG, WRITE } from '../routes.ts'
import { DOMAIN_ADDRESSES, DONE } from '../shapes.ts'
import { ALL, addressesOf, type DomainAddressChanges } from './domain-addresses.ts'

const PATH = '/v3/domains/{name}/ips' as const
/** Where the official Python client asks. */
const ALIAS = '/v4/domains/{name}/ips' as const
/** In place of an address: the linked pool. */
const POOL = 'ip_pool'

interface DomainIpRouteParts {
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
      answers: { 200: DOMAIN_ADDRESSES },
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
      params: {
        ip: textParam('Dedicated address of the account, or `shared`'),
        pool_id: textParam('Pool to link instead'),
      },
      answers: { 200: DONE },
      async handler({ input, path, caller }) {
        const domain = await ownDomain(domains, caller, path.name)
        const { ip, pool_id: poolId } = input()
        if (ip !== undefined && poolId !== undefined)
          throw new BadRequest('only one of ip and pool_id may be provided')
        if (poolId !== undefined) await changes.link(domain, poolId)
        else if (ip !== undefined) await changes.assign(domain, ip)
        else throw new BadRequest('Missing mandatory parameter: ip')
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
      params: {
        ip: textParam('Address in no pool, or `shared`, to use instead', { in: 'query' }),
        pool_id: textParam(`With \`${POOL}\`: pool to use instead`),
      },
      answers: { 200: DONE },
      async handler({ input, path, caller }) {
        const domain = await ownDomain(domains, caller, path.name)
        const { ip, pool_id: poolId } = input()
        if (path.ip !== POOL) await changes.remove(domain, path.ip, ip)
        else await changes.unlink(domain, { ip, poolId })
        return SUCCESS
      },
    }),
  ]
}
