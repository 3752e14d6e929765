/**
 * Changes of an account's users (accounts.md section 7): invited, changed, removed, passwords set.
 *
 * A user is invited by mail and chooses a password with the link in it; before that, nobody can sign in. Every change that
 * must end the user's sessions (a new password, disabling, signing out everywhere) increments the session epoch:
 * sessions and login links of an older epoch end at once, including those that are just being opened.
 */

import { BadRequest, Forbidden, NotFound } from '../../base/process/errors.ts'
import { invalidFormat } from '../../base/values.ts'
import type { Core } from '../../core.ts'
import type { UserRole } from '../../platform/http/rights/rights.ts'
import { StaleWrite, type Statement, type Store } from '../../platform/store/store.ts'
import { type Actor, auditStatement } from '../accounts/audit-log.ts'
import { emailOf, isActive, type User, type UserDirectory } from '../accounts/user-directory.ts'
import { checkChosen, hashChosen } from '../sign-in/chosen-password.ts'
import {
  invitationMail,
  passwordAllowedMail,
  passwordChangedMail,
  type SignInChange,
  type SystemMail,
  signInChangedMail,
} from './mails.ts'
import {
  becomeMaster,
  disableKeys,
  ending,
  insertUser,
  leaveProvider,
  NAME_LENGTH_MAX,
  newUser,
  raiseEpoch,
  removal,
  USERS_PER_ACCOUNT_MAX,
} from './user-rows.ts'
import type { UserTokens } from './user-tokens.ts'

interface NewUser {
  email: string
  name: string
  role: UserRole
}

interface UserChanges {
  name?: string | undefined
  role?: UserRole | undefined
  isDisabled?: boolean | undefined
}

/** Undefined: as it is. Empty text: as the browser has it. */
interface ProfileChanges {
  name: string | undefined
  language: string | undefined
  timeZone: string | undefined
}

export type Users = ReturnType<typeof createUsers>

/** A client that is not signed in. */
export type Visitor = Pick<Actor, 'remoteAddress' | 'requestId'>

const LINK_VOID = 'This link has been used or is too old'

interface UsersParts extends Pick<Core, 'store' | 'clock'> {
  userDirectory: UserDirectory
  tokens: UserTokens
  sendMail: SystemMail
  publicUrl: string
}

