/** Rates and connections per provider, with several domains on one MX each, as seen by the receiving side. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DrillReport } from '../../scripts/drill.ts'
import { systemClock } from '../../src/base/time/clock.ts'
import { type Site, withSites } from '../support/engine-rig.ts'
import { seedQueue } from '../support/seed-queue.ts'

export const title = 'R21: no provider sees more than its rate in any second, nor more than its connections'

const SECONDS = 15
const DOMAINS = 4
const SITES: Site[] = [
  ['slow', 5, 2],
  ['medium', 40, 4],
  ['quick', 200, 8],
].map(([name, rate, connections]) => ({
  name: String(name),
  domains: Array.from({ length: DOMAINS }, (_, n) => `${name}${n}.example`),
  limits: { connections: Number(connections), messagesPerConnection: 50, messagesPerSecond: Number(rate) },
}))

export async function run(report: DrillReport): Promise<void> {
  await withSites(systemClock, SITES, async ({ store, engine, sinks }) => {
    for (const { domains, limits } of SITES) {
      const count = Math.ceil(((limits.messagesPerSecond ?? 1) * (SECONDS + 5)) / DOMAINS)
      for (const recipientDomain of domains)
        await seedQueue(store, {
          accountId: 'a',
          domainId: 'd',
          recipientDomain,
          count,
          dueAt: systemClock.now(),
        })
    }
    await engine.start()
    await sleep(SECONDS * 1_000)
    const received = new Map(
      SITES.map(({ name }) => [
        name,
        (sinks.get(name)?.messages ?? []).map(({ receivedAt }) => receivedAt.getTime()),
      ]),
    )
    const peaks = new Map(SITES.map(({ name }) => [name, sinks.get(name)?.connections.peak ?? 0]))
    for (const { name, limits } of SITES) {
      const times = received.get(name) ?? []
      const rate = limits.messagesPerSecond ?? 1
      // Over windows of 5 s, so that delays of single messages matter little.
      const busiest =
        Math.max(...times.map((from) => times.filter((at) => at >= from && at < from + 5_000).length)) / 5
      const mean = times.length / SECONDS
      report.figure(`${name}: limit`, rate, 'messages/s')
      report.figure(`${name}: mean`, mean, 'messages/s')
      report.figure(`${name}: busiest 5 s`, busiest, 'messages/s')
      report.figure(`${name}: connections at the most`, peaks.get(name) ?? 0, `of ${limits.connections}`)
      assert.ok(busiest <= rate * 1.02 + 0.4, `${name}: ${busiest}`)
      assert.ok((peaks.get(name) ?? 0) <= limits.connections, `${name}: connections`)
    }
  })
}
