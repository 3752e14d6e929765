/** Passwords of users: which are accepted, and how they are normalised and hashed. */

import { createGate } from '../../base/flow/gate.ts'
import { BadRequest, TooManyWaiting } from '../../base/process/errors.ts'
import { DECOY_HASH, hashPassword, verifyPassword } from './passwords.ts'

/** At the rate that guessing is limited to (decision 50), twelve random characters are out of reach. */
const LENGTH_MIN = 12
/** NIST SP 800-63B requires at least 64. */
const LENGTH_MAX = 256
const DISTINCT_MIN = 5

/**
 * Passwords of users that are hashed at a time, and that wait: about a second of work. The hashing thread is shared with
 * SMTP logins, which users must not starve.
 */
const gate = createGate(1, 50)

async function gated<T>(run: () => Promise<T>): Promise<T> {
  if (!(await gate.enter())) throw new TooManyWaiting(1)
  try {
    return await run()
  } finally {
    gate.leave()
  }
}

/** One Unicode form for all keyboards (RFC 8265 §4.2). */
const normalized = (password: string) => password.normalize('NFC')

/** @throws TooManyWaiting */
export const hashChosen = (password: string) => gated(() => hashPassword(normalized(password)))

/** `hash` null, for no user or one without a password: false, after the same time. @throws TooManyWaiting */
export async function verifyChosen(password: string, hash: string | null): Promise<boolean> {
  // No stored password is that long; normalising and hashing it must not take longer.
  const given = password.length > LENGTH_MAX * 2 ? '' : normalized(password)
  const isRight = await gated(() => verifyPassword(given, hash ?? DECOY_HASH))
  return isRight && hash !== null
}

/** @throws BadRequest for a password that is too short, too long or easy to guess */
export function checkChosen(password: string, email: string): void {
  const characters = [...normalized(password)]
  if (characters.length < LENGTH_MIN || characters.length > LENGTH_MAX)
    throw new BadRequest(`the password must have ${LENGTH_MIN} to ${LENGTH_MAX} characters`)
  const lower = password.toLowerCase()
  const [local = ''] = email.split('@')
  const isNamed = lower.includes(email) || (local.length >= LENGTH_MIN / 2 && lower.includes(local))
  if (new Set(characters).size < DISTINCT_MIN || isNamed)
    throw new BadRequest('the password is too easy to guess')
}
