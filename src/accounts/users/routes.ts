/** Users of an account over HTTP (accounts.md section 7). */
import { Forbidden } from '../../base/errors.ts'
import { type Operation, operation } from '../../http/operation.ts'
import { limitAndSkip } from '../../http/paging.ts'
import { USER_ROLES, type UserRole } from '../../http/rights.ts'
import { requireLocalKey } from '../local-key.ts'
import type { UserDirectory } from './directory.ts'
import type { SecondFactor } from './second-factor.ts'
import type { Users } from './users.ts'
import { userView } from './view.ts'

const TAG = 'Users'
const PATH = '/v5/users'
const OWN_PATH = '/sendwright/v1/users/{user_id}'
const READ = { area: 'keys', access: 'read' } as const
const WRITE = { area: 'keys', access: 'write' } as const
const ROLE = { name: 'role', type: 'string', description: 'Rights', values: USER_ROLES } as const
const LIMIT_MAX = 1_000

export interface UserRouteParts {
  userDirectory: UserDirectory
  users: Users
  secondFactor: SecondFactor
}

export function userRoutes({ userDirectory, users, secondFactor }: UserRouteParts): Operation[] {
  return [
    operation({
      method: 'GET',
      path: PATH,
      id: 'listUsers',
      tag: TAG,
      summary: 'List the users of the account, oldest first',
      auth: READ,
      params: [
        { ...ROLE, description: 'Only users with this role' },
        { name: 'limit', type: 'integer', description: '1 to 1000', default: 100 },
        { name: 'skip', type: 'integer', description: 'Leave out the first ones', default: 0 },
      ],
      responses: { 200: { description: 'Users' } },
      async handler({ params, caller }) {
        const page = limitAndSkip(params, {
          default: 100,
          max: LIMIT_MAX,
          text: `The 'limit' parameter can't be larger than ${LIMIT_MAX}`,
        })
        const role = params.oneOf('role', USER_ROLES)
        const { rows, total } = await userDirectory.list(caller.accountId, { role, ...page })
        return { users: rows.map(userView), total }
      },
    }),
    operation({
      method: 'GET',
      path: `${PATH}/me`,
      id: 'readOwnUser',
      tag: TAG,
      summary: 'The user whose session or key this is',
      auth: { area: 'own-user', access: 'read', only: 'user' },
      params: [],
      responses: { 200: { description: 'The user' } },
      async handler({ caller }) {
        if (caller.userId === undefined) throw new Forbidden('Incompatible key for this endpoint')
        return userView(await userDirectory.read(caller.accountId, caller.userId))
      },
    }),
    operation({
      method: 'GET',
      path: `${PATH}/{user_id}`,
      id: 'readUser',
      tag: TAG,
      summary: 'Read one user',
      auth: READ,
      params: [],
      responses: { 200: { description: 'The user' } },
      handler: async ({ path, caller }) => userView(await userDirectory.read(caller.accountId, path.user_id)),
    }),
    operation({
      method: 'POST',
      path: PATH,
      id: 'inviteUser',
      audit: { action: 'user.invite', given: ['email', 'role'], made: ['id'] },
      tag: TAG,
      summary: 'Invite somebody by mail',
      auth: WRITE,
      params: [
        { name: 'email', type: 'string', required: true, description: 'Receives the invitation' },
        { name: 'name', type: 'string', required: true, description: 'Shown in the list' },
        { ...ROLE, required: true },
      ],
      responses: { 200: { description: 'The user, not yet activated' } },
      async handler({ params, caller }) {
        const email = params.required('email')
        const name = params.required('name')
        params.required('role')
        const role = params.oneOf('role', USER_ROLES) as UserRole
        return userView(await users.invite(caller.accountId, { email, name, role }))
      },
    }),
    adminRoute(users),
    operation({
      method: 'PUT',
      path: `${PATH}/{user_id}`,
      id: 'changeUser',
      tag: TAG,
      summary: 'Change a user',
      auth: WRITE,
      params: [
        { name: 'name', type: 'string', description: 'Shown in the list' },
        ROLE,
        {
          name: 'is_disabled',
          type: 'boolean',
          description: 'Ends the sessions of the user and disables its web keys',
        },
      ],
      responses: { 200: { description: 'The user' } },
      async handler({ params, path, caller }) {
        const changes = {
          name: params.text('name'),
          role: params.oneOf('role', USER_ROLES),
          isDisabled: params.boolean('is_disabled'),
        }
        return userView(await users.change(caller.accountId, path.user_id, changes))
      },
    }),
    operation({
      method: 'DELETE',
      path: `${PATH}/{user_id}`,
      id: 'removeUser',
      tag: TAG,
      summary: 'Remove a user',
      auth: WRITE,
      params: [],
      responses: { 200: { description: 'Removed' } },
      async handler({ path, caller }) {
        await users.remove(caller.accountId, path.user_id)
        return { message: 'User has been removed' }
      },
    }),
    operation({
      method: 'POST',
      path: `${OWN_PATH}/invitation`,
      id: 'inviteUserAgain',
      audit: { action: 'user.invite-again' },
      tag: TAG,
      summary: 'Send the invitation again; older links become void',
      auth: WRITE,
      params: [],
      responses: { 200: { description: 'The user' } },
      handler: async ({ path, caller }) => userView(await users.inviteAgain(caller.accountId, path.user_id)),
    }),
    operation({
      method: 'POST',
      path: `${OWN_PATH}/password`,
      id: 'allowUserPassword',
      audit: { action: 'user.allow-password' },
      tag: TAG,
      summary: 'Let a user of the OpenID Connect provider choose a password, with a link by mail',
      description: 'The user is no longer linked to the provider, and its sessions end.',
      auth: WRITE,
      params: [],
      responses: { 200: { description: 'The user, not activated until it has chosen one' } },
      handler: async ({ path, caller }) =>
        userView(await users.allowPassword(caller.accountId, path.user_id)),
    }),
    operation({
      method: 'POST',
      path: '/v5/accounts/resend_activation_email',
      id: 'resendActivationEmail',
      audit: { action: 'activation-email.resend' },
      tag: TAG,
      summary: 'Invite the first admin again; does nothing once the account has an active user',
      auth: { area: 'account', access: 'write' },
      params: [],
      responses: { 200: { description: 'Sent, or not needed' } },
      async handler({ caller }) {
        await users.resendActivation(caller.accountId)
        return { success: true }
      },
    }),
    operation({
      method: 'DELETE',
      path: `${OWN_PATH}/totp`,
      id: 'removeUserTotp',
      audit: { action: 'user.remove-totp' },
      tag: TAG,
      summary: 'Remove the authenticator app of a user who has lost it',
      auth: WRITE,
      params: [],
      responses: { 200: { description: 'The user' } },
      async handler({ path, caller }) {
        const user = await userDirectory.read(caller.accountId, path.user_id)
        await secondFactor.remove(user.id)
        return userView(await userDirectory.read(caller.accountId, path.user_id))
      },
    }),
  ]
}

/** The first user needs no mail and nobody who invites; whoever administers the machine makes it. */
function adminRoute(users: Users): Operation {
  return operation({
    method: 'POST',
    path: '/sendwright/v1/admins',
    id: 'createAdmin',
    audit: { action: 'admin.create', given: ['email'], made: ['id'] },
    tag: TAG,
    summary: 'Create an admin with a password; for the command line only',
    auth: { area: 'account', access: 'write', only: 'machine' },
    params: [
      { name: 'email', type: 'string', required: true, description: 'Signs in with it' },
      { name: 'name', type: 'string', required: true, description: 'Shown in the list' },
      { name: 'password', type: 'string', required: true, description: '12 to 256 characters' },
    ],
    responses: { 200: { description: 'The user' } },
    async handler({ params, caller }) {
      requireLocalKey(caller)
      const email = params.required('email')
      const name = params.required('name')
      const password = params.required('password')
      return userView(await users.createAdmin(caller.accountId, { email, name, password }))
    },
  })
}
