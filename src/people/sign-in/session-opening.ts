/** Opening a session for a browser: the session, its row in the audit log, its cookie. */

import type { Context } from '../../platform/http/operation.ts'
import { cookieValue, SESSION_COOKIE } from '../../platform/http/rights/auth.ts'
import type { AuditLog } from '../accounts/audit-log.ts'
import type { User } from '../accounts/user-directory.ts'
import type { OpenedSession, SessionSource, Sessions } from './sessions.ts'

export type SignInContext = Pick<
  Context<never, unknown>,
  'remoteAddress' | 'requestId' | 'headers' | 'isSecure'
>

/** How a user has signed in. */
type Way = 'password' | 'passkey' | 'invitation' | 'oidc'

export interface SessionOpening {
  /** The new session, returned only once the sign-in is in the audit log. Null: no right to sign in. */
  open(
    source: SessionSource,
    by: 'link' | 'key' | Way,
    context: SignInContext,
    isProof?: boolean,
  ): Promise<OpenedSession | null>
  /**
   * For an authenticated user. Ends the session that the browser had before.
   * @param isProof false: the browser's session at the provider was enough, and nobody was asked
   */
  openForUser(user: User, by: Way, context: SignInContext, isProof?: boolean): Promise<OpenedSession | null>
}

export function createSessionOpening(sessions: Sessions, audit: Pick<AuditLog, 'record'>): SessionOpening {
  const open: SessionOpening['open'] = async (source, by, context, isProof = false) => {
    const { remoteAddress, requestId, headers } = context
    const userAgent = headers['user-agent'] ?? ''
    const opened = await sessions.open(source, { remoteAddress, userAgent, isProof })
    if (!opened) return null
    const { id, role, secret } = opened
    const keyId = by === 'key' ? (source.keyId ?? id) : id
    const caller = { accountId: source.accountId, keyId, ...(source.user && { userId: source.user.id }) }
    try {
      const detail = { by, role, ...(source.user && { user: source.user.id }) }
      const change = { action: 'session.open', subject: id, detail }
      await audit.record({ caller, remoteAddress, requestId }, change)
    } catch (error) {
      await sessions.close(secret).catch(() => {})
      throw error
    }
    return opened
  }

  return {
    open,
    async openForUser({ id, account_id: accountId, session_epoch: epoch }, by, context, isProof = true) {
      const opened = await open({ accountId, keyId: null, user: { id, epoch } }, by, context, isProof)
      const former = cookieValue(context.headers, SESSION_COOKIE)
      if (opened && former) await sessions.close(former)
      return opened
    },
  }
}

/** `maxAgeMs` 0: the browser drops it. */
export const sessionCookie = (secret: string, isSecure: boolean, maxAgeMs: number) =>
  `${SESSION_COOKIE}=${secret}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${maxAgeMs / 1000}${isSecure ? '; Secure' : ''}`
