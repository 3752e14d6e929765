/** Sending addresses in an engine without HTTP: their choice, warm-up and blocks are the service's, providers are SMTP sinks. */
import pino from 'pino'
import { parseCidr } from '../../src/base/net/ip.ts'
import type { Clock } from '../../src/base/time/clock.ts'
import type { Delivery, DeliveryParts } from '../../src/mail/deliver/contract.ts'
import { type LaneLimits, shippedShaping, tableOf } from '../../src/mail/deliver/shaping/shaping-table.ts'
import type { Store } from '../../src/platform/store/store.ts'
import { createResolver } from '../../src/protocols/dns/resolver.ts'
import { type Blocks, createBlocks } from '../../src/sending/ips/blocks/blocks.ts'
import { type KnownAddresses, openAddresses } from '../../src/sending/ips/known-addresses.ts'
import { createSources, type Sources } from '../../src/sending/ips/source-addresses.ts'
import { createAllowances, type WarmupAllowances } from '../../src/sending/ips/warmup/allowances.ts'
import { createDnsServer } from './dns-server.ts'
import { seededEngine } from './seed-queue.ts'
import { ownAddress } from './service.ts'
import { createSink, type Sink } from './smtp-sink.ts'
import { testTransport } from './test-transport.ts'

const PORT = 2500

export interface AddressRigOptions {
  store: Store
  clock: Clock
  accountId: string
  ips: readonly string[]
  plan: readonly number[]
  sites: readonly { name: string; domains: readonly string[]; limits: LaneLimits }[]
  engine: Partial<DeliveryParts>
}

export interface AddressRig {
  known: KnownAddresses
  allowances: WarmupAllowances
  blocks: Blocks
  sources: Sources
  /** By the name of their site. */
  sinks: ReadonlyMap<string, Sink>
  /** Not started yet. */
  engine: Delivery
  close(): Promise<void>
}

export async function createAddressRig(options: AddressRigOptions): Promise<AddressRig> {
  const { store, clock, accountId, ips, plan, sites } = options
  const dns = await createDnsServer()
  const sinks = new Map<string, Sink>()
  for (const { name, domains } of sites) {
    const sink = await createSink({ host: ownAddress(), port: PORT })
    sinks.set(name, sink)
    dns.set(`mx.${name}.example`, 'A', [sink.host])
    for (const domain of domains) dns.set(domain, 'MX', [[10, `mx.${name}.example`]])
  }
  const config = {
    sourceAddresses: ips.map((ip) => ({ ip, shared: false, helo: null })),
    requireFcrdns: 'off' as const,
    delivery: { kind: 'direct' as const },
  }
  const shaping = tableOf(
    'rig',
    shippedShaping().default,
    sites.map(({ name, limits }) => ({
      ...{ site: name, mx: [`mx.${name}.example`], limits },
      displayName: () => name,
    })),
  )
  const known = await openAddresses(store, clock, config, accountId)
  const allowances = createAllowances({ store, clock, plan, book: known.book, providerOf: (site) => site })
  const log = pino({ level: 'silent' })
  const blocks = createBlocks({ store, known, clock, log, random: Math.random, shaping: () => shaping })
  const sources = createSources({
    book: known.book,
    domains: { byId: () => null },
    hostAddresses: [],
    isConfigured: true,
    firstAccountId: accountId,
    allowance: allowances,
    blocks,
  })
  const resolver = createResolver({ servers: [{ host: dns.host, port: dns.port }], clock })
  const allow = [parseCidr('127.0.0.0/8')].filter((cidr) => cidr !== null)
  const transport = testTransport({
    direct: { port: PORT, resolver, allow, policies: null },
    clock,
    random: Math.random,
    shaping: () => shaping,
    sourceOf: sources.sourceOf,
  })
  const engine = seededEngine(store, clock, transport, { allowances, blocks, ...options.engine })
  return {
    ...{ known, allowances, blocks, sources, sinks, engine },
    async close() {
      await engine.stop(5_000)
      await blocks.written()
      await allowances.close()
      resolver.close()
      for (const sink of sinks.values()) await sink.close()
      await dns.close()
    },
  }
}
