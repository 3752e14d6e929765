/**
 * The second factor of a user: codes of an authenticator app (totp.ts) or passkeys (passkeys/passkeys.ts), and recovery
 * codes in case it is lost.
 *
 * A code of the app is valid once. Wrong ones are counted in the database, per user: an attacker who knows the password
 * has a limited number of attempts, from however many addresses. Recovery codes have 80 bits and are always checked, so
 * that the owner cannot be locked out.
 */

import { randomBytes } from 'node:crypto'
import { fromBase32, toBase32 } from '../../base/base32.ts'
import { BadRequest, TooManyRequests } from '../../base/process/errors.ts'
import type { Clock } from '../../base/time/clock.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import { commitUnlessStale } from '../../platform/store/commits.ts'
import { countOf } from '../../platform/store/count.ts'
import type { Sealer } from '../../platform/store/secrets/sealing.ts'
import { insertMany, type Statement, type Store } from '../../platform/store/store.ts'
import type { User } from '../accounts/user-directory.ts'
import { matchingStep, newTotpSecret, otpauthUrl, totpText } from './totp.ts'

export type SecondFactor = ReturnType<typeof createSecondFactor>

/** Whether a code or passkey is asked for after the password. */
export const hasSecondFactor = ({ totp_sealed, passkeys }: User) => totp_sealed !== null || passkeys > 0

const ISSUER = 'Sendwright'
const PURPOSE = 'totp'
const CODES = 10
const CODE_BYTES = 10
/**
 * Codes of the app that are checked within a day: from networks where the user has not signed in before, and in all. At
 * any time three in a million are right.
 */
const ATTEMPTS_ELSEWHERE_MAX = 20
const ATTEMPTS_MAX = 100

