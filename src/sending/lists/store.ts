/** The SQL of lists and members. Members are written under their list's version: see `changeMembers`. */

import { countOf } from '../../platform/store/count.ts'
import type { ListMemberRow, ListRow } from '../../platform/store/schema.ts'
import { insert, joinInserts, StaleWrite, type Statement, type Store } from '../../platform/store/store.ts'
import { addressKey } from '../../protocols/mime/address.ts'
import { asksForMail, type Cause, dayOf } from './consent.ts'
import { consentQueries } from './consent-store.ts'
import { type List, listOfRow, type Member, memberOfRow } from './list.ts'
import { memberTrail } from './trail.ts'

/** A page by pivot. `pivot` is an address key; null is before the first and after the last item. */
interface PivotQuery {
  page: 'first' | 'last' | 'next' | 'previous'
  pivot: string | null
  limit: number
}

interface MemberFilter {
  key?: string | undefined
  subscribed?: boolean | undefined
  pending?: boolean | undefined
}

/** What a change writes besides the list itself. */
interface MemberChange {
  write: readonly ListMemberRow[]
  /** Address keys. */
  remove?: readonly string[]
  /** Change of the number of members. */
  added: number
  /** Events and other rows of the same transaction. */
  also?: readonly Statement[]
  /** Statements of the same transaction. One that expects rows and finds none ends the change as `StaleWrite`. */
  limits?: readonly Statement[]
  /** For the consent trail. */
  cause: Cause
}

type Decide<T> = (
  list: List,
  present: ReadonlyMap<string, ListMemberRow>,
  mailedAt: ReadonlyMap<string, number>,
) => { change: MemberChange | null; result: T }

export type ListStore = ReturnType<typeof createListStore>

export interface Found<T> {
  total: number
  items: T[]
}

/**
 * Only other nodes can interfere, since changes of one list are serialised in this process. Of n busy nodes one in
 * n wins each time, so even ten practically never need this many tries.
 */
const TRIES_MAX = 100
/** Rows of one insert; see join-inserts.ts. */
const ROWS_PER_INSERT = 100
/** Keys per query, below SQLite's limit of 32,766 values. */
const KEYS_PER_QUERY = 1_000

const NO_MAILS: ReadonlyMap<string, number> = new Map()

/** `changed` is called with the account whose lists, or their addresses, have changed. */
export function createListStore(store: Store, changed: (accountId: string) => void = () => {}) {
  const { db } = store
  const consent = consentQueries(db, (id) => byId(id))
  const serialised = createKeyedQueue()

  const byKey = async (key: string): Promise<List | null> => {
    const row = await db.selectFrom('lists').selectAll().where('address_key', '=', key).executeTakeFirst()
    return row ? listOfRow(row) : null
  }
  const byId = async (id: string): Promise<List | null> => {
    const row = await db.selectFrom('lists').selectAll().where('id', '=', id).executeTakeFirst()
    return row ? listOfRow(row) : null
  }

  /** Decides and writes, again and again until no other node has changed the list meanwhile. */
  async function changeWhole<T>(listId: string, keys: readonly string[], decide: Decide<T>, mails: boolean) {
    for (let tries = 1; ; tries++) {
      const list = await byId(listId)
      if (!list) return undefined
      const present = await presentMembers(db, listId, keys)
      const mailedAt = mails ? await consent.mailedAt(listId, keys) : NO_MAILS
      const { change, result } = decide(list, present, mailedAt)
      if (change === null) return result
      try {
        await store.commit(changeStatements(list, present, change))
        return result
      } catch (error) {
        if (!(error instanceof StaleWrite) || tries === TRIES_MAX) throw error
        if (change.limits?.includes(error.statement)) throw error
      }
    }
  }

  return {
    byKey,
    byId,
    /** Whether any of these List-Id values, in lower case, belongs to a list of this service. */
    async hasHeaderId(headerIds: readonly string[]): Promise<boolean> {
      if (headerIds.length === 0) return false
      const row = await db
        .selectFrom('lists')
        .select('id')
        .where('header_key', 'in', headerIds)
        .executeTakeFirst()
      return row !== undefined
    },
    /** False if the address is in use. */
    async create(row: ListRow): Promise<boolean> {
      if (await byKey(row.address_key)) return false
      const created = await succeeds(
        store.commit([insert('lists', row)]),
        async () => (await byKey(row.address_key)) === null,
      )
      changed(row.account_id)
      return created
    },
    /** Writes the given columns; false if the new address is in use. */
    async update(list: List, columns: Partial<ListRow>): Promise<boolean> {
      const key = columns.address_key
      const isFree = async () => {
        const other = key === undefined ? null : await byKey(key)
        return other === null || other.id === list.id
      }
      if (!(await isFree())) return false
      if (Object.keys(columns).length === 0) return true
      const updated = await succeeds(
        db.updateTable('lists').set(columns).where('id', '=', list.id).execute(),
        isFree,
      )
      changed(list.accountId)
      return updated
    },
    async remove({ id }: List): Promise<void> {
      await store.commit([
        { sql: 'DELETE FROM lists WHERE id = ?', values: [id] },
        {
          sql: `UPDATE list_uploads SET state = 'done', entries_json = '[]' WHERE list_id = ? AND state = 'running'`,
          values: [id],
        },
        removeOrphans(id),
      ])
    },
    async find(
      accountId: string,
      key: string | undefined,
      limit: number,
      skip: number,
    ): Promise<Found<List>> {
      let query = db.selectFrom('lists').where('account_id', '=', accountId)
      if (key !== undefined) query = query.where('address_key', '=', key)
      const total = await countOf(query)
      const rows = await query.selectAll().orderBy('address_key').limit(limit).offset(skip).execute()
      return { total, items: rows.map(listOfRow) }
    },
    async page(accountId: string, query: PivotQuery): Promise<List[]> {
      const { backward, from } = direction(query)
      let rows = db.selectFrom('lists').selectAll().where('account_id', '=', accountId)
      if (from !== null) rows = rows.where('address_key', backward ? '<' : '>', from)
      const found = await rows
        .orderBy('address_key', backward ? 'desc' : 'asc')
        .limit(query.limit)
        .execute()
      return (backward ? found.reverse() : found).map(listOfRow)
    },
    ...consent,
    ...memberQueries(db),
    /**
     * Changes members of one list. `decide` gets the list and those rows of `keys` that exist, and is called again if
     * the list changed concurrently; null changes nothing. Resolves to undefined if the list is gone. `mails`: also read when the
     * list last asked them to confirm.
     */
    changeMembers: <T>(
      listId: string,
      keys: readonly string[],
      decide: Decide<T>,
      { mails }: { mails: boolean } = { mails: false },
    ): Promise<T | undefined> => serialised(listId, () => changeWhole(listId, keys, decide, mails)),
  }
}

