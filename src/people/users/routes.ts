/** Users of an account over HTTP (accounts.md section 7). */
import { Forbidden } from '../../base/process/errors.ts'
import { described, integer, list, message, type Of, object } from '../../base/shape.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import {
  choiceParam,
  flagParam,
  limitParam,
  skipParam,
  textParam,
} from '../../platform/http/request/inputs.ts'
import { USER_ROLES, type UserRole } from '../../platform/http/rights/rights.ts'
import { SUCCESS } from '../accounts/shapes.ts'
import { isActive, type User, type UserDirectory } from '../accounts/user-directory.ts'
import { requireLocalKey } from '../keys/api-keys.ts'
import { hasSecondFactor, type SecondFactor } from '../sign-in/second-factor.ts'
import { USER } from './shapes.ts'
import type { Users } from './users.ts'

const api = operationsOf({ tag: 'Users', auth: { area: 'keys' } })
const PATH = '/v5/users'
const OWN_PATH = '/sendwright/v1/users/{user_id}'
const EMAIL = textParam('Receives the invitation', { required: true })
const NAME = textParam('Shown in lists', { required: true })
const LIMIT_MAX = 1_000

interface UserRouteParts {
  userDirectory: UserDirectory
  users: Users
  secondFactor: SecondFactor
}

export function userRoutes({ userDirectory, users, secondFactor }: UserRouteParts): Operation[] {
  return [
    ...readRoutes(userDirectory),
    api.post(PATH, {
      id: 'inviteUser',
      audit: { action: 'user.invite', given: ['email', 'role'], made: ['id'] },
      summary: 'Invite somebody by mail',
      params: { email: EMAIL, name: NAME, role: choiceParam('Rights', USER_ROLES, { required: true }) },
      answers: { 200: described('The user, not yet activated', USER) },
      handler: async ({ input, caller }) => userView(await users.invite(caller.accountId, input())),
    }),
    adminRoute(users),
    api.put(`${PATH}/{user_id}`, {
      id: 'changeUser',
      summary: 'Change a user',
      params: {
        name: textParam('Shown in lists'),
        role: choiceParam('Rights', USER_ROLES),
        is_disabled: flagParam('Ends the sessions of the user and disables its web keys'),
      },
      answers: { 200: USER },
      async handler({ input, path, caller }) {
        const { name, role, is_disabled: isDisabled } = input()
        const changes = { name, role, isDisabled }
        return userView(await users.change(caller.accountId, path.user_id, changes))
      },
    }),
    api.delete(`${PATH}/{user_id}`, {
      id: 'removeUser',
      summary: 'Remove a user',
      answers: { 200: message('User has been removed') },
      async handler({ path, caller }) {
        await users.remove(caller.accountId, path.user_id)
        return { message: 'User has been removed' }
      },
    }),
    api.post(`${OWN_PATH}/invitation`, {
      id: 'inviteUserAgain',
      audit: { action: 'user.invite-again' },
      summary: 'Send the invitation again; older links become void',
      answers: { 200: USER },
      handler: async ({ path, caller }) => userView(await users.inviteAgain(caller.accountId, path.user_id)),
    }),
    api.post(`${OWN_PATH}/password`, {
      id: 'allowUserPassword',
      audit: { action: 'user.allow-password' },
      summary: 'Let a user of the OpenID Connect provider choose a password, with a link by mail',
      description: 'The user is no longer linked to the provider, and its sessions end.',
      answers: { 200: described('The user, not activated until it has chosen one', USER) },
      handler: async ({ path, caller }) =>
        userView(await users.allowPassword(caller.accountId, path.user_id)),
    }),
    api.post('/v5/accounts/resend_activation_email', {
      id: 'resendActivationEmail',
      audit: { action: 'activation-email.resend' },
      summary: 'Invite the first admin again; does nothing once the account has an active user',
      auth: { area: 'account', access: 'write' },
      answers: { 200: described('Sent, or not needed', SUCCESS) },
      async handler({ caller }) {
        await users.resendActivation(caller.accountId)
        return { success: true }
      },
    }),
    secondFactorRoute(userDirectory, users, secondFactor),
  ]
}

