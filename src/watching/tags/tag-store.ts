/** The SQL of tags: those of a domain, and those of an account over all its domains. */
import type { AccountTagRow, TagRow } from '../../platform/store/schema.ts'
import type { SqlValue, Statement, Store } from '../../platform/store/store.ts'

/** A page by pivot; `pivot` null: before the first and after the last tag. All in lower case. */
interface TagPage {
  page: 'first' | 'last' | 'next' | 'previous'
  pivot: string | null
  prefix: string | null
  limit: number
}

export type AccountTagOrder = 'last_seen' | 'first_seen' | 'tag_key'

export interface AccountTagPage {
  accountIds: readonly string[]
  /** In lower case; null: all. */
  prefix: string | null
  order: AccountTagOrder
  descending: boolean
  skip: number
  limit: number
}

export type TagStore = ReturnType<typeof createTagStore>

/** After every text that begins with `prefix`: tags are printable ASCII. */
const afterPrefix = (prefix: string) => `${prefix}\u007f`

const inPrefix = (prefix: string | null): [sql: string, values: SqlValue[]] =>
  prefix === null ? ['', []] : ['AND tag_key >= ? AND tag_key < ?', [prefix, afterPrefix(prefix)]]

export function createTagStore(store: Store) {
  return {
    async page(domainId: string, { page, pivot, prefix, limit }: TagPage): Promise<TagRow[]> {
      const up = page === 'first' || page === 'next'
      const hasPivot = pivot !== null && (page === 'next' || page === 'previous')
      const [range, rangeValues] = inPrefix(prefix)
      const rows = (await store.read({
        sql: `SELECT * FROM tags WHERE domain_id = ? ${range} ${hasPivot ? `AND tag_key ${up ? '>' : '<'} ?` : ''}
          ORDER BY tag_key ${up ? 'ASC' : 'DESC'} LIMIT ?`,
        values: [domainId, ...rangeValues, ...(hasPivot ? [pivot] : []), limit],
      })) as unknown as TagRow[]
      return up ? rows : rows.reverse()
    },
    async find(domainId: string, tag: string): Promise<TagRow | null> {
      const sql = 'SELECT * FROM tags WHERE domain_id = ? AND tag_key = ?'
      const [row] = await store.read({ sql, values: [domainId, tag.toLowerCase()] })
      return (row as unknown as TagRow) ?? null
    },
    /** Sets the description; a tag that is not there is created if `create` says so. False: it was not there. */
    async describe(
      { id, accountId }: { id: string; accountId: string },
      tag: string,
      description: string,
      create: boolean,
    ): Promise<boolean> {
      const key = tag.toLowerCase()
      const statements: Statement[] = [
        {
          sql: 'UPDATE tags SET description = ? WHERE domain_id = ? AND tag_key = ?',
          values: [description, id, key],
        },
      ]
      if (create) {
        statements.push(
          {
            sql: `INSERT INTO tags (account_id, domain_id, tag_key, tag, description, first_seen, last_seen)
              VALUES (?, ?, ?, ?, ?, 0, 0) ON CONFLICT DO NOTHING`,
            values: [accountId, id, key, tag, description],
          },
          {
            sql: `INSERT INTO account_tags (account_id, tag_key, tag, description, first_seen, last_seen)
              VALUES (?, ?, ?, '', 0, 0) ON CONFLICT DO NOTHING`,
            values: [accountId, key, tag],
          },
        )
      }
      const [updated] = await store.commit(statements)
      return (updated?.affected ?? 0) > 0
    },
    async remove({ id, accountId }: { id: string; accountId: string }, tag: string): Promise<void> {
      const key = tag.toLowerCase()
      await store.commit([
        { sql: 'DELETE FROM tags WHERE domain_id = ? AND tag_key = ?', values: [id, key] },
        { sql: `${UNUSED} AND tag_key = ?`, values: [accountId, accountId, key] },
      ])
    },
    async removeAll({ id, accountId }: { id: string; accountId: string }): Promise<void> {
      await store.commit([
        { sql: 'DELETE FROM tags WHERE domain_id = ?', values: [id] },
        { sql: UNUSED, values: [accountId, accountId] },
      ])
    },
    ...accountTagQueries(store),
  }
}

/** The tags of accounts, each with what its domains have of it. */
function accountTagQueries(store: Store) {
  const list =
    store.kind === 'sqlite' ? 'SELECT value FROM json_each(?)' : 'SELECT json_array_elements_text(?::json)'
  return {
    /** Sorted; ties by tag and account. */
    async accountPage({
      accountIds,
      prefix,
      order,
      descending,
      skip,
      limit,
    }: AccountTagPage): Promise<AccountTagRow[]> {
      const [range, rangeValues] = inPrefix(prefix)
      const [first] = accountIds
      const isOne = accountIds.length === 1 && first !== undefined
      const direction = descending ? 'DESC' : 'ASC'
      const ties = order === 'tag_key' ? '' : `, tag_key ${direction}`
      return (await store.read({
        sql: `SELECT * FROM account_tags WHERE account_id ${isOne ? '= ?' : `IN (${list})`} ${range}
          ORDER BY ${order} ${direction}${ties}${isOne ? '' : ', account_id'} LIMIT ? OFFSET ?`,
        values: [isOne ? first : JSON.stringify(accountIds), ...rangeValues, limit, skip],
      })) as unknown as AccountTagRow[]
    },
    /** At most `max`. */
    async countIn(accountIds: readonly string[], prefix: string | null, max: number): Promise<number> {
      const [range, rangeValues] = inPrefix(prefix)
      const [row] = await store.read({
        sql: `SELECT count(*) AS count FROM (
          SELECT 1 AS one FROM account_tags WHERE account_id IN (${list}) ${range} LIMIT ?) AS found`,
        values: [JSON.stringify(accountIds), ...rangeValues, max],
      })
      return Number(row?.['count'] ?? 0)
    },
    /** Also describes the domains' tags that have no description. False: no such tag. */
    async describeOfAccount(accountId: string, tag: string, description: string): Promise<boolean> {
      const key = tag.toLowerCase()
      const [updated] = await store.commit([
        {
          sql: 'UPDATE account_tags SET description = ? WHERE account_id = ? AND tag_key = ?',
          values: [description, accountId, key],
        },
        {
          sql: `UPDATE tags SET description = ? WHERE account_id = ? AND tag_key = ? AND description = ''`,
          values: [description, accountId, key],
        },
      ])
      return (updated?.affected ?? 0) > 0
    },
    /** Resolves to the domains that had it; null: no such tag. */
    async removeOfAccount(accountId: string, tag: string): Promise<string[] | null> {
      const where = 'WHERE account_id = ? AND tag_key = ?'
      const values = [accountId, tag.toLowerCase()]
      const domains = await store.read({ sql: `SELECT domain_id FROM tags ${where}`, values })
      const [removed] = await store.commit([
        { sql: `DELETE FROM account_tags ${where}`, values },
        { sql: `DELETE FROM tags ${where}`, values },
      ])
      if ((removed?.affected ?? 0) === 0) return null
      return domains.map((row) => String(row['domain_id']))
    },
    async removeAccount(accountId: string): Promise<void> {
      await store.commit([{ sql: 'DELETE FROM account_tags WHERE account_id = ?', values: [accountId] }])
    },
  }
}

/** Tags of an account that none of its domains has any more. */
const UNUSED = `DELETE FROM account_tags WHERE account_id = ? AND NOT EXISTS (
  SELECT 1 FROM tags WHERE tags.account_id = ? AND tags.tag_key = account_tags.tag_key)`
