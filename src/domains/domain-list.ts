/** Lists domains (domains.md D1). */
import type { Store } from '../store/store.ts'
import { domainOfRow } from './domain.ts'
import { domainView } from './view.ts'

export interface DomainQuery {
  limit: number
  skip: number
  state: string | undefined
  sort: string | undefined
  search: string | undefined
  authority: string | undefined
  includeSubaccounts: boolean
}

/** `total_count` counts all matches of the filters, not only this page. */
export async function listDomains(
  store: Store,
  accountId: string,
  query: DomainQuery,
  now: number,
): Promise<object> {
  const caller = await store.db
    .selectFrom('accounts')
    .select('parent_id')
    .where('id', '=', accountId)
    .executeTakeFirst()
  const isOfSubaccount = (id: string) => id !== accountId || Boolean(caller?.parent_id)
  let rows = query.includeSubaccounts
    ? store.db
        .selectFrom('domains')
        .where((eb) =>
          eb.or([
            eb('account_id', '=', accountId),
            eb(
              'account_id',
              'in',
              eb.selectFrom('accounts').select('accounts.id').where('parent_id', '=', accountId),
            ),
          ]),
        )
    : store.db.selectFrom('domains').where('account_id', '=', accountId)
  if (query.state) rows = rows.where('state', '=', query.state)
  if (query.authority) rows = rows.where('dkim_authority', '=', query.authority)
  // No wildcards: a character that no name contains (such as % and _) is replaced by one that never matches.
  if (query.search) rows = rows.where('name', 'like', `%${query.search.replaceAll(/[^a-z0-9.-]/g, '!')}%`)
  const { count } = await rows.select((eb) => eb.fn.countAll<number>().as('count')).executeTakeFirstOrThrow()
  const ordered =
    query.sort === undefined
      ? rows.orderBy('created_at', 'desc').orderBy('id', 'desc')
      : rows.orderBy('name', query.sort === 'name:desc' ? 'desc' : 'asc')
  const found = await ordered.selectAll().limit(query.limit).offset(query.skip).execute()
  const items = found.map((row) => domainView(domainOfRow(row, now), isOfSubaccount(row.account_id)))
  return { total_count: Number(count), items }
}
