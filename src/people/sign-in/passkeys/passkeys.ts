/**
 * Passkeys of users (WebAuthn Level 3, decision 231): a way to sign in without a password, and a second factor after one.
 *
 * - Alone a passkey signs in only if its authenticator has verified the user, by a PIN, finger or face: it is two factors.
 *   After the password, having the authenticator is enough.
 * - They are valid for the host of the public URL, whatever Host a request names.
 * - The first second factor comes with recovery codes.
 * - Users of the OpenID Connect provider may have them too, but the provider must have said who they are within
 *   PROVIDER_TRUST_MS: somebody who has left there must not stay here.
 */
import { randomHex } from '../../../base/ids.ts'
import { BadRequest, NotFound } from '../../../base/process/errors.ts'
import { DAY_MS } from '../../../base/time/durations.ts'
import type { Core } from '../../../core.ts'
import { commitUnlessStale } from '../../../platform/store/commits.ts'
import type { PasskeyRow } from '../../../platform/store/schema.ts'
import { insert, type Store } from '../../../platform/store/store.ts'
import { isActive, type User, type UserDirectory } from '../../accounts/user-directory.ts'
import type { SecondFactor } from '../second-factor.ts'
import { CHALLENGE_MS, type Challenges, type ChallengeUse } from './challenges.ts'
import {
  ALGORITHMS,
  type BrowserResponse,
  type NewCredential,
  type RelyingParty,
  readBrowserResponse,
  verifyKnown,
  verifyNew,
} from './verifying.ts'

interface CredentialName {
  type: 'public-key'
  id: string
  transports: string[]
}

/** WebAuthn §5.5, texts in base64url. */
export interface RequestOptions {
  challenge: string
  rpId: string
  timeout: number
  userVerification: 'required' | 'preferred'
  /** Empty: the browser offers what it has for this host. */
  allowCredentials: CredentialName[]
}

/** WebAuthn §5.4, texts in base64url. */
export interface CreationOptions {
  rp: { id: string; name: string }
  user: { id: string; name: string; displayName: string }
  challenge: string
  pubKeyCredParams: { type: 'public-key'; alg: number }[]
  timeout: number
  attestation: 'none'
  excludeCredentials: CredentialName[]
  authenticatorSelection: { residentKey: 'preferred'; userVerification: 'preferred' }
}

export type Passkeys = ReturnType<typeof createPasskeys>

const RP_NAME = 'Sendwright'
/** Passkeys of each user; somebody has a few devices and a key in a drawer. */
export const PASSKEYS_MAX = 20
const NAME_LENGTH_MAX = 100
/** A session of the provider's sign-in could have lasted as long. */
const PROVIDER_TRUST_MS = 14 * DAY_MS

interface PasskeyParts extends Pick<Core, 'store' | 'clock'> {
  challenges: Challenges
  secondFactor: Pick<SecondFactor, 'firstCodes' | 'voidedCodes'>
  userDirectory: Pick<UserDirectory, 'byId'>
  publicUrl: string
}

