/**
 * Step 2 of a request (dispatch.ts): find the caller by its credentials, check address allowlist and role, and let an
 * account act as its subaccount. Credentials are HTTP Basic (RFC 7617) with user name `api` and an API key, or the
 * dashboard's session cookie. Rights are checked before any resource is looked up, so that a key without a right cannot
 * learn what exists.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { domainToASCII } from 'node:url'
import { isPending, type MaybePromise, remember, whenKnown } from '../../../base/flow/cache.ts'
import { Forbidden, Unauthenticated } from '../../../base/process/errors.ts'
import type { Exchange } from '../exchange.ts'
import type { FailedAttempts } from '../limits/failed-attempts.ts'
import type { OriginPolicy, RemoteAddresses } from '../request/origin.ts'
import {
  type Access,
  type Only,
  type Requirement,
  RIGHTS,
  type Right,
  type RightsArea,
  ROLES,
  type Role,
} from './rights.ts'

export interface Caller {
  accountId: string
  /** Shown to the caller in `<prefix>Key-Id`; a session has an id of its own. */
  keyId: string
  role: Role
  /** `user`, `domain` and `web` keys, the public validation key, or a dashboard session. */
  kind: 'user' | 'domain' | 'web' | 'public' | 'session'
  /** The key that opened a session; null: the session is a user's or the operator's. */
  sessionKeyId?: string | null
  /** The user that the session or key belongs to. */
  userId?: string
  /** The user and epoch that a user's session was opened with, for links that it creates. */
  sessionUser?: { id: string; epoch: number }
  /** The one domain that a domain key may send for. */
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
function credentialsOf(
  headers: IncomingHttpHeaders,
  { bearer }: Pick<Guarded, 'bearer'>,
): Credentials | 'none' | 'wrong' {
  const { authorization } = headers
  if (authorization !== undefined) {
    const secret = basicSecret(bearer === true ? asBasic(authorization) : authorization)
    return secret === undefined ? 'wrong' : { kind: 'key', secret }
  }
  const cookie = cookieValue(headers, SESSION_COOKIE)
  return cookie === undefined ? 'none' : { kind: 'session', cookie }
}

/** Why credentials do not count, for the header of the 401; it tells nobody which keys exist. */
function whyNot(headers: IncomingHttpHeaders, spec: Pick<Guarded, 'bearer'>): string {
  const credentials = credentialsOf(headers, spec)
  if (credentials === 'none') return 'no credentials: send HTTP Basic with user name api and an API key'
  if (credentials !== 'wrong')
    return credentials.kind === 'key' ? 'no such key, or it has expired' : 'the session has ended'
  const { authorization = '' } = headers
  if (!/^basic /i.test(authorization)) return 'the Authorization header is not HTTP Basic'
  return 'the user name is not api, or the header is malformed'
}

/** An Authorization field with a bearer token (RFC 6750 §2.1) as HTTP Basic with that key; any other as it is. */
export function asBasic(authorization: string): string {
  const [, key] = /^bearer +([\x21-\x7e]+) *$/i.exec(authorization) ?? []
  return key === undefined ? authorization : `Basic ${Buffer.from(`api:${key}`).toString('base64')}`
}

const BASIC = /^basic +([A-Za-z0-9+/]+={0,2}) *$/i

/** Secrets by header text: a client sends the same one with each request. */
const secrets = new Map<string, string>()
const SECRETS_MAX = 500

/** The key in an Authorization field of HTTP Basic with user name `api`; undefined: there is none. */
export function basicSecret(authorization: string): string | undefined {
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
  if (caller.kind === 'public' && requirement.publicKey !== true)
    throw new Unauthenticated(undefined, { why: 'the public key may only validate addresses' })
  if (caller.role === 'sending' || caller.kind === 'domain') {
    const domain = requirement.domain === undefined ? undefined : path[requirement.domain]
    const isOwn = domain !== undefined && caller.domain !== undefined && sameDomain(domain, caller.domain)
    if (area !== 'messages:send' || access !== 'write' || !isOwn)
      throw new Unauthenticated(undefined, {
        why: `this key may only send for ${domainToASCII(caller.domain ?? '') || 'its domain'}`,
      })
  }
  if (!mayAccess(caller.role, area, access))
    throw new Forbidden(undefined, { why: `the role ${caller.role} has no right to ${access} here` })
}

/** For what is the operator's alone: callers of the first account. @throws Forbidden for anyone else */
export function checkOperator({ accountId, parentAccountId }: Caller, firstAccountId: string): void {
  if (accountId !== firstAccountId || parentAccountId !== undefined)
    throw new Forbidden(undefined, { why: 'only the first account may do this' })
}

/** Ignores letter case, and which of its forms an internationalised name has. */
function sameDomain(one: string, other: string): boolean {
  const normal = domainToASCII(one)
  return normal !== '' && normal === domainToASCII(other)
}

/** Whether the role has the right; `sending` has one right only, and `authorize` ties it to its domain. */
export function mayAccess(role: Role, area: RightsArea, access: Access): boolean {
  const right: Right = RIGHTS[area][ROLES.indexOf(role)] as Right
  return right.includes(access === 'read' ? 'R' : 'W')
}

