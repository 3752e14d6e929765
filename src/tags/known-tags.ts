/**
 * The tags that domains use, and their limits (messages.md rule 33, tags-stats.md section 1): a new tag over the
 * domain's or the account's limit is dropped from the message. A tag is known once a message with it is committed.
 * Messages that are accepted at the same moment may each add new tags past a limit; the next one finds it reached.
 */
import type { MaybePromise } from '../base/cache.ts'
import type { Clock } from '../base/clock.ts'
import type { TagRow } from '../store/schema.ts'
import { insertMany, type Statement, type Store } from '../store/store.ts'

interface TagDomain {
  id: string
  accountId: string
}

export interface KnownTags {
  /** Facts about the tags of a message. */
  known(domain: TagDomain, tags: readonly string[]): MaybePromise<TagFacts>
  /** `count` new tags are about to be stored: counted towards the limits. */
  added(domain: TagDomain, count: number): void
  /** The domain was deleted; its tags no longer count. */
  forgetDomain(domainId: string): Promise<void>
}

export interface TagFacts {
  /** In lower case: those that the domain has not used before. */
  unknown: ReadonlySet<string>
  /** How many new tags the domain and its account may still have. */
  newMax: number
}

export interface AdmittedTags {
  /** Those that the message may carry. */
  tags: readonly string[]
  /** Those of them that are new. */
  newTags: readonly string[]
}

/** Drops new tags over the limit. Pure. */
export function admitTags(tags: readonly string[], { unknown, newMax }: TagFacts): AdmittedTags {
  if (unknown.size === 0) return { tags, newTags: [] }
  const isNew = (tag: string) => unknown.has(tag.toLowerCase())
  const newTags = tags.filter(isNew).slice(0, Math.max(0, newMax))
  const admitted = new Set(newTags)
  return { tags: tags.filter((tag) => admitted.has(tag) || !isNew(tag)), newTags }
}

export interface TagLimits {
  /** Distinct tags; 0: no limit. */
  perDomain: number
  perAccount: number
}

/** Tags in memory over all domains, about 10 MB; over it all are forgotten and read again. */
const REMEMBERED_MAX = 100_000
/** How long a count is used; new tags are added to it meanwhile. */
const COUNT_MS = 10_000
const COUNTS_MAX = 10_000

const ALL_KNOWN: TagFacts = { unknown: new Set(), newMax: 0 }

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
    const rows = await store.db
      .selectFrom('tags')
      .select('tag_key')
      .where('domain_id', '=', domainId)
      .where('tag_key', 'in', keys)
      .execute()
    const known = remember(
      domainId,
      rows.map((row) => row.tag_key),
    )
    return new Set(keys.filter((key) => !known.has(key)))
  }

  /** How many more tags fit. */
  async function room(column: 'domain_id' | 'account_id', id: string, max: number): Promise<number> {
    const name = `${column} ${id}`
    let counted = counts.get(name)
    if (!counted || counted.until <= clock.monotonic()) {
      const row = await store.db
        .selectFrom('tags')
        .select((select) => select.fn.count<number>('tag_key').distinct().as('count'))
        .where(column, '=', id)
        .executeTakeFirst()
      counted = { count: Number(row?.count ?? 0), until: clock.monotonic() + COUNT_MS }
      if (counts.size >= COUNTS_MAX) counts.delete(counts.keys().next().value as string)
      counts.set(name, counted)
    }
    return max === 0 ? Number.POSITIVE_INFINITY : max - counted.count
  }

  async function lookUp(domain: TagDomain, keys: readonly string[]): Promise<TagFacts> {
    const unknown = await unknownAmong(domain.id, keys)
    if (unknown.size === 0) return ALL_KNOWN
    const { perDomain, perAccount } = limits
    const ofDomain = await room('domain_id', domain.id, perDomain)
    const ofAccount = await room('account_id', domain.accountId, perAccount)
    return { unknown, newMax: Math.min(ofDomain, ofAccount) }
  }

  return {
    known(domain, tags) {
      if (tags.length === 0) return ALL_KNOWN
      const known = remembered.get(domain.id)
      const keys = tags.map((tag) => tag.toLowerCase()).filter((key) => !known?.has(key))
      return keys.length === 0 ? ALL_KNOWN : lookUp(domain, keys)
    },
    added(domain, count) {
      if (count === 0) return
      for (const name of [`domain_id ${domain.id}`, `account_id ${domain.accountId}`]) {
        const counted = counts.get(name)
        if (counted) counted.count += count
      }
    },
    async forgetDomain(domainId) {
      await store.db.deleteFrom('tags').where('domain_id', '=', domainId).execute()
      rememberedCount -= remembered.get(domainId)?.size ?? 0
      remembered.delete(domainId)
      counts.clear()
    },
  }
}

/** Makes new tags known. In the order of their keys, so that two transactions with the same tags cannot deadlock. */
export function newTagStatements(
  { id, accountId }: TagDomain,
  tags: readonly string[],
  now: number,
): Statement[] {
  if (tags.length === 0) return []
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
