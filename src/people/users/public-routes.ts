/** For users who are not signed in: accept an invitation, request a new password, choose it. */
import { NotFound, present } from '../../base/process/errors.ts'
import { message } from '../../base/shape.ts'
import { jsonReply } from '../../platform/http/answer/reply.ts'
import type { FailedAttempts } from '../../platform/http/limits/failed-attempts.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { textParam } from '../../platform/http/request/inputs.ts'
import { cookieValue, SESSION_COOKIE } from '../../platform/http/rights/auth.ts'
import type { User } from '../accounts/user-directory.ts'
import type { FailedSignIns } from '../sign-in/failed-sign-ins.ts'
import { NEW_PASSWORD, TOKEN } from '../sign-in/proof-params.ts'
import { type SessionOpening, type SignInContext, sessionCookie } from '../sign-in/session-opening.ts'
import type { Sessions } from '../sign-in/sessions.ts'
import type { ResetRequests } from './reset-requests.ts'
import type { Users, Visitor } from './users.ts'

const api = operationsOf({ tag: 'Users', auth: 'public' })
const TOO_MANY = 'Too many attempts from this address'
const REQUESTED = 'If there is a user with this address, a mail with a link has been sent to it'
const BY_LINK = { token: TOKEN, password: NEW_PASSWORD }
const LINK_ERRORS = { 404: 'Used, or too old', 429: TOO_MANY } as const

interface PublicUserRouteParts {
  users: Users
  resets: ResetRequests
  sessions: Sessions
  sessionOpening: SessionOpening
  failedAttempts: FailedAttempts
  failedSignIns: Pick<FailedSignIns, 'note'>
}

export function publicUserRoutes(parts: PublicUserRouteParts): Operation[] {
  const { users, resets, sessions, sessionOpening, failedAttempts, failedSignIns } = parts
  return [
    api.post('/sendwright/v1/invitations/accept', {
      id: 'acceptInvitation',
      audit: { by: 'operation' },
      summary: 'Choose the first password with the link of an invitation: starts a browser session',
      params: BY_LINK,
      answers: { 200: message('Signed in', 'Signed in; the cookie is set'), ...LINK_ERRORS },
      async handler(context) {
        const { token, password } = context.input()
        const user = await withLink(context, () =>
          users.acceptInvitation(token, password, visitorOf(context)),
        )
        const opened = present(await sessionOpening.openForUser(user, 'invitation', context))
        const headers = { 'set-cookie': sessionCookie(opened.secret, context.isSecure, opened.lifetimeMs) }
        return jsonReply({ message: 'Signed in' }, { headers })
      },
    }),
    api.post('/sendwright/v1/password-resets', {
      id: 'requestPasswordReset',
      audit: { by: 'operation' },
      summary: 'Request a link for a new password by mail',
      description: 'The response is the same whether the user exists or not.',
      params: { email: textParam('Of the user', { required: true }) },
      answers: { 200: message(REQUESTED, 'If the user exists, a mail will be sent'), 429: TOO_MANY },
      async handler({ input, remoteAddress, requestId }) {
        resets.add(input().email, { remoteAddress, requestId })
        return { message: REQUESTED }
      },
    }),
    api.post('/sendwright/v1/password-resets/redeem', {
      id: 'resetPassword',
      audit: { by: 'operation' },
      summary: 'Choose a new password with the link of a mail; all sessions of the user end',
      params: BY_LINK,
      answers: { 200: message('Password changed', 'Changed; sign in with it'), ...LINK_ERRORS },
      async handler(context) {
        const { token, password } = context.input()
        await withLink(context, () => users.resetPassword(token, password, visitorOf(context)))
        // No session: the link does not replace the second factor.
        const headers = { 'set-cookie': sessionCookie('', context.isSecure, 0) }
        const secret = cookieValue(context.headers, SESSION_COOKIE)
        if (secret) await sessions.close(secret)
        return jsonReply({ message: 'Password changed' }, { headers })
      },
    }),
  ]

  /** A wrong token counts like a wrong key: both are too long to be guessed. */
  async function withLink(visitor: Visitor, run: () => Promise<User>): Promise<User> {
    try {
      return await run()
    } catch (error) {
      if (error instanceof NotFound) {
        failedSignIns.note({ remoteAddress: visitor.remoteAddress, way: 'link' })
        failedAttempts.wrongKey(visitor.remoteAddress)
        await failedAttempts.delay(visitor.remoteAddress)
      }
      throw error
    }
  }
}

const visitorOf = ({ remoteAddress, requestId }: SignInContext): Visitor => ({ remoteAddress, requestId })
