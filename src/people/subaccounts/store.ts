/** Rows of subaccounts, and the notes of changes that the job works through (changes-job.ts). */
import { sql, type Transaction } from 'kysely'
import { countOf } from '../../platform/store/count.ts'
import { enter, entriesOf } from '../../platform/store/pods/entries.ts'
import type { AccountRow, Schema } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'

export interface SubaccountQuery {
  sort: 'asc' | 'desc'
  /** Part of the name, in any letter case. */
  filter: string | undefined
  limit: number
  skip: number
  /** True: only open ones, false: only disabled ones. */
  enabled: boolean | undefined
  /** True: closed ones as well. */
  closed: boolean | undefined
}

/** `total` counts all matches, not only this page. */
export async function listRows(
  { db }: Store,
  parentId: string,
  query: SubaccountQuery,
): Promise<{ rows: AccountRow[]; total: number }> {
  let matching = db.selectFrom('accounts').where('parent_id', '=', parentId)
  const states = statesOf(query)
  matching = matching.where('status', 'in', states)
  if (query.filter !== undefined) {
    const pattern = `%${query.filter.replaceAll(/[\\%_]/g, '\\$&')}%`
    matching = matching.where(sql<boolean>`lower(name) LIKE lower(${pattern}) ESCAPE '\\'`)
  }
  const count = await countOf(matching)
  const rows = await matching
    .selectAll()
    .orderBy('name', query.sort)
    .orderBy('id', query.sort)
    .limit(query.limit)
    .offset(query.skip)
    .execute()
  return { rows, total: count }
}

/** accounts.md section 3 rule 3. */
function statesOf({ enabled, closed }: SubaccountQuery): string[] {
  const states = enabled === undefined ? ['open', 'disabled'] : [enabled ? 'open' : 'disabled']
  return closed === true ? [...states, 'closed'] : states
}

export const findRow = ({ db }: Pick<Store, 'db'>, parentId: string, id: string) =>
  db
    .selectFrom('accounts')
    .selectAll()
    .where('id', '=', id)
    .where('parent_id', '=', parentId)
    .executeTakeFirst()

/** Null: another one has the name. */
export async function insertRow(
  store: Store,
  tx: Transaction<Schema>,
  row: AccountRow,
): Promise<AccountRow | null> {
  const inserted = await tx
    .insertInto('accounts')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .returningAll()
    .executeTakeFirst()
  if (inserted) await enter(store, tx, entriesOf('account', [row.id]))
  return inserted ?? null
}

/** Notes that mail has to be held or released, or that what the account had has to be removed. `now`: Unix milliseconds. */
export async function noteChange(tx: Transaction<Schema>, accountId: string, now: number): Promise<void> {
  const note = { changed_at: now, due_at: now, attempts: 0 }
  await tx
    .insertInto('account_changes')
    .values({ account_id: accountId, ...note })
    .onConflict((conflict) => conflict.column('account_id').doUpdateSet(note))
    .execute()
}
