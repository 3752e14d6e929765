/** The engine's transport over real sockets, with the parts that a test does not set. */
import { createByteBudget } from '../../src/base/flow/byte-budget.ts'
import { systemClock } from '../../src/base/time/clock.ts'
import { createEgress } from '../../src/mail/deliver/connect/egress.ts'
import { createTransport, type TransportParts } from '../../src/mail/deliver/connect/transport.ts'
import { shippedShaping } from '../../src/mail/deliver/shaping/shaping-table.ts'
import { connectSmtp } from '../../src/protocols/smtp/client.ts'

export const testTransport = (parts: Pick<TransportParts, 'nextHop'> & Partial<TransportParts>) =>
  createTransport({
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
