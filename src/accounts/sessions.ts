/**
 * Browser sessions and the one-time links that open them. Both secrets are random and kept only as digests; a link
 * works once and for a short time.
 *
 * A session has the rights of the key it came from, as they are at each request, and ends with that key. Sessions and
 * links without a key are the operator's: they were made on the machine itself.
 */
import { randomBytes } from 'node:crypto'
import { type Kysely, sql } from 'kysely'
import type { Clock } from '../base/clock.ts'
import { NotFound } from '../base/errors.ts'
import { randomHex } from '../base/ids.ts'
import type { Role } from '../http/auth.ts'
import type { Schema, SessionRow } from '../store/schema.ts'
import type { Sealer } from '../store/sealing.ts'
import type { Store } from '../store/store.ts'

/** Whose rights a session or link has: those of a key, or with null those of the operator. */
export interface SessionSource {
  accountId: string
  keyId: string | null
}

export interface Session extends SessionSource {
  /** Shown in lists; of no use as a secret. */
  id: string
  role: Role
}

/** Who signs in, kept for the list of sessions. */
export interface Browser {
  remoteAddress: string
  userAgent: string
}

export interface OpenedSession {
  /** For the cookie. */
  secret: string
  id: string
  role: Role
  lifetimeMs: number
}

export interface Sessions {
  /** A token for `/login/<token>`, valid once. */
  createLink(source: SessionSource): Promise<string>
  /** What an unused link stands for; the link is used up by this. Null for any other token. */
  redeemLink(token: string): Promise<SessionSource | null>
  /** Null when the key is gone, disabled, expired, of another account, or only sends. */
  open(source: SessionSource, browser: Browser): Promise<OpenedSession | null>
  find(secret: string): Promise<Session | null>
  close(secret: string): Promise<void>
  /** Of an account, newest first, without those that are over. */
  list(accountId: string): Promise<SessionRow[]>
  /** @throws NotFound */
  end(accountId: string, id: string): Promise<void>
  /** All of an account but `exceptId`. Resolves how many there were. */
  endAll(accountId: string, exceptId: string | null): Promise<number>
}

const LINK_LIFETIME_MS = 30 * 60_000
const SESSION_LIFETIME_MS = 14 * 24 * 3_600_000
const TOKEN_BYTES = 32
const TOKEN_PATTERN = /^[A-Za-z0-9_-]{43}$/
/**
 * Sessions and unused links from one source; one more ends the oldest. So a key that signs in over and over fills no
 * table and takes nobody else's place. With 100 keys an account has 2,020 of each at most.
 */
const SESSIONS_PER_SOURCE_MAX = 20
const LINKS_PER_SOURCE_MAX = 20
/** A session's last use is written down this often at the most: reading must not become writing. */
const LAST_USED_STEP_MS = 5 * 60_000
const USER_AGENT_LENGTH_MAX = 256