export function createSecondFactor(store: Store, sealer: Sealer, clock: Clock) {
  const nowMs = () => Math.floor(clock.now())
  const digest = (userId: string, code: Uint8Array) =>
    sealer.mac('recovery-code', `${userId} ${toBase32(code)}`).toString('hex')

  function newCodes(userId: string): { codes: string[]; statements: Statement[] } {
    const made = Array.from({ length: CODES }, () => randomBytes(CODE_BYTES))
    const rows = made.map((code) => ({ user_id: userId, digest: digest(userId, code) }))
    return {
      codes: made.map((code) => (toBase32(code).match(/.{4}/g) as string[]).join('-')),
      statements: [voidCodes(userId), ...insertMany('recovery_codes', rows)],
    }
  }

  /** Counts an attempt before its check: parallel attempts must not all pass. */
  async function countAttempt(userId: string): Promise<number> {
    const now = nowMs()
    const since = now - DAY_MS
    const [result] = await store.commit([
      {
        sql: `UPDATE users SET
          totp_failures = CASE WHEN totp_failures_since <= ? THEN 1 ELSE totp_failures + 1 END,
          totp_failures_since = CASE WHEN totp_failures_since <= ? THEN ? ELSE totp_failures_since END
          WHERE id = ? RETURNING totp_failures`,
        values: [since, since, now, userId],
      },
    ])
    return Number(result?.rows[0]?.['totp_failures'] ?? ATTEMPTS_MAX + 1)
  }

  async function checkApp(user: User, code: string, isKnownPlace: boolean): Promise<boolean> {
    if (user.totp_sealed === null) return false
    const attempts = await countAttempt(user.id)
    if (attempts > (isKnownPlace ? ATTEMPTS_MAX : ATTEMPTS_ELSEWHERE_MAX)) {
      const endsAt = user.totp_failures_since + DAY_MS
      throw new TooManyRequests(Math.max(0, endsAt - nowMs()) / 1000)
    }
    const secret = sealer.open(PURPOSE, user.totp_sealed, user.id)
    const step = matchingStep(secret, code, nowMs(), user.totp_step)
    if (step === null) return false
    // The step fences the update: two browsers with the same code cannot both sign in.
    return fenced({
      sql: 'UPDATE users SET totp_step = ?, totp_failures = 0 WHERE id = ? AND totp_step < ? AND totp_sealed IS NOT NULL',
      values: [step, user.id, step],
      expectRows: 1,
    })
  }

  const checkRecovery = (userId: string, code: Uint8Array) =>
    fenced({
      sql: 'DELETE FROM recovery_codes WHERE user_id = ? AND digest = ?',
      values: [userId, digest(userId, code)],
      expectRows: 1,
    })

  const fenced = (...unit: Statement[]) => commitUnlessStale(store, unit)

  return {
    /** A secret for the app, active once it is confirmed. @throws BadRequest when there is an active one */
    async begin(user: User): Promise<{ secret: string; otpauth_url: string }> {
      const secret = newTotpSecret()
      const isNew = await fenced({
        sql: 'UPDATE users SET totp_pending_sealed = ? WHERE id = ? AND totp_sealed IS NULL',
        values: [sealer.seal(PURPOSE, secret, user.id), user.id],
        expectRows: 1,
      })
      if (!isNew) throw new BadRequest('An authenticator app is in use already')
      return { secret: totpText(secret), otpauth_url: otpauthUrl(secret, ISSUER, user.email) }
    },
    /** Activates the secret; resolves to recovery codes. @throws BadRequest for a wrong code, or nothing to confirm */
    async confirm(user: User, given: string): Promise<string[]> {
      const pending = user.totp_pending_sealed
      if (pending === null) throw new BadRequest('There is no authenticator app to confirm')
      const now = nowMs()
      const step = matchingStep(sealer.open(PURPOSE, pending, user.id), plainCode(given), now, 0)
      if (step === null) throw new BadRequest('The code is wrong')
      const { codes, statements } = newCodes(user.id)
      const isConfirmed = await fenced(
        {
          sql: `UPDATE users SET totp_sealed = totp_pending_sealed, totp_pending_sealed = NULL, totp_created_at = ?,
            totp_step = ?, totp_failures = 0 WHERE id = ? AND totp_sealed IS NULL AND totp_pending_sealed = ?`,
          values: [now, step, user.id, pending],
          expectRows: 1,
        },
        ...statements,
      )
      if (!isConfirmed) throw new BadRequest('There is no authenticator app to confirm')
      return codes
    },
    /** New recovery codes, which void the older ones. @throws BadRequest without a second factor */
    async renewCodes(user: User): Promise<string[]> {
      if (!hasSecondFactor(user)) throw new BadRequest('There is no authenticator app or passkey in use')
      const { codes, statements } = newCodes(user.id)
      await store.commit(statements)
      return codes
    },
    async codesLeft(userId: string): Promise<number> {
      const codes = store.db.selectFrom('recovery_codes').where('user_id', '=', userId)
      return countOf(codes)
    },
    /** Removes the app, and the recovery codes unless there are passkeys. */
    async remove(userId: string): Promise<void> {
      await store.commit([removeApp(userId), voidUnused(userId)])
    },
    /** Removes everything: app, passkeys and recovery codes. */
    async reset(userId: string): Promise<void> {
      await store.commit([removeApp(userId), ...removePasskeys(userId), voidCodes(userId)])
    },
    /** Recovery codes for the first passkey, and the statements that store them; null: the user has some, or no password. */
    firstCodes: (user: User) =>
      user.password_hash === null || hasSecondFactor(user) ? null : newCodes(user.id),
    /** Voids the recovery codes of a user who has no second factor any more. */
    voidedCodes: voidUnused,
    /** Uses up a code of either kind. @throws TooManyRequests when the code was not checked */
    async check(user: User, given: string, isKnownPlace: boolean): Promise<boolean> {
      const code = plainCode(given)
      if (/^\d{6}$/.test(code)) return checkApp(user, code, isKnownPlace)
      const bytes = code.length === (CODE_BYTES * 8) / 5 ? fromBase32(code) : null
      return bytes !== null && checkRecovery(user.id, bytes)
    },
  }
}

/** Without the spaces and hyphens that people type. */
const plainCode = (code: string) => code.slice(0, 64).replaceAll(/[\s-]/g, '')

const voidCodes = (userId: string): Statement => ({
  sql: 'DELETE FROM recovery_codes WHERE user_id = ?',
  values: [userId],
})

const voidUnused = (userId: string): Statement => ({
  sql: `DELETE FROM recovery_codes WHERE user_id = ? AND NOT EXISTS
    (SELECT 1 FROM users WHERE id = ? AND (totp_sealed IS NOT NULL OR passkeys > 0))`,
  values: [userId, userId],
})

const removeApp = (userId: string): Statement => ({
  sql: 'UPDATE users SET totp_sealed = NULL, totp_pending_sealed = NULL, totp_created_at = NULL WHERE id = ?',
  values: [userId],
})

export const removePasskeys = (userId: string): Statement[] => [
  { sql: 'DELETE FROM passkeys WHERE user_id = ?', values: [userId] },
  { sql: 'UPDATE users SET passkeys = 0 WHERE id = ?', values: [userId] },
]
