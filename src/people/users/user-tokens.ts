/**
 * Tokens in the links of invitations and password resets: 256 random bits, stored only as a keyed digest. Each is valid
 * once, until it expires.
 */

import type { Clock } from '../../base/time/clock.ts'
import { DAY_MS, MINUTE_MS } from '../../base/time/durations.ts'
import { isSecret, newSecret } from '../../platform/store/secrets/random-secret.ts'
import type { Sealer } from '../../platform/store/secrets/sealing.ts'
import { insert, type Statement, type Store } from '../../platform/store/store.ts'

type TokenPurpose = 'invitation' | 'reset'

export type UserTokens = ReturnType<typeof createUserTokens>

/** accounts.md section 7 rule 4. */
const INVITATION_DAYS = 7
const RESET_MINUTES = 60

export function createUserTokens(store: Store, sealer: Sealer, clock: Clock) {
  const digest = (purpose: TokenPurpose, token: string) => sealer.mac(purpose, token).toString('hex')
  const nowMs = () => Math.floor(clock.now())
  return {
    invitationDays: INVITATION_DAYS,
    resetMinutes: RESET_MINUTES,
    /**
     * A token, and the statements that store it. A new invitation voids the older one. Several resets are valid at a
     * time: else anyone could void the link that its owner is about to open by requesting another.
     */
    make(purpose: TokenPurpose, userId: string): { token: string; statements: Statement[] } {
      const token = newSecret(store)
      const now = nowMs()
      const lifetimeMs = purpose === 'invitation' ? INVITATION_DAYS * DAY_MS : RESET_MINUTES * MINUTE_MS
      const row = { digest: digest(purpose, token), user_id: userId, purpose, created_at: now }
      const old =
        purpose === 'invitation'
          ? { sql: 'DELETE FROM user_tokens WHERE user_id = ? AND purpose = ?', values: [userId, purpose] }
          : { sql: 'DELETE FROM user_tokens WHERE user_id = ? AND expires_at <= ?', values: [userId, now] }
      return { token, statements: [old, insert('user_tokens', { ...row, expires_at: now + lifetimeMs })] }
    },
    /** The id of its user; null for an invalid token. */
    async find(purpose: TokenPurpose, token: string): Promise<string | null> {
      if (!isSecret(token)) return null
      const row = await store.db
        .selectFrom('user_tokens')
        .select('user_id')
        .where('digest', '=', digest(purpose, token))
        .where('purpose', '=', purpose)
        .where('expires_at', '>', nowMs())
        .executeTakeFirst()
      return row?.user_id ?? null
    },
    /** Fails its unit if the token is no longer valid. */
    consume: (purpose: TokenPurpose, token: string): Statement => ({
      sql: 'DELETE FROM user_tokens WHERE digest = ? AND purpose = ? AND expires_at > ?',
      values: [digest(purpose, token), purpose, nowMs()],
      expectRows: 1,
    }),
  }
}