export function createSessions(store: Store, sealer: Sealer, clock: Clock): Sessions {
  const digest = (purpose: 'login-link' | 'session', token: string) =>
    sealer.mac(purpose, token).toString('hex')
  const nowMs = () => Math.floor(clock.now())

  return {
    async createLink(source) {
      const token = randomBytes(TOKEN_BYTES).toString('base64url')
      const now = nowMs()
      const row = {
        digest: digest('login-link', token),
        account_id: source.accountId,
        key_id: source.keyId,
        created_at: now,
        expires_at: now + LINK_LIFETIME_MS,
      }
      await store.transaction(async (tx) => {
        await tx.deleteFrom('login_links').where('expires_at', '<=', now).execute()
        await makeRoom(tx, 'login_links', source, LINKS_PER_SOURCE_MAX)
        await tx.insertInto('login_links').values(row).execute()
      })
      return token
    },
    async redeemLink(token) {
      if (!TOKEN_PATTERN.test(token)) return null
      // Deleting and reading in one statement: two browsers with one link cannot both get in.
      const row = await store.db
        .deleteFrom('login_links')
        .where('digest', '=', digest('login-link', token))
        .returningAll()
        .executeTakeFirst()
      if (!row || row.expires_at <= clock.now()) return null
      return { accountId: row.account_id, keyId: row.key_id }
    },
    async open(source, { remoteAddress, userAgent }) {
      const secret = randomBytes(TOKEN_BYTES).toString('base64url')
      const id = `session-${randomHex(12)}`
      const now = nowMs()
      return store.transaction(async (tx) => {
        // Not by what is remembered of keys: on another node this one may have been deleted.
        const key = source.keyId === null ? null : await keyOf(tx, source.keyId)
        const role = key === undefined ? null : rightsOf(source, key, now)
        if (role === null) return null
        const lifetimeMs = Math.min(SESSION_LIFETIME_MS, (key?.expires_at ?? Infinity) - now)
        await tx.deleteFrom('sessions').where('expires_at', '<=', now).execute()
        await makeRoom(tx, 'sessions', source, SESSIONS_PER_SOURCE_MAX)
        const row = {
          id,
          digest: digest('session', secret),
          account_id: source.accountId,
          key_id: source.keyId,
          remote_address: remoteAddress,
          user_agent: userAgent.slice(0, USER_AGENT_LENGTH_MAX),
          created_at: now,
          last_used_at: now,
          expires_at: now + lifetimeMs,
        }
        await tx.insertInto('sessions').values(row).execute()
        return { secret, id, role, lifetimeMs }
      })
    },
    async find(secret) {
      if (!TOKEN_PATTERN.test(secret)) return null
      const row = await store.db
        .selectFrom('sessions')
        .leftJoin('api_keys', 'api_keys.id', 'sessions.key_id')
        .select(['sessions.id', 'sessions.account_id', 'sessions.key_id', 'last_used_at'])
        .select(['sessions.expires_at as session_expires_at', 'api_keys.account_id as key_account_id'])
        .select(['kind', 'role', 'disabled_reason', 'api_keys.expires_at'])
        .where('digest', '=', digest('session', secret))
        .executeTakeFirst()
      const now = nowMs()
      if (!row || row.session_expires_at <= now) return null
      const source = { accountId: row.account_id, keyId: row.key_id }
      const role = rightsOf(
        source,
        row.key_id === null ? null : { ...row, account_id: row.key_account_id },
        now,
      )
      if (role === null) return null
      if (row.last_used_at <= now - LAST_USED_STEP_MS) await noteUse(row.id, now)
      return { ...source, id: row.id, role }
    },
    async close(secret) {
      await store.db.deleteFrom('sessions').where('digest', '=', digest('session', secret)).execute()
    },
    async list(accountId) {
      return store.db
        .selectFrom('sessions')
        .selectAll()
        .where('account_id', '=', accountId)
        .where('expires_at', '>', nowMs())
        .orderBy('created_at', 'desc')
        .orderBy('id')
        .execute()
    },
    async end(accountId, id) {
      const ended = await store.db
        .deleteFrom('sessions')
        .where('account_id', '=', accountId)
        .where('id', '=', id)
        .returning('id')
        .executeTakeFirst()
      if (!ended) throw new NotFound('Session not found')
    },
    async endAll(accountId, exceptId) {
      let all = store.db.deleteFrom('sessions').where('account_id', '=', accountId)
      if (exceptId !== null) all = all.where('id', '!=', exceptId)
      return (await all.returning('id').execute()).length
    },
  }

  /** A full disk must not keep anybody from looking. */
  async function noteUse(id: string, now: number): Promise<void> {
    const update = store.db.updateTable('sessions').set({ last_used_at: now }).where('id', '=', id)
    await update.execute().catch(() => {})
  }
}

/** A key as far as it decides about its sessions; all null when there is no such key any more. */
interface SourceKey {
  account_id: string | null
  kind: string | null
  role: string | null
  disabled_reason: string | null
  expires_at: number | null
}

/** The role that a session of this source has now; null: none, it is over. `key` null: the operator. */
function rightsOf(source: SessionSource, key: SourceKey | null, now: number): Role | null {
  if (key === null) return 'admin'
  if (key.account_id !== source.accountId || key.disabled_reason !== null) return null
  if (key.expires_at !== null && key.expires_at <= now) return null
  // Keys that only send open nothing.
  return key.kind === 'domain' || key.role === 'sending' ? null : (key.role as Role)
}

const keyOf = (db: Kysely<Schema>, id: string): Promise<SourceKey | undefined> =>
  db
    .selectFrom('api_keys')
    .select(['account_id', 'kind', 'role', 'disabled_reason', 'expires_at'])
    .where('id', '=', id)
    .executeTakeFirst()

/** Deletes the oldest rows of a source, so that with one more there are `max`. */
async function makeRoom(
  db: Kysely<Schema>,
  table: 'sessions' | 'login_links',
  { accountId, keyId }: SessionSource,
  max: number,
): Promise<void> {
  const isOfSource = keyId === null ? sql<boolean>`key_id IS NULL` : sql<boolean>`key_id = ${keyId}`
  const newest = db
    .selectFrom(table)
    .select('digest')
    .where('account_id', '=', accountId)
    .where(isOfSource)
    .orderBy('created_at', 'desc')
    .orderBy('digest')
    .limit(max - 1)
  await db
    .deleteFrom(table)
    .where('account_id', '=', accountId)
    .where(isOfSource)
    .where('digest', 'not in', newest)
    .execute()
}
