/** A transport without network for tests of the engine: `answer` decides, attempts are recorded in order. */

import type { Outcome } from '../../src/mail/deliver/attempt/outcome.ts'
import type { ClaimedDelivery } from '../../src/mail/deliver/claim/queue.ts'
import type { AttemptResult, Transport } from '../../src/mail/deliver/contract.ts'

export const DELIVERED: Outcome = { kind: 'delivered', code: 250, message: 'Ok', enhanced: null }

/** One lane per source key and recipient domain (`any` for the empty key), each with the given connections. */
export function fakeTransport(
  connections: number,
  answer: (delivery: ClaimedDelivery) => Promise<Outcome>,
): Transport & { attempts: ClaimedDelivery[] } {
  const attempts: ClaimedDelivery[] = []
  return {
    attempts,
    laneOf: async ({ recipient_domain: site, source_key: source }) => ({
      name: `${source || 'any'}/${site}`,
      source: null,
      site,
      relay: null,
      provider: 'Other',
      limits: { connections, messagesPerConnection: 100, messagesPerSecond: null },
    }),
    limitsOf: ({ limits }) => limits,
    withoutRelay: () => null,
    shapingChanged() {},
    async deliver(_lane, delivery, _ready, stillOurs) {
      attempts.push(delivery)
      await stillOurs()
      return resultOf(await answer(delivery))
    },
    close: async () => {},
  }
}

function resultOf(outcome: Outcome): AttemptResult {
  return {
    outcome,
    attempted: true,
    mxHost: 'mx.example',
    sendingIp: null,
    provider: 'Other',
    tls: null,
    verified: null,
    utf8: null,
    sessionMs: 1,
    transcript: null,
  }
}
