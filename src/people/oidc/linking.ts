/**
 * Which user somebody is whom the provider has authenticated (accounts.md section 7 rule 6).
 *
 * 1. A user is known by issuer and subject once it is linked.
 * 2. Else the verified address decides: its user is linked. A password, authenticator app, passkeys and the sessions end.
 * 3. Else a user is created, if the operator allows that.
 *
 * Each is one unit with the mark that this sign-in was completed, so it works once.
 */
import type { Core } from '../../core.ts'
import type { OidcConfig } from '../../platform/config/watching.ts'
import type { UserRole } from '../../platform/http/rights/rights.ts'
import { insert, StaleWrite, type Statement, type Store } from '../../platform/store/store.ts'
import { auditStatement } from '../accounts/audit-log.ts'
import { emailOf, type User, type UserDirectory } from '../accounts/user-directory.ts'
import { removePasskeys } from '../sign-in/second-factor.ts'
import { providerLinkedMail, type SystemMail } from '../users/mails.ts'
import {
  becomeMaster,
  ending,
  insertUser,
  NAME_LENGTH_MAX,
  newUser,
  USERS_PER_ACCOUNT_MAX,
} from '../users/user-rows.ts'
import type { Visitor } from '../users/users.ts'
import { displayName, type Identity, roleOf, verifiedEmail } from './claims.ts'
import { SignInRefused } from './refused.ts'

export type Linking = ReturnType<typeof createLinking>

interface LinkingParts extends Pick<Core, 'store' | 'clock'> {
  oidc: OidcConfig
  userDirectory: UserDirectory
  sendMail: SystemMail
  publicUrl: string
  /** The account of users that are created. */
  accountId: string
}

interface SignIn {
  identity: Identity
  /** Statements that fail the unit if this sign-in was completed before. */
  completion: readonly Statement[]
  visitor: Visitor
}

export function createLinking(parts: LinkingParts) {
  const { oidc, store, clock, userDirectory, sendMail, publicUrl } = parts
  const nowMs = () => Math.floor(clock.now())

  async function enter(user: User, { identity, completion, visitor }: SignIn): Promise<User> {
    const { after, update } = entering(oidc, user, identity, nowMs())
    const detail = { by: 'oidc', role: after.role }
    await store.commit([
      ...completion,
      update,
      ...(after.role === user.role ? [] : [auditOf(user, 'user.change', detail, visitor, clock.now())]),
    ])
    return after
  }

  async function link(user: User, { identity, completion, visitor }: SignIn): Promise<User> {
    const { issuer } = identity
    if (await isLinked(store.db, user, issuer))
      throw new SignInRefused(`The user ${user.email} is linked with another account of ${oidc.label}`)
    const { after, update } = entering(oidc, user, identity, nowMs())
    const { opened_ip: openedIp = null } = user
    await store.commit([
      ...completion,
      update,
      {
        sql: 'UPDATE users SET opened_ip = ? WHERE id = ?',
        values: [openedIp ?? visitor.remoteAddress, user.id],
      },
      { sql: 'DELETE FROM recovery_codes WHERE user_id = ?', values: [user.id] },
      ...removePasskeys(user.id),
      // From the provider that the operator used before.
      {
        sql: 'DELETE FROM user_identities WHERE user_id = ? AND issuer <> ?',
        values: [user.id, issuer],
      },
      identityRow(after, identity, nowMs()),
      becomeMaster(after),
      ...ending(user.id),
      auditOf(user, 'user.link-provider', { issuer, role: after.role }, visitor, clock.now()),
    ])
    if (user.password_hash !== null) {
      // The user is linked already, whether this succeeds or not.
      await sendMail(providerLinkedMail(user.email, publicUrl, oidc.label), []).catch(() => {})
    }
    return after
  }

  async function create(email: string, { identity, completion, visitor }: SignIn): Promise<User> {
    checkDomain(oidc, email)
    if (oidc.newUserRole === null) throw new SignInRefused(`Nobody has invited ${email}`)
    const role = roleFor(oidc, identity, oidc.newUserRole)
    const { accountId } = parts
    const { count } = await userDirectory.room(accountId, email)
    if (count >= USERS_PER_ACCOUNT_MAX) throw new SignInRefused('There are too many users already')
    const name = displayName(identity.claims, email, NAME_LENGTH_MAX)
    const now = nowMs()
    const user: User = {
      ...newUser({ accountId, email, name, role }, now),
      auth_method: 'oidc',
      opened_ip: visitor.remoteAddress,
      last_sign_in_at: now,
      provider_sign_in_at: now,
    }
    await store.commit([
      ...completion,
      ...insertUser(store, user),
      identityRow(user, identity, now),
      becomeMaster(user),
      auditOf(user, 'user.create', { by: 'oidc', role }, visitor, now),
    ])
    return user
  }

  async function resolve(signIn: SignIn): Promise<User> {
    const { identity } = signIn
    const linkedId = await linkedUserId(store.db, identity)
    const known = linkedId === null ? null : await userDirectory.byId(linkedId)
    if (known !== null) return enter(known, signIn)
    const email = emailOf(verifiedEmail(identity.claims) ?? '')
    if (email === null) throw new SignInRefused(`${oidc.label} has not verified your mail address`)
    const user = await userDirectory.byEmail(email)
    return user === null ? create(email, signIn) : link(user, signIn)
  }

  return {
    /** @throws SignInRefused */
    signIn: (signIn: SignIn): Promise<User> =>
      resolve(signIn).catch((error: unknown) => {
        if (error instanceof StaleWrite)
          throw new SignInRefused('This sign-in was completed before, or your user was changed meanwhile')
        throw error
      }),
  }
}

