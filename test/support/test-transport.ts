/** The engine's transport over real sockets, with the parts that a test does not set. */
import { createByteBudget } from '../../src/base/flow/byte-budget.ts'
import { systemClock } from '../../src/base/time/clock.ts'
import { createEgress } from '../../src/mail/deliver/connect/egress.ts'
import { onlyRelay } from '../../src/mail/deliver/connect/fixed-relays.ts'
import type { RelayHop } from '../../src/mail/deliver/connect/relay.ts'
import { createTransport, type TransportParts } from '../../src/mail/deliver/connect/transport.ts'
import { shippedShaping } from '../../src/mail/deliver/shaping/shaping-table.ts'
import type { Resolver } from '../../src/protocols/dns/resolver.ts'
import { connectSmtp } from '../../src/protocols/smtp/client.ts'
import { NO_RELAYS } from './no-relays.ts'

/** Mail goes directly, unless there is a relay. */
export const testTransport = (parts: Partial<TransportParts>) =>
  createTransport({
    direct: { port: 25, resolver: NO_DNS, allow: [], policies: null },
    relays: NO_RELAYS,
    heloName: 'mail.test.example',
    clock: systemClock,
    random: () => 0,
    sourceOf: () => null,
    shaping: shippedShaping,
    limitsOf: (_site, limits) => limits,
    tlsCounts: { record() {} },
    tlsOptions: {},
    egress: createEgress([], parts.clock ?? systemClock),
    connect: connectSmtp,
    memory: createByteBudget(Number.MAX_SAFE_INTEGER, parts.clock ?? systemClock),
    isCaptured: false,
    ...parts,
  })

const NO_DNS: Resolver = {
  query: () => Promise.reject(new Error('no DNS in this test')),
  close() {},
} as unknown as Resolver

/** All mail goes to this relay. */
export const testRelay = (hop: Partial<RelayHop> & Pick<RelayHop, 'host'>) =>
  onlyRelay({
    ...{ name: 'test', site: 'relay:test', port: 25, tls: 'wanted', verify: false, auth: null },
    limits: { connections: 5, messagesPerConnection: 100, messagesPerSecond: null },
    ...{ sizeMax: null, revision: 1 },
    ...hop,
  })
