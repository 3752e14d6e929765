/** The last calls of a key over HTTP (own-operations.md section 17). */
import { NotFound } from '../../base/process/errors.ts'
import type { Of } from '../../base/shape.ts'
import { type Operation, operation } from '../../platform/http/operation.ts'
import { flagParam, limitParam } from '../../platform/http/request/inputs.ts'
import { ID_PAGE_PARAMS, idPage, pageOf, pivotPaging } from '../../platform/http/request/paging.ts'
import type { KeyRequestRow } from '../../platform/store/schema.ts'
import type { Keys } from './api-keys.ts'
import { curlOf } from './request-curl.ts'
import { KEPT_OF_KEY, type RequestLog } from './request-log.ts'
import { KEY_REQUEST } from './shapes.ts'

interface RequestRouteParts {
  requestLog: RequestLog
  keys: Pick<Keys, 'list'>
  baseUrl: string
  headerPrefix: string
}

export function requestRoutes({ requestLog, keys, baseUrl, headerPrefix }: RequestRouteParts): Operation[] {
  const view = (row: KeyRequestRow): Of<typeof KEY_REQUEST> => ({
    id: row.id,
    created_at: new Date(row.created_at).toISOString(),
    method: row.method,
    path: row.path,
    operation: row.operation,
    status: row.status,
    error: row.message,
    duration_ms: row.duration_ms,
    params: JSON.parse(row.given_json) as Record<string, unknown>,
    remote_address: row.remote_address,
    request_id: row.request_id,
    acted_for: row.acted_for,
    curl: curlOf(row, { baseUrl, headerPrefix }),
  })
  return [
    operation({
      method: 'GET',
      path: '/sendwright/v1/keys/{key_id}/requests',
      id: 'listKeyRequests',
      tag: 'Account',
      summary: 'The last calls of an API key, newest first',
      auth: { area: 'keys', access: 'read' },
      params: {
        failed: flagParam('Only calls that were answered with an error', { default: false }),
        limit: limitParam(100, KEPT_OF_KEY, { above: 'cut' }),
        ...ID_PAGE_PARAMS,
      },
      answers: {
        200: pageOf('KeyRequestPage', 'A page of calls of a key, newest first', KEY_REQUEST),
        404: 'No such key',
      },
      async handler({ input, path, caller: { accountId } }) {
        const { failed, limit, page: name, id } = input()
        const page = idPage({ page: name, id })
        const rows = await requestLog.list({ id: path.key_id, accountId }, { failed, limit }, page)
        if (rows.length === 0 && !(await keys.list(accountId, {})).some((key) => key.id === path.key_id))
          throw new NotFound('no key matching id')
        const paging = pivotPaging({
          baseUrl,
          path: `/sendwright/v1/keys/${encodeURIComponent(path.key_id)}/requests`,
          pivotName: 'id',
          firstItem: rows.at(0)?.id,
          lastItem: rows.at(-1)?.id,
          pivot: 'pivot' in page ? page.pivot : undefined,
          carry: { limit, failed: failed ? 'yes' : undefined },
        })
        return { items: rows.map(view), paging }
      },
    }),
  ]
}
