/** What the service tells of itself and of the machine it runs on. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import type { Resolver } from '../dns/resolver.ts'
import { lostReturnPaths } from '../domains/return-paths.ts'
import { PROBE_DOMAINS, runChecks } from '../system/checks.ts'
import { openFilesNeeded, readOpenFiles } from '../system/open-files.ts'
import type { Bounces } from './bounces.ts'
import type { Certificates } from './certificates.ts'
import type { Core } from './core.ts'
import { hostAddresses } from './mail.ts'

export function checkSystem(
  { config, store, clock }: Core,
  resolver: Resolver,
  certificates: Certificates,
  { recentRefusals }: Bounces,
  system: Clock,
) {
  return runChecks({
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
    lostReturnPaths: () => lostReturnPaths(store, [config.hostname, ...config.dnsTargets.mxHosts]),
    clockStepMs: () => system.now() - clock.now(),
    recentRefusals,
    async openFiles() {
      const found = await readOpenFiles()
      return found && { ...found, needed: openFilesNeeded(config) }
    },
    now: () => system.now(),
  })
}

const STARTED_AT = Date.now()

export async function describeSystem({ config, store }: Core): Promise<Record<string, unknown>> {
  const rows = await store.db
    .selectFrom('deliveries')
    .select(['state', (of) => of.fn.countAll<number>().as('count')])
    .where('state', 'in', ['scheduled', 'queued', 'sending'])
    .groupBy('state')
    .execute()
  const count = (state: string) => Number(rows.find((row) => row.state === state)?.count ?? 0)
  return {
    version: VERSION,
    mode: config.delivery.kind,
    database: store.kind,
    uptime_seconds: Math.floor((Date.now() - STARTED_AT) / 1000),
    queue: { scheduled: count('scheduled'), queued: count('queued'), sending: count('sending') },
  }
}

export const VERSION = (
  JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')) as { version: string }
).version
