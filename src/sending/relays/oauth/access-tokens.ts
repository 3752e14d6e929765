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
import { failPoint } from '../../../base/flow/fail-point.ts'
import { pause } from '../../../base/flow/pause.ts'
import { MINUTE_MS, SECOND_MS } from '../../../base/time/durations.ts'
import type { Core } from '../../../core.ts'
import type { HttpClient } from '../../../platform/posts/http-client.ts'
import {
  NoAccessToken,
  requestTokens,
  type TokenGrant,
  type Tokens,
} from '../../../platform/posts/oauth/token-request.ts'
import type { RelayTokenRow } from '../../../platform/store/schema.ts'
import { StaleWrite } from '../../../platform/store/store.ts'
import type { SmtpAuth } from '../../../protocols/smtp/login.ts'
import { NO_TOKENS, openSecret, type Relay, type TokenState } from '../relay.ts'
import { createTokenRows, type LoginKey } from './token-rows.ts'

export type AccessTokens = ReturnType<typeof createAccessTokens>

/** A login with its secrets. */
interface TokenLogin extends LoginKey {
  /** `refreshToken`: the one that was given. */
  grant: TokenGrant
}

interface AccessTokenParts extends Pick<Core, 'store' | 'sealer' | 'clock' | 'log'> {
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

export function createAccessTokens(parts: AccessTokenParts) {
  const { store, sealer, clock, log, client, owner } = parts
  const rows = createTokenRows(store, sealer, clock, owner)
  /** By login, while they last. */
  const renewals = new Map<string, Promise<string>>()
  const closing = new AbortController()

  /** Null: it logs in without tokens. @throws as `openSecret` */
  function loginOf(relay: Relay): TokenLogin | null {
    const { name, revision, login } = relay
    if (!login?.oauth) return null
    const { tokenUrl, clientId, grant: kind } = login.oauth
    const refreshToken = openSecret(sealer, relay, 'refresh_token')
    // Scope, secret and authentication may change without another refresh token: they are left out.
    const text = JSON.stringify([name, tokenUrl, clientId, kind, refreshToken, login.username])
    return {
      ...{ relay: name, revision, id: sealer.mac('relay-login', text).toString('hex') },
      grant: {
        ...{ ...login.oauth, refreshToken, username: login.username },
        clientSecret: openSecret(sealer, relay, 'client_secret'),
      },
    }
  }

  async function rowOf(login: TokenLogin): Promise<RelayTokenRow> {
    const row = await rows.read(login)
    if (row === undefined) throw new NoAccessToken(`the relay ${login.relay} was removed`, MINUTE_MS)
    return row
  }

  /** The token of the row, unless it has ended or belongs to an earlier state of the relay. */
  function currentToken(row: RelayTokenRow, { revision }: LoginKey): string | null {
    const isCurrent = Number(row.revision) >= revision && Number(row.expires_at ?? 0) > clock.now()
    return isCurrent ? rows.accessToken(row) : null
  }

  async function tokenOf(relay: Relay, refused: string | undefined): Promise<string> {
    const login = loginOf(relay)
    if (login === null) throw new Error(`the relay ${relay.name} has a password`)
    const row = await rowOf(login)
    const token = currentToken(row, login)
    if (token === null) return renewed(login, null)
    const obtainedAt = Number(row.obtained_at)
    if (token === refused) return clock.now() - obtainedAt < YOUNG_MS ? token : renewed(login, token)
    const renewAt = obtainedAt + (Number(row.expires_at) - obtainedAt) * RENEWED_AT
    // Its failure is stored, and shown once there is no token left.
    if (clock.now() >= renewAt) void renewed(login, token).catch(() => {})
    return token
  }

  /** A token other than `old`; callers at the same time get the same one. */
  function renewed(login: TokenLogin, old: string | null): Promise<string> {
    const running = renewals.get(login.id)
    if (running !== undefined) return running
    const renewal = renew(login, old).finally(() => renewals.delete(login.id))
    renewals.set(login.id, renewal)
    return renewal
  }

  async function renew(login: TokenLogin, old: string | null): Promise<string> {
    for (;;) {
      if (closing.signal.aborted) throw new NoAccessToken('the service is stopping', MINUTE_MS)
      const row = await rowOf(login)
      const token = currentToken(row, login)
      if (token !== null && token !== old) return token
      const retryMs = Number(row.retry_at ?? 0) - clock.now()
      if (row.failure !== null && retryMs > 0 && Number(row.revision) >= login.revision)
        throw new NoAccessToken(row.failure, retryMs)
      if (await rows.take(row)) {
        const tokens = await ask(login, row)
        if (tokens !== null) return tokens.accessToken
      } else await pause(clock, LOOK_EVERY_MS, closing.signal)
    }
  }

  /** Null: another process has stored tokens meanwhile. @throws NoAccessToken */
  async function ask(login: TokenLogin, row: RelayTokenRow): Promise<Tokens | null> {
    try {
      const refreshToken = rows.refreshToken(row) ?? login.grant.refreshToken
      const tokens = await requestTokens(client, clock, { ...login.grant, refreshToken })
      failPoint('token-before-commit')
      await keep(login, row, tokens)
      return tokens
    } catch (error) {
      if (error instanceof StaleWrite) return null
      if (!(error instanceof NoAccessToken)) throw error
      log.warn({ relay: login.relay, reason: error.message }, 'no access token for a relay')
      await rows.fail(row, login, error)
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
        await pause(clock, pauseMs, closing.signal)
      }
    }
    await rows.keep(row, key, tokens)
  }

  return {
    /** For `SmtpAuth`: resolves a current token of the relay's login. @throws NoAccessToken, StoreUnavailable */
    of:
      (relay: Relay): SmtpAuth['secret'] =>
      (refused) =>
        tokenOf(relay, refused),
    async stateOf(relay: Relay): Promise<TokenState> {
      const login = loginOf(relay)
      const row = login ? await rows.find(login) : undefined
      if (row === undefined || Number(row.revision) < (login?.revision ?? 0)) return NO_TOKENS
      const numberOf = (value: number | null) => (value === null ? null : Number(value))
      return {
        ...{ expiresAt: numberOf(row.expires_at), failure: row.failure },
        failedAt: numberOf(row.failed_at),
      }
    },
    /** Ends the waiting for other processes, and waits for requests in progress. */
    async close() {
      closing.abort()
      await Promise.allSettled(renewals.values())
    },
  }
}
