/** SQLite belongs to one process: there is nobody to beat for, and nobody else to name. */
import type { NodeFacts, NodeReport, Nodes } from './node.ts'

const WHOLE = { index: 0, count: 1 }

export function aloneNode(facts: NodeFacts, now: () => number): Nodes {
  const startedAt = Math.floor(now())
  let state: NodeReport['state'] = 'running'
  return {
    id: facts.id,
    addresses: facts.addresses,
    isCurrent: () => true,
    list: async () => [{ ...facts, state, startedAt, lastSeenAt: Math.floor(now()), silentMs: 0 }],
    others: () => [],
    deliveryShare: () => WHOLE,
    onTakenOver() {},
    onReturned() {},
    async stopping() {
      state = 'stopping'
    },
    async close() {},
  }
}
