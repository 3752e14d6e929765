/** The SQL of members that wait for a confirmation, and of lists as topics. */

import type { ListMemberRow } from '../../platform/store/schema.ts'
import type { Db } from '../../platform/store/store.ts'
import type { List } from './list.ts'

export type ConsentStore = ReturnType<typeof consentQueries>

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

export function consentQueries(db: Db, byId: (id: string) => Promise<List | null>) {
  return {
    /** The member that waits under this id. */
    async pending(id: string): Promise<{ list: List; member: ListMemberRow } | null> {
      const member = await db
        .selectFrom('list_members')
        .selectAll()
        .where('pending_id', '=', id)
        .executeTakeFirst()
      const list = member && (await byId(member.list_id))
      return member && list ? { list, member } : null
    },
    /** Pending members with a due mail, or whose time is over, the earliest first. */
    duePending: (column: 'pending_mail_at' | 'pending_until', at: number, limit: number) =>
      db
        .selectFrom('list_members')
        .selectAll()
        .where(column, '<=', Math.floor(at))
        .orderBy(column)
        .limit(limit)
        .execute(),
    /** When the list last sent these addresses (keys) a confirmation mail, within a day. */
    async mailedAt(listId: string, keys: readonly string[]): Promise<ReadonlyMap<string, number>> {
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
    /** Lists of the domain that have a title, by title. */
    titled: (accountId: string, domainName: string, limit: number) =>
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
    /** Lists of the domain that have a title and this address (a key) as a member that is not pending, by title. */
    async topicsOf(accountId: string, domainName: string, key: string, limit: number): Promise<ListTopic[]> {
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
