/**
 * Challenges of WebAuthn (§13.4.3). A challenge carries its expiry and is sealed for one purpose and user, so that any
 * node can check it and nothing is stored for those that nobody meets. One that was met leaves a row, in the unit of what
 * it allowed: it is valid once.
 */
import { randomBytes } from 'node:crypto'
import type { Clock } from '../../../base/time/clock.ts'
import { MINUTE_MS } from '../../../base/time/durations.ts'
import type { Sealer } from '../../../platform/store/secrets/sealing.ts'
import type { Statement } from '../../../platform/store/store.ts'

/** What a met challenge allows; `userId` empty: whoever owns the passkey. */
export interface ChallengeUse {
  purpose: 'register' | 'sign-in' | 'second-factor' | 'prove'
  userId: string
}

export type Challenges = ReturnType<typeof createChallenges>

/** For how long a browser may ask its user. WebAuthn §15.1 recommends five to ten minutes. */
export const CHALLENGE_MS = 5 * MINUTE_MS
const SEAL = 'passkey-challenge'
/** WebAuthn §13.4.3 recommends at least 16. */
const RANDOM_BYTES = 16
const LENGTH_MAX = 200

export function createChallenges(sealer: Sealer, clock: Clock) {
  const nowMs = () => Math.floor(clock.now())
  const ownerOf = ({ purpose, userId }: ChallengeUse) => `${purpose} ${userId}`

  return {
    /** In base64url. */
    make(use: ChallengeUse): string {
      const expiry = Buffer.alloc(8)
      expiry.writeBigUInt64BE(BigInt(nowMs() + CHALLENGE_MS))
      const plain = Buffer.concat([expiry, randomBytes(RANDOM_BYTES)])
      return Buffer.from(sealer.seal(SEAL, plain, ownerOf(use))).toString('base64url')
    },
    /** False: expired, of another use, or not made here. */
    isValid(challenge: string, use: ChallengeUse): boolean {
      if (challenge.length > LENGTH_MAX || !/^[\w-]+$/.test(challenge)) return false
      try {
        const plain = sealer.open(SEAL, Buffer.from(challenge, 'base64url'), ownerOf(use))
        return plain.readBigUInt64BE() > BigInt(nowMs())
      } catch {
        return false
      }
    },
    /** Fails the unit if the challenge was met before. */
    meet(challenge: string): Statement[] {
      const now = nowMs()
      // Of the bytes: the last character of base64url has bits that do not count.
      const digest = sealer.mac(SEAL, Buffer.from(challenge, 'base64url')).toString('hex')
      return [
        { sql: 'DELETE FROM met_challenges WHERE expires_at <= ?', values: [now] },
        {
          sql: 'INSERT INTO met_challenges (digest, expires_at) VALUES (?, ?) ON CONFLICT (digest) DO NOTHING',
          values: [digest, now + CHALLENGE_MS],
          expectRows: 1,
        },
      ]
    },
  }
}