export function createPasskeys(parts: PasskeyParts) {
  const { store, clock, challenges, secondFactor, userDirectory, publicUrl } = parts
  const party = relyingParty(publicUrl)
  const nowMs = () => Math.floor(clock.now())

  function here(): RelyingParty {
    if (party === null) throw new BadRequest('Passkeys need a public URL with a host name and https')
    return party
  }

  const list = (userId: string): Promise<PasskeyRow[]> =>
    store.db
      .selectFrom('passkeys')
      .selectAll()
      .where('user_id', '=', userId)
      .orderBy('created_at')
      .orderBy('id')
      .execute()

  /** Writes the count, fenced against a copy of the authenticator, and the challenge, which is valid once. */
  async function complete({ id, counter: before }: PasskeyRow, challenge: string, counter: number) {
    const used = {
      sql: 'UPDATE passkeys SET counter = ?, last_used_at = ? WHERE id = ? AND counter = ? AND (counter = 0 OR counter < ?)',
      values: [counter, nowMs(), id, before, counter],
      expectRows: 1,
    }
    return commitUnlessStale(store, [used, ...challenges.meet(challenge)])
  }

  /** The user whose passkey has met a challenge of this use. */
  async function meet(text: string, use: ChallengeUse, needsVerification: boolean): Promise<User | null> {
    const response = party === null ? null : readBrowserResponse(text)
    if (party === null || response === null || !challenges.isValid(response.challenge, use)) return null
    const passkey = await store.db
      .selectFrom('passkeys')
      .selectAll()
      .where('credential_id', '=', storable(response))
      .executeTakeFirst()
    if (passkey === undefined || (use.userId !== '' && passkey.user_id !== use.userId)) return null
    const user = await userDirectory.byId(passkey.user_id)
    if (user === null || user.is_disabled === 1 || !isActive(user)) return null
    const found = await verifyKnown(response, party, passkey)
    if (found === null || (needsVerification && !found.isUserVerified)) return null
    return (await complete(passkey, response.challenge, found.counter)) ? user : null
  }

  return {
    /** Origins of pages where passkeys work; null: the public URL does not allow any. */
    origin: party?.origin ?? null,
    list,
    /** @throws BadRequest where passkeys do not work */
    async beginAdding(user: User): Promise<CreationOptions> {
      const challenge = challenges.make({ purpose: 'register', userId: user.id })
      return creationOptions(here(), challenge, user, await list(user.id))
    },
    /** With recovery codes if it is the first second factor of a password. @throws BadRequest for a response that is not valid, and over the limit */
    async add(
      user: User,
      name: string,
      text: string,
    ): Promise<{ passkey: PasskeyRow; recoveryCodes: string[] | null }> {
      const where = here()
      checkName(name)
      const response = readBrowserResponse(text)
      const use = { purpose: 'register', userId: user.id } as const
      const isExpected = response !== null && challenges.isValid(response.challenge, use)
      const made = isExpected ? await verifyNew(response, where) : null
      if (response === null || made === null)
        throw new BadRequest('The passkey is not valid, or came too late')
      const passkey = newPasskey(user.id, name, made, nowMs())
      const { sql, values } = insert('passkeys', passkey)
      const first = secondFactor.firstCodes(user)
      const isAdded = await commitUnlessStale(store, [
        {
          // Fenced: a session that has ended meanwhile adds nothing, and two first ones do not void each other's codes.
          sql: 'UPDATE users SET passkeys = passkeys + 1 WHERE id = ? AND session_epoch = ? AND passkeys = ? AND passkeys < ?',
          values: [user.id, user.session_epoch, user.passkeys, PASSKEYS_MAX],
          expectRows: 1,
        },
        { sql: `${sql} ON CONFLICT DO NOTHING`, values, expectRows: 1 },
        ...challenges.meet(response.challenge),
        ...(first?.statements ?? []),
      ])
      if (!isAdded)
        throw new BadRequest(
          user.passkeys >= PASSKEYS_MAX
            ? `A user may have ${PASSKEYS_MAX} passkeys`
            : 'The passkey was added before, or your user was changed meanwhile',
        )
      return { passkey, recoveryCodes: first?.codes ?? null }
    },
    /** @throws NotFound, BadRequest */
    async rename(userId: string, id: string, name: string): Promise<PasskeyRow> {
      checkName(name)
      const passkey = await passkeyOf(store, userId, id)
      await store.commit([{ sql: 'UPDATE passkeys SET name = ? WHERE id = ?', values: [name, id] }])
      return { ...passkey, name }
    },
    /** @throws NotFound */
    async remove(userId: string, id: string): Promise<PasskeyRow> {
      const passkey = await passkeyOf(store, userId, id)
      const isRemoved = await commitUnlessStale(store, [
        { sql: 'DELETE FROM passkeys WHERE id = ?', values: [id], expectRows: 1 },
        { sql: 'UPDATE users SET passkeys = passkeys - 1 WHERE id = ?', values: [userId] },
        secondFactor.voidedCodes(userId),
      ])
      if (!isRemoved) throw new NotFound('Passkey not found')
      return passkey
    },
    /** For whoever is there. @throws BadRequest where passkeys do not work */
    beginSignIn: () =>
      requestOptions(here(), challenges.make({ purpose: 'sign-in', userId: '' }), 'required', []),
    /** Null for a user who has none that works here. */
    async beginFor(user: User, purpose: 'second-factor' | 'prove'): Promise<RequestOptions | null> {
      const rows = party === null || user.passkeys === 0 ? [] : await list(user.id)
      if (party === null || rows.length === 0) return null
      const challenge = challenges.make({ purpose, userId: user.id })
      // To prove it again without a password takes as much as signing in without one.
      const verification = purpose === 'prove' ? 'required' : 'preferred'
      return requestOptions(party, challenge, verification, rows.map(credentialName))
    },
    /** The user whose passkey has met a challenge for signing in; null: refused. */
    async signIn(response: string): Promise<User | null> {
      const user = await meet(response, { purpose: 'sign-in', userId: '' }, true)
      return user !== null && isVouchedFor(user, nowMs()) ? user : null
    },
    /** Whether a passkey of the user has met a challenge of the purpose. */
    check: async (user: User, response: string, purpose: 'second-factor' | 'prove'): Promise<boolean> =>
      (await meet(response, { purpose, userId: user.id }, purpose === 'prove')) !== null,
  }
}