function readRoutes(userDirectory: UserDirectory): Operation[] {
  return [
    api.get(PATH, {
      id: 'listUsers',
      summary: 'List the users of the account, oldest first',
      params: {
        limit: limitParam(100, LIMIT_MAX),
        skip: skipParam(),
        role: choiceParam('Only users with this role', USER_ROLES),
      },
      answers: {
        200: object('Users', { users: list('Of this page', USER), total: integer('Of all pages') }),
      },
      async handler({ input, caller }) {
        const { rows, total } = await userDirectory.list(caller.accountId, input())
        return { users: rows.map(userView), total }
      },
    }),
    api.get(`${PATH}/me`, {
      id: 'readOwnUser',
      summary: 'The user whose session or key this is',
      auth: { area: 'own-user', access: 'read', only: 'user' },
      answers: { 200: USER, 404: 'The user belongs to another account' },
      async handler({ caller }) {
        if (caller.userId === undefined) throw new Forbidden('Incompatible key for this endpoint')
        return userView(await userDirectory.read(caller.accountId, caller.userId))
      },
    }),
    api.get(`${PATH}/{user_id}`, {
      id: 'readUser',
      summary: 'Read one user',
      answers: { 200: USER },
      handler: async ({ path, caller }) => userView(await userDirectory.read(caller.accountId, path.user_id)),
    }),
  ]
}

/** The first user needs no mail and nobody who invites; whoever administers the machine makes it. */
function adminRoute(users: Users): Operation {
  return api.post('/sendwright/v1/admins', {
    id: 'createAdmin',
    audit: { action: 'admin.create', given: ['email'], made: ['id'] },
    summary: 'Create an admin with a password; for the command line only',
    auth: { area: 'account', access: 'write', only: 'machine' },
    params: {
      email: { ...EMAIL, description: 'Signs in with it' },
      name: NAME,
      password: textParam('12 to 256 characters', { required: true }),
    },
    answers: { 200: USER },
    async handler({ input, caller }) {
      requireLocalKey(caller)
      return userView(await users.createAdmin(caller.accountId, input()))
    },
  })
}

function secondFactorRoute(
  userDirectory: UserDirectory,
  users: Users,
  secondFactor: SecondFactor,
): Operation {
  return api.delete(`${OWN_PATH}/totp`, {
    id: 'removeUserTotp',
    audit: { action: 'user.remove-totp' },
    summary: 'Remove authenticator app, passkeys and recovery codes of a user who has lost them',
    answers: { 200: USER },
    async handler({ path, caller }) {
      const user = await userDirectory.read(caller.accountId, path.user_id)
      await secondFactor.reset(user.id)
      await users.notify(user, 'secondFactorReset')
      return userView(await userDirectory.read(caller.accountId, path.user_id))
    },
  })
}

type UserView = Of<typeof USER>

/** `2022-12-20T16:52:01.892000`, UTC without a zone. */
const timestamp = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString().replace('Z', '000'))

/** A user in responses. */
function userView(user: User): UserView {
  const [local = '', domain = ''] = user.email.split('@')
  return {
    id: user.id,
    activated: isActive(user),
    name: user.name,
    is_disabled: user.is_disabled === 1,
    email: user.email,
    email_details: {
      address: user.email,
      is_valid: true,
      parts: { domain, local_part: local, display_name: user.name },
    },
    role: user.role as UserRole,
    account_id: user.account_id,
    opened_ip: user.opened_ip ?? '',
    is_master: user.is_master === 1,
    metadata: {},
    tfa_enabled: hasSecondFactor(user),
    tfa_active: hasSecondFactor(user),
    tfa_created_at: timestamp(user.totp_created_at),
    password_updated_at: timestamp(user.password_updated_at),
    preferences: { time_zone: user.time_zone ?? 'UTC', time_format: '24h', programming_language: 'curl' },
    auth: { method: user.auth_method === 'oidc' ? 'oidc' : 'password' },
    github_user_id: null,
    salesforce_user_id: null,
    migration_status: 'done',
  }
}
