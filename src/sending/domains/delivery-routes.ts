/** TLS settings of a domain (D7, D8), and the three deprecated updates that D4 replaces (D9-D11). */
import { message } from '../../base/shape.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { type DomainChanges, FIELDS, settingInputs } from './fields.ts'
import { ownDomain } from './names/directory.ts'
import type { DomainRouteParts } from './routes.ts'
import { ttlParam } from './settings.ts'
import { CONNECTION_CHANGED, DOMAIN_CONNECTION } from './shapes.ts'
import { updateDomain } from './update-domain.ts'

const api = operationsOf({ tag: 'Domains', auth: { area: 'domains' }, rateLimit: 'domains' })

const PROPAGATION = 'Domain connection settings have been updated, may take 10 minutes to fully propagate'

export function domainDeliveryRoutes(parts: DomainRouteParts): Operation[] {
  return [
    api.get('/v3/domains/{name}/connection', {
      id: 'readConnection',
      summary: 'Read the TLS settings for deliveries of a domain',
      answers: { 200: DOMAIN_CONNECTION },
      async handler({ path, caller }) {
        const { requireTls, skipVerification } = await ownDomain(parts.domains, caller, path.name)
        const connection = { require_tls: requireTls, skip_verification: skipVerification }
        return { ...connection, connection }
      },
    }),
    api.put('/v3/domains/{name}/connection', {
      id: 'updateConnection',
      summary: 'Change the TLS settings for deliveries of a domain',
      params: { require_tls: FIELDS.requireTls.input, skip_verification: FIELDS.skipVerification.input },
      answers: { 200: CONNECTION_CHANGED },
      async handler({ input, path, caller }) {
        const domain = await ownDomain(parts.domains, caller, path.name)
        const { requireTls, skipVerification } = await updateDomain(parts, domain, input())
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
  const inputs = {
    ...settingInputs('update'),
    message_ttl: ttlParam(parts.maxMessageTtlSeconds, 'Reason'),
  }
  const unchanged: DomainChanges = {}
  const update = (field: 'message_ttl' | 'mailfrom_host' | 'web_prefix', id: string, done: string) =>
    api.put(`/v3/domains/{name}/${field}`, {
      id,
      audit: { given: [field] },
      summary: `Change ${field}; the update of the domain does the same`,
      deprecated: true,
      params: { [field]: { ...inputs[field], required: true } },
      answers: { 200: message(done, 'Changed') },
      async handler({ params, path, caller }) {
        const domain = await ownDomain(parts.domains, caller, path.name)
        params.required(field)
        await updateDomain(parts, domain, { ...unchanged, [field]: inputs[field].read(params, field) })
        return { message: done }
      },
    })
  return [
    update('message_ttl', 'updateMessageTtl', 'Domain message TTL updated'),
    update('mailfrom_host', 'updateMailfromHost', 'Domain mailfrom host updated'),
    update('web_prefix', 'updateWebPrefix', 'Domain web prefix updated'),
  ]
}