/** @throws NotFound */
async function passkeyOf(store: Store, userId: string, id: string): Promise<PasskeyRow> {
  const row = await store.db
    .selectFrom('passkeys')
    .selectAll()
    .where('user_id', '=', userId)
    .where('id', '=', id)
    .executeTakeFirst()
  if (row === undefined) throw new NotFound('Passkey not found')
  return row
}

/** Browsers make passkeys for names, and for secure contexts only (WebAuthn §5.1.2). */
function relyingParty(publicUrl: string): RelyingParty | null {
  const { hostname, origin, protocol } = new URL(publicUrl)
  const isLocal = hostname === 'localhost' || hostname.endsWith('.localhost')
  const isAddress = /^[\d.]+$|^\[/.test(hostname)
  return isAddress || (protocol !== 'https:' && !isLocal) ? null : { id: hostname, origin }
}

const newPasskey = (userId: string, name: string, made: NewCredential, now: number): PasskeyRow => ({
  id: randomHex(12),
  user_id: userId,
  credential_id: made.credentialId,
  public_key: made.publicKey,
  counter: made.counter,
  transports: made.transports,
  name,
  created_at: now,
  last_used_at: null,
})

const creationOptions = (
  { id }: RelyingParty,
  challenge: string,
  user: User,
  existing: readonly PasskeyRow[],
): CreationOptions => ({
  rp: { id, name: RP_NAME },
  user: {
    id: Buffer.from(user.id).toString('base64url'),
    name: user.email,
    displayName: user.name || user.email,
  },
  challenge,
  pubKeyCredParams: ALGORITHMS.map((alg) => ({ type: 'public-key', alg })),
  timeout: CHALLENGE_MS,
  attestation: 'none',
  excludeCredentials: existing.map(credentialName),
  authenticatorSelection: { residentKey: 'preferred', userVerification: 'preferred' },
})

const requestOptions = (
  { id: rpId }: RelyingParty,
  challenge: string,
  userVerification: RequestOptions['userVerification'],
  allowCredentials: CredentialName[],
): RequestOptions => ({ challenge, rpId, timeout: CHALLENGE_MS, userVerification, allowCredentials })

const credentialName = ({ credential_id: id, transports }: PasskeyRow): CredentialName => ({
  type: 'public-key',
  id,
  transports: transports.split(',').filter((name) => name !== ''),
})

/** PostgreSQL does not store NUL, and base64url has none. */
const storable = ({ id }: BrowserResponse) => (/^[\w-]+$/.test(id) ? id : '')

const isVouchedFor = ({ auth_method, provider_sign_in_at: at }: User, now: number) =>
  auth_method !== 'oidc' || (at !== null && at > now - PROVIDER_TRUST_MS)

/** @throws BadRequest */
function checkName(name: string): void {
  if (name.length > NAME_LENGTH_MAX || /\p{Cc}/u.test(name))
    throw new BadRequest(`the name must have 1 to ${NAME_LENGTH_MAX} characters and no control characters`)
}