/** The rights of one operation, as `x-rights` of the machine description. */
export interface DescribedRights {
  area: RightsArea
  access: Access
  roles: readonly Role[]
  only?: Only
  /** The public key is accepted besides. */
  public_key?: true
}

export function describeRights({ area, access, domain, only, publicKey }: Requirement): DescribedRights {
  // Sending keys are tied to the domain in the path, so without one they have no right.
  const hasRight = (role: Role) =>
    mayAccess(role, area, access) && (role !== 'sending' || domain !== undefined)
  return {
    area,
    access,
    roles: ROLES.filter(hasRight),
    ...(only !== undefined && { only }),
    ...(publicKey && { public_key: true as const }),
  }
}

export interface AuthenticationParts {
  authenticator: Authenticator
  failedAttempts: FailedAttempts
  origin: OriginPolicy
  remote: RemoteAddresses
  /** `X-Service-`; headers are written with it. */
  headerPrefix: string
  /** Read as well, never written. */
  headerPrefixAliases: readonly string[]
}

/** What an operation says about its callers (operation.ts). */
export interface Guarded {
  auth: 'public' | Requirement
  onBehalfOf?: 'act' | 'argument'
  plainText401?: boolean
  bearer?: boolean
}

export type Authentication = ReturnType<typeof createAuthentication>

export function createAuthentication(parts: AuthenticationParts) {
  const { authenticator, failedAttempts, origin, remote } = parts
  const keyIdName = `${parts.headerPrefix}Key-Id`.toLowerCase()
  const onBehalfOfNames = [parts.headerPrefix, ...parts.headerPrefixAliases].map((prefix) =>
    `${prefix}On-Behalf-Of`.toLowerCase(),
  )

  /** Null: no credentials, or wrong ones. A wrong key counts as a guess, a session that has ended does not. */
  function callerOf(
    { headers, arrival }: Exchange,
    spec: Guarded,
    address: string,
  ): MaybePromise<Caller | null> {
    const credentials = credentialsOf(headers, spec)
    if (credentials === 'none') return null
    const attempted = (caller: Caller | null) => {
      if (caller === null) failedAttempts.wrongKey(address)
      return caller
    }
    if (credentials === 'wrong') return attempted(null)
    if (credentials.kind === 'session') {
      if (!origin.knowsHost(headers))
        throw new Forbidden(undefined, { why: 'sessions count only under a configured host name' })
      return authenticator.session(credentials.cookie, true)
    }
    return whenKnown(authenticator.key(credentials.secret, arrival.isLocal), attempted)
  }

  async function actingAs(caller: Caller, subaccountId: string): Promise<Caller> {
    if (caller.kind === 'domain' || caller.kind === 'public')
      throw new Forbidden(undefined, { why: 'this key may not act for another account' })
    const acting = await authenticator.subaccount(caller, subaccountId)
    if (acting === null) throw new Forbidden(undefined, { why: 'no such subaccount of this account' })
    return acting
  }

  /** The `<prefix>On-Behalf-Of` id as sent. */
  function onBehalfOf(headers: IncomingHttpHeaders): string | undefined {
    for (const name of onBehalfOfNames) if (headers[name]) return String(headers[name])
    return undefined
  }

  return {
    /** @throws Unauthenticated, Forbidden; TooManyRequests after too many wrong keys */
    async authenticate(requirement: Requirement, spec: Guarded, exchange: Exchange): Promise<Caller> {
      const address = remote.address(exchange.arrival)
      const found = callerOf(exchange, spec, address)
      const presented = isPending(found) ? await found : found
      if (presented === null) {
        await failedAttempts.delay(address)
        throw new Unauthenticated(undefined, { why: whyNot(exchange.headers, spec) })
      }
      exchange.presented = presented
      exchange.setHeader(keyIdName, presented.keyId)
      const allowed = authenticator.addressAllowed(presented, address)
      if ((isPending(allowed) ? await allowed : allowed) !== true) {
        const why = `the account does not allow calls from ${address}`
        throw spec.plainText401 === true
          ? new Unauthenticated('Forbidden', { why })
          : new Forbidden(undefined, { why })
      }
      authorize(presented, requirement, exchange.path)
      const subaccountId = spec.onBehalfOf === 'argument' ? undefined : onBehalfOf(exchange.headers)
      if (subaccountId === undefined || subaccountId === presented.accountId) return presented
      return actingAs(presented, subaccountId)
    },
    /** For long answers: keys are deleted meanwhile, sessions end. */
    async isStillAllowed(spec: Guarded, { headers, path, arrival }: Exchange): Promise<boolean> {
      const { auth } = spec
      if (auth === 'public') return true
      const credentials = credentialsOf(headers, spec)
      if (typeof credentials === 'string') return false
      try {
        const caller = await (credentials.kind === 'key'
          ? authenticator.key(credentials.secret, arrival.isLocal)
          : authenticator.session(credentials.cookie, false))
        if (caller === null) return false
        authorize(caller, auth, path)
        return await authenticator.addressAllowed(caller, remote.address(arrival))
      } catch {
        return false
      }
    },
    onBehalfOf,
  }
}
