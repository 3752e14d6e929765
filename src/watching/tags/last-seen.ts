/**
 * When tags were last used. Accepting a message only notes its tags in memory; a job writes them, each at most once an
 * hour. What is noted when a process dies is lost; the next message with the tag is noted again.
 */
import type { Clock } from '../../base/time/clock.ts'
import { HOUR_MS } from '../../base/time/durations.ts'
import type { Statement, Store } from '../../platform/store/store.ts'

interface TagDomain {
  id: string
  accountId: string
}

export type LastSeen = ReturnType<typeof createLastSeen>

interface Use {
  domain: TagDomain
  /** Lower case. */
  key: string
  at: number
}

/** Tags in memory, about 10 MB; over it all are forgotten, and may be written twice in an hour. */
const TAGS_MAX = 100_000
/** Occupies SQLite's writer for a few milliseconds. */
const TAGS_PER_COMMIT = 200

export function createLastSeen({ store, clock }: { store: Store; clock: Clock }) {
  /** The hour in which a tag was noted last, by domain and key. */
  const notedIn = new Map<string, number>()
  let noted: Use[] = []
  return {
    /** A message of the domain carries these tags. */
    used(domain: TagDomain, tags: readonly string[]): void {
      const at = Math.floor(clock.now())
      const hour = Math.floor(at / HOUR_MS)
      for (const tag of tags) {
        const key = tag.toLowerCase()
        const name = `${domain.id} ${key}`
        if (notedIn.get(name) === hour) continue
        if (notedIn.size >= TAGS_MAX) notedIn.clear()
        notedIn.set(name, hour)
        noted.push({ domain: { id: domain.id, accountId: domain.accountId }, key, at })
      }
    },
    /** Writes what was noted since. Stops early when `signal` aborts; the rest waits for the next call. */
    async write(signal?: AbortSignal): Promise<void> {
      // In the order of their keys, so that two processes with the same tags cannot deadlock.
      const uses = noted.sort((a, b) =>
        a.key < b.key ? -1 : a.key > b.key ? 1 : a.domain.id < b.domain.id ? -1 : 1,
      )
      noted = []
      for (let at = 0; at < uses.length; at += TAGS_PER_COMMIT) {
        if (signal?.aborted) {
          noted.push(...uses.slice(at))
          return
        }
        const some = uses.slice(at, at + TAGS_PER_COMMIT)
        try {
          await store.commit([...some.map(ofDomain), ...some.map(ofAccount)])
        } catch (error) {
          noted.push(...uses.slice(at))
          throw error
        }
      }
    },
  }
}

/** A tag that was described before it was used is first seen now. */
const SEEN = 'SET last_seen = ?, first_seen = CASE WHEN first_seen = 0 THEN ? ELSE first_seen END'

const ofDomain = ({ domain, key, at }: Use): Statement => ({
  sql: `UPDATE tags ${SEEN} WHERE domain_id = ? AND tag_key = ? AND last_seen < ?`,
  values: [at, at, domain.id, key, at],
})

const ofAccount = ({ domain, key, at }: Use): Statement => ({
  sql: `UPDATE account_tags ${SEEN} WHERE account_id = ? AND tag_key = ? AND last_seen < ?`,
  values: [at, at, domain.accountId, key, at],
})
