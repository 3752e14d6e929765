/**
 * Changes that users make to their own data (own-operations.md section 7). They need a session of the user and the
 * password again: an unattended browser must not be enough.
 */
import { BadRequest, Forbidden } from '../../base/process/errors.ts'
import { message } from '../../base/shape.ts'
import { jsonReply } from '../../platform/http/answer/reply.ts'
import { type Context, type Operation, operation } from '../../platform/http/operation.ts'
import type { InputOf } from '../../platform/http/request/inputs.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import type { User, UserDirectory } from '../accounts/user-directory.ts'
import type { PasswordSignIn } from '../sign-in/password-sign-in.ts'
import { NEW_PASSWORD, secretParam } from '../sign-in/proof-params.ts'
import type { SecondFactor } from '../sign-in/second-factor.ts'
import { type SessionOpening, sessionCookie } from '../sign-in/session-opening.ts'
import { RECOVERY_CODES, TOTP_SECRET } from './shapes.ts'
import type { Users } from './users.ts'

const TAG = 'Users'
const PATH = '/sendwright/v1/me'
const OWN = { area: 'own-user', access: 'write', only: 'user-session' } as const
const ERRORS = { 404: 'The user belongs to another account' } as const
const PROOF = {
  current_password: secretParam('The current password', { required: true }),
  code: secretParam('Of the authenticator app, or a recovery code; required if the user has an app'),
}

interface OwnRouteParts {
  userDirectory: UserDirectory
  users: Users
  secondFactor: SecondFactor
  passwordSignIn: PasswordSignIn
  sessionOpening: SessionOpening
}

export function ownUserRoutes(parts: OwnRouteParts): Operation[] {
  const { userDirectory, users, secondFactor, passwordSignIn, sessionOpening } = parts
  return [
    operation({
      method: 'PUT',
      path: `${PATH}/password`,
      id: 'changeOwnPassword',
      audit: { action: 'own-password.change' },
      tag: TAG,
      summary: 'Change the own password; all other sessions of the user end',
      auth: OWN,
      params: { ...PROOF, password: { ...NEW_PASSWORD, description: 'The new one: 12 to 256 characters' } },
      answers: { 200: message('Password changed', 'Changed; the cookie is a new one'), ...ERRORS },
      async handler(context) {
        const user = await provenUser(context)
        const changed = await users.changePassword(user, context.input().password)
        const opened = await sessionOpening.openForUser(changed, 'password', context)
        if (!opened) throw new Forbidden(undefined, { why: 'the user was removed or disabled meanwhile' })
        const cookie = sessionCookie(opened.secret, context.isSecure, opened.lifetimeMs)
        return jsonReply({ message: 'Password changed' }, { headers: { 'set-cookie': cookie } })
      },
    }),
    operation({
      method: 'DELETE',
      path: `${PATH}/sessions`,
      id: 'signOutEverywhere',
      audit: { action: 'own-sessions.end' },
      tag: TAG,
      summary: 'End all sessions of the user, including this one',
      auth: OWN,
      answers: { 200: message('Signed out everywhere'), ...ERRORS },
      async handler(context) {
        await users.signOutEverywhere((await ownUser(context.caller)).id)
        const cookie = sessionCookie('', context.isSecure, 0)
        return jsonReply({ message: 'Signed out everywhere' }, { headers: { 'set-cookie': cookie } })
      },
    }),
    operation({
      method: 'POST',
      path: `${PATH}/totp`,
      id: 'beginTotp',
      audit: { action: 'own-totp.begin' },
      tag: TAG,
      summary: 'Get a secret for an authenticator app',
      auth: OWN,
      params: PROOF,
      answers: { 200: TOTP_SECRET, ...ERRORS },
      handler: async (context) => secondFactor.begin(await provenUser(context)),
    }),
    operation({
      method: 'PUT',
      path: `${PATH}/totp`,
      id: 'confirmTotp',
      audit: { action: 'own-totp.confirm' },
      tag: TAG,
      summary: 'Activate the authenticator app with one of its codes',
      auth: OWN,
      params: { ...PROOF, code: secretParam('Of the authenticator app', { required: true }) },
      answers: { 200: RECOVERY_CODES, ...ERRORS },
      async handler(context) {
        // Codes of an unconfirmed secret could be guessed too; wrong passwords are counted.
        const user = await provenUser(context)
        return { recovery_codes: await secondFactor.confirm(user, context.input().code) }
      },
    }),
    operation({
      method: 'DELETE',
      path: `${PATH}/totp`,
      id: 'removeTotp',
      audit: { action: 'own-totp.remove' },
      tag: TAG,
      summary: 'Remove the authenticator app',
      auth: OWN,
      params: PROOF,
      answers: { 200: message('The authenticator app has been removed'), ...ERRORS },
      async handler(context) {
        await secondFactor.remove((await provenUser(context)).id)
        return { message: 'The authenticator app has been removed' }
      },
    }),
    operation({
      method: 'POST',
      path: `${PATH}/recovery-codes`,
      id: 'renewRecoveryCodes',
      audit: { action: 'own-recovery-codes.renew' },
      tag: TAG,
      summary: 'Create new recovery codes; the older ones become void',
      auth: OWN,
      params: PROOF,
      answers: { 200: RECOVERY_CODES, ...ERRORS },
      async handler(context) {
        return { recovery_codes: await secondFactor.renewCodes(await provenUser(context)) }
      },
    }),
  ]

  /** @throws Forbidden unless the caller is a session of a user */
  async function ownUser({ kind, accountId, userId }: Caller): Promise<User> {
    if (kind !== 'session' || userId === undefined) throw new Forbidden('Incompatible key for this endpoint')
    return userDirectory.read(accountId, userId)
  }

  /** @throws BadRequest for a user without a password, without the right password and, where there is an app, the right code */
  async function provenUser({ caller, remoteAddress, input }: ProofContext): Promise<User> {
    const user = await ownUser(caller)
    if (user.auth_method === 'oidc')
      throw new BadRequest('You have no password here: you sign in with single sign-on')
    const { current_password: password, code } = input()
    await passwordSignIn.prove(user, { password, code }, remoteAddress)
    return user
  }
}

type ProofContext = Pick<
  Context<never, Caller, unknown, InputOf<typeof PROOF>>,
  'caller' | 'remoteAddress' | 'input'
>
