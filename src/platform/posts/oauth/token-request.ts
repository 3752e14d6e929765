/**
 * Asks a token server for an access token: with the client's own rights (RFC 6749 §4.4), with a refresh token (§6), or
 * with a signed assertion (RFC 7523 §2.1, as Google's service accounts do).
 *
 * Responses are bounded in bytes and time by the client. Secrets go over https, or to this machine, and are in no error.
 */
import { sign } from 'node:crypto'
import { foreignJsonIn } from '../../../base/foreign-json.ts'
import { printableLine } from '../../../base/printable.ts'
import type { Clock } from '../../../base/time/clock.ts'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../base/time/durations.ts'
import { isPlainObject } from '../../../base/values.ts'
import { confidentialUrl } from '../../config/parsers.ts'
import {
  type HttpClient,
  type HttpOutcome,
  RESPONSE_MAX_BYTES,
  retryAfterMs,
  withAdvice,
} from '../http-client.ts'

/** Where access tokens come from, and how they are asked for. */
export interface OAuthLogin {
  tokenUrl: string
  clientId: string
  scope: string | null
  grant: 'client_credentials' | 'refresh_token' | 'jwt_bearer'
  clientAuth: 'body' | 'basic'
}

/** What a token is asked for with. */
export interface TokenGrant extends OAuthLogin {
  /** For `jwt_bearer` the private key, PEM. Null: a public client. */
  clientSecret: string | null
  /** For that grant. */
  refreshToken: string | null
  /** Whom an assertion is about; null: the client itself, which Google wants without `sub`. */
  username: string | null
}

export interface Tokens {
  accessToken: string
  lifetimeMs: number
  /** The one to use from now on; null: the old one stays (RFC 6749 §6). */
  refreshToken: string | null
}

/** No access token. The message has the server's words, and no secret. */
export class NoAccessToken extends Error {
  /** When it is worth asking again, from now. */
  readonly retryMs: number

  constructor(message: string, retryMs: number) {
    super(message)
    this.retryMs = retryMs
  }
}

/** Where the server does not say how long a token lives. */
const LIFETIME_MS = 5 * MINUTE_MS
const LIFETIME_MAX_MS = 366 * 24 * HOUR_MS
/** As much as a login can send (protocols/smtp/login.ts), and refresh tokens likewise. */
const TOKEN_LENGTH_MAX = 9_000
const REASON_LENGTH_MAX = 300
/** Until somebody changes something there or here. */
const REFUSED_RETRY_MS = 5 * MINUTE_MS
const FAILED_RETRY_MS = 30 * SECOND_MS
/** Google takes no longer one. */
const ASSERTION_SECONDS = 3_600
const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'

/** @throws NoAccessToken */
export async function requestTokens(
  client: Pick<HttpClient, 'send'>,
  clock: Clock,
  grant: TokenGrant,
): Promise<Tokens> {
  const url = confidentialUrl(grant.tokenUrl)
  if (url === null) throw new NoAccessToken('the token URL is not https', REFUSED_RETRY_MS)
  const { headers, fields } = requestOf(grant, Math.floor(clock.now() / SECOND_MS))
  const outcome = await client.send({
    url: url.href,
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      accept: 'application/json',
      ...headers,
    },
    body: Buffer.from(new URLSearchParams(fields).toString()),
  })
  try {
    return readTokens(outcome, clock.now())
  } catch (error) {
    if (!(error instanceof NoAccessToken)) throw error
    throw new NoAccessToken(`${url.host}: ${withoutSecrets(error.message, grant)}`, error.retryMs)
  }
}

function requestOf(grant: TokenGrant, now: number) {
  const { clientId, clientSecret, clientAuth, scope, refreshToken } = grant
  const asked: Record<string, string> = scope === null ? {} : { scope }
  if (grant.grant === 'jwt_bearer')
    return { headers: {}, fields: { grant_type: JWT_BEARER, assertion: assertionOf(grant, now) } }
  const fields = {
    ...{ grant_type: grant.grant, ...asked },
    ...(grant.grant === 'refresh_token' && { refresh_token: refreshToken ?? '' }),
  }
  if (clientSecret === null) return { headers: {}, fields: { ...fields, client_id: clientId } }
  if (clientAuth === 'basic') {
    const pair = Buffer.from(`${formEncoded(clientId)}:${formEncoded(clientSecret)}`)
    return { headers: { authorization: `Basic ${pair.toString('base64')}` }, fields }
  }
  return { headers: {}, fields: { ...fields, client_id: clientId, client_secret: clientSecret } }
}

