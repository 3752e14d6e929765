/** The SQL of members that wait for a confirmation, and of lists as topics. */
import type { Kysely } from 'kysely'
import type { ListMemberRow, Schema } from '../../platform/store/schema.ts'
import type { List } from './list.ts'

export interface ConsentStore {
  /** The member that waits under this id. */
  pending(id: string): Promise<{ list: List; member: ListMemberRow } | null>
  /** Pending members with a due mail, or whose time is over, the earliest first. */
  duePending(column: 'pending_mail_at' | 'pending_until', at: number, limit: number): Promise<ListMemberRow[]>
  /** When the list last sent these addresses (keys) a confirmation mail, within a day. */
  mailedAt(listId: string, keys: readonly string[]): Promise<ReadonlyMap<string, number>>
  /** Lists of the domain that have a title and this address (a key) as a member that is not pending, by title. */
  topicsOf(accountId: string, domainName: string, key: string, limit: number): Promise<ListTopic[]>
  /** Lists of the domain that have a title, by title. */
  titled(accountId: string, domainName: string, limit: number): Promise<{ address: string; title: string }[]>
}

export interface ListTopic {
  id: string
  title: string
  /** The member is subscribed. */
  isOn: boolean
  /** It left by a link. */
  byLink: boolean
}

/** Keys per query, below SQLite's limit of 32,766 values. */
const KEYS_PER_QUERY = 1_000

export function consentQueries(db: Kysely<Schema>, byId: (id: string) => Promise<List | null>): ConsentStore {
  return {
    async pending(id) {
      const member = await db
        .selectFrom('list_members')
        .selectAll()
        .where('pending_id', '=', id)
        .executeTakeFirst()
      const list = member && (await byId(member.list_id))
      return member && list ? { list, member } : null
    },
    duePending: (column, at, limit) =>
      db
        .selectFrom('list_members')
        .selectAll()
        .where(column, '<=', Math.floor(at))
        .orderBy(column)
        .limit(limit)
        .execute(),
    async mailedAt(listId, keys) {
      const found = new Map<string, number>()
      for (let from = 0; from < keys.length; from += KEYS_PER_QUERY) {
        const rows = await db
          .selectFrom('confirmation_mails')
          .select(['address_key', 'mailed_at'])
          .where('address_key', 'in', keys.slice(from, from + KEYS_PER_QUERY))
          .where('list_id', '=', listId)
          .execute()
        for (const row of rows) found.set(row.address_key, Number(row.mailed_at))
      }
      return found
    },
    titled: (accountId, domainName, limit) =>
      db
        .selectFrom('lists')
        .select(['address', 'title'])
        .where('account_id', '=', accountId)
        .where('domain_name', '=', domainName)
        .where('title', '<>', '')
        .orderBy('title')
        .orderBy('id')
        .limit(limit)
        .execute(),
    async topicsOf(accountId, domainName, key, limit) {
      const rows = await db
        .selectFrom('lists')
        .innerJoin('list_members', 'list_members.list_id', 'lists.id')
        .select(['lists.id', 'lists.title', 'list_members.subscribed', 'list_members.by_link'])
        .where('lists.account_id', '=', accountId)
        .where('lists.domain_name', '=', domainName)
        .where('lists.title', '<>', '')
        .where('list_members.address_key', '=', key)
        .where('list_members.pending_id', 'is', null)
        .orderBy('lists.title')
        .orderBy('lists.id')
        .limit(limit)
        .execute()
      return rows.map(({ id, title, subscribed, by_link }) => {
        return { id, title, isOn: subscribed === 1, byLink: by_link === 1 }
      })
    },
  }
}
