/** TLS settings of a domain (D7, D8), and the three deprecated updates that D4 replaces (D9-D11). */
import { type Operation, operation, type ParamDoc } from '../http/operation.ts'
import type { Params } from '../http/params.ts'
import { COMMON, type DomainRouteParts, ownDomain, READ, WRITE } from './routes.ts'
import { type DomainChanges, readMailfromHost, readTtl, readWebPrefix } from './settings.ts'
import { updateDomain } from './update-domain.ts'

const PROPAGATION = 'Domain connection settings have been updated, may take 10 minutes to fully propagate'

export function domainDeliveryRoutes(parts: DomainRouteParts): Operation[] {
  return [
    operation({
      ...COMMON,
      method: 'GET',
      path: '/v3/domains/{name}/connection',
      id: 'readConnection',
      summary: 'Read the TLS settings for deliveries of a domain',
      auth: READ,
      params: [],
      responses: { 200: { description: 'The settings in both public shapes' } },
      async handler({ path, caller }) {
        const { requireTls, skipVerification } = await ownDomain(parts.domains, caller, path.name)
        const connection = { require_tls: requireTls, skip_verification: skipVerification }
        return { ...connection, connection }
      },
    }),
    operation({
      ...COMMON,
      method: 'PUT',
      path: '/v3/domains/{name}/connection',
      id: 'updateConnection',
      summary: 'Change the TLS settings for deliveries of a domain',
      auth: WRITE,
      params: [
        { name: 'require_tls', type: 'boolean', description: 'Deliver over TLS only' },
        { name: 'skip_verification', type: 'boolean', description: 'Do not verify certificates' },
      ],
      responses: { 200: { description: 'The settings as they are now' } },
      async handler({ params, path, caller }) {
        const domain = await ownDomain(parts.domains, caller, path.name)
        const { requireTls, skipVerification } = await updateDomain(parts, domain, {
          requireTls: params.boolean('require_tls'),
          skipVerification: params.boolean('skip_verification'),
        })
        return {
          message: PROPAGATION,
          require_tls: requireTls,
          skip_verification: skipVerification,
          'require-tls': requireTls,
          'skip-verification': skipVerification,
        }
      },
    }),
    ...deprecatedRoutes(parts),
  ]
}

function deprecatedRoutes(parts: DomainRouteParts): Operation[] {
  const max = parts.maxMessageTtlSeconds
  const update = (
    field: string,
    id: string,
    message: string,
    type: ParamDoc['type'],
    pick: (params: Params) => DomainChanges,
  ) =>
    operation({
      ...COMMON,
      method: 'PUT',
      path: `/v3/domains/{name}/${field}`,
      id,
      audit: { given: [field] },
      summary: `Change ${field}; the update of the domain does the same`,
      deprecated: true,
      auth: WRITE,
      params: [{ name: field, type, description: 'The new value', required: true }],
      responses: { 200: { description: 'Changed' } },
      async handler({ params, path, caller }) {
        const domain = await ownDomain(parts.domains, caller, path['name'])
        params.required(field)
        await updateDomain(parts, domain, pick(params))
        return { message }
      },
    })
  return [
    update('message_ttl', 'updateMessageTtl', 'Domain message TTL updated', 'integer', (params) => ({
      messageTtlSeconds: readTtl(params, max, 'Reason'),
    })),
    update('mailfrom_host', 'updateMailfromHost', 'Domain mailfrom host updated', 'string', (params) => ({
      mailfromHost: readMailfromHost(params),
    })),
    update('web_prefix', 'updateWebPrefix', 'Domain web prefix updated', 'string', (params) => ({
      webPrefix: readWebPrefix(params),
    })),
  ]
}