/** Resolves the id of the user that is linked with this identity; null: none. */
async function linkedUserId(db: Store['db'], { issuer, subject }: Identity): Promise<string | null> {
  const row = await db
    .selectFrom('user_identities')
    .select('user_id')
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .executeTakeFirst()
  return row?.user_id ?? null
}

/** @throws SignInRefused */
function checkDomain(oidc: OidcConfig, email: string): void {
  const domain = email.slice(email.lastIndexOf('@') + 1)
  if (oidc.domains !== null && !oidc.domains.includes(domain))
    throw new SignInRefused(`Addresses in ${domain} may not sign in here`)
}

/** The role that the provider gives. `otherwise`: without a claim for roles. @throws SignInRefused */
function roleFor(oidc: OidcConfig, { claims }: Identity, otherwise: UserRole): UserRole {
  if (oidc.roleClaim === null) return otherwise
  const role = roleOf(claims, oidc.roleClaim) ?? oidc.newUserRole
  if (role === null) throw new SignInRefused(`${oidc.label} gives you no role here`)
  return role
}

/** The changes of a user who signs in, and the user afterwards. */
function entering(
  oidc: OidcConfig,
  user: User,
  identity: Identity,
  now: number,
): { after: User; update: Statement } {
  if (user.is_disabled === 1) throw new SignInRefused('Your user is disabled')
  checkDomain(oidc, user.email)
  const role = user.is_master === 1 ? user.role : roleFor(oidc, identity, user.role as UserRole)
  const isFirst = user.auth_method !== 'oidc'
  const after: User = {
    ...user,
    role,
    auth_method: 'oidc',
    last_sign_in_at: now,
    provider_sign_in_at: now,
    session_epoch: user.session_epoch + Number(isFirst),
  }
  return { after, update: enteringUpdate(user, after) }
}

/** Changes the row of `user` to `after`; fails the unit if it was changed meanwhile. */
const enteringUpdate = (user: User, after: User): Statement => ({
  sql: `UPDATE users SET role = ?, auth_method = 'oidc', last_sign_in_at = ?, provider_sign_in_at = ?, session_epoch = ?,
    password_hash = NULL, password_updated_at = NULL, totp_sealed = NULL, totp_pending_sealed = NULL, totp_created_at = NULL
    WHERE id = ? AND is_disabled = 0 AND session_epoch = ? AND auth_method = ? AND role = ? AND is_master = ?`,
  values: [
    ...[after.role, after.last_sign_in_at, after.provider_sign_in_at, after.session_epoch, user.id],
    ...[user.session_epoch, user.auth_method, user.role, user.is_master],
  ],
  expectRows: 1,
})

/** True: the user is linked with somebody else at this provider. */
async function isLinked(db: Store['db'], user: User, issuer: string): Promise<boolean> {
  const row = await db
    .selectFrom('user_identities')
    .select('subject')
    .where('user_id', '=', user.id)
    .where('issuer', '=', issuer)
    .executeTakeFirst()
  return row !== undefined
}

function identityRow(user: User, { issuer, subject }: Identity, now: number): Statement {
  const { sql, values } = insert('user_identities', {
    issuer,
    subject,
    user_id: user.id,
    linked_at: now,
  })
  return { sql: `${sql} ON CONFLICT DO NOTHING`, values, expectRows: 1 }
}

function auditOf(user: User, action: string, detail: unknown, visitor: Visitor, now: number): Statement {
  const caller = { accountId: user.account_id, keyId: '', userId: user.id }
  return auditStatement({ caller, ...visitor }, { action, subject: user.id, detail }, now)
}