/** The queries of members of a list. */
function memberQueries(db: Store['db']) {
  const membersOf = (listId: string, filter: MemberFilter) => filteredMembers(db, listId, filter)
  return {
    async member(listId: string, key: string): Promise<Member | null> {
      const row = await membersOf(listId, { key }).selectAll().executeTakeFirst()
      return row ? memberOfRow(row) : null
    },
    async findMembers(
      listId: string,
      filter: MemberFilter,
      limit: number,
      skip: number,
    ): Promise<Found<Member>> {
      const members = membersOf(listId, filter)
      const total = await countOf(members)
      const rows = await members.selectAll().orderBy('address_key').limit(limit).offset(skip).execute()
      return { total, items: rows.map(memberOfRow) }
    },
    async pageMembers(listId: string, filter: MemberFilter, query: PivotQuery): Promise<Member[]> {
      const { backward, from } = direction(query)
      let rows = membersOf(listId, filter).selectAll()
      if (from !== null) rows = rows.where('address_key', backward ? '<' : '>', from)
      const found = await rows
        .orderBy('address_key', backward ? 'desc' : 'asc')
        .limit(query.limit)
        .execute()
      return (backward ? found.reverse() : found).map(memberOfRow)
    },
    /** Subscribed members after `after` (an address key), ordered by key. */
    subscribedAfter: (listId: string, after: string, limit: number) =>
      membersOf(listId, { subscribed: true })
        .selectAll()
        .where('address_key', '>', after)
        .orderBy('address_key')
        .limit(limit)
        .execute(),
  }
}

async function presentMembers(db: Store['db'], listId: string, keys: readonly string[]) {
  const present = new Map<string, ListMemberRow>()
  for (let from = 0; from < keys.length; from += KEYS_PER_QUERY) {
    const rows = await db
      .selectFrom('list_members')
      .selectAll()
      .where('list_id', '=', listId)
      .where('address_key', 'in', keys.slice(from, from + KEYS_PER_QUERY))
      .execute()
    for (const row of rows) present.set(row.address_key, row)
  }
  return present
}

function filteredMembers(db: Store['db'], listId: string, filter: MemberFilter) {
  let query = db.selectFrom('list_members').where('list_id', '=', listId)
  if (filter.key !== undefined) query = query.where('address_key', '=', filter.key)
  if (filter.subscribed !== undefined) query = query.where('subscribed', '=', filter.subscribed ? 1 : 0)
  if (filter.pending !== undefined) query = query.where('pending_id', filter.pending ? 'is not' : 'is', null)
  return query
}

/** The list is gone, and no post to it is still being expanded. */
export const UNREACHABLE = `NOT EXISTS (SELECT 1 FROM lists WHERE lists.id = list_members.list_id)
      AND NOT EXISTS (SELECT 1 FROM list_expansions
        WHERE list_expansions.list_id = list_members.list_id AND list_expansions.state = 'running')`

