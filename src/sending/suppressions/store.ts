/**
 * Changes of the lists in SQL. A record is a row of `suppressions`; the tags of an unsubscribe are in `unsubscribe_tags`.
 * Every change of an unsubscribe first writes its row in `suppressions`, which locks it, so that two concurrent
 * changes leave either a record with its tags or neither.
 */
import type { SuppressionKind } from '../../platform/store/schema.ts'
import type { SqlValue, Statement, Store } from '../../platform/store/store.ts'
import { ALL_MAIL, type NewRecord, TAGS_PER_UNSUBSCRIBE_MAX } from './given-records.ts'

/** The sending domain that a list belongs to. */
export interface ListOwner {
  id: string
  accountId: string
}

/** Rows per INSERT: with nine values each they stay below SQLite's limit of 32,766. */
const ROWS_PER_STATEMENT_MAX = 1000

/**
 * Adds records given by a caller, or updates existing ones: a bounce gets the new code, text and time, an allowlist
 * entry the new reason; tags are added to an unsubscribe. `keepTimes`: a bounce without a given time keeps its
 * present one, so that importing a file twice changes nothing.
 */
export function addStatements(
  owner: ListOwner,
  kind: SuppressionKind,
  given: readonly NewRecord[],
  now: number,
  { keepTimes }: { keepTimes: boolean } = { keepTimes: false },
): Statement[] {
  const records = deduplicated(given)
  const statements: Statement[] = []
  for (let from = 0; from < records.length; from += ROWS_PER_STATEMENT_MAX) {
    const batch = records.slice(from, from + ROWS_PER_STATEMENT_MAX)
    const timed = batch.filter((record) => record.createdAt !== null || !keepTimes)
    const untimed = batch.filter((record) => record.createdAt === null && keepTimes)
    statements.push(...upsert(owner, kind, timed, now, kind === 'bounces'))
    statements.push(...upsert(owner, kind, untimed, now, false))
    if (kind === 'unsubscribes') statements.push(...tagStatements(owner.id, batch))
  }
  return statements
}

/** One record per address: the values of the last one, the tags of all. */
function deduplicated(records: readonly NewRecord[]): NewRecord[] {
  const byAddress = new Map<string, NewRecord>()
  for (const record of records) {
    const known = byAddress.get(record.address)
    byAddress.set(record.address, known ? { ...record, tags: [...known.tags, ...record.tags] } : record)
  }
  return [...byAddress.values()]
}

function upsert(
  owner: ListOwner,
  kind: SuppressionKind,
  records: readonly NewRecord[],
  now: number,
  newTime: boolean,
): Statement[] {
  if (records.length === 0) return []
  const values = records.flatMap((record): SqlValue[] => [
    owner.id,
    kind,
    record.address,
    owner.accountId,
    record.code,
    record.detail,
    Math.floor(record.createdAt ?? now),
  ])
  const sql = `INSERT INTO suppressions (domain_id, kind, address, account_id, code, detail, created_at)
    VALUES ${rowsOf(records.length, 7)}
    ON CONFLICT (domain_id, kind, address) DO UPDATE SET code = excluded.code, detail = excluded.detail,
      event_id = NULL, expires_at = NULL${newTime ? ', created_at = excluded.created_at' : ''}`
  return [{ sql, values }]
}

/**
 * Adds the tags, then removes all others if there is a `*`: this covers both "adding * makes the set [*]" and
 * "adding a tag to [*] changes nothing" without reading first.
 */
function tagStatements(domainId: string, records: readonly NewRecord[]): Statement[] {
  const rows = new Map<string, SqlValue[]>()
  for (const { address, tags } of records) {
    for (const tag of tags) {
      const key = tag.toLowerCase()
      if (!rows.has(`${key}\n${address}`)) rows.set(`${key}\n${address}`, [domainId, address, key, tag])
    }
  }
  const all = [...rows.values()]
  const statements: Statement[] = []
  for (let from = 0; from < all.length; from += ROWS_PER_STATEMENT_MAX) {
    const batch = all.slice(from, from + ROWS_PER_STATEMENT_MAX)
    statements.push({
      sql: `INSERT INTO unsubscribe_tags (domain_id, address, tag_key, tag) VALUES ${rowsOf(batch.length, 4)}
        ON CONFLICT (domain_id, address, tag_key) DO NOTHING`,
      values: batch.flat(),
    })
  }
  const addresses = records.map(({ address }) => address)
  statements.push({
    sql: `DELETE FROM unsubscribe_tags WHERE domain_id = ? AND address IN (${marks(addresses.length)})
      AND tag_key <> '${ALL_MAIL}' AND EXISTS (SELECT 1 FROM unsubscribe_tags AS whole
        WHERE whole.domain_id = unsubscribe_tags.domain_id AND whole.address = unsubscribe_tags.address
          AND whole.tag_key = '${ALL_MAIL}')`,
    values: [domainId, ...addresses],
  })
  return statements
}

