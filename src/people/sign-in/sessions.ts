/**
 * Browser sessions and the one-time links that open them. Both secrets are random and stored only as digests; a
 * link works once and expires soon.
 *
 * A session has the rights that its user or key has at the time of each request, and ends with that user or key. Sessions
 * and links without either are the operator's: they were created on the machine itself.
 */

import { type Kysely, sql } from 'kysely'
import { randomHex } from '../../base/ids.ts'
import { NotFound, Unauthenticated } from '../../base/process/errors.ts'
import type { Clock } from '../../base/time/clock.ts'
import { DAY_MS, MINUTE_MS } from '../../base/time/durations.ts'
import type { Role } from '../../platform/http/rights/rights.ts'
import type { AccountSettingsRow, Schema, SessionRow } from '../../platform/store/schema.ts'
import { isSecret, newSecret } from '../../platform/store/secrets/random-secret.ts'
import type { Sealer } from '../../platform/store/secrets/sealing.ts'
import type { Store } from '../../platform/store/store.ts'

/** Where the rights of a session or link come from: a user, a key, or without both the operator. */
export interface SessionSource {
  accountId: string
  keyId: string | null
  user?: SessionUser
}

interface SessionUser {
  id: string
  /** When the user was authenticated: a session of an older epoch has ended (users/users.ts). */
  epoch: number
}

interface Session extends SessionSource {
  /** Shown in lists; not a secret. */
  id: string
  role: Role
}

/** The client that signs in, shown in the list of sessions. */
interface Browser {
  remoteAddress: string
  userAgent: string
  /** The user has just shown a password or passkey, here or to the provider. */
  isProof?: boolean
}

export interface OpenedSession {
  /** For the cookie. */
  secret: string
  id: string
  role: Role
  lifetimeMs: number
}

export type Sessions = ReturnType<typeof createSessions>

/** So long nobody else sits down at an unattended browser, and a second change needs no second password. */
export const PROOF_MS = 10 * MINUTE_MS

const LINK_LIFETIME_MS = 30 * MINUTE_MS
/** Unless the account has set another. */
const SESSION_LIFETIME_MS = 14 * DAY_MS
/** Ends a user's session without use, unless the account has set another time. Other sessions have no such default. */
const USER_IDLE_MS = DAY_MS
/**
 * Sessions and unused links per source; one more ends the oldest. So a key that signs in over and over neither
 * fills a table nor displaces others' sessions. With 100 keys an account has at most 2,020 of each, and 20 per user.
 */
const SESSIONS_PER_SOURCE_MAX = 20
const LINKS_PER_SOURCE_MAX = 20
/**
 * How often a session's last use is written: reads must not become writes. With a short time-out it is a tenth of that,
 * so a session ends at most that much too early.
 */
const LAST_USED_STEP_MS = 5 * MINUTE_MS
const LAST_USED_STEPS = 10
const USER_AGENT_LENGTH_MAX = 256

