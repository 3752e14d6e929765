/** A relay as it is in memory, from a row or from SENDWRIGHT_DELIVERY, and how a request becomes one. Pure. */
import { createPrivateKey } from 'node:crypto'
import { isIP } from 'node:net'
import { BadRequest } from '../../base/process/errors.ts'
import { isOwnMachine } from '../../mail/deliver/connect/relay.ts'
import { confidentialUrl, hostName } from '../../platform/config/parsers.ts'
import type { DeliveryMode } from '../../platform/config/sending.ts'
import type { OAuthLogin } from '../../platform/posts/oauth/token-request.ts'
import type { RelayRow } from '../../platform/store/schema.ts'
import type { Sealer } from '../../platform/store/secrets/sealing.ts'
import { bareAddress, parseMailbox, readOrNull } from '../../protocols/mime/address.ts'
import { DIRECT, type GivenRelay, type RelayView } from './shapes.ts'

type Tls = RelayView['tls']
type Mechanism = NonNullable<RelayView['login']>['mechanism']

/** How the access tokens of a login are. */
export interface TokenState {
  /** Unix milliseconds; null: there is none. */
  expiresAt: number | null
  /** Why there was none last time; null: there was one. */
  failure: string | null
  failedAt: number | null
}

export interface RelayLogin {
  mechanism: Mechanism
  username: string
  oauth: OAuthLogin | null
}

export const NO_TOKENS: TokenState = { expiresAt: null, failure: null, failedAt: null }

/** `secrets` are sealed, except for the password of the setting. */
export interface Relay {
  name: string
  host: string
  port: number
  tls: Tls
  allowUnverified: boolean
  login: RelayLogin | null
  secrets: Readonly<Record<Secret, Uint8Array | null>>
  limits: RelayView['limits']
  alters: RelayView['alters']
  /** The envelope sender of all its mail; null: a return path for each delivery. */
  returnPath: string | null
  /** Null: to all accounts. */
  offeredTo: readonly string[] | null
  /** Changes with where and how to connect: connections opened before are not used. */
  revision: number
  /** Unix milliseconds; null: it comes from the setting. */
  createdAt: number | null
  updatedAt: number | null
}

export type Secret = 'password' | 'client_secret' | 'refresh_token'
const SECRETS: readonly Secret[] = ['password', 'client_secret', 'refresh_token']
const SEALED_AS = 'relay'

/** The relay that SENDWRIGHT_DELIVERY names. */
export const DEFAULT_RELAY = 'default'

/** @throws as `Sealer.open` */
export const openSecret = (
  sealer: Pick<Sealer, 'open'>,
  { name, secrets }: Pick<Relay, 'name' | 'secrets'>,
  secret: Secret,
): string | null => {
  const sealed = secrets[secret]
  return sealed === null ? null : sealer.open(SEALED_AS, sealed, `${name} ${secret}`).toString()
}

export const sealSecret = (
  sealer: Pick<Sealer, 'seal'>,
  name: string,
  secret: Secret,
  plain: string,
): Uint8Array => sealer.seal(SEALED_AS, plain, `${name} ${secret}`)

const NO_SECRETS = { password: null, client_secret: null, refresh_token: null }
const NO_LIMITS: Relay['limits'] = {
  connections: null,
  messages_per_connection: null,
  messages_per_second: null,
  messages_per_day: null,
  max_message_size: null,
}

/** Null: the setting names none. */
export function relayOfSetting(mode: DeliveryMode, sealer: Pick<Sealer, 'seal'>): Relay | null {
  if (mode.kind !== 'relay') return null
  const { host, port, tls, auth } = mode
  return {
    ...{ name: DEFAULT_RELAY, host, port, tls },
    allowUnverified: auth?.allowUnverified ?? false,
    login: auth && { mechanism: 'auto', username: auth.user, oauth: null },
    secrets: auth
      ? { ...NO_SECRETS, password: sealSecret(sealer, DEFAULT_RELAY, 'password', auth.password) }
      : NO_SECRETS,
    limits: NO_LIMITS,
    alters: { return_path: false, message_id: false },
    returnPath: null,
    offeredTo: [],
    revision: 0,
    createdAt: null,
    updatedAt: null,
  }
}

const orNull = (value: number | null) => (value === null ? null : Number(value))

