/**
 * Users of the dashboard: invitations, passwords, the second factor. It is built after the area of messages, which sends
 * its mail. Signing in needs no mail and belongs to the accounts area.
 */

import type { Area } from '../../area.ts'
import type { Core } from '../../core.ts'
import { removeIndexedRows } from '../../platform/store/account-rows.ts'
import type { AccountsArea } from '../access/area.ts'
import type { SystemMail } from './mails.ts'
import { ownPasskeyRoutes, proofRoutes } from './own-passkey-routes.ts'
import { ownProfileRoutes } from './own-profile-routes.ts'
import { ownUserRoutes } from './own-routes.ts'
import { createOwnUsers } from './own-user.ts'
import { publicUserRoutes } from './public-routes.ts'
import { createResetRequests } from './reset-requests.ts'
import { userRoutes } from './routes.ts'
import { createUserTokens } from './user-tokens.ts'
import { createUsers } from './users.ts'

export function usersArea(core: Core, accounts: AccountsArea, sendMail: SystemMail): Area {
  const { store, sealer, clock, log } = core
  const { publicUrl } = core.config
  const { userDirectory, secondFactor, failedAttempts } = accounts
  const ownUsers = createOwnUsers(accounts)
  const tokens = createUserTokens(store, sealer, clock)
  const users = createUsers({ store, clock, userDirectory, tokens, sendMail, publicUrl })
  const resets = createResetRequests({
    ...{ clock, log, userDirectory, tokens, sendMail, publicUrl },
    isExempt: failedAttempts.isExempt,
  })
  return {
    operations: [
      ...userRoutes({ userDirectory, users, secondFactor }),
      ...ownUserRoutes({ ...accounts, users, ownUsers }),
      ...ownProfileRoutes({ ...accounts, users, ownUsers }),
      ...ownPasskeyRoutes({ ...accounts, users, ownUsers }),
      ...proofRoutes({ ...accounts, ownUsers }),
      ...publicUserRoutes({ ...accounts, users, resets }),
    ],
    // With their links, recovery codes and sessions.
    accountDeleted: (accountId, signal) =>
      removeIndexedRows(core, 'users', ['id'], 'account_id', accountId, signal),
    stop: () => resets.stop(),
  }
}
