/**
 * The tags that domains use, and their limits (messages.md rule 33, tags-stats.md section 1): a new tag over the
 * domain's or the account's limit is dropped from the message. A tag is known once a message with it is committed.
 * Messages that are accepted at the same moment may each add new tags past a limit; the next one finds it reached.
 */
import type { MaybePromise } from '../../base/flow/cache.ts'
import type { Clock } from '../../base/time/clock.ts'
import { MINUTE_MS } from '../../base/time/durations.ts'
import type { AccountTagRow, TagRow } from '../../platform/store/schema.ts'
import { insertMany, type Statement, type Store } from '../../platform/store/store.ts'
import type { LastSeen } from './last-seen.ts'

interface TagDomain {
  id: string
  accountId: string
}

export type KnownTags = ReturnType<typeof createKnownTags>

export interface TagFacts {
  /** In lower case: those that the domain has not used before. */
  unknown: ReadonlySet<string>
  /** How many new tags the domain and its account may still have. */
  newMax: number
}

export interface AdmittedTags {
  /** Tags that the message may carry. */
  tags: readonly string[]
  /** The new ones among them. */
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
/** A tag that another process deleted is new again after this time at the latest. */
const REMEMBER_MS = MINUTE_MS
/** How long a count is used; new tags are added to it meanwhile. */
const COUNT_MS = 10_000
const COUNTS_MAX = 10_000

/** None is new. */
export const ALL_KNOWN: TagFacts = { unknown: new Set(), newMax: 0 }

interface Remembered {
  keys: Set<string>
  /** By the monotonic clock. */
  until: number
}

export function createKnownTags(parts: {
  store: Store
  clock: Clock
  limits: TagLimits
  lastSeen: Pick<LastSeen, 'used'>
}) {
  const { store, clock, limits, lastSeen } = parts
  /** Known tags in lower case, under their domain's id. */
  const remembered = new Map<string, Remembered>()
  let rememberedCount = 0
  const counts = new Map<string, { count: number; until: number }>()

  function remember(domainId: string, keys: readonly string[]): Set<string> {
    if (rememberedCount + keys.length > REMEMBERED_MAX) {
      remembered.clear()
      rememberedCount = 0
    }
    const present = rememberedOf(domainId)
    const known = present ?? { keys: new Set(), until: clock.monotonic() + REMEMBER_MS }
    rememberedCount -= known.keys.size
    for (const key of keys) known.keys.add(key)
    rememberedCount += known.keys.size
    remembered.set(domainId, known)
    return known.keys
  }

  function rememberedOf(domainId: string): Remembered | undefined {
    const known = remembered.get(domainId)
    if (!known || known.until > clock.monotonic()) return known
    rememberedCount -= known.keys.size
    remembered.delete(domainId)
    return undefined
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
      counted = { count: await countTags(store, column, id), until: clock.monotonic() + COUNT_MS }
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
    /** Facts about the tags of a message. */
    known(domain: TagDomain, tags: readonly string[]): MaybePromise<TagFacts> {
      const known = rememberedOf(domain.id)?.keys
      const keys = tags.map((tag) => tag.toLowerCase()).filter((key) => !known?.has(key))
      return keys.length === 0 ? ALL_KNOWN : lookUp(domain, keys)
    },
    /** A message with these tags is about to be stored. New ones count towards the limits. */
    used(domain: TagDomain, { tags, newTags }: AdmittedTags): void {
      lastSeen.used(domain, tags)
      if (newTags.length === 0) return
      for (const name of [`domain_id ${domain.id}`, `account_id ${domain.accountId}`]) {
        const counted = counts.get(name)
        if (counted) counted.count += newTags.length
      }
    },
    /** These tags were deleted; they are new when they are used again. */
    forgetTags(domainIds: readonly string[], tag: string): void {
      for (const id of domainIds) {
        if (remembered.get(id)?.keys.delete(tag.toLowerCase())) rememberedCount -= 1
      }
      counts.clear()
    },
    /** The domain was deleted; its tags no longer count. */
    forgetDomain(domainId: string): void {
      rememberedCount -= remembered.get(domainId)?.keys.size ?? 0
      remembered.delete(domainId)
      counts.clear()
    },
  }
}

/** The tags of a domain, or of all domains of an account: a tag on several of them is one. */
export async function countTags(
  store: Store,
  column: 'domain_id' | 'account_id',
  id: string,
): Promise<number> {
  const table = column === 'domain_id' ? 'tags' : 'account_tags'
  const sql = `SELECT count(*) AS count FROM ${table} WHERE ${column} = ?`
  const [row] = await store.read({ sql, values: [id] })
  return Number(row?.['count'] ?? 0)
}

/** Makes new tags known. In the order of their keys, so that two transactions with the same tags cannot deadlock. */
export function newTagStatements(
  { id, accountId }: TagDomain,
  tags: readonly string[],
  now: number,
): Statement[] {
  const seen = Math.floor(now)
  const sorted = tags.toSorted((a, b) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1))
  const common = sorted.map((tag) => ({
    account_id: accountId,
    tag_key: tag.toLowerCase(),
    tag,
    description: '',
    first_seen: seen,
    last_seen: seen,
  }))
  const ofDomain = common.map((row): TagRow => ({ domain_id: id, ...row }))
  const ofAccount: AccountTagRow[] = common
  return [...insertMany('tags', ofDomain), ...insertMany('account_tags', ofAccount)].map(
    ({ sql, values }) => ({
      sql: `${sql} ON CONFLICT DO NOTHING`,
      values,
    }),
  )
}
