/** Writing the records of domains at their DNS providers. */
import { readFileSync } from 'node:fs'
import type { Area } from '../../area.ts'
import type { Core } from '../../core.ts'
import { createChangeRows } from './change-rows.ts'
import { createChanges } from './changes.ts'
import { type ConnectTemplate, connectLink } from './domain-connect.ts'
import { createKnownProviders } from './known-providers.ts'
import { writingRoutes } from './routes.ts'
import { connectVariables, wantedOf } from './wanted.ts'

export function dnsWritingArea(core: Core): Area {
  const { store, clock, log, domains, resolver, allow, httpClient } = core
  const { dnsTargets: targets, publicUrl } = core.config
  const rows = createChangeRows(store, clock)
  const providers = createKnownProviders(core)
  const { spfIncludeHost } = targets
  const lookup = { store, resolver, clock, allow, targets, publicUrl, spfIncludeHost }
  const changes = createChanges({
    ...{ clock, log, rows, providers, includeHost: spfIncludeHost },
    wantedOf: (domain) => wantedOf(lookup, domain),
  })
  const template = templateOf(core.config)
  return {
    operations: writingRoutes({
      ...{ domains, providers, rows, changes },
      async linkOf(domain) {
        if (template === null)
          return { provider: null, url: null, reason: 'The operator has no template for Domain Connect.' }
        const variables = await connectVariables(lookup, domain)
        return connectLink({ client: httpClient, resolver, template }, domain.name, variables)
      },
    }),
    async domainDeleted({ id }) {
      await rows.removeAll(id)
    },
    async accountDeleted(accountId) {
      await providers.removeAll(accountId)
    },
  }
}

/** @throws Error for a key that cannot be read: the start fails */
function templateOf({
  domainConnect,
  domainConnectKey: key,
}: Pick<Core['config'], 'domainConnect' | 'domainConnectKey'>): ConnectTemplate | null {
  if (domainConnect === null) return null
  return { ...domainConnect, key: key && { host: key.host, pem: readFileSync(key.file, 'utf8') } }
}
