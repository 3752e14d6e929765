/**
 * What large receivers publish of the mail: Gmail Postmaster Tools and Microsoft SNDS, read once a day and kept for a year.
 * Credentials are the operator's; each account sees its own domains and addresses.
 */
import type { Area } from '../../area.ts'
import type { Core } from '../../core.ts'
import type { KnownAddresses } from '../../sending/ips/known-addresses.ts'
import { removeDomain } from './days.ts'
import { createFindings, type ReputationFindings } from './findings.ts'
import { gmailRoutes } from './gmail-routes.ts'
import { createReading } from './reading.ts'
import { sndsRoutes } from './snds-routes.ts'
import { sourceRoutes } from './source-routes.ts'
import { createSources } from './sources.ts'
import { trapRoutes } from './trap-routes.ts'

export interface ReputationArea extends Area {
  /** What alerts tell. */
  findings: ReputationFindings
}

export function reputationArea(core: Core, known: KnownAddresses): ReputationArea {
  const { store, sealer, clock, config, httpClient: client } = core
  const sources = createSources(store, sealer, clock)
  const reading = createReading({ ...core, client, sources })
  const scope = { ...core, known }
  return {
    findings: createFindings(store, clock),
    operations: [
      ...sourceRoutes({ ...core, client, sources, changed: () => reading.wake() }),
      ...gmailRoutes(scope),
      ...sndsRoutes(scope),
      ...trapRoutes({ ...scope, baseUrl: config.publicUrl }),
    ],
    jobs: [reading],
    domainDeleted: ({ id }) => removeDomain(store, id),
  }
}
