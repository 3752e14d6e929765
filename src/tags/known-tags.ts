/**
 * The tags that domains use, and their limits (messages.md rule 33, tags-stats.md section 1): a new tag over the
 * domain's or the account's limit is dropped from the message. A tag is known once a message with it is committed.
 * Messages that are accepted at the same moment may each bring new tags past a limit; the next one finds it reached.
 */
import type { MaybePromise } from '../base/cache.ts'
import type { Clock } from '../base/clock.ts'
import type { TagRow } from '../store/schema.ts'
import { insertMany, type Statement, type Store } from '../store/store.ts'

export interface KnownTags {
  /** Those of `tags` that the message may carry, and what makes the new ones known, for its transaction. */
  admit(
    domain: { id: string; accountId: string },
    tags: readonly string[],
    now: number,
  ): MaybePromise<AdmittedTags>
  /** The domain was deleted; its tags count no more. */
  forgetDomain(domainId: string): Promise<void>
}

export interface AdmittedTags {
  tags: readonly string[]
  statements: Statement[]
}

export interface TagLimits {
  /** Distinct tags; 0: no limit. */
  perDomain: number
  perAccount: number
}

/** Tags in memory over all domains, some 10 MB; over it all are forgotten and read again. */
const REMEMBERED_MAX = 100_000
/** How long a count holds; what is admitted meanwhile is counted along. */
const COUNT_MS = 10_000
const COUNTS_MAX = 10_000

export function createKnownTags(parts: { store: Store; clock: Clock; limits: TagLimits }): KnownTags {
  const { store, clock, limits } = parts
  /** Known tags in lower case, under their domain's id. */
  const remembered = new Map<string, Set<string>>()
  let rememberedCount = 0
  const counts = new Map<string, { count: number; until: number }>()

  function remember(domainId: string, keys: readonly string[]): Set<string> {
    if (rememberedCount + keys.length > REMEMBERED_MAX) {
      remembered.clear()
      rememberedCount = 0
    }
    const known = remembered.get(domainId) ?? new Set()
    rememberedCount -= known.size
    for (const key of keys) known.add(key)
    rememberedCount += known.size
    remembered.set(domainId, known)
    return known
  }

  async function unknownAmong(domainId: string, keys: readonly string[]): Promise<ReadonlySet<string>> {
    const asked = keys.filter((key) => !remembered.get(domainId)?.has(key))
    if (asked.length === 0) return new Set()
    const rows = await store.db
      .selectFrom('tags')
      .select('tag_key')
      .where('domain_id', '=', domainId)
      .where('tag_key', 'in', asked)
      .execute()
    const known = remember(
      domainId,
      rows.map((row) => row.tag_key),
    )
    return new Set(asked.filter((key) => !known.has(key)))
  }

  /** How many more tags fit, and the number to count along. */
  async function room(column: 'domain_id' | 'account_id', id: string, max: number) {
    const name = `${column} ${id}`
    let counted = counts.get(name)
    if (!counted || counted.until <= clock.monotonic()) {
      const row = await store.db
        .selectFrom('tags')
        .select((of) => of.fn.count<number>('tag_key').distinct().as('count'))
        .where(column, '=', id)
        .executeTakeFirst()
      counted = { count: Number(row?.count ?? 0), until: clock.monotonic() + COUNT_MS }
      if (counts.size >= COUNTS_MAX) counts.delete(counts.keys().next().value as string)
      counts.set(name, counted)
    }
    return { counted, left: max === 0 ? Number.POSITIVE_INFINITY : max - counted.count }
  }

  async function admit(
    domain: { id: string; accountId: string },
    tags: readonly string[],
    now: number,
  ): Promise<AdmittedTags> {
    const unknown = await unknownAmong(
      domain.id,
      tags.map((tag) => tag.toLowerCase()),
    )
    if (unknown.size === 0) return { tags, statements: [] }
    const ofDomain = await room('domain_id', domain.id, limits.perDomain)
    const ofAccount = await room('account_id', domain.accountId, limits.perAccount)
    const fitting = tags
      .filter((tag) => unknown.has(tag.toLowerCase()))
      .slice(0, Math.max(0, Math.min(ofDomain.left, ofAccount.left)))
    ofDomain.counted.count += fitting.length
    ofAccount.counted.count += fitting.length
    const admitted = new Set(fitting)
    return {
      tags: tags.filter((tag) => admitted.has(tag) || !unknown.has(tag.toLowerCase())),
      statements: newTags(domain, fitting, now),
    }
  }

  return {
    admit: (domain, tags, now) => (tags.length === 0 ? { tags, statements: [] } : admit(domain, tags, now)),
    async forgetDomain(domainId) {
      await store.db.deleteFrom('tags').where('domain_id', '=', domainId).execute()
      rememberedCount -= remembered.get(domainId)?.size ?? 0
      remembered.delete(domainId)
      counts.clear()
    },
  }
}

/** In the order of their keys, so that two transactions with the same new tags wait for each other one way only. */
function newTags(
  { id, accountId }: { id: string; accountId: string },
  tags: readonly string[],
  now: number,
): Statement[] {
  const rows = tags.map(
    (tag): TagRow => ({
      account_id: accountId,
      domain_id: id,
      tag_key: tag.toLowerCase(),
      tag,
      first_seen: Math.floor(now),
    }),
  )
  const sorted = rows.sort((a, b) => (a.tag_key < b.tag_key ? -1 : 1))
  return insertMany('tags', sorted).map(({ sql, values }) => ({
    sql: `${sql} ON CONFLICT DO NOTHING`,
    values,
  }))
}
