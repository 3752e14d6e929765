/**
 * Which claimed deliveries of this process have an attempt in progress, and which were cancelled before theirs began.
 * The engine claims ahead, so the state `sending` in the database does not show whether anything was handed over.
 */
import { PassingMap } from '../../base/flow/cache.ts'
import type { DeliveryRow } from '../../platform/store/schema.ts'

type Claimed = Pick<DeliveryRow, 'id' | 'domain_id' | 'created_at'>

export type AttemptsInProgress = ReturnType<typeof createAttemptsInProgress>

/** As many as an engine can hold. A lost lease may leave an entry here; the oldest are dropped. */
const ATTEMPTS_MAX = 20_000
const DOMAINS_MAX = 10_000

export function createAttemptsInProgress() {
  /** Delivery id to domain id. */
  const attempts = new PassingMap<string, string>()
  const cancelledUpTo = new Map<string, number>()
  return {
    /** An attempt begins; false if the delivery was cancelled: then nothing may be handed over. */
    begin({ id, domain_id, created_at }: Claimed): boolean {
      if (created_at <= (cancelledUpTo.get(domain_id) ?? -1)) return false
      if (attempts.size >= ATTEMPTS_MAX) attempts.delete(attempts.keys().next().value as string)
      attempts.set(id, domain_id)
      return true
    },
    /** Its outcome is known. */
    end: ({ id }: Pick<Claimed, 'id'>): void => void attempts.delete(id),
    /** From now on no attempt may begin for deliveries that the domain queued up to `now`; returns those in progress. */
    cancel(domainId: string, now: number): string[] {
      if (cancelledUpTo.size >= DOMAINS_MAX) cancelledUpTo.delete(cancelledUpTo.keys().next().value as string)
      cancelledUpTo.set(domainId, Math.floor(now))
      return [...attempts].flatMap(([id, domain]) => (domain === domainId ? id : []))
    },
  }
}
