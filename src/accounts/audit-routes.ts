/** The audit log over HTTP. */
import { formatRfc3339 } from '../base/dates.ts'
import { NotFound } from '../base/errors.ts'
import { firstIdAt } from '../base/ids.ts'
import { type Operation, operation } from '../http/operation.ts'
import { limitOf, pageName, pivotPaging } from '../http/paging.ts'
import type { Params } from '../http/params.ts'
import type { AuditRow } from '../store/schema.ts'
import type { Store } from '../store/store.ts'
import { ACCOUNT_ID } from './account-directory.ts'

const PATH = '/sendwright/v1/audit'
const PAGE_SIZE = 100
const PAGE_SIZE_MAX = 1000

interface AuditFilter {
  action: string | undefined
  key_id: string | undefined
  user_id: string | undefined
  remote_address: string | undefined
  subject: string | undefined
  after: Date | undefined
  before: Date | undefined
}

interface AuditPage {
  page: string
  pivot: string | undefined
  limit: number
}

/** GET /sendwright/v1/audit: newest first, `id` being the pivot of `next` and `previous`. */
export function auditRoutes(store: Store, baseUrl: string): Operation[] {
  return [
    operation({
      method: 'GET',
      path: PATH,
      id: 'listAudit',
      tag: 'Audit log',
      summary: 'List changes and sign-ins, newest first',
      auth: { area: 'account', access: 'read' },
      params: [
        { name: 'subaccount', type: 'string', description: 'Of this subaccount, also a closed one' },
        { name: 'action', type: 'string', description: 'Only this action, such as key.create' },
        { name: 'key_id', type: 'string', description: 'Only changes by this key or session' },
        { name: 'user_id', type: 'string', description: 'Only changes by sessions and keys of this user' },
        { name: 'remote_address', type: 'string', description: 'Only changes from this address' },
        { name: 'subject', type: 'string', description: 'Only changes of this, such as a domain' },
        { name: 'after', type: 'date', description: 'Only changes at this time or later' },
        { name: 'before', type: 'date', description: 'Only changes before this time' },
        { name: 'limit', type: 'integer', description: 'Page size, 1 to 1000', default: PAGE_SIZE },
        { name: 'page', type: 'string', description: 'first, next, previous or last' },
        { name: 'id', type: 'string', description: 'Pivot of next and previous' },
      ],
      responses: { 200: { description: 'A page of changes' } },
      async handler({ params, caller }) {
        const limit = limitOf(params, { default: PAGE_SIZE, max: PAGE_SIZE_MAX, above: 'cut' })
        const page = pageName(params)
        const pivot = params.text('id')
        const filter = filterOf(params)
        const subaccount = params.text('subaccount')
        const accountId =
          subaccount === undefined ? caller.accountId : await childOf(store, caller.accountId, subaccount)
        const rows = await listAudit(store, accountId, filter, { page, pivot, limit })
        const paging = pivotPaging({
          baseUrl,
          path: PATH,
          pivotName: 'id',
          firstItem: rows.at(0)?.id,
          lastItem: rows.at(-1)?.id,
          pivot,
          carry: {
            limit,
            subaccount,
            action: filter.action,
            key_id: filter.key_id,
            user_id: filter.user_id,
            remote_address: filter.remote_address,
            subject: filter.subject,
            after: params.text('after'),
            before: params.text('before'),
          },
        })
        return { items: rows.map(view), paging }
      },
    }),
  ]
}

const filterOf = (params: Params): AuditFilter => ({
  action: params.text('action'),
  key_id: params.text('key_id'),
  user_id: params.text('user_id'),
  remote_address: params.text('remote_address'),
  subject: params.text('subject'),
  after: params.date('after'),
  before: params.date('before'),
})

/** @throws NotFound */
async function childOf(store: Store, parentId: string, id: string): Promise<string> {
  const child = store.db
    .selectFrom('accounts')
    .select('id')
    .where('id', '=', id)
    .where('parent_id', '=', parentId)
  if (!ACCOUNT_ID.test(id) || (await child.executeTakeFirst()) === undefined) throw new NotFound()
  return id
}

/** Each equality filter has an index that ends in the id, and ids are ordered by time. */
async function listAudit(
  store: Store,
  accountId: string,
  { after, before, ...equal }: AuditFilter,
  { page, pivot, limit }: AuditPage,
): Promise<AuditRow[]> {
  const backwards = page === 'last' || (page === 'previous' && pivot !== undefined)
  let rows = store.db
    .selectFrom('audit')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('id', backwards ? 'asc' : 'desc')
    .limit(limit)
  for (const name of ['action', 'key_id', 'user_id', 'remote_address', 'subject'] as const) {
    const value = equal[name]
    if (value !== undefined) rows = rows.where(name, '=', value)
  }
  if (after !== undefined) rows = rows.where('id', '>=', firstIdAt(after.getTime()))
  if (before !== undefined) rows = rows.where('id', '<', firstIdAt(before.getTime()))
  if (pivot !== undefined && page === 'next') rows = rows.where('id', '<', pivot)
  if (pivot !== undefined && page === 'previous') rows = rows.where('id', '>', pivot)
  const found = await rows.execute()
  return backwards ? found.reverse() : found
}

const view = (row: AuditRow) => ({
  id: row.id,
  key_id: row.key_id,
  user_id: row.user_id,
  parent_account_id: row.parent_account_id,
  remote_address: row.remote_address,
  request_id: row.request_id,
  action: row.action,
  subject: row.subject,
  status: row.status,
  detail: JSON.parse(row.detail_json) as unknown,
  created_at: formatRfc3339(new Date(row.created_at)),
})
