/** Lists domains (domains.md D1). */
import type { Of } from '../../base/shape.ts'
import {
  choiceParam,
  flagParam,
  type InputOf,
  limitParam,
  skipParam,
  textParam,
} from '../../platform/http/request/inputs.ts'
import { countOf } from '../../platform/store/count.ts'
import type { Store } from '../../platform/store/store.ts'
import { domainOfRow } from './domain.ts'
import type { DOMAIN_LIST } from './shapes.ts'
import { domainView } from './view.ts'

export const LIST_PARAMS = {
  state: choiceParam('Only domains of this state', ['active', 'unverified', 'disabled']),
  limit: limitParam(100, 1000, { tooLarge: "Limit parameter can't be larger than 1000" }),
  skip: skipParam(),
  sort: choiceParam('By name; default newest first', ['name', 'name:asc', 'name:desc']),
  search: textParam('Part of the name, in any case; no wildcards'),
  authority: textParam('Only domains with this DKIM authority; ignored when state is given'),
  include_subaccounts: flagParam('Include those of subaccounts', { default: false }),
}

/** `total_count` counts all matches of the filters, not only this page. */
export async function listDomains(
  store: Store,
  accountId: string,
  query: InputOf<typeof LIST_PARAMS>,
  now: number,
): Promise<Of<typeof DOMAIN_LIST>> {
  const caller = await store.db
    .selectFrom('accounts')
    .select('parent_id')
    .where('id', '=', accountId)
    .executeTakeFirst()
  const isOfSubaccount = (id: string) => id !== accountId || Boolean(caller?.parent_id)
  let rows = query.include_subaccounts
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
  else if (query.authority) rows = rows.where('dkim_authority', '=', query.authority.toLowerCase())
  // No wildcards: a character that no name contains (such as % and _) is replaced by one that never matches.
  const search = query.search?.toLowerCase().replaceAll(/[^a-z0-9.-]/g, '!')
  if (search) rows = rows.where('name', 'like', `%${search}%`)
  const count = await countOf(rows)
  const ordered =
    query.sort === undefined
      ? rows.orderBy('created_at', 'desc').orderBy('id', 'desc')
      : rows.orderBy('name', query.sort === 'name:desc' ? 'desc' : 'asc')
  const found = await ordered.selectAll().limit(query.limit).offset(query.skip).execute()
  const items = found.map((row) =>
    domainView(domainOfRow(row, now), { isSubaccounts: isOfSubaccount(row.account_id) }),
  )
  return { total_count: count, items }
}