export function relayOfRow(row: RelayRow): Relay {
  return {
    name: row.name,
    host: row.host,
    port: Number(row.port),
    tls: row.tls,
    allowUnverified: Number(row.allow_unverified) === 1,
    login:
      row.mechanism === null
        ? null
        : {
            mechanism: row.mechanism,
            username: row.username ?? '',
            oauth: row.oauth_json === null ? null : (JSON.parse(row.oauth_json) as OAuthLogin),
          },
    secrets: {
      password: row.password_sealed,
      client_secret: row.client_secret_sealed,
      refresh_token: row.refresh_token_sealed,
    },
    limits: {
      connections: orNull(row.connections),
      messages_per_connection: orNull(row.messages_per_connection),
      messages_per_second: orNull(row.messages_per_second),
      messages_per_day: orNull(row.messages_per_day),
      max_message_size: orNull(row.max_message_size),
    },
    alters: {
      return_path: Number(row.alters_return_path) === 1,
      message_id: Number(row.alters_message_id) === 1,
    },
    returnPath: row.return_path,
    offeredTo: row.offered_json === null ? null : (JSON.parse(row.offered_json) as string[]),
    revision: Number(row.revision),
    createdAt: Number(row.created_at),
    updatedAt: Number(row.updated_at),
  }
}

/** `secrets`: those that the request gives, and those that stay. */
export function rowOfRelay(relay: Relay, now: number): RelayRow {
  const { login, secrets, limits, alters, offeredTo } = relay
  return {
    ...{ name: relay.name, host: relay.host, port: relay.port, tls: relay.tls },
    allow_unverified: relay.allowUnverified ? 1 : 0,
    mechanism: login?.mechanism ?? null,
    username: login?.username ?? null,
    oauth_json: login?.oauth ? JSON.stringify(login.oauth) : null,
    password_sealed: secrets.password,
    client_secret_sealed: secrets.client_secret,
    refresh_token_sealed: secrets.refresh_token,
    ...limits,
    alters_return_path: alters.return_path ? 1 : 0,
    alters_message_id: alters.message_id ? 1 : 0,
    return_path: relay.returnPath,
    offered_json: offeredTo === null ? null : JSON.stringify(offeredTo),
    revision: relay.revision,
    created_at: relay.createdAt ?? now,
    updated_at: now,
  }
}

const PORTS: Readonly<Record<Tls, number>> = { starttls: 587, implicit: 465, none: 25 }

/**
 * The relay of a request. Absent secrets are those of `before`, unless they would go to another server.
 * @throws BadRequest for a fault, or a missing secret
 */
export function givenRelay(
  name: string,
  given: GivenRelay,
  before: Relay | null,
  sealer: Pick<Sealer, 'seal'>,
): Relay {
  if (name === DIRECT || name === DEFAULT_RELAY)
    throw new BadRequest(`"${name}" is the name of what is always there`)
  const { tls = 'starttls', allow_unverified: allowUnverified = false } = given
  const host = givenHost(given.host)
  if (tls === 'none' && !allowUnverified && !isOwnMachine(host))
    throw new BadRequest('Without TLS, a relay that is not on this machine needs allow_unverified')
  const port = given.port ?? PORTS[tls]
  const login = loginOf(given.login ?? null)
  const { limits = {}, alters = {}, offered_to: offered = [] } = given
  const returnPath = givenReturnPath(given.return_path ?? null)
  return {
    ...{ name, host, port, tls, allowUnverified, login },
    secrets: secretsOf(name, { host, login }, given.login ?? null, before, sealer),
    limits: { ...NO_LIMITS, ...limits },
    alters: {
      return_path: returnPath !== null || (alters.return_path ?? false),
      message_id: alters.message_id ?? false,
    },
    returnPath,
    offeredTo: offered === 'all' ? null : offered,
    revision: (before?.revision ?? 0) + 1,
    createdAt: before?.createdAt ?? null,
    updatedAt: null,
  }
}

function givenHost(text: string): string {
  if (isIP(text) !== 0) return text
  try {
    return hostName(text).toLowerCase()
  } catch {
    throw new BadRequest('Invalid parameter: host')
  }
}

/** One address in ASCII, since a relay that wants a certain one need not know SMTPUTF8. */
function givenReturnPath(text: string | null): string | null {
  if (text === null) return null
  const address = readOrNull(() => bareAddress(parseMailbox(text)))
  if (address !== null && /^[!-~]+$/.test(address)) return address
  throw new BadRequest('Invalid parameter: return_path')
}

type GivenLogin = NonNullable<GivenRelay['login']>

function loginOf(given: GivenLogin | null): RelayLogin | null {
  if (given === null) return null
  const { username, oauth = null, mechanism = oauth === null ? 'auto' : 'xoauth2' } = given
  const wantsToken = mechanism === 'xoauth2' || mechanism === 'oauthbearer'
  if (/[\0\r\n]/.test(username)) throw new BadRequest('Invalid parameter: login.username')
  if (wantsToken !== (oauth !== null))
    throw new BadRequest(
      wantsToken ? `${mechanism} needs login.oauth` : `login.oauth is for xoauth2 and oauthbearer`,
    )
  if (oauth === null) return { mechanism, username, oauth: null }
  const { token_url: tokenUrl, client_id: clientId, scope = null, grant } = oauth
  const { client_auth: clientAuth = 'body' } = oauth
  if (confidentialUrl(tokenUrl) === null) throw new BadRequest('Invalid parameter: login.oauth.token_url')
  return { mechanism, username, oauth: { tokenUrl, clientId, scope, grant, clientAuth } }
}

