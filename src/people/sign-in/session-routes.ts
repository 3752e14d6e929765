/** Says who calls, lists browser sessions and ends them. */

import { integer, message, type Of, object, text } from '../../base/shape.ts'
import { formatRfc3339 } from '../../base/time/dates.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import { rightsOf } from '../../platform/http/rights/rights.ts'
import type { SessionRow } from '../../platform/store/schema.ts'
import type { AccountDirectory } from '../accounts/account-directory.ts'
import { CALLER, type SESSION, SESSIONS } from '../accounts/shapes.ts'
import type { UserDirectory } from '../accounts/user-directory.ts'
import type { Sessions } from './sessions.ts'

const PATH = '/sendwright/v1/sessions'
const api = operationsOf({ tag: 'Account', auth: { area: 'keys' } })

interface SessionRouteParts {
  sessions: Sessions
  accounts: Pick<AccountDirectory, 'byId'>
  userDirectory: Pick<UserDirectory, 'byId'>
  firstAccountId: string
}

export function sessionRoutes({
  sessions,
  accounts,
  userDirectory,
  firstAccountId,
}: SessionRouteParts): Operation[] {
  return [
    api.get('/sendwright/v1/session', {
      id: 'readSession',
      summary: 'Who calls: account, role and rights of the session or key',
      description: 'On behalf of a subaccount: that account, with the rights of the caller.',
      auth: { area: 'own-user', access: 'read' },
      answers: { 200: CALLER },
      async handler({ caller }) {
        const { accountId, role, kind, userId, parentAccountId } = caller
        const account = await accounts.byId(accountId)
        const user = userId === undefined ? null : await userDirectory.byId(userId)
        return {
          kind,
          role,
          rights: rightsOf(role),
          user_id: userId ?? null,
          user: user && {
            name: user.name,
            email: user.email,
            language: user.language,
            time_zone: user.time_zone,
          },
          account: {
            id: accountId,
            name: account?.name ?? '',
            parent_id: account?.parentId ?? null,
            is_first: accountId === firstAccountId,
            strict_parameters: account?.isStrict === true,
          },
          acting_account_id: parentAccountId ?? accountId,
        }
      },
    }),
    api.get(PATH, {
      id: 'listSessions',
      summary: 'List the browser sessions of the account, newest first',
      answers: { 200: SESSIONS },
      async handler({ caller }) {
        return sessionsView(await sessions.list(caller.accountId), caller)
      },
    }),
    api.delete(PATH, {
      id: 'endSessions',
      summary: 'End all browser sessions of the account except the current one',
      answers: {
        200: object('Ended', { message: text('What was done'), count: integer('How many were ended') }),
      },
      async handler({ caller }) {
        const count = await sessions.endAll(caller.accountId, ownSession(caller))
        return { message: 'Sessions have been ended', count }
      },
    }),
    api.delete(`${PATH}/{session_id}`, {
      id: 'endSession',
      summary: 'End one browser session',
      answers: { 200: message('Session has been ended') },
      async handler({ path, caller }) {
        await sessions.end(caller.accountId, path.session_id)
        return { message: 'Session has been ended' }
      },
    }),
  ]
}

const ownSession = (caller: Caller) => (caller.kind === 'session' ? caller.keyId : null)

/** `caller`: who lists them. */
export const sessionsView = (rows: readonly SessionRow[], caller: Caller): Of<typeof SESSIONS> => ({
  total_count: rows.length,
  items: rows.map((row) => sessionView(row, caller)),
})

function sessionView(row: SessionRow, caller: Caller): Of<typeof SESSION> {
  return {
    id: row.id,
    key_id: row.key_id,
    user_id: row.user_id,
    remote_address: row.remote_address,
    user_agent: row.user_agent,
    created_at: formatRfc3339(new Date(row.created_at)),
    last_used_at: formatRfc3339(new Date(row.last_used_at)),
    expires_at: formatRfc3339(new Date(row.expires_at)),
    current: row.id === ownSession(caller),
  }
}
