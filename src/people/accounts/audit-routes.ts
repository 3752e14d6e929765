/** The audit log over HTTP. */

import { firstIdAt } from '../../base/ids.ts'
import { NotFound } from '../../base/process/errors.ts'
import type { Of } from '../../base/shape.ts'
import { formatRfc3339 } from '../../base/time/dates.ts'
import { csvReply, prefersCsv } from '../../platform/http/answer/reply.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import {
  dateParam,
  type InputOf,
  limitParam,
  parsedParam,
  textParam,
} from '../../platform/http/request/inputs.ts'
import { pageName, pageOf, pivotPaging } from '../../platform/http/request/paging.ts'
import type { AuditRow } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'
import { ACCOUNT_ID } from './account-directory.ts'
import { AUDIT_ACTIONS, AUDIT_ENTRY } from './shapes.ts'

const api = operationsOf({ tag: 'Audit log', auth: { area: 'account' } })

const PATH = '/sendwright/v1/audit'
const PAGE_SIZE = 100
const PAGE_SIZE_MAX = 1000

const FILTER = {
  action: textParam('Only this action, such as key.create'),
  key_id: textParam('Only changes by this key or session'),
  user_id: textParam('Only changes by sessions and keys of this user'),
  remote_address: textParam('Only changes from this address'),
  subject: textParam('Only changes of this, such as a domain'),
  after: dateParam('Only changes at this time or later'),
  before: dateParam('Only changes before this time'),
}
const PARAMS = {
  limit: limitParam(PAGE_SIZE, PAGE_SIZE_MAX, { above: 'cut' }),
  page: parsedParam('`first`, `next`, `previous` (or `prev`), `last`', pageName),
  id: textParam('Pivot of next and previous'),
  ...FILTER,
  subaccount: textParam('Of this subaccount, also a closed one'),
}

interface AuditPage {
  page: string
  pivot: string | undefined
  limit: number
}

/** GET /sendwright/v1/audit: newest first, `id` being the pivot of `next` and `previous`. */
export function auditRoutes(store: Store, baseUrl: string): Operation[] {
  return [
    api.get(PATH, {
      id: 'listAudit',
      summary: 'List changes and sign-ins, newest first',
      params: PARAMS,
      alsoCsv: true,
      description:
        'With `Accept: text/csv` the whole list as a file, newest first, up to 100,000 changes; `limit`, `page` and `id` are not used.',
      answers: {
        200: pageOf('AuditPage', 'A page of changes, newest first', AUDIT_ENTRY),
        404: 'No such subaccount',
      },
      async handler({ input, params, caller, headers }) {
        const { limit, page, id: pivot, subaccount, ...filter } = input()
        const accountId =
          subaccount === undefined ? caller.accountId : await childOf(store, caller.accountId, subaccount)
        if (prefersCsv(headers.accept))
          return csvReply('audit.csv', CSV_HEADER, csvRows(store, accountId, filter))
        const rows = await listAudit(store, accountId, filter, { page, pivot, limit })
        const paging = pivotPaging({
          baseUrl,
          path: PATH,
          pivotName: 'id',
          firstItem: rows.at(0)?.id,
          lastItem: rows.at(-1)?.id,
          pivot,
          carry: { limit, subaccount, ...filter, after: params.text('after'), before: params.text('before') },
        })
        return { items: rows.map(view), paging }
      },
    }),
    api.get(`${PATH}/actions`, {
      id: 'listAuditActions',
      summary: 'List the actions that the audit log of the account has, by name',
      answers: { 200: AUDIT_ACTIONS },
      handler: async ({ caller }) => ({ items: await actionsOf(store, caller.accountId) }),
    }),
  ]
}

const CSV_ROWS_MAX = 100_000
const CSV_HEADER = [
  ...['created_at', 'action', 'subject', 'status', 'user', 'user_id', 'key_id', 'remote_address'],
  ...['request_id', 'parent_account_id', 'detail', 'id'],
]

async function* csvRows(store: Store, accountId: string, filter: InputOf<typeof FILTER>) {
  const users = await store.db
    .selectFrom('users')
    .select(['id', 'email'])
    .where('account_id', '=', accountId)
    .execute()
  const emails = new Map(users.map(({ id, email }) => [id, email]))
  let pivot: string | undefined
  for (let left = CSV_ROWS_MAX; left > 0; ) {
    const limit = Math.min(PAGE_SIZE_MAX, left)
    const rows = await listAudit(store, accountId, filter, { page: 'next', pivot, limit })
    for (const row of rows)
      yield [
        ...[formatRfc3339(new Date(row.created_at)), row.action, row.subject, row.status],
        ...[emails.get(row.user_id ?? '') ?? '', row.user_id, row.key_id, row.remote_address],
        ...[row.request_id, row.parent_account_id, row.detail_json, row.id],
      ]
    if (rows.length < limit) return
    left -= rows.length
    pivot = rows.at(-1)?.id
  }
}

/** There are fewer kinds of actions than operations. */
const ACTIONS_MAX = 1_000

/** Skips from action to action in their index, so that a million rows of one cost as much as a single row. */
const ACTIONS = `WITH RECURSIVE found (action) AS (
    SELECT min(action) FROM audit WHERE account_id = ?
    UNION ALL
    SELECT (SELECT min(a.action) FROM audit a WHERE a.account_id = ? AND a.action > found.action)
    FROM found WHERE found.action IS NOT NULL)
  SELECT action FROM found WHERE action IS NOT NULL LIMIT ${ACTIONS_MAX}`

async function actionsOf(store: Store, accountId: string): Promise<string[]> {
  const rows = await store.read({ sql: ACTIONS, values: [accountId, accountId] })
  return rows.map((row) => String(row['action'])).sort()
}

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
  { after, before, ...equal }: InputOf<typeof FILTER>,
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

const view = (row: AuditRow): Of<typeof AUDIT_ENTRY> => ({
  id: row.id,
  key_id: row.key_id,
  user_id: row.user_id,
  parent_account_id: row.parent_account_id,
  remote_address: row.remote_address,
  request_id: row.request_id,
  action: row.action,
  subject: row.subject,
  status: row.status,
  detail: JSON.parse(row.detail_json) as Record<string, unknown>,
  created_at: formatRfc3339(new Date(row.created_at)),
})
