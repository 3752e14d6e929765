/** An engine for drills: a fresh SQLite, real SMTP to sinks found through a DNS stub, no HTTP. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseCidr } from '../../src/base/net/ip.ts'
import type { Clock } from '../../src/base/time/clock.ts'
import type { AttemptResult, Delivery, Transport } from '../../src/mail/deliver/contract.ts'
import { type LaneLimits, shippedShaping, tableOf } from '../../src/mail/deliver/shaping/shaping-table.ts'
import { openPostgres } from '../../src/platform/store/postgres/postgres.ts'
import { openSqlite } from '../../src/platform/store/sqlite/sqlite.ts'
import type { Store } from '../../src/platform/store/store.ts'
import { createResolver } from '../../src/protocols/dns/resolver.ts'
import { createDnsServer, type DnsServer } from './dns-server.ts'
import { createMigratedDatabase, prepareDataFolder } from './migrated.ts'
import { seededEngine } from './seed-queue.ts'
import { ownAddress } from './service.ts'
import { createSink, type Sink } from './smtp-sink.ts'
import { testTransport } from './test-transport.ts'

const PORT = 2500

/** A fresh store for the time of `run`. */
export async function withStore<T>(run: (store: Store) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  await prepareDataFolder(folder)
  const store = await openSqlite(folder)
  try {
    return await run(store)
  } finally {
    await store.close()
    await rm(folder, { recursive: true, force: true })
  }
}

/** The same on PostgreSQL. */
export async function withPostgres<T>(run: (store: Store) => Promise<T>): Promise<T> {
  const database = await createMigratedDatabase()
  const store = await openPostgres(database.url)
  try {
    return await run(store)
  } finally {
    await store.close()
    await database.drop()
  }
}

export interface Watched {
  store: Store
  /** Resolves when the database is idle. */
  quiet(): Promise<void>
}

/**
 * The same store with a way to wait until it is idle: simulated time must stand still while the database works, or its
 * milliseconds would count as the engine's.
 */
export function watched(store: Store): Watched {
  let working = 0
  const counted = async <T>(run: () => Promise<T>): Promise<T> => {
    working++
    return run().finally(() => working--)
  }
  return {
    store: {
      ...store,
      commit: (unit, order) => counted(() => store.commit(unit, order)),
      read: (statement) => counted(() => store.read(statement)),
    },
    async quiet() {
      // Code that runs after a database answer may query it again.
      for (let calm = 0; calm < CALM_TURNS; calm = working === 0 ? calm + 1 : 0)
        await new Promise<void>((resolve) => setImmediate(resolve))
    },
  }
}

const CALM_TURNS = 5

export interface Site {
  name: string
  domains: readonly string[]
  limits: LaneLimits
}

/**
 * Sites with one sink each, configured as providers, and an engine that is not started yet. `open`: runs the drill with a
 * store; default: a fresh SQLite.
 */
export async function withSites<T>(
  clock: Clock,
  sites: readonly Site[],
  run: (rig: { store: Store; engine: Delivery; sinks: Map<string, Sink>; dns: DnsServer }) => Promise<T>,
  open: (run: (store: Store) => Promise<T>) => Promise<T> = withStore,
): Promise<T> {
  const dns = await createDnsServer()
  const sinks = new Map<string, Sink>()
  for (const { name, domains } of sites) {
    const sink = await createSink({ host: ownAddress(), port: PORT })
    sinks.set(name, sink)
    dns.set(`mx.${name}.example`, 'A', [sink.host])
    for (const domain of domains) dns.set(domain, 'MX', [[10, `mx.${name}.example`]])
  }
  const table = tableOf(
    'drill',
    shippedShaping().default,
    sites.map(({ name, limits }) => ({
      site: name,
      mx: [`mx.${name}.example`],
      limits,
      displayName: () => name,
    })),
  )
  const resolver = createResolver({ servers: [{ host: dns.host, port: dns.port }], clock })
  const allow = [parseCidr('127.0.0.0/8')].filter((cidr) => cidr !== null)
  const transport = testTransport({
    direct: { port: PORT, resolver, allow, policies: null },
    clock,
    random: Math.random,
    shaping: () => table,
  })
  try {
    return await open(async (store) => {
      const engine = seededEngine(store, clock, transport)
      try {
        return await run({ store, engine, sinks, dns })
      } finally {
        await engine.stop(5_000)
      }
    })
  } finally {
    resolver.close()
    for (const sink of sinks.values()) await sink.close()
    await dns.close()
  }
}

/** A transport without network: a lane per recipient domain; each attempt takes `tookMs` of the clock. */
export function simulatedTransport(
  clock: Clock,
  limits: LaneLimits | ((domain: string) => LaneLimits),
  tookMs: number,
  answer: (domain: string) => AttemptResult['outcome'],
  onAttempt: (recipient: string, domain: string) => void,
): Transport {
  return {
    laneOf: async ({ recipient_domain: site }) => ({
      name: `any/${site}`,
      source: null,
      site,
      relay: null,
      provider: 'Other',
      limits: typeof limits === 'function' ? limits(site) : limits,
    }),
    limitsOf: (lane) => lane.limits,
    withoutRelay: () => null,
    shapingChanged() {},
    async deliver(_lane, delivery, _ready, stillOurs) {
      onAttempt(delivery.recipient, delivery.recipient_domain)
      await stillOurs()
      if (tookMs > 0) await new Promise<void>((resolve) => clock.setTimer(tookMs, resolve))
      return {
        outcome: answer(delivery.recipient_domain),
        attempted: true,
        mxHost: null,
        sendingIp: null,
        provider: 'Other',
        tls: null,
        verified: null,
        utf8: null,
        sessionMs: 1,
        transcript: null,
      }
    },
    close: async () => {},
  }
}
