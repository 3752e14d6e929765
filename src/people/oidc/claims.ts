/** What the provider says about a person, read from the claims of the ID token and of userinfo. */

import { isPlainObject } from '../../base/values.ts'
import { USER_ROLES, type UserRole } from '../../platform/http/rights/rights.ts'

export type Claims = Readonly<Record<string, unknown>>

export interface Identity {
  issuer: string
  subject: string
  claims: Claims
  /** The provider has authenticated the person since the sign-in was begun, and not only found a session of theirs. */
  isFresh: boolean
}

/** OpenID Connect Core §2: at most 255 characters. */
const SUBJECT_LENGTH_MAX = 255

export const isSubject = (text: string) =>
  text.length > 0 && text.length <= SUBJECT_LENGTH_MAX && !/\p{Cc}/u.test(text)

/** The address, if the provider has verified that it is the person's; some write "true". */
export function verifiedEmail({ email, email_verified: isVerified }: Claims): string | null {
  return typeof email === 'string' && (isVerified === true || isVerified === 'true') ? email : null
}

/** Without control characters, at most `lengthMax` characters; the address of a person without a name. */
export function displayName({ name }: Claims, email: string, lengthMax: number): string {
  const text = typeof name === 'string' ? name.replaceAll(/\p{Cc}+/gu, ' ').trim() : ''
  return [...(text || email)].slice(0, lengthMax / 2).join('')
}

/** The role with the most rights among those that the claim names; null: none. */
export function roleOf(claims: Claims, claim: string): UserRole | null {
  const value = claimAt(claims, claim)
  const names = new Set(Array.isArray(value) ? value : [value])
  return USER_ROLES.findLast((role) => names.has(role)) ?? null
}

/** True: the claim is there, whatever its value. */
export const hasClaim = (claims: Claims, claim: string) => claimAt(claims, claim) !== undefined

/** By its whole name, which may have dots, else by a path such as `realm_access.roles`. */
function claimAt(claims: Claims, claim: string): unknown {
  if (Object.hasOwn(claims, claim)) return claims[claim]
  return claim
    .split('.')
    .reduce<unknown>(
      (value, part) => (isPlainObject(value) && Object.hasOwn(value, part) ? value[part] : undefined),
      claims,
    )
}