export function createSessions(store: Store, sealer: Sealer, clock: Clock) {
  const digest = (purpose: 'login-link' | 'session', token: string) =>
    sealer.mac(purpose, token).toString('hex')
  const nowMs = () => Math.floor(clock.now())

  return {
    /** A token for `/login/<token>`, valid once. @throws Unauthenticated when the user or key has just been deleted */
    async createLink(source: SessionSource): Promise<string> {
      const token = newSecret(store)
      const now = nowMs()
      const row = {
        digest: digest('login-link', token),
        account_id: source.accountId,
        key_id: source.keyId,
        ...userColumns(source),
        created_at: now,
        expires_at: now + LINK_LIFETIME_MS,
      }
      await store.transaction(async (tx) => {
        const { key, user } = await ownersOf(tx, store.kind, source)
        if (key === undefined || user === undefined)
          throw new Unauthenticated(undefined, { why: 'the key or the user was removed meanwhile' })
        await tx.deleteFrom('login_links').where('expires_at', '<=', now).execute()
        await makeRoom(tx, 'login_links', source, LINKS_PER_SOURCE_MAX)
        await tx.insertInto('login_links').values(row).execute()
      })
      return token
    },
    /** The source of an unused link, which this uses up. Null for any other token. */
    async redeemLink(token: string): Promise<SessionSource | null> {
      if (!isSecret(token)) return null
      // Deletes and reads in one statement: two browsers with the same link cannot both sign in.
      const row = await store.db
        .deleteFrom('login_links')
        .where('digest', '=', digest('login-link', token))
        .returningAll()
        .executeTakeFirst()
      if (!row || row.expires_at <= clock.now()) return null
      return sourceOfRow(row)
    },
    /** Null if the user or key is deleted, disabled, expired, of another or a closed account, or a sending key. */
    async open(
      source: SessionSource,
      { remoteAddress, userAgent, isProof = false }: Browser,
    ): Promise<OpenedSession | null> {
      const secret = newSecret(store)
      const id = `session-${randomHex(12)}`
      const now = nowMs()
      return store.transaction(async (tx) => {
        // Not from the cache of keys: on another node this key may have been deleted.
        const { key, user } = await ownersOf(tx, store.kind, source)
        const role = key === undefined || user === undefined ? null : rightsOf(source, key, user, now)
        if (role === null || (await isClosed(tx, source))) return null
        const { lifetimeMs: ofAccountMs } = timesOf(source.user !== undefined, await settingsOf(tx, source))
        const lifetimeMs = Math.min(ofAccountMs, (key?.expires_at ?? Infinity) - now)
        await tx.deleteFrom('sessions').where('expires_at', '<=', now).execute()
        await makeRoom(tx, 'sessions', source, SESSIONS_PER_SOURCE_MAX)
        const row = {
          id,
          digest: digest('session', secret),
          account_id: source.accountId,
          key_id: source.keyId,
          ...userColumns(source),
          remote_address: remoteAddress,
          user_agent: userAgent.slice(0, USER_AGENT_LENGTH_MAX),
          created_at: now,
          last_used_at: now,
          expires_at: now + lifetimeMs,
          proved_at: isProof ? now : null,
        }
        await tx.insertInto('sessions').values(row).execute()
        return { secret, id, role, lifetimeMs }
      })
    },
    /** `isUse`: a request of the browser, which postpones the end for lack of use. Default true. */
    async find(secret: string, isUse = true): Promise<Session | null> {
      if (!isSecret(secret)) return null
      const row = await store.db
        .selectFrom('sessions')
        .leftJoin('api_keys', 'api_keys.id', 'sessions.key_id')
        .leftJoin('users', 'users.id', 'sessions.user_id')
        .leftJoin('account_settings', 'account_settings.account_id', 'sessions.account_id')
        .select(['sessions.id', 'sessions.account_id', 'sessions.key_id', 'last_used_at'])
        .select(['sessions.user_id', 'user_epoch', 'sessions.created_at'])
        .select(['sessions.expires_at as session_expires_at', 'api_keys.account_id as key_account_id'])
        .select(['kind', 'api_keys.role', 'disabled_reason', 'api_keys.expires_at'])
        .select(['users.role as user_role', 'is_disabled', 'session_epoch'])
        .select(['users.account_id as user_account_id'])
        .select(['inactive_session_seconds', 'absolute_session_seconds'])
        .where('digest', '=', digest('session', secret))
        .executeTakeFirst()
      const now = nowMs()
      if (!row) return null
      const times = timesOf(row.user_id !== null, row)
      if (isOver({ ...row, expires_at: row.session_expires_at }, times, now)) return null
      const source = sourceOfRow(row)
      const key = row.key_id === null ? null : { ...row, account_id: row.key_account_id }
      const user =
        row.user_id === null ? null : { ...row, account_id: row.user_account_id, role: row.user_role }
      const role = rightsOf(source, key, user, now)
      if (role === null) return null
      const stepMs = Math.min(LAST_USED_STEP_MS, times.idleMs / LAST_USED_STEPS)
      if (isUse && row.last_used_at <= now - stepMs) await noteUse(store, row.id, now)
      return { ...source, id: row.id, role }
    },
    async close(secret: string): Promise<void> {
      await store.db.deleteFrom('sessions').where('digest', '=', digest('session', secret)).execute()
    },
    /** Sessions of an account, newest first, without expired ones. */
    list: (accountId: string): Promise<SessionRow[]> => openSessions(store, accountId, nowMs()),
    /** `userId`: only one of this user. @throws NotFound */
    async end(accountId: string, id: string, userId?: string): Promise<void> {
      const ended = await ofOwner(store, accountId, userId)
        .where('id', '=', id)
        .returning('id')
        .executeTakeFirst()
      if (!ended) throw new NotFound('Session not found')
    },
    /** Ends all of an account, or of a user of it, except `exceptId`. Resolves to how many there were. */
    async endAll(accountId: string, exceptId: string | null, userId?: string): Promise<number> {
      let all = ofOwner(store, accountId, userId)
      if (exceptId !== null) all = all.where('id', '!=', exceptId)
      return (await all.returning('id').execute()).length
    },
    /** Whether its user has shown in it who they are within PROOF_MS. */
    isProved: (id: string) => isProved(store, id, nowMs()),
    /** The user has just shown it. */
    async noteProof(id: string): Promise<void> {
      await store.db.updateTable('sessions').set({ proved_at: nowMs() }).where('id', '=', id).execute()
    },
  }
}

