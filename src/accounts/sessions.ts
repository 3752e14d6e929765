/**
 * Browser sessions and the one-time links that open them. Both secrets are random and kept only as digests;
 * a link works once and for a short time.
 */
import { randomBytes } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import type { Role } from '../http/auth.ts'
import type { Sealer } from '../store/sealing.ts'
import type { Store } from '../store/store.ts'

export interface Session {
  accountId: string
  role: Role
  /** Stable and not secret; stands where a key's id would. */
  id: string
}

export interface Sessions {
  /** A token for `/login/<token>`, valid once. */
  createLink(accountId: string): Promise<string>
  /** The account of an unused link, which is used up by this; null for any other token. */
  redeemLink(token: string): Promise<string | null>
  /** The secret of a new session, for the cookie. */
  open(accountId: string, role: Role): Promise<string>
  find(secret: string): Promise<Session | null>
  close(secret: string): Promise<void>
}

const LINK_LIFETIME_MS = 30 * 60_000
export const SESSION_LIFETIME_MS = 14 * 24 * 3_600_000
const TOKEN_BYTES = 32
const TOKEN_PATTERN = /^[A-Za-z0-9_-]{43}$/

export function createSessions(store: Store, sealer: Sealer, clock: Clock): Sessions {
  const digest = (purpose: 'login-link' | 'session', token: string) =>
    sealer.mac(purpose, token).toString('hex')
  return {
    async createLink(accountId) {
      const token = randomBytes(TOKEN_BYTES).toString('base64url')
      const now = Math.floor(clock.now())
      await store.db.deleteFrom('login_links').where('expires_at', '<=', now).execute()
      const row = {
        digest: digest('login-link', token),
        account_id: accountId,
        expires_at: now + LINK_LIFETIME_MS,
      }
      await store.db.insertInto('login_links').values(row).execute()
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
      return row && row.expires_at > clock.now() ? row.account_id : null
    },
    async open(accountId, role) {
      const secret = randomBytes(TOKEN_BYTES).toString('base64url')
      const now = Math.floor(clock.now())
      await store.db.deleteFrom('sessions').where('expires_at', '<=', now).execute()
      await store.db
        .insertInto('sessions')
        .values({
          digest: digest('session', secret),
          account_id: accountId,
          role,
          created_at: now,
          expires_at: now + SESSION_LIFETIME_MS,
        })
        .execute()
      return secret
    },
    async find(secret) {
      if (!TOKEN_PATTERN.test(secret)) return null
      const row = await store.db
        .selectFrom('sessions')
        .selectAll()
        .where('digest', '=', digest('session', secret))
        .executeTakeFirst()
      if (!row || row.expires_at <= clock.now()) return null
      return { accountId: row.account_id, role: row.role as Role, id: `session-${row.digest.slice(0, 8)}` }
    },
    async close(secret) {
      await store.db.deleteFrom('sessions').where('digest', '=', digest('session', secret)).execute()
    },
  }
}
