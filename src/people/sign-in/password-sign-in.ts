/**
 * Signing in with address, password and, if the user has one, the second factor: all in one call, so that nothing is
 * stored between password and code.
 *
 * Unknown addresses, users who are disabled or have no password yet, and wrong passwords get the same response after the
 * same work. Only a right password reveals that a code is needed.
 */

import { BadRequest, Unauthenticated } from '../../base/process/errors.ts'
import type { Core } from '../../core.ts'
import {
  createGuessingGuard,
  type FailedAttempts,
  type GuessingGuard,
} from '../../platform/http/limits/failed-attempts.ts'
import { emailOf, type User, type UserDirectory } from '../accounts/user-directory.ts'
import { verifyChosen } from './chosen-password.ts'
import type { FailedSignIns } from './failed-sign-ins.ts'
import type { LoginPlaces } from './login-places.ts'
import type { Passkeys } from './passkeys/passkeys.ts'
import { hasSecondFactor, type SecondFactor } from './second-factor.ts'

export interface GivenProof {
  password: string
  /** Code of the authenticator app, or a recovery code. */
  code: string | undefined
  /** In place of the code: what the browser returned for a passkey. */
  passkey?: string | undefined
}

export type PasswordSignIn = ReturnType<typeof createPasswordSignIn>

interface PasswordSignInParts extends Pick<Core, 'store' | 'clock'> {
  userDirectory: Pick<UserDirectory, 'byEmail'>
  secondFactor: Pick<SecondFactor, 'check'>
  passkeys: Pick<Passkeys, 'check' | 'signIn' | 'beginFor'>
  guard: GuessingGuard
  failedAttempts: Pick<FailedAttempts, 'wrongKey' | 'delay'>
  failedSignIns: Pick<FailedSignIns, 'note'>
}

type Verdict = 'right' | 'wrong-password' | 'wrong-code' | 'code-missing'

export function createPasswordSignIn(parts: PasswordSignInParts) {
  const { store, clock, userDirectory, secondFactor, passkeys, guard, failedAttempts, failedSignIns } = parts

  async function judge(
    user: User | null,
    { password, code, passkey }: GivenProof,
    address: string,
  ): Promise<Verdict> {
    const hash = user === null || user.is_disabled === 1 ? null : user.password_hash
    if (!(await verifyChosen(password, hash)) || user === null) return 'wrong-password'
    if (!hasSecondFactor(user)) return 'right'
    if (passkey !== undefined)
      return (await passkeys.check(user, passkey, 'second-factor')) ? 'right' : 'wrong-code'
    if (code === undefined) return 'code-missing'
    const isKnown = await guard.isKnownPlace(address, user.email)
    return (await secondFactor.check(user, code, isKnown)) ? 'right' : 'wrong-code'
  }

  /** Counts wrong passwords and codes. */
  async function guarded(
    login: string,
    find: () => Promise<User | null>,
    proof: GivenProof,
    address: string,
  ): Promise<{ user: User | null; verdict: Verdict }> {
    let user: User | null = null
    let verdict: Verdict = 'wrong-password'
    await guard.run(address, login, async () => {
      user = await find()
      verdict = await judge(user, proof, address)
      if (verdict === 'right' || verdict === 'code-missing') return true
      noteFailure(user, address)
      return null
    })
    return { user, verdict }
  }

  function noteFailure(user: User | null, remoteAddress: string): void {
    const known = user === null ? null : { accountId: user.account_id, login: user.email }
    failedSignIns.note({ remoteAddress, way: 'password', known })
  }

  /** Ignores errors: a full disk must not prevent signing in. */
  async function noteSuccess(user: User, address: string): Promise<void> {
    const update = store.db
      .updateTable('users')
      .set({ last_sign_in_at: Math.floor(clock.now()) })
      .where('id', '=', user.id)
    await Promise.all([update.execute().catch(() => {}), guard.succeeded(address, user.email)])
  }

  return {
    /** @throws Unauthenticated; TooManyRequests, TooManyWaiting when the password was not checked */
    async authenticate(email: string, proof: GivenProof, address: string): Promise<User> {
      // An invalid address has no user and may contain anything, such as NUL, which PostgreSQL rejects.
      const login = emailOf(email) ?? ''
      const { user, verdict } = await guarded(login, () => userDirectory.byEmail(email), proof, address)
      if (user === null || verdict === 'wrong-password')
        throw new Unauthenticated('The address or the password is wrong')
      if (verdict !== 'right') {
        const text = verdict === 'wrong-code' ? 'The code is wrong, or was used before' : 'A code is needed'
        const options = await passkeys.beginFor(user, 'second-factor')
        throw new Unauthenticated(text, {
          extra: { tfa_required: true, ...(options !== null && { passkey: options }) },
        })
      }
      await noteSuccess(user, address)
      return user
    },
    /**
     * Checks the user of a session again, before a change that a stolen session must not make.
     * @throws BadRequest for a wrong password or code; as above
     */
    async prove(user: User, proof: GivenProof, address: string): Promise<void> {
      const { verdict } = await guarded(user.email, async () => user, proof, address)
      if (verdict === 'wrong-password') throw new BadRequest('The password is wrong')
      if (verdict === 'wrong-code') throw new BadRequest('The code is wrong, or was used before')
      if (verdict === 'code-missing') throw new BadRequest('Missing mandatory parameter: code')
    },
    /** The user who has signed in with a passkey alone. @throws Unauthenticated, TooManyRequests */
    async authenticateByPasskey(response: string, address: string): Promise<User> {
      const user = await passkeys.signIn(response)
      if (user !== null) {
        await noteSuccess(user, address)
        return user
      }
      // Too long to be guessed, like a key: a right one is always accepted.
      failedSignIns.note({ remoteAddress: address, way: 'passkey' })
      failedAttempts.wrongKey(address)
      await failedAttempts.delay(address)
      throw new Unauthenticated('The passkey was not accepted')
    },
  }
}

/** Per /20: about half a second of work. */
const WAITING_MAX = 20

/** Limits guessing of users' passwords by the rules of `failed-attempts.ts`, and delays the responses to failures. */
export function createPasswordGuard(attempts: FailedAttempts, places: LoginPlaces): GuessingGuard {
  const guard = createGuessingGuard(attempts, places, WAITING_MAX)
  return {
    ...guard,
    async run(address, login, check) {
      const found = await guard.run(address, login, check)
      if (found === null) await attempts.delay(address, login)
      return found
    },
  }
}