/** Ignores errors: a full disk must not prevent reading. */
async function noteUse(store: Store, id: string, now: number): Promise<void> {
  const update = store.db.updateTable('sessions').set({ last_used_at: now }).where('id', '=', id)
  await update.execute().catch(() => {})
}

/** The sessions of an account that have not ended, the newest first. */
async function openSessions(store: Store, accountId: string, now: number) {
  const settings = await settingsOf(store.db, { accountId })
  const rows = await store.db
    .selectFrom('sessions')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .execute()
  return rows.filter((row) => !isOver(row, timesOf(row.user_id !== null, settings), now))
}

/** Deletes sessions of an account, or of a user of it. */
function ofOwner({ db }: Store, accountId: string, userId: string | undefined) {
  const all = db.deleteFrom('sessions').where('account_id', '=', accountId)
  return userId === undefined ? all : all.where('user_id', '=', userId)
}

async function isProved({ db }: Store, id: string, now: number): Promise<boolean> {
  const row = await db.selectFrom('sessions').select('proved_at').where('id', '=', id).executeTakeFirst()
  return (row?.proved_at ?? 0) > now - PROOF_MS
}

const userColumns = ({ user }: SessionSource) => ({
  user_id: user?.id ?? null,
  user_epoch: user?.epoch ?? null,
})

type SourceRow = Pick<SessionRow, 'account_id' | 'key_id' | 'user_id' | 'user_epoch'>

const sourceOfRow = ({ account_id, key_id, user_id, user_epoch }: SourceRow): SessionSource => ({
  accountId: account_id,
  keyId: key_id,
  ...(user_id !== null && { user: { id: user_id, epoch: user_epoch ?? -1 } }),
})

interface Times {
  lifetimeMs: number
  /** Infinity: never ends for lack of use. */
  idleMs: number
}

type TimeSettings = Pick<AccountSettingsRow, 'inactive_session_seconds' | 'absolute_session_seconds'>

function timesOf(
  isUsers: boolean,
  settings: { [name in keyof TimeSettings]: number | null } | undefined,
): Times {
  const { inactive_session_seconds: inactive = null, absolute_session_seconds: absolute = null } =
    settings ?? {}
  return {
    lifetimeMs: absolute === null ? SESSION_LIFETIME_MS : absolute * 1000,
    idleMs: inactive !== null ? inactive * 1000 : isUsers ? USER_IDLE_MS : Infinity,
  }
}

