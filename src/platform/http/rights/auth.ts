/**
 * Credentials and rights. HTTP Basic (RFC 7617) with user name `api` and an API key, or the dashboard's session cookie.
 * Rights are checked before any resource is looked up, so that a key without a right cannot learn what exists.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { domainToASCII } from 'node:url'
import type { MaybePromise } from '../../../base/flow/cache.ts'
import { remember } from '../../../base/flow/remember.ts'
import { Forbidden, Unauthenticated } from '../../../base/process/errors.ts'
import { mayAccess, type Requirement, type Role } from './rights.ts'

export interface Caller {
  accountId: string
  /** Shown to the caller in `<prefix>Key-Id`; a session has an id of its own. */
  keyId: string
  role: Role
  /** `user`, `domain` and `web` keys, the public validation key, or a dashboard session. */
  kind: 'user' | 'domain' | 'web' | 'public' | 'session'
  /** Of a session: the key that opened it; null: it is a user's or the operator's. */
  sessionKeyId?: string | null
  /** The user that the session or key belongs to. */
  userId?: string
  /** Of a user's session: the user and epoch that it was opened with, for links that it creates. */
  sessionUser?: { id: string; epoch: number }
  /** Of a domain key: the one domain it may send for. */
  domain?: string
  /** Set while a parent account acts as this subaccount. */
  parentAccountId?: string
}

/** Handed in by the accounts area. Null means "no such", without a reason. */
export interface Authenticator {
  /** `isLocal`: it was sent through the socket in the data folder. */
  key(secret: string, isLocal: boolean): MaybePromise<Caller | null>
  /** `isUse`: a request of the browser, which counts as use; false when a long answer is checked again. */
  session(cookie: string, isUse: boolean): Promise<Caller | null>
  /** The caller acting as a child of its account; null: no child of that id. */
  subaccount(caller: Caller, subaccountId: string): MaybePromise<Caller | null>
  /** False: the account has an address allowlist that applies to this caller, and the address is not on it. */
  addressAllowed(caller: Caller, address: string): MaybePromise<boolean>
}

export type Credentials = { kind: 'key'; secret: string } | { kind: 'session'; cookie: string }

/** Longer than any key form; a longer header is not decoded. */
const AUTHORIZATION_LENGTH_MAX = 1024
export const SESSION_COOKIE = 'sendwright_session'

/**
 * The credentials of a request. `none`: nothing at all. `wrong`: something that cannot be a key, such as
 * another user name or scheme. An Authorization header hides the cookie.
 */
export function credentialsOf(headers: IncomingHttpHeaders): Credentials | 'none' | 'wrong' {
  const { authorization } = headers
  if (authorization !== undefined) {
    const secret = basicSecret(authorization)
    return secret === undefined ? 'wrong' : { kind: 'key', secret }
  }
  const cookie = cookieValue(headers, SESSION_COOKIE)
  return cookie === undefined ? 'none' : { kind: 'session', cookie }
}

const BASIC = /^basic +([A-Za-z0-9+/]+={0,2}) *$/i

/** Secrets by header text: a client sends the same one with each request. */
const secrets = new Map<string, string>()
const SECRETS_MAX = 500

function basicSecret(authorization: string): string | undefined {
  if (authorization.length > AUTHORIZATION_LENGTH_MAX) return undefined
  const known = secrets.get(authorization)
  if (known !== undefined) return known
  const secret = readBasicSecret(authorization)
  return secret === undefined ? undefined : remember(secrets, SECRETS_MAX, authorization, secret)
}

function readBasicSecret(authorization: string): string | undefined {
  const match = BASIC.exec(authorization)
  if (match === null) return undefined
  const pair = Buffer.from(match[1] as string, 'base64').toString('utf8')
  return pair.startsWith('api:') && pair.length > 4 ? pair.slice(4) : undefined
}

/** Value of one cookie (RFC 6265 §4.2.1); undefined if absent or empty. */
export function cookieValue(headers: IncomingHttpHeaders, name: string): string | undefined {
  for (const pair of (headers.cookie ?? '').split(';')) {
    const equals = pair.indexOf('=')
    if (equals > 0 && pair.slice(0, equals).trim() === name) return pair.slice(equals + 1).trim() || undefined
  }
  return undefined
}

/**
 * @throws Unauthenticated for a domain key outside its own domain's sending, and for the public key where
 *   it is not accepted: to such an operation these keys do not exist. Forbidden where the role lacks the right.
 */
export function authorize(
  caller: Caller,
  requirement: Requirement,
  path: Readonly<Record<string, string>>,
): void {
  const { area, access } = requirement
  if (caller.kind === 'public' && requirement.publicKey !== true) throw new Unauthenticated()
  if (caller.role === 'sending' || caller.kind === 'domain') {
    const domain = requirement.domain === undefined ? undefined : path[requirement.domain]
    const isOwn = domain !== undefined && caller.domain !== undefined && sameDomain(domain, caller.domain)
    if (area !== 'messages:send' || access !== 'write' || !isOwn) throw new Unauthenticated()
  }
  if (!mayAccess(caller.role, area, access)) throw new Forbidden()
}

/** Ignores letter case, and which of its forms an internationalised name has. */
function sameDomain(one: string, other: string): boolean {
  const normal = domainToASCII(one)
  return normal !== '' && normal === domainToASCII(other)
}
