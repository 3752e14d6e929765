/**
 * The audit log: one row per change made through the API, written in the transaction of the change, so that
 * neither is ever there without the other (own-operations.md section 6).
 */
import { newId } from '../base/ids.ts'
import type { Caller } from '../http/auth.ts'
import { formatRfc3339 } from '../http/dates.ts'
import { type Operation, operation } from '../http/operation.ts'
import { limitOf, pageName, pivotPaging } from '../http/paging.ts'
import { insert, type Statement, type Store } from '../store/store.ts'

/** Who makes a change and from where; every handler has both. */
export interface Actor {
  caller: Caller
  remoteAddress: string
}

/** `action`: `<thing>.<verb>`, such as `bounces.add`; `subject`: what it was done to, such as the domain. */
export interface Change {
  action: string
  subject: string
  /** Kept as JSON; the caller bounds it. */
  detail: unknown
}

/** The row of one change, for the transaction that makes it. `now`: Unix milliseconds. */
export function auditStatement(actor: Actor, change: Change, now: number): Statement {
  return insert('audit', {
    id: newId(now),
    account_id: actor.caller.accountId,
    key_id: actor.caller.keyId,
    remote_address: actor.remoteAddress,
    action: change.action,
    subject: change.subject,
    detail_json: JSON.stringify(change.detail),
    created_at: Math.floor(now),
  })
}

const PATH = '/sendwright/v1/audit'
const PAGE_SIZE = 100
const PAGE_SIZE_MAX = 1000

/** GET /sendwright/v1/audit: newest first, `id` being the pivot of `next` and `previous`. */
export function auditRoutes(store: Store, baseUrl: string): Operation[] {
  return [
    operation({
      method: 'GET',
      path: PATH,
      id: 'listAudit',
      tag: 'Audit log',
      summary: 'List changes made through the API, newest first',
      auth: { area: 'account', access: 'read' },
      params: [
        { name: 'limit', type: 'integer', description: 'Page size, 1 to 1000', default: PAGE_SIZE },
        { name: 'page', type: 'string', description: 'first, next, previous or last' },
        { name: 'id', type: 'string', description: 'Pivot of next and previous' },
      ],
      responses: { 200: { description: 'A page of changes' } },
      async handler({ params, caller }) {
        const limit = limitOf(params, { default: PAGE_SIZE, max: PAGE_SIZE_MAX, above: 'cut' })
        const page = pageName(params)
        const pivot = params.text('id')
        const items = await listAudit(store, caller.accountId, { page, pivot, limit })
        const paging = pivotPaging({
          baseUrl,
          path: PATH,
          pivotName: 'id',
          firstItem: items.at(0)?.id,
          lastItem: items.at(-1)?.id,
          pivot,
          carry: { limit },
        })
        return { items, paging }
      },
    }),
  ]
}

async function listAudit(
  store: Store,
  accountId: string,
  { page, pivot, limit }: { page: string; pivot: string | undefined; limit: number },
) {
  const backwards = page === 'last' || (page === 'previous' && pivot !== undefined)
  let rows = store.db
    .selectFrom('audit')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('id', backwards ? 'asc' : 'desc')
    .limit(limit)
  if (pivot !== undefined && page === 'next') rows = rows.where('id', '<', pivot)
  if (pivot !== undefined && page === 'previous') rows = rows.where('id', '>', pivot)
  const found = await rows.execute()
  if (backwards) found.reverse()
  return found.map((row) => ({
    id: row.id,
    key_id: row.key_id,
    remote_address: row.remote_address,
    action: row.action,
    subject: row.subject,
    detail: JSON.parse(row.detail_json) as unknown,
    created_at: formatRfc3339(new Date(row.created_at)),
  }))
}