/** Which secrets a login needs. */
function neededSecrets({ oauth }: RelayLogin): Secret[] {
  if (oauth === null) return ['password']
  return oauth.grant === 'refresh_token' ? ['refresh_token'] : ['client_secret']
}

function secretsOf(
  name: string,
  { host, login }: Pick<Relay, 'host' | 'login'>,
  given: GivenLogin | null,
  before: Relay | null,
  sealer: Pick<Sealer, 'seal'>,
): Relay['secrets'] {
  if (login === null) return NO_SECRETS
  const texts: Record<Secret, string | undefined> = {
    password: login.oauth === null ? given?.password : undefined,
    client_secret: given?.oauth?.client_secret,
    refresh_token: given?.oauth?.refresh_token,
  }
  // An access token goes to the host, so that another host must not get one with the secrets that are stored.
  const known = before?.host === host ? before.login : null
  const isClient = isSameClient(login, known)
  const stays: Readonly<Record<Secret, boolean>> = {
    password: login.oauth === null && known?.username === login.username,
    client_secret: isClient,
    refresh_token: isClient,
  }
  const secrets = Object.fromEntries(
    SECRETS.map((secret) => {
      const plain = texts[secret]
      const fault = plain ? secretFault(secret, plain, login) : null
      if (fault !== null) throw new BadRequest(fault)
      const kept = stays[secret] ? (before?.secrets[secret] ?? null) : null
      return [secret, plain === undefined || plain === '' ? kept : sealSecret(sealer, name, secret, plain)]
    }),
  ) as Record<Secret, Uint8Array | null>
  const missing = neededSecrets(login).find((secret) => secrets[secret] === null)
  if (missing !== undefined) throw new BadRequest(`Missing mandatory parameter: ${missing}`)
  return secrets
}

function secretFault(secret: Secret, plain: string, { oauth }: RelayLogin): string | null {
  if (secret === 'client_secret' && oauth?.grant === 'jwt_bearer')
    return isRsaKey(plain) ? null : 'client_secret is not an RSA private key (PEM)'
  return /[\0\r\n]/.test(plain) ? `Invalid parameter: ${secret}` : null
}

function isRsaKey(pem: string): boolean {
  try {
    return createPrivateKey(pem).asymmetricKeyType === 'rsa'
  } catch {
    return false
  }
}

/** A private key is no client secret, which is sent to the token server. */
const isSameClient = ({ oauth }: RelayLogin, before: RelayLogin | null | undefined): boolean =>
  oauth !== null &&
  before?.oauth?.tokenUrl === oauth.tokenUrl &&
  before.oauth.clientId === oauth.clientId &&
  (before.oauth.grant === 'jwt_bearer') === (oauth.grant === 'jwt_bearer')

const isoTime = (time: number | null) => (time === null ? null : new Date(time).toISOString())

/** What changes while it is used. */
export type RelayNow = Pick<RelayView, 'state' | 'pause' | 'used_today' | 'since_start'>

/** `state`: of its access tokens, where it has any. */
export function relayView(relay: Relay, state: TokenState, now: RelayNow): RelayView {
  const { login, secrets } = relay
  return {
    ...{ name: relay.name, from_setting: relay.createdAt === null },
    ...{ host: relay.host, port: relay.port, tls: relay.tls, allow_unverified: relay.allowUnverified },
    login: login && {
      ...{ mechanism: login.mechanism, username: login.username, has_password: secrets.password !== null },
      oauth: login.oauth && {
        token_url: login.oauth.tokenUrl,
        client_id: login.oauth.clientId,
        scope: login.oauth.scope,
        grant: login.oauth.grant,
        has_client_secret: secrets.client_secret !== null,
        client_auth: login.oauth.clientAuth,
        has_refresh_token: secrets.refresh_token !== null,
        expires_at: isoTime(state.expiresAt),
        error: state.failure,
        error_at: isoTime(state.failedAt),
      },
    },
    limits: relay.limits,
    alters: relay.alters,
    return_path: relay.returnPath,
    offered_to: relay.offeredTo ?? 'all',
    ...now,
    created_at: isoTime(relay.createdAt),
    updated_at: isoTime(relay.updatedAt),
  }
}
