/**
 * Access tokens for relays: each login gets a current one.
 *
 * 1. A token is used until it ends. From three quarters of its life on, the next login has it renewed meanwhile, so that
 *    no login waits for the token server.
 * 2. A token that the relay refuses is renewed at once, unless it is new: then its age is not what is wrong.
 * 3. One request at a time, among all processes on the database: a server that gives a new refresh token with each
 *    answer may take a second use of the old one for theft, and end both. The new one is stored with the access token,
 *    before either is used.
 * 4. A failure is kept with the server's words, and the server is left alone for as long as it asks, or for a while.
 *
 * What can be lost: where a process dies between the server's answer and our commit, the old refresh token is what is
 * stored. Most servers accept it for a while, or always; one that does not has to be given another by the operator.
 */
import type { Logger } from 'pino'
import { failPoint } from '../../../base/flow/fail-point.ts'
import { pause } from '../../../base/flow/pause.ts'
import type { Clock } from '../../../base/time/clock.ts'
import { MINUTE_MS, SECOND_MS } from '../../../base/time/durations.ts'
import type { HttpClient } from '../../../platform/posts/http-client.ts'
import type { RelayTokenRow } from '../../../platform/store/schema.ts'
import type { Sealer } from '../../../platform/store/secrets/sealing.ts'
import { StaleWrite, type Statement, type Store } from '../../../platform/store/store.ts'
import type { SmtpAuth } from '../../../protocols/smtp/login.ts'
import { NoAccessToken, requestTokens, type TokenGrant, type Tokens } from './token-request.ts'
import { createTokenRows, type LoginKey } from './token-rows.ts'

/** A login by access tokens, as the operator has set it. */
export interface TokenLogin {
  relay: string
  revision: number
  /** `refreshToken`: the one that was given. */
  grant: TokenGrant
}

/** How the tokens of a login are. */
export interface TokenState {
  /** Unix milliseconds; null: there is none. */
  expiresAt: number | null
  /** Why there was none last time; null: there was one. */
  failure: string | null
  failedAt: number | null
}

export interface AccessTokens {
  /** For `SmtpAuth`: resolves a current token. @throws NoAccessToken, Unavailable (the database) */
  of(login: TokenLogin): SmtpAuth['secret']
  stateOf(login: TokenLogin): Promise<TokenState>
  /** Removes what is stored for a relay. */
  removal(relay: string): Statement
  /** Waits for requests in progress. */
  close(): Promise<void>
}

interface AccessTokenParts {
  store: Store
  sealer: Sealer
  clock: Clock
  log: Logger
  client: Pick<HttpClient, 'send'>
  /** Names this process. */
  owner: string
}

const RENEWED_AT = 0.75
/** A younger token is not renewed because a relay refuses it. */
const YOUNG_MS = MINUTE_MS
/** While another process asks the token server. */
const LOOK_EVERY_MS = 250
/** Pauses between attempts to store a new refresh token: 15 seconds in all, within the time that the row is taken. */
const KEEP_PAUSES_MS = [1, 2, 4, 8].map((seconds) => seconds * SECOND_MS)

export function createAccessTokens(parts: AccessTokenParts): AccessTokens {
  const { store, sealer, clock, log, client, owner } = parts
  const rows = createTokenRows(store, sealer, clock, owner)
  /** By login, while they last. */
  const renewals = new Map<string, Promise<string>>()

  /** Scope, secret and authentication may change without another refresh token: they are left out. */
  function keyOf({ relay, revision, grant }: TokenLogin): LoginKey {
    const { tokenUrl, clientId, grant: kind, refreshToken, username } = grant
    const text = JSON.stringify([relay, tokenUrl, clientId, kind, refreshToken, username])
    return { relay, revision, id: sealer.mac('relay-login', text).toString('hex') }
  }

  /** The token of the row, unless it has ended or belongs to an earlier state of the relay. */
  function currentToken(row: RelayTokenRow, { revision }: LoginKey): string | null {
    const isCurrent = Number(row.revision) >= revision && Number(row.expires_at ?? 0) > clock.now()
    return isCurrent ? rows.accessToken(row) : null
  }

  async function tokenOf(login: TokenLogin, refused: string | undefined): Promise<string> {
    const key = keyOf(login)
    const row = await rows.read(key)
    const token = currentToken(row, key)
    if (token === null) return renewed(login, key, null)
    const obtainedAt = Number(row.obtained_at)
    if (token === refused) return clock.now() - obtainedAt < YOUNG_MS ? token : renewed(login, key, token)
    const renewAt = obtainedAt + (Number(row.expires_at) - obtainedAt) * RENEWED_AT
    // Its failure is stored, and shown once there is no token left.
    if (clock.now() >= renewAt) void renewed(login, key, token).catch(() => {})
    return token
  }

  /** A token other than `old`; callers at the same time get the same one. */
  function renewed(login: TokenLogin, key: LoginKey, old: string | null): Promise<string> {
    const running = renewals.get(key.id)
    if (running !== undefined) return running
    const renewal = renew(login, key, old).finally(() => renewals.delete(key.id))
    renewals.set(key.id, renewal)
    return renewal
  }

  async function renew(login: TokenLogin, key: LoginKey, old: string | null): Promise<string> {
    for (;;) {
      const row = await rows.read(key)
      const token = currentToken(row, key)
      if (token !== null && token !== old) return token
      const retryMs = Number(row.retry_at ?? 0) - clock.now()
      if (row.failure !== null && retryMs > 0 && Number(row.revision) >= key.revision)
        throw new NoAccessToken(row.failure, retryMs)
      if (await rows.take(row)) {
        const tokens = await ask(login, key, row)
        if (tokens !== null) return tokens.accessToken
      } else await pause(clock, LOOK_EVERY_MS)
    }
  }

  /** Null: another process has stored tokens meanwhile. @throws NoAccessToken */
  async function ask({ grant }: TokenLogin, key: LoginKey, row: RelayTokenRow): Promise<Tokens | null> {
    try {
      const refreshToken = rows.refreshToken(row) ?? grant.refreshToken
      const tokens = await requestTokens(client, clock, { ...grant, refreshToken })
      failPoint('token-before-commit')
      await keep(key, row, tokens)
      return tokens
    } catch (error) {
      if (error instanceof StaleWrite) return null
      if (!(error instanceof NoAccessToken)) throw error
      log.warn({ relay: key.relay, reason: error.message }, 'no access token for a relay')
      await rows.fail(row, key, error)
      throw error
    }
  }

  /** A database that is away for a moment must not cost a refresh token that is nowhere else. */
  async function keep(key: LoginKey, row: RelayTokenRow, tokens: Tokens): Promise<void> {
    for (const pauseMs of tokens.refreshToken === null ? [] : KEEP_PAUSES_MS) {
      try {
        return await rows.keep(row, key, tokens)
      } catch (error) {
        if (error instanceof StaleWrite) throw error
        log.error({ relay: key.relay, err: error }, 'cannot store the new refresh token of a relay yet')
        await pause(clock, pauseMs)
      }
    }
    await rows.keep(row, key, tokens)
  }

  return {
    of: (login) => (refused) => tokenOf(login, refused),
    async stateOf(login) {
      const key = keyOf(login)
      const row = await rows.read(key)
      const counts = Number(row.revision) >= key.revision
      return {
        expiresAt: counts && row.expires_at !== null ? Number(row.expires_at) : null,
        failure: counts ? row.failure : null,
        failedAt: counts && row.failed_at !== null ? Number(row.failed_at) : null,
      }
    },
    removal: rows.removal,
    close: async () => void (await Promise.allSettled(renewals.values())),
  }
}
