/**
 * The OpenID Connect provider: authorization code flow with PKCE, state and nonce (OpenID Connect Core §3.1).
 *
 * 1. The metadata is read by discovery when somebody signs in first, and kept for an hour; a failure for seconds.
 * 2. The ID token's signature is checked, though it comes from the token endpoint over TLS.
 * 3. Claims that the ID token lacks are read from the userinfo endpoint.
 */
import {
  AuthorizationResponseError,
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  type Configuration,
  calculatePKCECodeChallenge,
  clockTolerance,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
  None,
} from 'openid-client'
import { createCache } from '../../base/flow/cache.ts'
import type { Core } from '../../core.ts'
import type { OidcConfig } from '../../platform/config/watching.ts'
import { type Attempt, begunAt } from './attempts.ts'
import { type Claims, hasClaim, type Identity, isSubject, verifiedEmail } from './claims.ts'
import { type ProviderFetch, ProviderUnreachable } from './provider-fetch.ts'
import { SignInRefused } from './refused.ts'

export type Provider = ReturnType<typeof createProvider>

const METADATA_MS = 3_600_000
/** So that a provider that is down does not get a request for each that we get. */
const FAILURE_MS = 5_000
/** Clocks of provider and service may differ by this much. */
const TOLERANCE_SECONDS = 30

interface ProviderParts extends Pick<Core, 'clock' | 'log'> {
  oidc: OidcConfig
  redirectUri: string
  fetch: ProviderFetch['fetch']
}

export function createProvider({ oidc, redirectUri, fetch, clock, log }: ProviderParts) {
  const metadata = createCache({ clock, ttlMs: METADATA_MS, entriesMax: 1, load: discover })
  let failedAt = Number.NEGATIVE_INFINITY

  const isLocal = new URL(oidc.issuer).protocol === 'http:'

  async function discover(): Promise<Configuration> {
    const config = await discovery(
      new URL(oidc.issuer),
      oidc.clientId,
      { [clockTolerance]: TOLERANCE_SECONDS },
      clientAuthentication(oidc.clientSecret),
      {
        [customFetch]: fetch,
        execute: [enableNonRepudiationChecks, ...(isLocal ? [allowInsecureRequests] : [])],
      },
    )
    checkAuthorizationEndpoint(config)
    return config
  }

  /** The dashboard goes there: it must not be a script. */
  function checkAuthorizationEndpoint(config: Configuration): void {
    const { protocol } = new URL(config.serverMetadata().authorization_endpoint ?? 'none:')
    if (protocol !== 'https:' && !(isLocal && protocol === 'http:'))
      throw new Error(`unusable authorization endpoint of ${protocol}`)
  }

  async function configuration(): Promise<Configuration> {
    if (clock.monotonic() - failedAt < FAILURE_MS) throw unreachable(oidc.label)
    try {
      return await metadata.get('')
    } catch (error) {
      failedAt = clock.monotonic()
      log.error({ reason: reasonOf(error) }, 'cannot read the metadata of the OpenID Connect provider')
      throw unreachable(oidc.label)
    }
  }

  /** The claims of the ID token, and those that only userinfo has. */
  async function claimsOf(config: Configuration, idClaims: Claims, token: string, subject: string) {
    const { roleClaim } = oidc
    const isComplete =
      verifiedEmail(idClaims) !== null && (roleClaim === null || hasClaim(idClaims, roleClaim))
    if (isComplete || config.serverMetadata().userinfo_endpoint === undefined) return idClaims
    return { ...(await fetchUserInfo(config, token, subject)), ...idClaims }
  }

  return {
    /** Where the browser signs in. @throws SignInRefused with 503 */
    async authorizationUrl({ state, nonce, verifier, isProof }: Attempt): Promise<string> {
      const config = await configuration()
      const url = buildAuthorizationUrl(config, {
        redirect_uri: redirectUri,
        scope: oidc.scopes,
        response_type: 'code',
        state,
        nonce,
        code_challenge: await calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        // Without them a provider answers from the session of the browser, whoever sits there (OpenID Connect Core §3.1.2.1).
        ...(isProof && { prompt: 'login', max_age: '0' }),
      })
      return url.href
    },
    /** Who came back with this query of the redirect. @throws SignInRefused */
    async identify(query: URLSearchParams, attempt: Attempt): Promise<Identity> {
      const { state, nonce, verifier } = attempt
      const config = await configuration()
      try {
        const tokens = await authorizationCodeGrant(config, new URL(`${redirectUri}?${query}`), {
          pkceCodeVerifier: verifier,
          expectedState: state,
          expectedNonce: nonce,
          idTokenExpected: true,
        })
        const idClaims = tokens.claims()
        if (idClaims === undefined || !isSubject(idClaims.sub)) throw new Error('no usable subject')
        const claims = await claimsOf(config, idClaims, tokens.access_token, idClaims.sub)
        return {
          issuer: idClaims.iss,
          subject: idClaims.sub,
          claims,
          isFresh: isFresh(idClaims, attempt),
        }
      } catch (error) {
        log.warn({ reason: reasonOf(error) }, 'a sign-in with the OpenID Connect provider failed')
        throw refusalOf(error, oidc.label)
      }
    },
  }
}

/** By the signed `auth_time`, in seconds (OpenID Connect Core §2, §3.1.3.7). A provider that does not say when has not. */
const isFresh = ({ auth_time: at }: Claims, attempt: Attempt): boolean =>
  typeof at === 'number' && at + TOLERANCE_SECONDS >= Math.floor(begunAt(attempt) / 1000)

/** As the provider says; OpenID Connect Discovery §3 has Basic as the default. */
function clientAuthentication(secret: string | null): ClientAuth {
  if (secret === null) return None()
  return (server, ...rest) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
    const isBasic = methods.includes('client_secret_basic')
    return (isBasic ? ClientSecretBasic(secret) : ClientSecretPost(secret))(server, ...rest)
  }
}

const unreachable = (label: string) =>
  new SignInRefused(`Signing in with ${label} does not work at the moment. Try again in a few minutes`, 503)

function refusalOf(error: unknown, label: string): SignInRefused {
  if (causesOf(error).some((cause) => cause instanceof ProviderUnreachable)) return unreachable(label)
  if (error instanceof AuthorizationResponseError)
    return new SignInRefused(`The sign-in was cancelled, or ${label} refused it`)
  return new SignInRefused(`The answer of ${label} was not valid, or had been used before`)
}

/** Messages and codes only: causes hold responses with tokens and personal data. */
function reasonOf(error: unknown): string {
  return causesOf(error)
    .map(({ message, ...rest }) => {
      const { code, error: name } = rest as { code?: unknown; error?: unknown }
      return [message, code, name].filter((part) => typeof part === 'string').join(' ')
    })
    .join(': ')
    .slice(0, 500)
}

function causesOf(error: unknown): Error[] {
  const causes: Error[] = []
  for (let cause = error; cause instanceof Error && causes.length < 5; cause = cause.cause) causes.push(cause)
  return causes
}
