/**
 * One account has a batch for 50,000 domains, each with a mail host of its own; then it and another account send single
 * messages to new domains, one every half second.
 */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DrillReport } from '../../scripts/drill.ts'
import { systemClock } from '../../src/base/time/clock.ts'
import { withPostgres, withSites, withStore } from '../support/engine-rig.ts'
import { seedQueue } from '../support/seed-queue.ts'
import type { Sink } from '../support/smtp-sink.ts'

export const title =
  'R23 with 50,000 domains that answer at once, slowly or never: fresh mail of any account arrives within 5 s'

const DOMAINS = Number(process.env['DRILL_DOMAINS'] ?? 50_000)
const SINGLES = 10
const EVERY_MS = 500
const ARRIVES_WITHIN_MS = 5_000
const WAIT_MAX_MS = 60_000
const SLOW_MS = 4_000
const limits = { connections: 10, messagesPerConnection: 100, messagesPerSecond: null }

/** How the batch's servers behave. */
const SERVERS: Record<string, (sink: Sink) => void> = {
  prompt: () => {},
  slow: (sink) =>
    sink.on('DATA-DOT', async () => {
      await sleep(SLOW_MS)
      return '250 2.0.0 Ok'
    }),
  // Connected, and never greeted.
  silent: (sink) => sink.on('CONNECT', null),
}

export async function run(report: DrillReport): Promise<void> {
  const slowest: number[] = []
  for (const [database, open] of [
    ['SQLite', withStore<number>],
    ['PostgreSQL', withPostgres<number>],
  ] as const)
    for (const [name, behave] of Object.entries(SERVERS)) {
      const what = `${name}, ${database}`
      const took = await measure(report, what, behave, open)
      report.figure(`slowest of ${2 * SINGLES} single messages, ${what}`, took / 1_000, 's')
      slowest.push(took)
    }
  assert.ok(Math.max(...slowest) <= ARRIVES_WITHIN_MS, 'fresh mail')
}

async function measure(
  report: DrillReport,
  what: string,
  behave: (sink: Sink) => void,
  open: typeof withStore<number>,
): Promise<number> {
  const sites = ['many', 'fresh'].map((name) => ({ name, domains: [], limits }))
  return withSites(
    systemClock,
    sites,
    async ({ store, engine, sinks, dns }) => {
      const [many, fresh] = [sinks.get('many') as Sink, sinks.get('fresh') as Sink]
      behave(many)
      const host = (domain: string, { host: address }: Sink) => {
        dns.set(domain, 'MX', [[10, `mx.${domain}`]])
        dns.set(`mx.${domain}`, 'A', [address])
      }
      const domainOf = (index: number) => `batch${index}.example`
      for (let n = 0; n < DOMAINS; n++) host(domainOf(n), many)
      const batch = { accountId: 'big', domainId: 'big', recipientDomain: domainOf, count: DOMAINS }
      await seedQueue(store, { ...batch, dueAt: systemClock.now() })
      await engine.start()
      await sleep(2_000)
      const waits: Promise<number>[] = []
      for (let n = 0; n < SINGLES; n++)
        for (const account of ['big', 'other']) {
          const domain = `${account}-fresh${n}.example`
          host(domain, fresh)
          const startedAt = performance.now()
          const single = { accountId: account, domainId: account, recipientDomain: domain, count: 1 }
          await seedQueue(store, { ...single, dueAt: systemClock.now() })
          engine.inserted([{ domain_id: account, recipient_domain: domain }])
          waits.push(arrival(fresh, domain, startedAt))
          await sleep(EVERY_MS / 2)
        }
      const times = await Promise.all(waits)
      report.note(
        `  ${what}: slowest ${Math.round(Math.max(...times))} ms, ${many.messages.length} of the batch sent meanwhile, ${many.connections.peak} connections`,
      )
      return Math.max(...times)
    },
    open,
  )
}

/** Milliseconds from `startedAt` until the sink has the message; infinite after WAIT_MAX_MS. */
async function arrival(sink: Sink, domain: string, startedAt: number): Promise<number> {
  const hasArrived = () => sink.messages.some(({ envelope }) => envelope.to[0]?.endsWith(`@${domain}`))
  for (;;) {
    const took = performance.now() - startedAt
    if (hasArrived()) return took
    if (took > WAIT_MAX_MS) return Number.POSITIVE_INFINITY
    await sleep(5)
  }
}
