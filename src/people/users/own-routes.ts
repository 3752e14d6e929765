/**
 * Changes that users make to how they sign in (own-operations.md section 7). They need a session of the user, and proof
 * (own-user.ts). The owner is told by mail.
 */
import { Forbidden } from '../../base/process/errors.ts'
import { message } from '../../base/shape.ts'
import { jsonReply } from '../../platform/http/answer/reply.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { flagParam } from '../../platform/http/request/inputs.ts'
import { NEW_PASSWORD, secretParam } from '../sign-in/proof-params.ts'
import type { SecondFactor } from '../sign-in/second-factor.ts'
import { type SessionOpening, sessionCookie } from '../sign-in/session-opening.ts'
import type { Sessions } from '../sign-in/sessions.ts'
import { ERRORS, type OwnUsers, PATH, PROOF, PROOF_ERRORS } from './own-user.ts'
import { RECOVERY_CODES, TOTP_SECRET } from './shapes.ts'
import type { Users } from './users.ts'

const api = operationsOf({ tag: 'Users', auth: { area: 'own-user', only: 'user-session' } })

interface OwnRouteParts {
  users: Users
  secondFactor: SecondFactor
  sessions: Pick<Sessions, 'endAll'>
  sessionOpening: SessionOpening
  ownUsers: OwnUsers
}

export function ownUserRoutes(parts: OwnRouteParts): Operation[] {
  const { users, secondFactor, sessions, sessionOpening, ownUsers } = parts
  return [
    api.put(`${PATH}/password`, {
      id: 'changeOwnPassword',
      audit: { action: 'own-password.change' },
      summary: 'Change the own password; all other sessions of the user end',
      params: { ...PROOF, password: { ...NEW_PASSWORD, description: 'The new one: 12 to 256 characters' } },
      answers: { 200: message('Password changed', 'Changed; the cookie is a new one'), ...PROOF_ERRORS },
      async handler(context) {
        const user = await ownUsers.provenWithPassword(context)
        const changed = await users.changePassword(user, context.input().password)
        const opened = await sessionOpening.openForUser(changed, 'password', context)
        if (!opened) throw new Forbidden(undefined, { why: 'the user was removed or disabled meanwhile' })
        const cookie = sessionCookie(opened.secret, context.isSecure, opened.lifetimeMs)
        return jsonReply({ message: 'Password changed' }, { headers: { 'set-cookie': cookie } })
      },
    }),
    api.delete(`${PATH}/sessions`, {
      id: 'signOutEverywhere',
      audit: { action: 'own-sessions.end' },
      summary: 'End all sessions of the user, including this one',
      params: { keep_current: flagParam('This one goes on, and so do links', { default: false }) },
      answers: { 200: message('Signed out everywhere'), ...ERRORS },
      async handler(context) {
        const { id, account_id } = await ownUsers.read(context.caller)
        if (context.input().keep_current) {
          await sessions.endAll(account_id, context.caller.keyId, id)
          return { message: 'All other sessions have been ended' }
        }
        await users.signOutEverywhere(id)
        const cookie = sessionCookie('', context.isSecure, 0)
        return jsonReply({ message: 'Signed out everywhere' }, { headers: { 'set-cookie': cookie } })
      },
    }),
    api.post(`${PATH}/totp`, {
      id: 'beginTotp',
      audit: { action: 'own-totp.begin' },
      summary: 'Get a secret for an authenticator app',
      params: PROOF,
      answers: { 200: TOTP_SECRET, ...PROOF_ERRORS },
      handler: async (context) => secondFactor.begin(await ownUsers.provenWithPassword(context)),
    }),
    api.put(`${PATH}/totp`, {
      id: 'confirmTotp',
      audit: { action: 'own-totp.confirm' },
      summary: 'Activate the authenticator app with one of its codes',
      params: { ...PROOF, code: secretParam('Of the authenticator app', { required: true }) },
      answers: { 200: RECOVERY_CODES, ...PROOF_ERRORS },
      async handler(context) {
        // Codes of an unconfirmed secret could be guessed too; wrong passwords are counted. The code is none of a second
        // factor in force, and cannot go with the password of a user who has passkeys.
        const user = await ownUsers.provenWithPassword({
          caller: context.caller,
          remoteAddress: context.remoteAddress,
          input: () => ({ ...context.input(), code: undefined }),
        })
        const codes = await secondFactor.confirm(user, context.input().code)
        await users.notify(user, 'appAdded')
        return { recovery_codes: codes }
      },
    }),
    api.delete(`${PATH}/totp`, {
      id: 'removeTotp',
      audit: { action: 'own-totp.remove' },
      summary: 'Remove the authenticator app',
      params: PROOF,
      answers: { 200: message('The authenticator app has been removed'), ...PROOF_ERRORS },
      async handler(context) {
        const user = await ownUsers.provenWithPassword(context)
        await secondFactor.remove(user.id)
        await users.notify(user, 'appRemoved')
        return { message: 'The authenticator app has been removed' }
      },
    }),
    api.post(`${PATH}/recovery-codes`, {
      id: 'renewRecoveryCodes',
      audit: { action: 'own-recovery-codes.renew' },
      summary: 'Create new recovery codes; the older ones become void',
      params: PROOF,
      answers: { 200: RECOVERY_CODES, ...PROOF_ERRORS },
      async handler(context) {
        const user = await ownUsers.provenWithPassword(context)
        const codes = await secondFactor.renewCodes(user)
        await users.notify(user, 'codesRenewed')
        return { recovery_codes: codes }
      },
    }),
  ]
}