/** The addresses whose unsubscribe would exceed the limit of tags. */
export async function overTagLimit(
  store: Store,
  domainId: string,
  records: readonly NewRecord[],
): Promise<Set<string>> {
  const tagged = deduplicated(records).filter(({ tags }) => tags.length > 0 && !tags.includes(ALL_MAIL))
  if (tagged.length === 0) return new Set()
  const present = await store.db
    .selectFrom('unsubscribe_tags')
    .select(['address', 'tag_key'])
    .where('domain_id', '=', domainId)
    .where(
      'address',
      'in',
      tagged.map(({ address }) => address),
    )
    .execute()
  const keys = Map.groupBy(present, ({ address }) => address)
  const over = tagged.filter(({ address, tags }) => {
    const known = (keys.get(address) ?? []).map((row) => row.tag_key)
    const all = new Set([...known, ...tags.map((tag) => tag.toLowerCase())])
    return !all.has(ALL_MAIL) && all.size > TAGS_PER_UNSUBSCRIBE_MAX
  })
  return new Set(over.map(({ address }) => address))
}

/** Removes one record; the unit is rolled back (StaleWrite) if there is none. The count of a bounce starts again. */
export function removeStatements(domainId: string, kind: SuppressionKind, address: string): Statement[] {
  const values = [domainId, address]
  const record: Statement = {
    sql: `DELETE FROM suppressions WHERE domain_id = ? AND address = ? AND kind = '${kind}'`,
    values,
    expectRows: 1,
  }
  const detailTable = DETAIL_TABLES[kind]
  return detailTable
    ? [record, { sql: `DELETE FROM ${detailTable} WHERE domain_id = ? AND address = ?`, values }]
    : [record]
}

/** Removes all records of one list of a domain. */
export function clearStatements(domainId: string, kind: SuppressionKind): Statement[] {
  const record = {
    sql: `DELETE FROM suppressions WHERE domain_id = ? AND kind = '${kind}'`,
    values: [domainId],
  }
  const detailTable = DETAIL_TABLES[kind]
  return detailTable
    ? [record, { sql: `DELETE FROM ${detailTable} WHERE domain_id = ?`, values: [domainId] }]
    : [record]
}

/** The table with further rows of a kind's records. */
const DETAIL_TABLES: Partial<Record<SuppressionKind, string>> = {
  bounces: 'counted_bounces',
  unsubscribes: 'unsubscribe_tags',
}

/**
 * Removes one tag of an unsubscribe, and the record with its last tag. The unit is rolled back (StaleWrite) if
 * there is no such record or tag.
 */
export function removeTagStatements(domainId: string, address: string, tag: string): Statement[] {
  const record = `domain_id = ? AND kind = 'unsubscribes' AND address = ?`
  const values = [domainId, address]
  return [
    { sql: `UPDATE suppressions SET code = code WHERE ${record}`, values, expectRows: 1 },
    {
      sql: 'DELETE FROM unsubscribe_tags WHERE domain_id = ? AND address = ? AND tag_key = ?',
      values: [...values, tag.toLowerCase()],
      expectRows: 1,
    },
    {
      sql: `DELETE FROM suppressions WHERE ${record} AND NOT EXISTS (SELECT 1 FROM unsubscribe_tags
        WHERE unsubscribe_tags.domain_id = suppressions.domain_id
          AND unsubscribe_tags.address = suppressions.address)`,
      values,
    },
  ]
}

/** Removes everything that belongs to a domain that is being deleted. */
export function domainStatements(domainId: string): Statement[] {
  return ['suppressions', 'unsubscribe_tags', 'suppression_policies', 'counted_bounces'].map((table) => ({
    sql: `DELETE FROM ${table} WHERE domain_id = ?`,
    values: [domainId],
  }))
}

const marks = (count: number) => Array.from({ length: count }, () => '?').join(', ')
const rowsOf = (count: number, width: number) =>
  Array.from({ length: count }, () => `(${marks(width)})`).join(', ')
