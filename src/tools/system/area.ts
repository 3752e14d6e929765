/** What the service reports of itself and of the machine it runs on. */

import type { Area } from '../../area.ts'
import { hostAddresses } from '../../base/net/host-addresses.ts'
import type { Clock } from '../../base/time/clock.ts'
import type { Core } from '../../core.ts'
import { createQueueCounts } from '../../mail/deliver/claim/queue-counts.ts'
import type { JobReport } from '../../platform/jobs/job.ts'
import type { BouncesArea } from '../../receiving/bounces/area.ts'
import type { CertificatesArea } from '../../sending/certificates/area.ts'
import type { Scanners } from '../../sending/content-check/scanners.ts'
import { lostReturnPaths } from '../../sending/domains/names/return-paths.ts'
import type { RelayStates } from '../../sending/relays/relay-states.ts'
import type { AlertsArea } from '../../watching/alerts/area.ts'
import { PROBE_DOMAINS, runChecks } from './checks.ts'
import { describeSystem } from './description.ts'
import { openFilesNeeded, readOpenFiles } from './open-files.ts'
import { systemRoutes } from './routes.ts'
import { createSizes } from './sizes/sizes.ts'

interface SystemUses {
  bounces: BouncesArea
  certificates: CertificatesArea
  alerts: Pick<AlertsArea, 'triggeredOwn'>
  relays: RelayStates
  scanners: Pick<Scanners, 'states'>
  jobs(): Promise<JobReport[]>
  /** The clock of the machine, which may have been stepped since the start. */
  systemClock: Clock
}

export function systemArea(
  core: Core,
  { bounces, certificates, alerts, relays, scanners, jobs, systemClock }: SystemUses,
): Area {
  const { config, store, clock, resolver } = core
  const check = () =>
    runChecks({
      config,
      resolver,
      hostAddresses: hostAddresses(),
      probeDomains: PROBE_DOMAINS,
      async tryDatabase() {
        // Touches no row, but takes a write transaction to its end.
        await store.commit([{ sql: 'UPDATE accounts SET id = id WHERE 1 = 0', values: [] }])
        return `The database (${store.kind}) can be written.`
      },
      trackingCertificates: certificates.faults,
      ownCertificates: certificates.ownStates,
      lostReturnPaths: () => lostReturnPaths(store, [config.hostname, ...config.dnsTargets.mxHosts]),
      clockStepMs: () => systemClock.now() - clock.now(),
      recentRefusals: bounces.recentRefusals,
      relays: relays.list,
      async openFiles() {
        const found = await readOpenFiles()
        return found && { ...found, needed: openFilesNeeded(config) }
      },
      otherNodes: () => core.nodes.others().length,
      now: () => systemClock.now(),
    })
  const sizes = createSizes(core)
  const queue = createQueueCounts(store, clock)
  return {
    jobs: [sizes.job],
    stop: () => sizes.close(),
    operations: systemRoutes({
      describe: (caller) =>
        describeSystem(
          core,
          { jobs, alerts: alerts.triggeredOwn, sizes: sizes.read, queue, scanners },
          caller,
        ),
      check,
      clock,
    }),
  }
}
