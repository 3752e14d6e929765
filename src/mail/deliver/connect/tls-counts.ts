/**
 * Counts of TLS sessions per policy and result, for TLS reports (RFC 8460 §4.4): kept in memory, written every minute and
 * at the end. A crash loses the counts of the last minute.
 */
import type { Clock, Timer } from '../../../base/time/clock.ts'
import { MINUTE_MS } from '../../../base/time/durations.ts'
import type { Store } from '../../../platform/store/store.ts'

export interface TlsSession {
  /** Which may ask for reports, at `_smtp._tls`. */
  recipientDomain: string
  policyDomain: string
  policyType: 'tlsa' | 'sts'
  mxHost: string
  /** `success`, or a result type of RFC 8460 §4.3. */
  result: string
  /** '' where the system chooses the address. */
  sendingIp: string
}

export type TlsCounts = ReturnType<typeof createTlsCounts>

/** Combinations counted between two writes; further ones are not counted. */
const KEYS_MAX = 10_000

const KEY = 'day, recipient_domain, policy_domain, policy_type, mx_host, result_type, sending_ip'
const ADD = `INSERT INTO tls_results (${KEY}, sessions) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (${KEY})
  DO UPDATE SET sessions = tls_results.sessions + excluded.sessions`

export function createTlsCounts(store: Store, clock: Clock) {
  let counts = new Map<string, { result: TlsSession; day: string; sessions: number }>()
  let timer: Timer | null = null

  async function write(): Promise<void> {
    timer = null
    const batch = [...counts.values()]
    counts = new Map()
    if (batch.length === 0) return
    await store.commit(
      batch.map(({ result, day, sessions }) => ({
        sql: ADD,
        values: [day, ...valuesOf(result), sessions],
      })),
    )
  }

  return {
    record(result: TlsSession): void {
      const day = new Date(clock.now()).toISOString().slice(0, 10)
      const key = [day, ...valuesOf(result)].join(' ')
      const known = counts.get(key)
      if (known) known.sessions++
      else if (counts.size < KEYS_MAX) counts.set(key, { result, day, sessions: 1 })
      timer ??= clock.setTimer(MINUTE_MS, () => void write().catch(() => {}))
    },
    async close(): Promise<void> {
      timer?.cancel()
      await write()
    },
  }
}

const valuesOf = ({ recipientDomain, policyDomain, policyType, mxHost, result, sendingIp }: TlsSession) => [
  ...[recipientDomain, policyDomain, policyType, mxHost, result, sendingIp],
]
