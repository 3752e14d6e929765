/**
 * The policy that applies to a domain now (RFC 8461 §5.1):
 *
 * 1. The TXT record is queried each time (the resolver caches it for its TTL); its id shows whether the known
 *    policy is still the newest.
 * 2. A new id, or a policy over a day old, triggers a new fetch. If that fails the known one applies until its
 *    max_age ends: an attacker who suppresses DNS or HTTPS answers cannot downgrade a domain.
 * 3. A fetched policy is passed to `keep`, and read back by `known` after a start.
 */

import type { Clock } from '../../base/time/clock.ts'
import { DAY_MS, MINUTE_MS } from '../../base/time/durations.ts'
import type { Fetched } from './fetch.ts'
import { parseStsPolicy, readStsRecord, type StsPolicy } from './policy.ts'

export interface StoredPolicy {
  domain: string
  id: string
  text: string
  /** Unix milliseconds. */
  expiresAt: number
}

interface PolicyParts {
  clock: Clock
  /** TXT records of a name; null: DNS gave no answer. */
  txt(name: string): Promise<readonly string[] | null>
  fetch(domain: string): Promise<Fetched>
  known(domain: string): Promise<StoredPolicy | null>
  keep(policy: StoredPolicy): Promise<void>
}

export type StsPolicies = ReturnType<typeof createStsPolicies>

interface Entry {
  stored: StoredPolicy | null
  policy: StsPolicy | null
  /** On the monotonic clock: not fetched again before. */
  retryAt: number
  freshUntil: number
  /** The id that could not be fetched. */
  failedId: string | null
  fetching: Promise<void> | null
}

const REFRESH_MS = DAY_MS
/** After a failed fetch (RFC 8461 §3.3: five minutes or more). */
const RETRY_MS = 5 * MINUTE_MS
const DOMAINS_MAX = 20_000

export function createStsPolicies(parts: PolicyParts) {
  const entries = new Map<string, Promise<Entry>>()

  async function load(domain: string): Promise<Entry> {
    const stored = await parts.known(domain).catch(() => null)
    const parsed = stored ? parseStsPolicy(stored.text) : null
    const policy = parsed && !('invalid' in parsed) ? parsed : null
    return {
      stored: policy ? stored : null,
      policy,
      retryAt: Number.NEGATIVE_INFINITY,
      freshUntil: Number.NEGATIVE_INFINITY,
      failedId: null,
      fetching: null,
    }
  }

  function entryOf(domain: string): Promise<Entry> {
    const known = entries.get(domain)
    if (known) return known
    const entry = load(domain)
    entries.set(domain, entry)
    const oldest = entries.keys().next()
    if (entries.size > DOMAINS_MAX && !oldest.done) entries.delete(oldest.value)
    return entry
  }

  async function refresh(domain: string, id: string, entry: Entry): Promise<void> {
    const fetched = await parts.fetch(domain)
    const parsed = fetched.kind === 'text' ? parseStsPolicy(fetched.text) : { invalid: fetched.why }
    const now = parts.clock.monotonic()
    if ('invalid' in parsed || fetched.kind !== 'text') {
      entry.failedId = id
      entry.retryAt = now + RETRY_MS
      return
    }
    const expiresAt = Math.round(parts.clock.now() + parsed.maxAgeSeconds * 1000)
    entry.policy = parsed
    entry.stored = { domain, id, text: fetched.text, expiresAt }
    entry.freshUntil = now + REFRESH_MS
    entry.failedId = null
    // If it cannot be stored, the next start fetches it again.
    await parts.keep(entry.stored).catch(() => {})
  }

  return {
    /** Null: the domain has no policy. Never rejects. */
    async of(domain: string): Promise<{ policy: StsPolicy; id: string } | null> {
      const entry = await entryOf(domain)
      if (entry.stored && entry.stored.expiresAt <= parts.clock.now()) {
        entry.stored = null
        entry.policy = null
      }
      const texts = await parts.txt(`_mta-sts.${domain}`)
      const id = texts && readStsRecord(texts)
      if (id) {
        const now = parts.clock.monotonic()
        const isOutdated = entry.stored?.id !== id || now >= entry.freshUntil
        const mayFetch = entry.failedId !== id || now >= entry.retryAt
        if (isOutdated && mayFetch) {
          entry.fetching ??= refresh(domain, id, entry).finally(() => {
            entry.fetching = null
          })
        }
        // A policy with the right id can be used while it is being refreshed.
        if (entry.fetching && entry.stored?.id !== id) await entry.fetching
      }
      const { policy, stored } = entry
      return policy && stored && policy.mode !== 'none' ? { policy, id: stored.id } : null
    },
  }
}