export function createUsers(parts: UsersParts) {
  const { store, clock, userDirectory, tokens, sendMail, publicUrl } = parts
  const { read, byId } = userDirectory
  const nowMs = () => Math.floor(clock.now())

  /** The address in its form for comparison. @throws BadRequest, Forbidden */
  async function checkNew(accountId: string, { email: given, name }: NewUser): Promise<string> {
    const email = emailOf(given)
    if (email === null) throw invalidFormat('email', given)
    checkName(name)
    const { count, isTaken } = await userDirectory.room(accountId, email)
    if (isTaken) throw taken(email)
    if (count >= USERS_PER_ACCOUNT_MAX) throw new Forbidden('could not create user, account limit reached')
    return email
  }

  /** An admin with a password, without an invitation. @throws BadRequest, Forbidden as `invite` does */
  async function createAdmin(
    accountId: string,
    { email: given, name, password }: Omit<NewUser, 'role'> & { password: string },
  ): Promise<User> {
    const email = await checkNew(accountId, { email: given, name, role: 'admin' })
    checkChosen(password, email)
    const now = nowMs()
    const row = {
      ...newUser({ accountId, email, name, role: 'admin' as const }, now),
      password_hash: await hashChosen(password),
      password_updated_at: now,
    }
    await store.commit([...insertUser(store, row), becomeMaster(row)]).catch(whenStale(() => taken(email)))
    return (await byId(row.id)) ?? row
  }

  /** @throws BadRequest for an invalid or used address, Forbidden over the limit of users, and as sending does */
  async function invite(accountId: string, user: NewUser): Promise<User> {
    const { name, role } = user
    const email = await checkNew(accountId, user)
    const row = newUser({ accountId, email, name, role }, nowMs())
    await sendLink(invitationMail, row, insertUser(store, row)).catch(whenStale(() => taken(email)))
    return row
  }

  /** Sends a link that lets the user choose a password; `before`: statements of the same unit. */
  async function sendLink(
    mail: typeof invitationMail,
    { id, email }: Pick<User, 'id' | 'email'>,
    before: readonly Statement[],
  ): Promise<void> {
    const { token, statements } = tokens.make('invitation', id)
    const text = mail(email, `${publicUrl}/#invitation=${token}`, tokens.invitationDays)
    await sendMail(text, [...before, ...statements])
  }

  return {
    invite,
    createAdmin,
    ...createPasswords(parts),
    /** Sends a new link and voids the older one. @throws NotFound, BadRequest when the user is active */
    async inviteAgain(accountId: string, id: string): Promise<User> {
      const user = await read(accountId, id)
      if (isActive(user)) throw new BadRequest('The user is active already')
      if (user.is_disabled === 1) throw new BadRequest('The user is disabled')
      await sendLink(invitationMail, user, [])
      return user
    },
    /** Sends the invitation of the oldest admin again while the account has no active user; else does nothing. */
    async resendActivation(accountId: string): Promise<void> {
      const { rows } = await userDirectory.list(accountId, { limit: USERS_PER_ACCOUNT_MAX, skip: 0 })
      if (rows.some(isActive)) return
      const admin = rows.find(({ role, is_disabled }) => role === 'admin' && is_disabled === 0)
      if (admin !== undefined) await sendLink(invitationMail, admin, [])
    },
    /** @throws NotFound, BadRequest for a change that the master user must not have */
    async change(accountId: string, id: string, changes: UserChanges): Promise<User> {
      const { name, role, isDisabled } = changes
      const user = await read(accountId, id)
      if (name === undefined && role === undefined && isDisabled === undefined)
        throw new BadRequest('Either `name`, `role` or `is_disabled` must be provided to update the user.')
      if (name !== undefined) checkName(name)
      const ends = isDisabled === true ? disabling(user.id) : []
      await store.commit([updateOf(user.id, changes), ...ends]).catch(masterStays)
      return read(accountId, id)
    },
    async remove(accountId: string, id: string): Promise<void> {
      const user = await read(accountId, id)
      await store.commit([disableKeys(user.id, 'user removed'), ...removal(store, user)]).catch(masterStays)
    },
    /** @throws BadRequest */
    changeProfile: (user: User, changes: ProfileChanges) => changeProfile(store, user, changes),
    /** Ends all sessions of the user. */
    signOutEverywhere: (userId: string): Promise<void> =>
      store.commit([raiseEpoch(userId), ...ending(userId, false)]).then(() => {}),
    /**
     * Lets a user of the provider choose a password, with a link by mail. The user signs in no other way until then, unless
     * the provider links it again. Ends all sessions. @throws NotFound, BadRequest, and as sending does
     */
    async allowPassword(accountId: string, id: string): Promise<User> {
      const user = await read(accountId, id)
      if (user.auth_method !== 'oidc') throw new BadRequest('The user signs in with a password already')
      if (user.is_disabled === 1) throw new BadRequest('The user is disabled')
      await sendLink(passwordAllowedMail, user, [...leaveProvider(user.id), ...ending(user.id)])
      return read(accountId, id)
    },
  }
}

