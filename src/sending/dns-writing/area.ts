/** Writing the records of domains at their DNS providers. */
import type { Area } from '../../area.ts'
import type { Core } from '../../core.ts'
import { createChangeRows } from './change-rows.ts'
import { createChanges } from './changes.ts'
import { createKnownProviders } from './known-providers.ts'
import { writingRoutes } from './routes.ts'
import { wantedOf } from './wanted.ts'

export function dnsWritingArea(core: Core): Area {
  const { store, clock, log, domains, resolver, allow } = core
  const { dnsTargets: targets, publicUrl } = core.config
  const rows = createChangeRows(store, clock)
  const providers = createKnownProviders(core)
  const { spfIncludeHost } = targets
  const lookup = { store, resolver, clock, allow, targets, publicUrl, spfIncludeHost }
  const changes = createChanges({
    ...{ clock, log, rows, providers, includeHost: spfIncludeHost },
    wantedOf: (domain) => wantedOf(lookup, domain),
  })
  return {
    operations: writingRoutes({ domains, providers, rows, changes }),
    async domainDeleted({ id }) {
      await rows.removeAll(id)
    },
    async accountDeleted(accountId) {
      await providers.removeAll(accountId)
    },
  }
}