export function removeOrphans(listId: string): Statement {
  return { sql: `DELETE FROM list_members WHERE list_id = ? AND ${UNREACHABLE}`, values: [listId] }
}

/** `previous` without a pivot is the first page, like `next`. */
function direction({ page, pivot }: PivotQuery): { backward: boolean; from: string | null } {
  const from = page === 'next' || page === 'previous' ? pivot : null
  return { backward: page === 'last' || (page === 'previous' && from !== null), from }
}

/** A unique key decides between two concurrent writes; each database has its own error for it. */
async function succeeds(writing: Promise<unknown>, isFree: () => Promise<boolean>): Promise<boolean> {
  try {
    await writing
    return true
  } catch (error) {
    if (await isFree()) throw error
    return false
  }
}

function changeStatements(list: List, present: ReadonlyMap<string, ListMemberRow>, change: MemberChange) {
  const { write, remove = [], added, also = [], limits = [], cause } = change
  const asked = write.filter((row) => asksForMail(present.get(row.address_key), row))
  const statements: Statement[] = [
    {
      sql: 'UPDATE lists SET version = version + 1, members_count = members_count + ? WHERE id = ? AND version = ?',
      values: [added, list.id, list.version],
      expectRows: 1,
    },
  ]
  for (const key of remove) {
    statements.push({
      sql: 'DELETE FROM list_members WHERE list_id = ? AND address_key = ?',
      values: [list.id, key],
    })
  }
  for (let from = 0; from < write.length; from += ROWS_PER_INSERT) {
    statements.push(writeMembers(write.slice(from, from + ROWS_PER_INSERT)))
  }
  const changed = [
    ...remove.map((key) => [key, present.get(key), undefined] as const),
    ...write.map((row) => [row.address_key, present.get(row.address_key), row] as const),
  ]
  const trail = memberTrail(list, changed, cause)
  const mails = mailStatements(list, asked, cause.at)
  return [...statements, ...limits, ...mails, ...joinInserts([...also, ...trail])]
}

/** Counts the mails of members that are asked; the version of the list, written before, decides between two changes. */
function mailStatements(list: List, asked: readonly ListMemberRow[], at: number): Statement[] {
  if (asked.length === 0) return []
  const day = dayOf(at)
  const count = (list.mailsDay === day ? list.mailsCount : 0) + asked.length
  const statements: Statement[] = [
    { sql: 'UPDATE lists SET mails_day = ?, mails_count = ? WHERE id = ?', values: [day, count, list.id] },
  ]
  for (let from = 0; from < asked.length; from += ROWS_PER_INSERT) {
    const rows = asked.slice(from, from + ROWS_PER_INSERT)
    statements.push({
      sql: `INSERT INTO confirmation_mails (address_key, list_id, mailed_at)
        VALUES ${rows.map(() => '(?, ?, ?)').join(', ')}
        ON CONFLICT (address_key, list_id) DO UPDATE SET mailed_at = excluded.mailed_at`,
      values: rows.flatMap((row) => [row.address_key, list.id, row.pending_mail_at]),
    })
  }
  return statements
}

const MEMBER_COLUMNS = [
  ...['list_id', 'address_key', 'address', 'name', 'vars_json', 'subscribed'],
  ...['pending_id', 'pending_until', 'pending_mail_at', 'pending_source', 'is_rejoining', 'by_link'],
] as const satisfies readonly (keyof ListMemberRow)[]
const MEMBER_ROW = `(${MEMBER_COLUMNS.map(() => '?').join(', ')})`
const MEMBER_CHANGES = MEMBER_COLUMNS.slice(2).map((column) => `${column} = excluded.${column}`)

function writeMembers(rows: readonly ListMemberRow[]): Statement {
  return {
    sql: `INSERT INTO list_members (${MEMBER_COLUMNS.join(', ')})
      VALUES ${rows.map(() => MEMBER_ROW).join(', ')}
      ON CONFLICT (list_id, address_key) DO UPDATE SET ${MEMBER_CHANGES.join(', ')}`,
    values: rows.flatMap((row) => MEMBER_COLUMNS.map((column) => row[column])),
  }
}

/** Serialises the runs under each key. */
function createKeyedQueue(): <T>(key: string, run: () => Promise<T>) => Promise<T> {
  const last = new Map<string, Promise<unknown>>()
  return async (key, run) => {
    const turn = (last.get(key) ?? Promise.resolve()).then(run, run)
    last.set(key, turn)
    try {
      return await turn
    } finally {
      if (last.get(key) === turn) last.delete(key)
    }
  }
}

/** The key under which an address from a path or parameter is looked up. */
export const keyOf = (address: string): string => addressKey(address)
