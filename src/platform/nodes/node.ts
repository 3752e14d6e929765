/** A process of the service, as the others on its database see it. */

export const ROLES = ['api', 'smtp', 'delivery', 'jobs'] as const
/**
 * `api`: the HTTP API and the dashboard. `smtp`: the SMTP ports. `delivery`: sends mail. `jobs`: periodic work and
 * outgoing POSTs.
 */
export type Role = (typeof ROLES)[number]

export interface NodeFacts {
  id: string
  host: string
  roles: readonly Role[]
  /** IP addresses that it can send from: configured ones that it could bind at its start. */
  addresses: readonly string[]
  version: string
}

export interface NodeReport extends NodeFacts {
  state: 'running' | 'stopping'
  /** Unix milliseconds, by the clock of leases. */
  startedAt: number
  lastSeenAt: number
  /** How long ago that was. */
  silentMs: number
}

export interface Nodes {
  /** Names this process in leases. */
  readonly id: string
  /** Configured ones that it could bind at its start. */
  readonly addresses: readonly string[]
  /** False: others may consider this process dead and take over what it holds, so nothing may be handed over. */
  isCurrent(): boolean
  /** All that are known, this one among them, by start. */
  list(): Promise<NodeReport[]>
  /** The others that are alive, as of the last beat. */
  others(): readonly NodeReport[]
  /** This process among those that deliver, by start. One that has not been heard of counts until it is dead. */
  deliveryShare(): { index: number; count: number }
  /**
   * Calls `run` when others have taken over what this process held, before it goes on under the same id; a rejection is
   * logged.
   */
  onTakenOver(run: () => Promise<void> | void): void
  /** Calls `run` when the leases of a dead process have been returned, by whichever process. */
  onReturned(run: () => void): void
  /** The process has begun to stop. */
  stopping(): Promise<void>
  /** Removes its row: nothing is held any more. */
  close(): Promise<void>
}

/** For the log and for the checks. */
export const OWN_BLOBS =
  'Several nodes share the database, but large files lie in the data folder of the node that accepted them: the others can neither send nor show such mail. Set SENDWRIGHT_BLOBS to S3-compatible storage on every node'

const WHOLE = { index: 0, count: 1 }

/** SQLite belongs to one process: there is nobody to beat for, and nobody else to name. */
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
