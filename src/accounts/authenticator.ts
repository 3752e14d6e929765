/** Who a caller is: an API key, a session, or the command line on this machine. */
import type { Authenticator } from '../http/auth.ts'
import type { FailedAttempts } from '../http/failed-attempts.ts'
import type { Keys } from './api-keys.ts'
import type { AllowedCallers } from './caller-addresses/allowed-callers.ts'
import { isBoundToAddresses } from './caller-addresses/who.ts'
import type { FailedSignIns } from './failed-sign-ins.ts'
import { LOCAL_KEY_ID } from './local-key.ts'
import { isPublicKey, type PublicKeys } from './public-keys.ts'
import type { Sessions } from './sessions.ts'

export interface AuthenticatorParts {
  keys: Keys
  publicKeys: PublicKeys
  sessions: Sessions
  allowedCallers: AllowedCallers
  /** Authenticates the command line on this machine, as admin of the first account. */
  local: (secret: string) => boolean
  firstAccountId: string
}

export function createAuthenticator(parts: AuthenticatorParts): Authenticator {
  const { keys, publicKeys, sessions, allowedCallers, local, firstAccountId } = parts
  return {
    key(secret) {
      if (local(secret))
        return { accountId: firstAccountId, keyId: LOCAL_KEY_ID, role: 'admin', kind: 'user' }
      return isPublicKey(secret) ? publicKeys.authenticate(secret) : keys.authenticate(secret)
    },
    async session(cookie, isUse) {
      const session = await sessions.find(cookie, isUse)
      if (!session) return null
      const { accountId, id, role, keyId: sessionKeyId, user } = session
      return {
        accountId,
        keyId: id,
        role,
        kind: 'session',
        sessionKeyId,
        ...(user && { userId: user.id, sessionUser: user }),
      }
    },
    subaccount: async () => null,
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
