/** Who a caller is: an API key, a session, or the command line on this machine. */
import { type MaybePromise, whenKnown } from '../../base/flow/cache.ts'
import type { FailedAttempts } from '../../platform/http/limits/failed-attempts.ts'
import type { Authenticator, Caller } from '../../platform/http/rights/auth.ts'
import { ACCOUNT_ID, type AccountDirectory, isClosed } from '../accounts/account-directory.ts'
import { type AllowedCallers, isBoundToAddresses } from '../caller-addresses/allowed-callers.ts'
import type { Keys } from '../keys/api-keys.ts'
import { LOCAL_KEY_ID } from '../keys/local-key.ts'
import { isPublicKey, type PublicKeys } from '../keys/public-keys.ts'
import type { FailedSignIns } from '../sign-in/failed-sign-ins.ts'
import type { Sessions } from '../sign-in/sessions.ts'

interface AuthenticatorParts {
  accounts: Pick<AccountDirectory, 'byId'>
  keys: Keys
  publicKeys: PublicKeys
  sessions: Sessions
  allowedCallers: AllowedCallers
  /** Authenticates the command line on this machine, as admin of the first account; only through its own socket. */
  local: (secret: string) => boolean
  firstAccountId: string
}

export function createAuthenticator(parts: AuthenticatorParts): Authenticator {
  const { accounts, keys, publicKeys, sessions, allowedCallers, local, firstAccountId } = parts
  /** Keys and sessions of a closed account stop with it; their rows are removed later. */
  const unlessClosed = (caller: Caller | null): MaybePromise<Caller | null> =>
    caller === null
      ? null
      : whenKnown(accounts.byId(caller.accountId), (account) => (isClosed(account) ? null : caller))

  return {
    key(secret, isLocal) {
      if (isLocal && local(secret))
        return { accountId: firstAccountId, keyId: LOCAL_KEY_ID, role: 'admin', kind: 'user' }
      if (isPublicKey(secret)) return publicKeys.authenticate(secret)
      return whenKnown(keys.authenticate(secret), unlessClosed)
    },
    async session(cookie, isUse) {
      const session = await sessions.find(cookie, isUse)
      if (!session) return null
      const { accountId, id, role, keyId: sessionKeyId, user } = session
      return unlessClosed({
        accountId,
        keyId: id,
        role,
        kind: 'session',
        sessionKeyId,
        ...(user && { userId: user.id, sessionUser: user }),
      })
    },
    subaccount(caller, id) {
      if (!ACCOUNT_ID.test(id)) return null
      return whenKnown(accounts.byId(id), (child) =>
        child === null || child.parentId !== caller.accountId || isClosed(child)
          ? null
          : { ...caller, accountId: id, parentAccountId: caller.accountId },
      )
    },
    addressAllowed: (caller, address) =>
      !isBoundToAddresses(caller) || allowedCallers.allows(caller.accountId, address),
  }
}

/** Wrong keys and cookies cost time, and are noted in the audit log. */
export function auditedAttempts(
  attempts: FailedAttempts,
  failed: Pick<FailedSignIns, 'note'>,
): FailedAttempts {
  return {
    ...attempts,
    wrongKey(address: string) {
      failed.note({ remoteAddress: address, way: 'api' })
      attempts.wrongKey(address)
    },
  }
}
