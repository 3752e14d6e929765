/** Addresses of one domain over HTTP (ips-pools.md section 2). */
import { BadRequest } from '../../../base/process/errors.ts'
import { type Operation, operationsOf } from '../../../platform/http/operation.ts'
import { textParam } from '../../../platform/http/request/inputs.ts'
import { type DomainDirectory, ownDomain } from '../../domains/names/directory.ts'
import type { KnownAddresses } from '../known-addresses.ts'
import { SUCCESS } from '../routes.ts'
import { DOMAIN_ADDRESSES, DONE } from '../shapes.ts'
import { ALL, addressesOf, type DomainAddressChanges } from './domain-addresses.ts'

const api = operationsOf({ tag: 'IPs', auth: { area: 'ips' } })

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
    api.get(PATH, {
      aliases: [ALIAS],
      id: 'listDomainIps',
      summary: 'List the addresses that a domain sends from',
      answers: { 200: DOMAIN_ADDRESSES },
      async handler({ path, caller }) {
        const items = addressesOf(known.book(), await ownDomain(domains, caller, path.name))
        return { items, total_count: items.length }
      },
    }),
    api.post(PATH, {
      aliases: [ALIAS],
      id: 'addDomainIp',
      audit: { given: ['ip', 'pool_id'] },
      summary: 'Assign an address to a domain, or link a pool',
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
    api.delete(`${PATH}/{ip}`, {
      aliases: ['/v3/domains/{name}/pool/{ip}', `${ALIAS}/{ip}`],
      id: 'removeDomainIp',
      audit: { given: ['ip', 'pool_id'] },
      summary: `Remove an address from a domain, all of them (\`${ALL}\`), or its linked pool (\`${POOL}\`)`,
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
