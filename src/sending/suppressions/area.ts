/** Suppression lists: bounces, complaints, unsubscribes, allowlist, and the policy that fills them. */
import type { Area } from '../../area.ts'
import type { Core } from '../../core.ts'
import { erasedAddresses } from '../../platform/store/secrets/erased-address.ts'
import { countedBounceRetention } from './automatic.ts'
import { createSuppressionCheck, type SuppressionCheck } from './check.ts'
import { createImports } from './import.ts'
import { UNPACKED_BYTES_MAX } from './import-file.ts'
import { policyRoutes } from './policy.ts'
import { suppressionRoutes } from './routes.ts'
import { createSuppressions } from './service.ts'
import { domainStatements } from './store.ts'

interface SuppressionsArea extends Area {
  check: SuppressionCheck
}

export function suppressionsArea(core: Core): SuppressionsArea {
  const { config, store, blobs, domains, clock, log } = core
  const erased = erasedAddresses(core.sealer)
  const imports = createImports({
    ...{ store, blobs, clock, log, owner: core.leaseOwner },
    unpackedBytesMax: UNPACKED_BYTES_MAX,
  })
  return {
    check: createSuppressionCheck(store, clock, erased),
    operations: [
      ...suppressionRoutes({
        suppressions: createSuppressions(store, clock, erased),
        domains,
        imports,
        baseUrl: config.publicUrl,
      }),
      ...policyRoutes({ store, domains, clock }),
    ],
    jobs: [imports.job, countedBounceRetention(store, clock)],
    async domainDeleted({ id }) {
      await imports.forgetDomain(id)
      await store.commit(domainStatements(id))
    },
  }
}
