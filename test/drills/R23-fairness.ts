/** One account has 100,000 messages queued; another sends single mails to the same provider, and to others. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DrillReport } from '../../scripts/drill.ts'
import { systemClock } from '../../src/base/time/clock.ts'
import { withSites } from '../support/engine-rig.ts'
import { seedQueue } from '../support/seed-queue.ts'

export const title =
  'R23: 100,000 queued messages of one tenant delay the single mail of another by 2 s at the most'

const BACKLOG = 100_000
const SINGLES = 10
const WAIT_MAX_MS = 30_000
const limits = { connections: 10, messagesPerConnection: 100, messagesPerSecond: null }

export async function run(report: DrillReport): Promise<void> {
  const sites = [
    { name: 'large', domains: ['large.example', 'workspace.example'], limits },
    { name: 'small', domains: ['small.example'], limits },
  ]
  await withSites(systemClock, sites, async ({ store, engine, sinks }) => {
    // A slow server, so that the backlog lasts.
    sinks.get('large')?.on('DATA-DOT', async () => {
      await sleep(20)
      return '250 2.0.0 Ok'
    })
    await seedQueue(store, {
      accountId: 'big',
      domainId: 'big',
      recipientDomain: 'large.example',
      count: BACKLOG,
      dueAt: systemClock.now(),
    })
    await engine.start()
    await sleep(2_000)
    const waits: Record<string, number[]> = {}
    for (const [domain, site] of [
      ['large.example', 'large'],
      ['workspace.example', 'large'],
      ['small.example', 'small'],
    ] as const) {
      for (let n = 0; n < SINGLES; n++) {
        const startedAt = performance.now()
        const dueAt = systemClock.now()
        const [id] = await seedQueue(store, {
          accountId: 'other',
          domainId: 'other',
          recipientDomain: domain,
          count: 1,
          dueAt,
        })
        engine.wake()
        const arrived = () =>
          sinks
            .get(site)
            ?.messages.slice(-2_000)
            .some(({ raw }) => raw.includes(id as string))
        while (!arrived() && performance.now() - startedAt < WAIT_MAX_MS) await sleep(2)
        waits[domain] = [...(waits[domain] ?? []), performance.now() - startedAt]
      }
    }
    const drained = sinks.get('large')?.messages.length ?? 0
    report.figure('queued by the one', BACKLOG)
    report.figure('of them sent meanwhile', drained)
    for (const [domain, times] of Object.entries(waits)) {
      report.figure(`slowest of ${SINGLES} to ${domain}`, Math.max(...times) / 1_000, 's')
      assert.ok(Math.max(...times) <= 2_000, domain)
    }
  })
}
