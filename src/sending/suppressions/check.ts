/**
 * The one check of the lists just before an attempt, for every way in. A removal or an addition applies from the
 * next attempt on, on every node (suppressions.md section 5 rule 10), so nothing is cached between attempts.
 * Instead, checks that wait while a query runs share the next one: a query always starts after the checks that it
 * answers.
 */
import type { Clock } from '../../base/time/clock.ts'
import type { Failure, Outcome } from '../../mail/deliver/attempt/outcome.ts'
import type { Statement, Store } from '../../platform/store/store.ts'
import { addressKey } from '../../protocols/mime/address.ts'
import { ALL_MAIL } from './given-records.ts'

/** The lists that stop mail, in the order in which they are checked: the first hit gives the reason. */
const STOPPING_LISTS = ['bounces', 'unsubscribes', 'complaints'] as const
export type StoppingList = (typeof STOPPING_LISTS)[number]

const FAILURES: Readonly<Record<StoppingList, Pick<Failure, 'code' | 'description'> & { reason: string }>> = {
  bounces: {
    reason: 'suppress-bounce',
    code: 605,
    description: 'Not delivering to previously bounced address',
  },
  unsubscribes: {
    reason: 'suppress-unsubscribe',
    code: 606,
    description: 'Not delivering to unsubscribed address',
  },
  complaints: {
    reason: 'suppress-complaint',
    code: 607,
    description: 'Not delivering to a user who marked your messages as spam',
  },
}

/** One row per tag of an unsubscribe; `tag_key` is null for the other lists. */
export interface Hit {
  kind: string
  expires_at: number | null
  tag_key: string | null
}

export type SuppressionCheck = ReturnType<typeof createSuppressionCheck>

/** Checks per query. On SQLite a check costs 40 µs of CPU (both threads) alone, 10 µs in groups of 8. */
const CHECKS_PER_QUERY_MAX = 16
/**
 * Concurrent queries: SQLite has one reader, which then always has the next one waiting; PostgreSQL has connections
 * to spare.
 */
const QUERIES_MAX = { sqlite: 2, postgres: 4 }

interface Waiting {
  domainId: string
  /** The address, and what stands for it. */
  addresses: readonly [string, string]
  resolve(hits: Hit[]): void
  reject(error: unknown): void
}

/** @param erased what stands in the lists for the address of a person who was erased (decision 222), by its key */
export function createSuppressionCheck(store: Store, clock: Clock, erased: (key: string) => string) {
  let waiting: Waiting[] = []
  let running = 0
  const queries = new Map<number, string>()

  const lookUp = (domainId: string, address: string) =>
    new Promise<Hit[]>((resolve, reject) => {
      waiting.push({ domainId, addresses: [address, erased(address)], resolve, reject })
      // Checks started in the same turn of the event loop share a query.
      if (waiting.length === 1) queueMicrotask(pump)
    })

  function pump(): void {
    while (running < QUERIES_MAX[store.kind] && waiting.length > 0) {
      running++
      void answer(takeGroup()).finally(() => {
        running--
        pump()
      })
    }
  }

  /** The oldest check, and others of its domain. */
  function takeGroup(): Waiting[] {
    const group: Waiting[] = []
    const rest: Waiting[] = []
    for (const check of waiting) {
      const fits = group.length < CHECKS_PER_QUERY_MAX && check.domainId === waiting[0]?.domainId
      if (fits) group.push(check)
      else rest.push(check)
    }
    waiting = rest
    return group
  }

  async function answer(checks: Waiting[]): Promise<void> {
    try {
      const rows = (await store.read(queryOf(checks))) as unknown as (Hit & { address: string })[]
      for (const { addresses, resolve } of checks)
        resolve(rows.filter(({ address }) => addresses.includes(address)))
    } catch (error) {
      for (const { reject } of checks) reject(error)
    }
  }

  /** One SQL text per power of two; a smaller group repeats its last address. */
  function queryOf(checks: readonly Waiting[]): Statement {
    const size = 2 ** Math.ceil(Math.log2(checks.length))
    const sql = queries.get(size) ?? queryText(2 * size)
    queries.set(size, sql)
    const last = checks.at(-1) as Waiting
    const addresses = Array.from({ length: size }, (_, index) => (checks[index] ?? last).addresses).flat()
    return { sql, values: [last.domainId, ...addresses] }
  }

  return {
    /**
     * The outcome if a list stops mail of that domain to the recipient, else null. `tags` of the message, as sent.
     * `against`: the lists that apply to this mail; forwarded mail checks only `bounces`, mail of the service itself
     * all but `unsubscribes` (suppressions.md section 7 rules 6 and 10).
     */
    async suppressionOf(
      domainId: string,
      recipient: string,
      tags: readonly string[],
      against: readonly StoppingList[] = STOPPING_LISTS,
    ): Promise<Outcome | null> {
      const hits = await lookUp(domainId, addressKey(recipient))
      return hits.length === 0 ? null : decide(hits, tags, clock.now(), against)
    },
  }
}

/**
 * Lookups in the primary key of one domain. With a list of (domain, address) pairs PostgreSQL read the whole domain
 * while the table had no statistics yet: 25 ms for 100,000 records, against 0.1 ms.
 */
function queryText(addresses: number): string {
  const marks = Array(addresses).fill('?').join(', ')
  const kinds = STOPPING_LISTS.map((kind) => `'${kind}'`).join(', ')
  return `SELECT record.address, record.kind, record.expires_at, covered.tag_key
    FROM suppressions record LEFT JOIN unsubscribe_tags covered
      ON covered.domain_id = record.domain_id AND covered.address = record.address
      AND record.kind = 'unsubscribes'
    WHERE record.domain_id = ? AND record.address IN (${marks}) AND record.kind IN (${kinds})`
}

/** The outcome for the rows found, or null if none of them covers this message. */
export function decide(
  hits: readonly Hit[],
  tags: readonly string[],
  now: number,
  against: readonly StoppingList[] = STOPPING_LISTS,
): Outcome | null {
  const keys = new Set([ALL_MAIL, ...tags.map((tag) => tag.toLowerCase())])
  const active = hits.filter(({ expires_at }) => expires_at === null || expires_at > now)
  const list = STOPPING_LISTS.find(
    (name) =>
      against.includes(name) &&
      active.some(
        ({ kind, tag_key }) => kind === name && (name !== 'unsubscribes' || keys.has(tag_key ?? ALL_MAIL)),
      ),
  )
  if (!list) return null
  const { reason, ...failure } = FAILURES[list]
  return { kind: 'suppressed', reason, failure: { ...failure, enhanced: null, message: '' } }
}