/** Passwords that users set, and the mails that tell them of a change. */
function createPasswords({ store, clock, userDirectory, tokens, sendMail, publicUrl }: UsersParts) {
  const { byId } = userDirectory
  const nowMs = () => Math.floor(clock.now())

  /** Ignores errors: the change is made already. */
  const tell = (mail: Parameters<SystemMail>[0]) => sendMail(mail, []).catch(() => {})

  /** The owner of a link sets the password, in one unit: the row of the link makes sure that it works once. */
  async function setByLink(
    purpose: 'invitation' | 'reset',
    token: string,
    password: string,
    visitor: Visitor,
  ): Promise<User> {
    const userId = await tokens.find(purpose, token)
    const user = userId === null ? null : await byId(userId)
    if (user === null || user.is_disabled === 1) throw new NotFound(LINK_VOID)
    checkChosen(password, user.email)
    const hash = await hashChosen(password)
    const now = nowMs()
    const isFirst = purpose === 'invitation'
    const caller = { accountId: user.account_id, keyId: '', userId: user.id }
    const change = { action: isFirst ? 'invitation.accept' : 'password.reset', subject: user.id, detail: {} }
    await store
      .commit([
        tokens.consume(purpose, token),
        {
          sql: `UPDATE users SET password_hash = ?, password_updated_at = ?, opened_ip = COALESCE(opened_ip, ?),
            session_epoch = session_epoch + 1
            WHERE id = ? AND is_disabled = 0 AND auth_method = 'password' AND password_hash IS ${isFirst ? '' : 'NOT '}NULL`,
          values: [hash, now, visitor.remoteAddress, user.id],
          expectRows: 1,
        },
        ...(isFirst ? [becomeMaster(user)] : []),
        ...ending(user.id),
        auditStatement({ caller, ...visitor }, change, now),
      ])
      .catch(whenStale(() => new NotFound(LINK_VOID)))
    if (!isFirst) await tell(passwordChangedMail(user.email, publicUrl))
    return (await byId(user.id)) ?? user
  }

  return {
    /** Sets the first password. @throws NotFound for a link that is void, BadRequest for a bad password */
    acceptInvitation: (token: string, password: string, visitor: Visitor) =>
      setByLink('invitation', token, password, visitor),
    /** Sets a new password. @throws NotFound for a link that is void, BadRequest for a bad password */
    resetPassword: (token: string, password: string, visitor: Visitor) =>
      setByLink('reset', token, password, visitor),
    /** For a caller who has proved to be `user`. Ends all sessions and links of the user. @throws BadRequest */
    async changePassword(user: User, password: string): Promise<User> {
      checkChosen(password, user.email)
      const hash = await hashChosen(password)
      await store
        .commit([
          {
            // Must not replace a password that was set meanwhile: the caller may have stolen the old one.
            sql: `UPDATE users SET password_hash = ?, password_updated_at = ?, session_epoch = session_epoch + 1
              WHERE id = ? AND session_epoch = ?`,
            values: [hash, nowMs(), user.id, user.session_epoch],
            expectRows: 1,
          },
          ...ending(user.id),
        ])
        .catch(whenStale(() => new Forbidden(undefined, { why: 'the password was changed meanwhile' })))
      await tell(passwordChangedMail(user.email, publicUrl))
      return (await byId(user.id)) ?? user
    },
    /** Tells the user by mail what was changed. Ignores errors: it is changed already. */
    notify: ({ email }: Pick<User, 'email'>, change: SignInChange): Promise<void> =>
      tell(signInChangedMail(email, publicUrl, change)),
  }
}

async function changeProfile(
  store: Store,
  user: User,
  { name, language, timeZone }: ProfileChanges,
): Promise<User> {
  if (name !== undefined) checkName(name)
  const set = (given: string | undefined, old: string | null) => (given === undefined ? old : given || null)
  const after = {
    name: name ?? user.name,
    language: set(language, user.language),
    time_zone: set(timeZone, user.time_zone),
  }
  await store.db.updateTable('users').set(after).where('id', '=', user.id).execute()
  return { ...user, ...after }
}

const disabling = (id: string) => [raiseEpoch(id), ...ending(id), disableKeys(id, 'user disabled')]

/** Affects no row where the change is not for the master user. */
function updateOf(id: string, { name, role, isDisabled }: UserChanges): Statement {
  const staysMaster = (role ?? 'admin') === 'admin' && isDisabled !== true
  return {
    sql: `UPDATE users SET name = COALESCE(?, name), role = COALESCE(?, role), is_disabled = COALESCE(?, is_disabled)
      WHERE id = ? ${staysMaster ? '' : 'AND is_master = 0'}`,
    values: [name ?? null, role ?? null, isDisabled === undefined ? null : Number(isDisabled), id],
    expectRows: 1,
  }
}

/** For `catch` of a unit: throws `refusal` in place of StaleWrite. */
const whenStale = (refusal: () => Error) => (error: unknown) => {
  throw error instanceof StaleWrite ? refusal() : error
}

const masterStays = whenStale(
  () => new BadRequest('The master user stays an admin and cannot be disabled or removed'),
)

const taken = (email: string) => new BadRequest(`A user with the address "${email}" exists already`)

/** Without control characters: PostgreSQL does not store NUL. @throws BadRequest */
function checkName(name: string): void {
  if (name.length > NAME_LENGTH_MAX || /\p{Cc}/u.test(name))
    throw new BadRequest(`the name must have 1 to ${NAME_LENGTH_MAX} characters and no control characters`)
}