const formEncoded = (text: string) => new URLSearchParams([['', text]]).toString().slice(1)

/** RFC 7523 §3, signed with RS256 (RFC 7518 §3.3). */
function assertionOf({ clientId, clientSecret, tokenUrl, scope, username }: TokenGrant, now: number): string {
  const claims = { iss: clientId, aud: tokenUrl, iat: now, exp: now + ASSERTION_SECONDS }
  const parts = [
    { alg: 'RS256', typ: 'JWT' },
    { ...claims, ...(username !== null && { sub: username }), ...(scope !== null && { scope }) },
  ]
  const text = parts.map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  try {
    return `${text}.${sign('sha256', Buffer.from(text), clientSecret ?? '').toString('base64url')}`
  } catch {
    throw new NoAccessToken('the client secret is not a private key (PEM)', REFUSED_RETRY_MS)
  }
}

function readTokens(outcome: HttpOutcome, now: number): Tokens {
  if (outcome.kind !== 'answered') throw new NoAccessToken(withAdvice(outcome.why), FAILED_RETRY_MS)
  const { status, body } = outcome
  if (body.byteLength >= RESPONSE_MAX_BYTES)
    throw new NoAccessToken(`response of more than ${RESPONSE_MAX_BYTES} bytes`, FAILED_RETRY_MS)
  const answer = objectIn(body)
  if (status !== 200 || typeof answer['error'] === 'string') throw refusalOf(outcome, answer, now)
  const { access_token: accessToken, token_type: type, refresh_token: refreshToken } = answer
  if (!isToken(accessToken)) throw new NoAccessToken('response without an access token', FAILED_RETRY_MS)
  if (typeof type !== 'string' || type.toLowerCase() !== 'bearer')
    throw new NoAccessToken('the token is no bearer token', REFUSED_RETRY_MS)
  return {
    accessToken,
    lifetimeMs: lifetimeOf(answer['expires_in']),
    refreshToken: isToken(refreshToken) ? refreshToken : null,
  }
}

/** Empty for what is no JSON object. */
function objectIn(body: Buffer): Record<string, unknown> {
  const value = foreignJsonIn(body.toString())
  return isPlainObject(value) ? value : {}
}

/** Visible ASCII (RFC 6750 §2.1 allows less). */
const isToken = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= TOKEN_LENGTH_MAX && /^[\x21-\x7e]+$/.test(value)

/** Some servers write the number of seconds as a text. */
function lifetimeOf(seconds: unknown): number {
  const ms = Number(seconds ?? Number.NaN) * SECOND_MS
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), LIFETIME_MAX_MS) : LIFETIME_MS
}

/** RFC 6749 §5.2: `error` and `error_description`; some give no JSON. */
function refusalOf(
  { status, retryAfter }: Extract<HttpOutcome, { kind: 'answered' }>,
  answer: Record<string, unknown>,
  now: number,
): NoAccessToken {
  const { error, error_description: description } = answer
  const words = [error, description].filter((part) => typeof part === 'string' && part !== '')
  // Microsoft adds lines with ids of the request.
  const reason = words.map((part) => (part as string).split(/[\r\n]/, 1)[0]).join(': ')
  const isBusy = status === 429 || status >= 500
  const retryMs = isBusy ? (retryAfterMs(retryAfter, now) ?? FAILED_RETRY_MS) : REFUSED_RETRY_MS
  return new NoAccessToken(reason || `status ${status}`, retryMs)
}

function withoutSecrets(message: string, { clientSecret, refreshToken }: TokenGrant): string {
  const shown = [clientSecret, refreshToken].reduce<string>(
    (text, secret) => (secret ? text.replaceAll(secret, '[hidden]') : text),
    message,
  )
  return printableLine(shown).slice(0, REASON_LENGTH_MAX)
}