/** By the current settings of the account: a shorter time ends open sessions too. */
const isOver = (
  { created_at, last_used_at, expires_at }: Pick<SessionRow, 'created_at' | 'last_used_at' | 'expires_at'>,
  { lifetimeMs, idleMs }: Times,
  now: number,
) => expires_at <= now || created_at + lifetimeMs <= now || last_used_at + idleMs <= now

const settingsOf = (db: Kysely<Schema>, { accountId }: { accountId: string }) =>
  db
    .selectFrom('account_settings')
    .select(['inactive_session_seconds', 'absolute_session_seconds'])
    .where('account_id', '=', accountId)
    .executeTakeFirst()

/** The columns of a key that decide about its sessions; all null when the key no longer exists. */
interface SourceKey {
  account_id: string | null
  kind: string | null
  role: string | null
  disabled_reason: string | null
  expires_at: number | null
}

/** The columns of a user that decide about its sessions. */
interface SourceUser {
  account_id: string | null
  role: string | null
  is_disabled: number | null
  session_epoch: number | null
}

/**
 * The key and the user of a source; null: it has none, undefined: deleted. On PostgreSQL they are locked until the transaction
 * ends: else they could be deleted before the row that refers to them is inserted.
 */
async function ownersOf(tx: Kysely<Schema>, kind: Store['kind'], { keyId, user }: SessionSource) {
  const key = tx
    .selectFrom('api_keys')
    .select(['account_id', 'kind', 'role', 'disabled_reason', 'expires_at'])
    .where('id', '=', keyId)
    .$if(kind === 'postgres', (query) => query.forKeyShare())
  const owner = tx
    .selectFrom('users')
    .select(['account_id', 'role', 'is_disabled', 'session_epoch'])
    .where('id', '=', user?.id ?? null)
    .$if(kind === 'postgres', (query) => query.forKeyShare())
  return {
    key: keyId === null ? null : await key.executeTakeFirst(),
    user: user === undefined ? null : await owner.executeTakeFirst(),
  }
}

/** The role that a session of this source has now; null: it has ended. `key` and `user` null: the operator. */
function rightsOf(
  source: SessionSource,
  key: SourceKey | null,
  user: SourceUser | null,
  now: number,
): Role | null {
  if (user !== null) {
    const isCurrent = user.session_epoch === source.user?.epoch && user.is_disabled === 0
    return isCurrent && user.account_id === source.accountId ? (user.role as Role) : null
  }
  if (key === null) return 'admin'
  if (key.account_id !== source.accountId || key.disabled_reason !== null) return null
  if (key.expires_at !== null && key.expires_at <= now) return null
  // Sending keys open no session.
  return key.kind === 'domain' || key.role === 'sending' ? null : (key.role as Role)
}

async function isClosed(db: Kysely<Schema>, { accountId }: SessionSource): Promise<boolean> {
  const account = db.selectFrom('accounts').select('status').where('id', '=', accountId)
  return (await account.executeTakeFirst())?.status === 'closed'
}

/** Deletes the oldest rows of a source, so that there are `max` with the next one. */
async function makeRoom(
  db: Kysely<Schema>,
  table: 'sessions' | 'login_links',
  { accountId, keyId, user }: SessionSource,
  max: number,
): Promise<void> {
  const isOfKey = keyId === null ? sql<boolean>`key_id IS NULL` : sql<boolean>`key_id = ${keyId}`
  const isOfUser = user === undefined ? sql<boolean>`user_id IS NULL` : sql<boolean>`user_id = ${user.id}`
  const newest = db
    .selectFrom(table)
    .select('digest')
    .where('account_id', '=', accountId)
    .where(isOfKey)
    .where(isOfUser)
    .orderBy('created_at', 'desc')
    .orderBy('digest')
    .limit(max - 1)
  await db
    .deleteFrom(table)
    .where('account_id', '=', accountId)
    .where(isOfKey)
    .where(isOfUser)
    .where('digest', 'not in', newest)
    .execute()
}
