/** Statements about users that several operations have in common. */
import { randomHex } from '../../base/ids.ts'
import type { UserRole } from '../../platform/http/rights/rights.ts'
import { enterStatements, entriesOf, leaveStatements } from '../../platform/store/pods/entries.ts'
import { insert, type Statement, type Store } from '../../platform/store/store.ts'
import type { User } from '../accounts/user-directory.ts'
import { removePasskeys } from '../sign-in/second-factor.ts'

/** More than any team; a list of all of them is still one page. */
export const USERS_PER_ACCOUNT_MAX = 1_000
export const NAME_LENGTH_MAX = 255

/** A user who has never signed in. */
const BLANK = {
  is_master: 0,
  is_disabled: 0,
  password_hash: null,
  password_updated_at: null,
  session_epoch: 0,
  totp_sealed: null,
  totp_pending_sealed: null,
  totp_created_at: null,
  totp_step: 0,
  totp_failures: 0,
  totp_failures_since: 0,
  opened_ip: null,
  last_sign_in_at: null,
  auth_method: 'password',
  passkeys: 0,
  provider_sign_in_at: null,
  language: null,
  time_zone: null,
} as const

/** An id, and everything else as for somebody who has never signed in. */
export const newUser = (
  { accountId, email, name, role }: { accountId: string; email: string; name: string; role: UserRole },
  nowMs: number,
): User => ({ ...BLANK, id: randomHex(12), account_id: accountId, email, name, role, created_at: nowMs })

/** Fail their unit if there is a user of that address, in this or another pod. */
export const insertUser = (store: Pick<Store, 'pod'>, row: User): Statement[] => {
  const { sql, values } = insert('users', row)
  return [
    { sql: `${sql} ON CONFLICT (email) DO NOTHING`, values, expectRows: 1 },
    ...enterStatements(store, entriesOf('user', [row.email])),
  ]
}

/** Fails its unit for the master user. */
export const removal = (store: Pick<Store, 'pod'>, { id, email }: User): Statement[] => [
  { sql: 'DELETE FROM users WHERE id = ? AND is_master = 0', values: [id], expectRows: 1 },
  ...leaveStatements(store, entriesOf('user', [email])),
]

/** The first admin of an account who becomes active becomes its master user (accounts.md section 7 rule 3). */
export const becomeMaster = ({ id, account_id }: User): Statement => ({
  sql: `UPDATE users SET is_master = 1 WHERE id = ? AND role = 'admin'
    AND NOT EXISTS (SELECT 1 FROM users AS others WHERE others.account_id = ? AND others.is_master = 1)`,
  values: [id, account_id],
})

export const raiseEpoch = (userId: string): Statement => ({
  sql: 'UPDATE users SET session_epoch = session_epoch + 1 WHERE id = ?',
  values: [userId],
})

/** Ends the sessions of a user, and voids the links. */
export const ending = (userId: string, withTokens = true): Statement[] =>
  ['sessions', 'login_links', ...(withTokens ? ['user_tokens'] : [])].map((table) => ({
    sql: `DELETE FROM ${table} WHERE user_id = ?`,
    values: [userId],
  }))

/** accounts.md section 7 rule 5. Disabled keys stay in the list. */
export const disableKeys = (userId: string, reason: string): Statement => ({
  sql: `UPDATE api_keys SET disabled_reason = ? WHERE user_id = ? AND kind = 'web' AND disabled_reason IS NULL`,
  values: [reason, userId],
})

/** The user is invited again, as it were: without a password, passkeys and the provider. Ends no open session row itself. */
export const leaveProvider = (userId: string): Statement[] => [
  {
    sql: `UPDATE users SET auth_method = 'password', session_epoch = session_epoch + 1
      WHERE id = ? AND auth_method = 'oidc'`,
    values: [userId],
    expectRows: 1,
  },
  { sql: 'DELETE FROM user_identities WHERE user_id = ?', values: [userId] },
  ...removePasskeys(userId),
]
